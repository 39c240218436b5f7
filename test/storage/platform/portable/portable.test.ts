/** What does not need the features that only PostgreSQL has: repeated transactions, locks in rows, announcements in a table. */
import test from 'ava'
import { Client } from 'pg'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { type OpenDatabase, openDatabase } from '../../../../storage/platform/database.js'
import { lockUntilEnd } from '../../../../storage/platform/portable/locks.js'
import { sweepAnnouncements } from '../../../../storage/platform/portable/table-listener.js'
import type { Statement } from '../../../../storage/platform/sql.js'
import { until } from '../../../support/service/watch.js'
import { type FreshDatabase, freshDatabase } from '../../../support/storage/database.js'

const A = '018f0000-0000-7000-8000-00000000000a'

let fresh: FreshDatabase
let admin: Client
/** Announces in the table. */
let table: OpenDatabase
test.before(async () => {
  fresh = await freshDatabase()
  admin = new Client({ connectionString: fresh.superuserUrl })
  await admin.connect()
  await admin.query(`
    create sequence attempts;
    create table tallies (id integer primary key, n integer not null);
    create function fail_until(last integer) returns integer language plpgsql as $$
    begin
      if nextval('attempts') < last then
        raise exception 'could not serialize access' using errcode = '40001';
      end if;
      return currval('attempts');
    end
    $$;
    grant all on all tables in schema public to svc_test;
    grant all on all sequences in schema public to svc_test`)
  table = await openDatabase({
    settings: { ...fresh.settings, announce: 'table' },
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
  })
})
test.after.always(async () => {
  await table?.close()
  await admin?.end()
  await fresh?.drop()
})
test.serial.beforeEach(async () => {
  await admin.query(`select setval('attempts', 1, false)`)
  await admin.query('truncate tallies')
})

const failUntil = (last: number): Statement => ({
  name: 'fail_until',
  text: 'select fail_until($1) as attempt',
  values: [last],
})
const tally = (id: number): Statement => ({
  name: 'tally',
  text: `insert into tallies (id, n) values ($1, 1)
         on conflict (id) do update set n = tallies.n + 1 returning n`,
  values: [id],
})
const tallies = async () => (await admin.query('select id, n from tallies order by id')).rows

test.serial('a transaction that cannot be serialized runs again, and counts once', async (t) => {
  let runs = 0
  const attempt = await fresh.database.tenant(A, async (tx) => {
    runs += 1
    await tx.query(tally(1))
    const { rows } = await tx.query<{ attempt: number }>(failUntil(3))
    return rows[0]?.attempt
  })
  t.deepEqual([attempt, runs], [3, 3])
  t.deepEqual(await tallies(), [{ id: 1, n: 1 }])
})

test.serial(
  'so does one whose commit fails, one of known statements, and a single one',
  async (t) => {
    const committed: unknown[] = []
    await fresh.database.system((tx) => {
      tx.atCommit(tally(1))
      tx.atCommit(failUntil(2), ({ rows }) => committed.push(...rows))
    })
    t.deepEqual(committed, [{ attempt: 2 }])
    await fresh.database.together(A, [tally(2), failUntil(5)])
    t.deepEqual((await fresh.database.single(failUntil(8))).rows, [{ attempt: 8 }])
    t.deepEqual(await tallies(), [
      { id: 1, n: 1 },
      { id: 2, n: 1 },
    ])
  },
)

test.serial('after six attempts the database is unavailable, and nothing is counted', async (t) => {
  let runs = 0
  const failing = fresh.database.tenant(A, async (tx) => {
    runs += 1
    await tx.query(tally(1))
    await tx.query(failUntil(1_000))
  })
  await t.throwsAsync(failing, { name: 'DatabaseUnavailable' })
  t.is(runs, 6)
  t.deepEqual(await tallies(), [])
})

test.serial('transactions that deadlock both end', async (t) => {
  await admin.query('insert into tallies values (1, 0), (2, 0)')
  let waiting = 2
  let go: () => void = () => undefined
  const both = new Promise<void>((resolve) => (go = resolve))
  const cross = (first: number, second: number) =>
    fresh.database.tenant(A, async (tx) => {
      await tx.query(tally(first))
      waiting -= 1
      if (waiting === 0) go()
      await both
      await tx.query(tally(second))
    })
  await Promise.all([cross(1, 2), cross(2, 1)])
  t.true(waiting < 0, 'one of them ran twice')
  t.deepEqual(await tallies(), [
    { id: 1, n: 2 },
    { id: 2, n: 2 },
  ])
})

