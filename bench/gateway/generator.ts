/** Runs a server in its own process and a load generator (wrk, h2load) against it. */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import type { Contender, Measured } from '../harness.js'
import { type Repeated, wrk } from '../wrk.js'

const run = promisify(execFile)

export type Target = Pick<Contender, 'name' | 'target' | 'by'> & {
  /** Name of the server in servers.ts. */
  readonly server: string
  readonly path: string
  readonly protocol: 'http1' | 'http2'
  /** Sent with http1 in place of a plain GET. */
  readonly request?: Repeated | undefined
}

export function contender(target: Target): Contender {
  let child: ChildProcess | undefined
  let port = 0
  return {
    name: target.name,
    target: target.target,
    by: target.by,
    async setUp() {
      const script = new URL('./servers.js', import.meta.url)
      child = fork(script, [target.server, 'unlimited'], {
        env: { ...process.env, NODE_ENV: 'production' },
      })
      const [message] = (await once(child, 'message')) as [{ port: number }]
      port = message.port
    },
    async tearDown() {
      child?.disconnect()
    },
    async run(ms) {
      const before = await cpuOf(child!)
      const answered = await load(target, port, ms)
      return { ...answered, cpuSeconds: (await cpuOf(child!)) - before }
    },
  }
}

async function cpuOf(child: ChildProcess): Promise<number> {
  child.send({})
  const [message] = (await once(child, 'message')) as [{ cpuSeconds: number }]
  return message.cpuSeconds
}

async function load(
  { protocol, path, request }: Target,
  port: number,
  ms: number,
): Promise<Measured> {
  const url = `http://127.0.0.1:${port}${path}`
  if (request !== undefined) return wrk(url, request, 32, ms)
  const seconds = Math.max(1, Math.round(ms / 1000))
  if (protocol === 'http1') {
    const { stdout } = await run('wrk', ['-t1', '-c32', `-d${seconds}s`, '--latency', url])
    if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`${url}: ${stdout}`)
    const [, requests = '0', time = '1'] = /(\d+) requests in ([\d.]+)s/.exec(stdout) ?? []
    return { operations: Number(requests), seconds: Number(time) }
  }
  const { stdout } = await run('h2load', ['-t1', '-c8', '-m16', `-D${seconds}`, url])
  const [, succeeded = '0'] = /(\d+) succeeded/.exec(stdout) ?? []
  const [, failed = '0'] = /(\d+) failed/.exec(stdout) ?? []
  if (failed !== '0' || succeeded === '0') throw new Error(`${url}: ${stdout}`)
  return { operations: Number(succeeded), seconds }
}
