/**
 * Tokens of one tenant from one process and from two, on one durable PostgreSQL. Each token is a committed row with an
 * event, so this is the ceiling of what one tenant can write. CPU seconds count the service and PostgreSQL.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { postgresCpu } from '../postgres-cpu.js'
import { clientOf } from '../whole-service.js'
import { wrk } from '../wrk.js'

const ROUNDS = 3
const ROUND_MS = 5_000
const CONNECTIONS = 64

type Process = { readonly child: ChildProcess; readonly port: number }
type Hello = { readonly port: number; readonly issuer: string; readonly tenantId: string }

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-ceiling-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'database'), log })
await runMigrations({ url: postgres.url, log })
const dataDir = join(folder, 'data')

async function start(issuer?: string): Promise<Process & Hello> {
  const script = fileURLToPath(new URL('write-ceiling-server.js', import.meta.url))
  const child = fork(script, [postgres.url, dataDir, ...(issuer === undefined ? [] : [issuer])])
  const [hello] = (await once(child, 'message')) as [Hello]
  return { child, ...hello }
}

const first = await start()
const { clientId, secret } = await clientOf(first)
const body = new URLSearchParams({
  grant_type: 'client_credentials',
  client_id: clientId,
  client_secret: secret,
}).toString()

const client = new Client({
  connectionString: postgres.superuserUrl.replace(/\/postgres(\?|$)/, '/svc$1'),
})
await client.connect()

async function cpuOf(child: ChildProcess): Promise<number> {
  child.send('cpu')
  const [{ cpuSeconds }] = (await once(child, 'message')) as [{ cpuSeconds: number }]
  return cpuSeconds
}

async function round(processes: readonly Process[]) {
  const serviceBefore = await Promise.all(processes.map(({ child }) => cpuOf(child)))
  const before = postgresCpu(postgres.pid)
  const bytes = async () =>
    Number((await client.query('select pg_database_size(current_database()) as size')).rows[0].size)
  const sizeBefore = await bytes()
  const loads = await Promise.all(
    processes.map(({ port }) =>
      wrk(
        `http://localhost:${port}/oauth/token`,
        { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body },
        CONNECTIONS / processes.length,
        ROUND_MS,
      ),
    ),
  )
  const tokens = loads.reduce((sum, { operations }) => sum + operations, 0)
  const serviceAfter = await Promise.all(processes.map(({ child }) => cpuOf(child)))
  const service = serviceAfter.reduce((sum, at, index) => sum + at - serviceBefore[index]!, 0)
  return {
    perSecond: (tokens / ROUND_MS) * 1000,
    serviceMicros: (service / tokens) * 1e6,
    postgresMicros: ((postgresCpu(postgres.pid) - before) / tokens) * 1e6,
    bytes: ((await bytes()) - sizeBefore) / tokens,
  }
}

const second = await start(first.issuer)
const shapes: readonly [string, readonly Process[]][] = [
  ['one process', [first]],
  ['two processes', [first, second]],
]
console.log(
  '| | tokens per second | CPU in the service, µs | CPU in PostgreSQL, µs | bytes on disk |',
)
console.log('| --- | --- | --- | --- | --- |')
const rows = new Map(shapes.map(([name]) => [name, [] as Awaited<ReturnType<typeof round>>[]]))
for (const [, processes] of shapes) await round(processes)
for (let turn = 0; turn < ROUNDS; turn += 1)
  for (const [name, processes] of shapes) rows.get(name)!.push(await round(processes))
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
for (const [name, rounds] of rows) {
  const of = (key: keyof (typeof rounds)[number]) =>
    Math.round(median(rounds.map((one) => one[key]))).toLocaleString('en')
  console.log(
    `| ${name} | ${of('perSecond')} | ${of('serviceMicros')} | ${of('postgresMicros')} | ${of('bytes')} |`,
  )
}

await client.end()
for (const { child } of [second, first]) {
  child.disconnect()
  await once(child, 'exit')
}
await postgres.stop()
// As root the cluster is not in the data folder.
await rm(postgres.folder, { recursive: true, force: true })
await rm(folder, { recursive: true, force: true })
