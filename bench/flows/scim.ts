/**
 * Creates users over SCIM: the whole service, against scimmy-routers on express with the same PostgreSQL. The reference
 * inserts a user and an audit row in one transaction. The service also writes the account, the tenant user, and the event,
 * and chains the audit record. Both servers and the load generator share this process.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { Pool } from 'pg'
import { Resources } from 'scimmy'
import { SCIMMYRouters } from 'scimmy-routers'
import { Agent, request } from 'undici'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { freePort } from '../foreign-program.js'
import { compare, publish } from '../harness.js'
import { bootstrap, startWhole } from '../whole-service.js'

const CONNECTIONS = 32
const SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'

const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-scim-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(dataDir, 'database'), log })
await runMigrations({ url: postgres.url, log })
const { service, port } = await startWhole(dataDir, {
  DATABASE_URL: postgres.url,
  SVC_SCIM__ENABLED: 'true',
})
const agent = new Agent({ connections: CONNECTIONS })
const origin = `http://localhost:${port}`

async function send(url: string, token: string | undefined, json: unknown, method = 'POST') {
  const answer = await request(url, {
    dispatcher: agent,
    method: method as 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: method === 'GET' ? null : JSON.stringify(json),
  })
  const body = (await answer.body.json()) as Readonly<Record<string, unknown>>
  if (answer.statusCode >= 300) throw new Error(`${answer.statusCode}: ${JSON.stringify(body)}`)
  return body
}

const metadata = await send(`${origin}/api/v1/agents/workspace/bootstrap`, undefined, null, 'GET')
const tenantId = String(metadata['control_plane_tenant_id'])
const workspace = await bootstrap((path, json) => send(origin + path, undefined, json), {
  issuer: origin,
  tenantId,
})
const created = await send(`${origin}/api/v1/scim/tokens`, workspace.token, {})
const token = String(created['token'])

/** The same database server, with as many connections as the service has. */
const pool = new Pool({ connectionString: postgres.url, max: 20 })
await pool.query(
  `create table bench_users (id uuid primary key default gen_random_uuid(), name text unique, doc jsonb)`,
)
await pool.query(
  `create table bench_audit (id bigserial primary key, type text, subject uuid, at timestamptz)`,
)

async function openReference(): Promise<{ server: Server; url: string }> {
  Resources.declare(Resources.User)
    .ingress(async (_resource: unknown, data: unknown) => {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const user = data as { userName: string }
        const { rows } = await client.query<{ id: string }>({
          name: 'user',
          text: 'insert into bench_users (name, doc) values (lower($1), $2) returning id',
          values: [user.userName, JSON.stringify(user)],
        })
        const { id } = rows[0]!
        await client.query({
          name: 'audit',
          text: `insert into bench_audit (type, subject, at) values ('user.created', $1, now())`,
          values: [id],
        })
        await client.query('commit')
        return { ...user, id }
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    })
    .egress(async () => [])
    .degress(async () => undefined)
  const app = express()
  const handler = (asked: { header(name: string): string | undefined }) => {
    if (asked.header('authorization') !== `Bearer ${token}`) throw new Error('unknown token')
    return 'directory'
  }
  app.use('/scim/v2', new SCIMMYRouters({ type: 'bearer', handler } as never) as never)
  const free = await freePort()
  const server = createServer(app as never)
  await new Promise<void>((resolve) => server.listen(free, '127.0.0.1', resolve))
  return { server, url: `http://localhost:${free}` }
}
const reference = await openReference()

let serial = 0
/** Creates users on all connections until the time is over. */
async function load(base: string, ms: number) {
  const until = performance.now() + ms
  let operations = 0
  const worker = async () => {
    while (performance.now() < until) {
      serial += 1
      const userName = `user${serial}@bench.test`
      await send(`${base}/scim/v2/Users`, token, {
        schemas: [SCHEMA],
        userName,
        name: { givenName: 'Ada', familyName: 'Lovelace' },
        emails: [{ value: userName, type: 'work', primary: true }],
        active: true,
      })
      operations += 1
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, worker))
  return { operations }
}

await publish(
  await compare({
    name: 'SCIM: create a user with its audit record',
    reference: { name: 'scimmy-routers, express, pg', run: (ms) => load(reference.url, ms) },
    contenders: [{ name: 'svc', target: 3, run: (ms) => load(origin, ms) }],
  }),
)

reference.server.close()
await agent.close()
await pool.end()
await service.stop()
await postgres.stop()
await rm(dataDir, { recursive: true, force: true })