test.serial('a lock is a row, held until the transaction ends', async (t) => {
  const order: string[] = []
  const name = { kind: 'test', tenantId: A }
  await fresh.database.tenant(A, (tx) => lockUntilEnd(tx, name))
  const { rows } = await admin.query<{ key: string }>(
    `select key from locks where key like 'test:%'`,
  )
  t.deepEqual(rows, [{ key: `test:${A}` }])
  await admin.query(`begin`)
  await admin.query(`select key from locks where key = 'test:${A}' for update`)
  const second = fresh.database.tenant(A, async (tx) => {
    await lockUntilEnd(tx, name)
    order.push('second')
  })
  await fresh.database.tenant(A, async (tx) => {
    await lockUntilEnd(tx, { kind: 'other', tenantId: A })
    order.push('other')
  })
  const waits = async () => {
    const { rowCount } = await admin.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
         and cardinality(pg_blocking_pids(pid)) > 0`,
    )
    return rowCount === 1
  }
  await until('the second waits for the row', waits)
  order.push('first')
  await admin.query('commit')
  await second
  t.deepEqual(order, ['other', 'first', 'second'])
})

test.serial('subjects without number share a bounded number of rows', async (t) => {
  for (let at = 0; at < 100; at += 1) {
    const name = { kind: 'subjects', tenantId: A, subject: `did:example:${at}` }
    await fresh.database.tenant(A, (tx) => lockUntilEnd(tx, name))
  }
  const { rowCount } = await admin.query(`select from locks where key like 'subjects:%'`)
  t.is(rowCount, 16)
})

const announce = (payload: string): Statement => ({
  name: 'announce',
  text: `select svc_announce('svc_test', $1)`,
  values: [payload],
})

test.serial(
  'announcements in the table arrive in every process, also late and never twice',
  async (t) => {
    const heard: string[] = []
    let caughtUp = 0
    const leave = await table.listener.listen('svc_test', {
      notified: (payload) => heard.push(payload),
      caughtUp: () => (caughtUp += 1),
    })
    t.is(caughtUp, 1)
    let commit: () => void = () => undefined
    const held = new Promise<void>((resolve) => (commit = resolve))
    let begun: () => void = () => undefined
    const isBegun = new Promise<void>((resolve) => (begun = resolve))
    const late = table.tenant(A, async (tx) => {
      await tx.query(announce('late'))
      begun()
      await held
    })
    await isBegun
    const undone = table.tenant(A, async (tx) => {
      await tx.query(announce('undone'))
      throw new Error('on purpose')
    })
    await t.throwsAsync(undone, { message: 'on purpose' })
    await table.together(null, [announce('early')])
    await until('the early one is heard', async () => heard.length > 0)
    commit()
    await late
    await until('the late one is heard', async () => heard.length > 1)
    await table.tenant(A, (tx) => tx.query(announce('last')))
    await until('the last one is heard', async () => heard.length > 2)
    t.deepEqual(heard, ['early', 'late', 'last'])
    leave()
    await table.tenant(A, (tx) => tx.query(announce('after')))
    t.deepEqual(heard, ['early', 'late', 'last'])
  },
)

test.serial('a change that a trigger announces goes the way of the setting', async (t) => {
  const change = `update tenants set status = status where id = $1`
  const rows = async () => (await admin.query('select from announcements')).rowCount ?? 0
  await admin.query(
    `insert into tenants (id, slug, name, environment, control_plane, admit_agents, created_at, updated_at)
     values ($1, 'portable', 'Portable', 'production', true, true, now(), now())`,
    [A],
  )
  const run = (database: OpenDatabase) =>
    database.system((tx) => tx.query({ name: 'change', text: change, values: [A] }))
  const before = await rows()
  await run(fresh.database)
  t.is(await rows(), before, 'NOTIFY writes no rows')
  await run(table)
  t.true((await rows()) > before)
  const inAnHour = new Date(Date.now() + 3_600_000)
  await table.system((tx) => sweepAnnouncements(tx, inAnHour, 1_000))
  t.is(await rows(), 0)
})
