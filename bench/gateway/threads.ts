/**
 * The whole service with two gateway threads, compared with one: tokens by client credentials, durable, and a light
 * route. The services are not pinned and take turns, so all of them, PostgreSQL and the generator share the processors
 * of the machine. Per CPU second of the service, a second thread may cost at most 10 percent. A bare uWebSockets server
 * with one and two threads shows what the processors themselves lose when both are in use. Needs wrk.
 *
 *     node dist/bench/gateway/threads.js
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { compare, type Contender, publish, SERVER_WARM_UP_MS } from '../harness.js'
import { contender } from './generator.js'
import { type PeerProcess, startPeer } from '../oauth/peer-process.js'

const LOSS_MAX = 0.1
const BARE = { path: '/', protocol: 'http1', by: 'cpu' } as const
const NAMES = ['one gateway thread', 'two gateway threads'] as const

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-threads-'))
const ends: (() => Promise<void>)[] = []
try {
  const services: PeerProcess[] = []
  for (const [index] of NAMES.entries()) {
    const dataDir = join(folder, `database-${index}`)
    const server = await startEmbeddedPostgres({ dataDir, log: silentLogger })
    ends.push(() => server.stop())
    const args = [server.url, join(folder, `svc-${index}`), String(index + 1)]
    const service = await startPeer('svc-server', args, false)
    ends.push(() => service.stop())
    services.push(service)
  }
  await compared('client_credentials, durable', services, tokens)
  await compared('/health/live', services, light)
  await publish(
    await compare({
      name: 'bare uWebSockets',
      reference: contender({ ...BARE, name: 'one thread', server: 'uws' }),
      contenders: [contender({ ...BARE, name: 'two threads', server: 'uws-threads' })],
      ms: 3_000,
    }),
  )
} finally {
  for (const end of ends.toReversed()) await end()
  await rm(folder, { recursive: true, force: true })
}

type Work = (service: PeerProcess, ms: number) => ReturnType<Contender['run']>

async function compared(name: string, services: readonly PeerProcess[], work: Work): Promise<void> {
  const [one, two] = services.map((service, index) => ({
    name: NAMES[index]!,
    by: 'cpu' as const,
    run: (ms: number) => work(service, ms),
  }))
  const contenders = [{ ...two!, target: 1 - LOSS_MAX }]
  await publish(
    await compare({
      name,
      reference: one!,
      contenders,
      ms: 3_000,
      warmUpMs: SERVER_WARM_UP_MS,
    }),
  )
}

function tokens(service: PeerProcess, ms: number) {
  const { tokenPath, clientScope, credentials } = service.peer
  const form = { grant_type: 'client_credentials', scope: clientScope, ...credentials }
  return service.hammer(tokenPath, form, ms)
}

function light(service: PeerProcess, ms: number) {
  return service.get('/health/live', ms)
}
