/** A migration holds no table while it waits for another one, so requests and migrations do not deadlock. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { runMigrations } from '../../migrations/main.js'
import {
  concurrentStatements,
  lockedTables,
  type LockMode,
  namedLocks,
} from '../../migrations/table-locks.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { readMigrationFiles } from '../../storage/platform/schema-version.js'
import { until } from '../support/service/watch.js'
import { emptyDatabase } from '../support/storage/database.js'

/** Files from here on run one by one. Those before them do not change. */
const FIRST = '0085'
const WRITERS = 3
/** Pause of a writer between two transactions. */
const REST_MS = 10

async function connect(t: ExecutionContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** Names of lock modes in pg_locks that a mode covers. Each stops those that write rows. */
const COVERED: Readonly<Record<LockMode, readonly string[]>> = {
  share: ['ShareLock'],
  'share row exclusive': ['ShareLock', 'ShareRowExclusiveLock'],
  exclusive: ['RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock'],
  'access exclusive': [
    'RowExclusiveLock',
    'ShareLock',
    'ShareRowExclusiveLock',
    'ExclusiveLock',
    'AccessExclusiveLock',
  ],
}

test('the tables that a migration locks are known before it runs', async (t) => {
  t.timeout(120_000)
  const { url, superuserUrl } = await emptyDatabase(t)
  const files = await readMigrationFiles()
  const before = files.filter(({ name }) => name < FIRST).map(({ name }) => name)
  await runMigrations({ url, log: silentLogger, only: new Set(before) })
  const client = await connect(t, superuserUrl)
  let together = 0
  for (const { name, sql } of files.slice(before.length)) {
    // Locks nothing against writers, and has no transaction in which to look.
    const built = concurrentStatements(sql)
    for (const statement of built ?? []) await client.query(statement)
    if (built !== null) continue
    const planned = await lockedTables(client, sql)
    together = Math.max(together, planned.size)
    const { rows: existing } = await client.query<{ oid: number }>(`select oid from pg_class`)
    await client.query(`begin; set local svc.scope = 'system'; ${sql}`)
    const { rows: held } = await client.query<{ table: string; mode: string }>(
      `select distinct c.relname as table, l.mode from pg_locks l join pg_class c on c.oid = l.relation
       where l.pid = pg_backend_pid() and l.mode not in ('AccessShareLock', 'RowShareLock', 'ShareUpdateExclusiveLock')
         and c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace and c.oid = any($1::oid[])`,
      [existing.map(({ oid }) => oid)],
    )
    await client.query('commit')
    const unplanned = held.filter(({ table, mode }) => {
      const plan = planned.get(table)
      return plan === undefined || !COVERED[plan].includes(mode)
    })
    t.deepEqual(unplanned, [], name)
  }
  t.true(together > 1, 'some lock several tables')
})

test('statements name their tables', (t) => {
  for (const [sql, table, mode] of [
    ['create index i on a (b)', 'a', 'share'],
    ['CREATE UNIQUE INDEX i\n  ON ONLY a (b)', 'a', 'share'],
    [
      'create trigger t after update of b on a for each row execute function f()',
      'a',
      'share row exclusive',
    ],
    [
      'create table n (a uuid references x (id), b uuid references a (id))',
      'a',
      'share row exclusive',
    ],
    ['update a set b = 1', 'a', 'exclusive'],
    ['with c as (select 1) delete from a using c', 'a', 'exclusive'],
    ['alter table only a add column b text', 'a', 'access exclusive'],
    ['drop trigger if exists t on a', 'a', 'access exclusive'],
    ['drop index i', 'i', 'access exclusive'],
    ['create policy p on a using (true)', 'a', 'access exclusive'],
    ["do $$ begin execute format('alter table %I', 'a'); end $$", 'a', 'access exclusive'],
    ['create index i on a (b); alter table a add column c text', 'a', 'access exclusive'],
  ] as const) {
    t.is(namedLocks(sql).get(table), mode, sql)
  }
  const body =
    'create function f() returns trigger as $$ begin update a set b = 1; end $$ language plpgsql'
  t.is(namedLocks(`-- alter table a\n${body};`).get('a'), undefined)
})

test('a request that holds one table of a migration gets the other one', async (t) => {
  const { url, superuserUrl } = await emptyDatabase(t)
  const folder = await mkdtemp(join(tmpdir(), 'svc-locks-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const write = (name: string, sql: string) => writeFile(join(folder, name), sql)
  await write(
    '0001_both.sql',
    '-- adds\ncreate table one (a integer); create table two (a integer);',
  )
  const options = { url, folder: pathToFileURL(`${folder}/`), log: silentLogger }
  await runMigrations(options)
  await write('0002_more.sql', '-- adds\nalter table one add b text; alter table two add b text;')
  const request = await connect(t, superuserUrl)
  // The request would be the one that a deadlock ends.
  await request.query(`set deadlock_timeout = '10ms'; begin; insert into two values (1)`)
  const running = runMigrations(options)
  const watch = await connect(t, superuserUrl)
  const waitsForTwo = async () => {
    const { rowCount } = await watch.query(
      `select from pg_locks where relation = 'two'::regclass and not granted`,
    )
    return rowCount === 1
  }
  await until('the migration waits', waitsForTwo)
  await t.notThrowsAsync(request.query('insert into one values (1)'))
  await request.query('commit')
  t.deepEqual(await running, ['0002_more'])
})

/** Locks tables for writing, in another order each time, until it is stopped. A deadlock ends it first. */
async function writeInAnyOrder(
  client: Client,
  tables: () => readonly string[],
  signal: AbortSignal,
) {
  await client.query(`set deadlock_timeout = '5ms'`)
  for (let turn = 0; !signal.aborted; turn += 1) {
    const now = tables()
    const first = turn % (now.length || 1)
    const turned = [...now.slice(first), ...now.slice(0, first)]
    const order = turn % 2 === 0 ? turned : turned.toReversed()
    const locks = order.map(
      (table) => `lock table ${table} in row exclusive mode; select pg_sleep(0.002)`,
    )
    await client.query(['begin', ...locks, 'commit'].join(';'))
    await sleep(REST_MS)
  }
}

test('requests that lock the tables of a migration in any order get no deadlock', async (t) => {
  t.timeout(240_000)
  const { url, superuserUrl } = await emptyDatabase(t)
  const files = await readMigrationFiles()
  const client = await connect(t, superuserUrl)
  let tables: readonly string[] = []
  const over = new AbortController()
  t.teardown(() => over.abort())
  const clients = await Promise.all(Array.from({ length: WRITERS }, () => connect(t, superuserUrl)))
  const writing = Promise.all(clients.map((one) => writeInAnyOrder(one, () => tables, over.signal)))
  let together = 0
  const applied = new Set(files.filter(({ name }) => name < FIRST).map(({ name }) => name))
  const migrate = () => runMigrations({ url, log: silentLogger, only: applied, finish: true })
  await migrate()
  for (const { name, sql } of files.slice(applied.size)) {
    const planned = [...(await lockedTables(client, sql)).keys()]
    if (planned.length > 1) {
      tables = planned
      together += 1
    }
    applied.add(name)
    await Promise.race([migrate(), writing])
    tables = []
  }
  over.abort()
  await t.notThrowsAsync(writing)
  t.true(together > 3, 'some lock several tables')
})
