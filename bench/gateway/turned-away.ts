/**
 * The cost of refused requests for the whole service, compared with a bare uWebSockets handler in the same run: an
 * invalid proof of work (no database), a verified token. And one request that an actor answers. Needs wrk.
 *
 *     node dist/bench/gateway/turned-away.js
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type Contender, compare, publish } from '../harness.js'
import { wrk } from '../wrk.js'
import { contender } from './generator.js'
import type { WholeRequests } from './whole-server.js'

const CONNECTIONS = 32

let child: ChildProcess | undefined
let port = 0
let requests: WholeRequests | undefined
let users = 0

async function cpuSeconds(): Promise<number> {
  child!.send({})
  const [message] = (await once(child!, 'message')) as [{ cpuSeconds: number }]
  return message.cpuSeconds
}

/** All requests go to one service. */
function whole(name: string, which: keyof WholeRequests, target: number): Contender {
  return {
    name,
    target,
    by: 'cpu',
    async setUp() {
      users += 1
      if (child !== undefined) return
      child = fork(new URL('./whole-server.js', import.meta.url), {
        env: { ...process.env, NODE_ENV: 'production' },
      })
      const [message] = (await once(child, 'message')) as [
        { port: number; requests: WholeRequests },
      ]
      port = message.port
      requests = message.requests
    },
    async tearDown() {
      users -= 1
      if (users > 0) return
      const gone = once(child!, 'exit')
      child!.disconnect()
      await gone
    },
    async run(ms) {
      const { path, refused, ...request } = requests![which]
      const before = await cpuSeconds()
      const url = `http://localhost:${port}${path}`
      const measured = await wrk(url, { ...request, refused }, CONNECTIONS, ms)
      return { ...measured, cpuSeconds: (await cpuSeconds()) - before }
    },
  }
}

await publish(
  await compare({
    name: `Turned away by the whole service over HTTP/1.1, wrk -c${CONNECTIONS}`,
    ms: 3_000,
    reference: contender({
      name: 'bare uWebSockets',
      server: 'uws',
      path: '/',
      protocol: 'http1',
    }),
    contenders: [
      whole('proof of work with a wrong nonce', 'wrongNonce', 0.2),
      whole('bearer token checked, kind of caller refused', 'bearer', 0.35),
      whole('bearer token checked, query refused', 'query', 0.35),
      whole('discovery document, asked of its actor', 'hop', 0.3),
    ],
  }),
)
