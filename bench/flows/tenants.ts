/**
 * Tokens of one tenant, and of many tenants in turn, from one process on one durable PostgreSQL. Each token is a committed
 * row with an event of its tenant. A closed loop shows the CPU time of a token, in the service and in PostgreSQL, and an
 * open loop shows the latency.
 *
 *     npm run bench -- flows/tenants [--tenants 16,200,10000] [--rounds n] [--ms n] [--warm-up-ms n]
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Client } from 'pg'
import { Pool } from 'undici'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { compare, pace, publish } from '../harness.js'
import { postgresCpu } from '../postgres-cpu.js'
import { clientOf } from '../whole-service.js'
import { wrk } from '../wrk.js'

const CONNECTIONS = 64
/** Tokens per second of the open loop: far below what one core can do. */
const PACE = 400
const HEADERS = { 'content-type': 'application/x-www-form-urlencoded' }
const MANY = 10_000

const { values } = parseArgs({ strict: false, options: { tenants: { type: 'string' } } })
const asked = String(values.tenants ?? `16,200,${MANY}`).split(',')
const counts = asked.map(Number)

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-tenants-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'database'), log })
await runMigrations({ url: postgres.url, log })
const script = fileURLToPath(new URL('write-ceiling-server.js', import.meta.url))
const child = fork(script, [postgres.url, join(folder, 'data')])
type Hello = { readonly port: number; readonly issuer: string; readonly tenantId: string }
const [hello] = (await once(child, 'message')) as [Hello]
const url = `http://localhost:${hello.port}`

const { clientId, secret } = await clientOf(hello)
const bodyOf = (client: string) =>
  new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client,
    client_secret: secret,
  }).toString()

/** Copies the tenant with its application, which keeps its secret. @returns the applications of the copies. */
async function copies(count: number): Promise<readonly string[]> {
  const client = new Client({
    connectionString: postgres.superuserUrl.replace(/\/postgres(\?|$)/, '/svc$1'),
  })
  await client.connect()
  const ids = Array.from({ length: count }, () => ({ tenant: randomUUID(), client: randomUUID() }))
  const suffix = randomBytes(4).toString('hex')
  await client.query('begin')
  await client.query(`set local svc.scope = 'system'`)
  await client.query(
    `insert into tenants select (jsonb_populate_record(t, jsonb_build_object(
         'id', n.tenant, 'slug', 'bench-${suffix}-' || n.place))).*
       from tenants t, unnest($2::uuid[]) with ordinality n (tenant, place)
       where t.id = (select tenant_id from applications where id = $1)`,
    [clientId, ids.map(({ tenant }) => tenant)],
  )
  for (const table of ['applications', 'application_secrets']) {
    const [id, columns] =
      table === 'applications'
        ? ['id', `'id', n.client, 'audience', 'bench:' || n.client`]
        : ['application_id', `'application_id', n.client`]
    await client.query(
      `insert into ${table} select (jsonb_populate_record(a, jsonb_build_object(
           'tenant_id', n.tenant, ${columns}))).*
         from ${table} a, unnest($2::uuid[], $3::uuid[]) n (tenant, client) where a.${id} = $1`,
      [clientId, ids.map(({ tenant }) => tenant), ids.map((one) => one.client)],
    )
  }
  await client.query('commit')
  await client.query('analyze')
  await client.end()
  return ids.map((one) => one.client)
}

async function cpuOf(server: ChildProcess): Promise<number> {
  server.send('cpu')
  const [{ cpuSeconds }] = (await once(server, 'message')) as [{ cpuSeconds: number }]
  return cpuSeconds
}

const http = new Pool(url, { connections: CONNECTIONS })
/** Connects before a round, so that latencies measure tokens only. */
async function token(body: string): Promise<void> {
  const answer = await http.request({
    method: 'POST',
    path: '/oauth/token',
    headers: HEADERS,
    body,
  })
  await answer.body.dump()
  if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`)
}

function contender(name: string, bodies: readonly string[]) {
  return {
    name,
    async run(ms: number) {
      const [service, database] = [await cpuOf(child), postgresCpu(postgres.pid)]
      const request = { method: 'POST', headers: HEADERS, bodies } as const
      const loaded = await wrk(`${url}/oauth/token`, request, CONNECTIONS, ms)
      const serviceSeconds = (await cpuOf(child)) - service
      const databaseSeconds = postgresCpu(postgres.pid) - database
      await Promise.all(bodies.slice(0, CONNECTIONS).map(token))
      let at = 0
      const paced = await pace(ms, PACE, () => token(bodies[at++ % bodies.length]!))
      return {
        operations: loaded.operations,
        seconds: loaded.seconds,
        cpuSeconds: serviceSeconds + databaseSeconds,
        figures: {
          serviceMicros: (serviceSeconds / loaded.operations) * 1e6,
          postgresMicros: (databaseSeconds / loaded.operations) * 1e6,
          p50Ms: paced.figures!['p50Ms']!,
          p99Ms: paced.figures!['p99Ms']!,
        },
      }
    },
  }
}

const applications = await copies(Math.max(...counts))
/** Each application gets a token before the rounds: its first one prepares more than the later ones. */
for (let from = 0; from < applications.length; from += CONNECTIONS) {
  await Promise.all(applications.slice(from, from + CONNECTIONS).map((id) => token(bodyOf(id))))
}
await publish(
  await compare({
    name: `tokens of many tenants, wrk -c${CONNECTIONS}, and ${PACE}/s for the latency`,
    reference: contender('one tenant', [bodyOf(clientId)]),
    contenders: counts.map((count) => ({
      ...contender(
        `${count.toLocaleString('en')} tenants in turn`,
        applications.slice(0, count).map(bodyOf),
      ),
      target: 0.9,
      by: 'cpu' as const,
    })),
    ms: 5_000,
    warmUpMs: 5_000,
  }),
)

await http.close()
child.disconnect()
await once(child, 'exit')
await postgres.stop()
// As root the cluster is not in the data folder.
await rm(postgres.folder, { recursive: true, force: true })
await rm(folder, { recursive: true, force: true })
