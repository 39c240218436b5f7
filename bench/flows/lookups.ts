/**
 * Looking up rows by their keys through the data layer, compared with a named statement of pg in the same run: 10
 * look-ups in flight, 10 connections. The data layer sets the tenant of the transaction besides. Batched look-ups share
 * statements, as look-ups of codes and refresh tokens do.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { together } from '../../runtime/kernel/batched-asks.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { openDatabase, type OpenDatabase } from '../../storage/platform/database.js'
import { databaseSettings } from '../../storage/platform/settings.js'
import { LOOKED_UP } from '../../storage/platform/sql.js'
import { z } from 'zod'
import { compare, publish, saturate } from '../harness.js'

const ROWS = 10_000
const IN_FLIGHT = 10

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-lookups-'))
const server = await startEmbeddedPostgres({ dataDir: folder, log })
const { url } = server
await runMigrations({ url, log })
const settings = z.object(databaseSettings.shape).parse({
  max_connections: IN_FLIGHT,
  min_connections: IN_FLIGHT,
  auth_pool: {},
  control_pool: {},
  async_pool: {},
})
const urls = {
  runtime: url,
  identity: url,
  listener: url,
  auth: url,
  control: url,
  async: url,
}
const database = await openDatabase({ settings, urls, plane: 'all', log })
const pool = new Pool({ connectionString: url, max: IN_FLIGHT })
// At the end the database is stopped before the last connections are closed.
pool.on('error', () => undefined)
const ids = Array.from({ length: ROWS }, () => randomUUID())
await pool.query('create table bench_keys (id uuid primary key, tenant_id uuid, value text)')
await pool.query('insert into bench_keys select unnest($1::uuid[]), $2, md5(random()::text)', [
  ids,
  randomUUID(),
])
await pool.query('analyze bench_keys')

const byKey = (id: string) => ({
  name: 'bench.by_key',
  text: 'select tenant_id, value from bench_keys where id = $1',
  values: [id],
})
let next = 0
const key = () => ids[(next += 7) % ROWS]!

const batched = together((asked: readonly string[]) => byKeys(database, asked))

async function byKeys(database: OpenDatabase, asked: readonly string[]) {
  const [found] = await database.together(null, [
    {
      name: 'bench.by_keys',
      text: `select k.id, k.tenant_id, k.value
             from (select id from unnest($1::uuid[]) with ordinality a (id, place)
               where ${LOOKED_UP} offset 0) asked
             cross join lateral (select * from bench_keys where id = asked.id offset 0) k`,
      values: [asked],
    },
  ])
  const rowById = new Map(found!.rows.map((row) => [row['id'], row]))
  return asked.map((id) => rowById.get(id))
}

function many(call: () => Promise<unknown>) {
  return (ms: number) => saturate(ms, IN_FLIGHT, call)
}

try {
  await publish(
    await compare({
      name: `Look-ups by key, ${IN_FLIGHT} in flight, PostgreSQL`,
      reference: { name: 'pg, named statement', run: many(() => pool.query(byKey(key()))) },
      contenders: [
        {
          name: 'together: tenant and statement in one round trip',
          target: 0.7,
          run: many(() => database.together(null, [byKey(key())])),
        },
        {
          name: 'a transaction: two round trips',
          run: many(() => database.system((tx) => tx.query(byKey(key())))),
        },
        { name: 'batched look-ups', target: 1.5, run: many(() => batched(key())) },
      ],
    }),
  )
} finally {
  await pool.end()
  await database.close()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
}
