/** Transactions need few round trips, and recover from dead connections. */
import test from 'ava'
import { Client } from 'pg'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { type OpenDatabase, openDatabase } from '../../../storage/platform/database.js'
import type { Statement } from '../../../storage/platform/sql.js'
import { DatabaseUnavailable } from '../../../storage/platform/unavailable.js'
import { type FreshDatabase, freshDatabase, sameUrls } from '../../support/storage/database.js'
import { relayTo } from '../../support/storage/database-relay.js'

const A = '018f0000-0000-7000-8000-00000000000a'

let fresh: FreshDatabase
let relay: Awaited<ReturnType<typeof relayTo>>
/** One connection, so that leftovers of a transaction would affect the next. */
let db: OpenDatabase
let closeRelay = () => undefined as void
test.before(async () => {
  fresh = await freshDatabase()
  const client = new Client({ connectionString: fresh.url })
  await client.connect()
  await client.query(`
    create table marks (id integer primary key, at integer generated always as identity);
    create table slow (id integer primary key); insert into slow values (1)`)
  await client.end()
  relay = await relayTo({ teardown: (end) => (closeRelay = end) }, fresh.url)
  db = await openDatabase({
    settings: { ...fresh.settings, max_connections: 1 },
    urls: sameUrls(relay.url),
    plane: 'all',
    log: silentLogger,
  })
})
test.after.always(async () => {
  await db?.close()
  closeRelay()
  await fresh?.drop()
})

const mark = (id: number): Statement => ({
  name: 'marks.add',
  text: 'insert into marks (id) values ($1) returning id',
  values: [id],
})
const MARKS: Statement = { name: 'marks.all', text: 'select id from marks order by at' }
const FAILS: Statement = { name: 'fails', text: 'select 1 / $1::int', values: [0] }
const marks = async () => (await db.single(MARKS)).rows.map(({ id }) => id)
const turnsOf = async (work: () => Promise<unknown>) => {
  const before = relay.turns
  await work()
  return relay.turns - before
}

test.serial(
  'a transaction of one statement takes two turns, whatever is left for its end',
  async (t) => {
    const one = () => db.tenant(A, (tx) => tx.query(MARKS))
    await one()
    t.is(await turnsOf(one), 2)
    const withEnd = (id: number) =>
      db.tenant(A, async (tx) => {
        tx.atCommit(mark(id))
        return (await tx.query(MARKS)).rowCount
      })
    t.is(await withEnd(1), 0, 'what is left for the end is not seen before')
    t.is(await turnsOf(() => withEnd(2)), 2)
    t.deepEqual(await marks(), [1, 2])
  },
)

test.serial(
  'what is asked for side by side takes one turn, and answers at its place',
  async (t) => {
    const three = () =>
      db.system(async (tx) => {
        const [first, all, again] = await Promise.all([
          tx.query(mark(10)),
          tx.query(MARKS),
          tx.query(mark(11)),
        ])
        t.deepEqual(first.rows, [{ id: 10 }])
        t.deepEqual(all.rows, [{ id: 1 }, { id: 2 }, { id: 10 }])
        t.deepEqual(again.rows, [{ id: 11 }])
        await Promise.all([tx.query(mark(12)), tx.query(mark(13))])
      })
    t.is(await turnsOf(three), 3)
    t.deepEqual(await marks(), [1, 2, 10, 11, 12, 13])
  },
)

test.serial('one that only has an end takes one turn, and none where it has nothing', async (t) => {
  const told: unknown[] = []
  const ending = () => db.system((tx) => tx.atCommit(mark(20), ({ rows }) => told.push(...rows)))
  t.is(await turnsOf(ending), 1)
  t.deepEqual(told, [{ id: 20 }])
  t.is(await turnsOf(() => db.system(async () => 1)), 0)
  const nothing = db.system(async () => {
    throw new Error('on purpose')
  })
  await t.throwsAsync(nothing, { message: 'on purpose' })
})

test.serial('a failure at the commit rolls back and notifies no one', async (t) => {
  const before = await marks()
  const told: unknown[] = []
  const failing = db.system(async (tx) => {
    await tx.query(mark(30))
    tx.atCommit(mark(31), (rows) => told.push(rows))
    tx.atCommit(FAILS, (rows) => told.push(rows))
    tx.atCommit(mark(32), (rows) => told.push(rows))
  })
  await t.throwsAsync(failing, { code: '22012' })
  await t.throwsAsync(
    db.system((tx) => {
      tx.atCommit(mark(33))
      tx.atCommit(mark(33))
    }),
    { code: '23505' },
  )
  t.deepEqual(told, [])
  t.deepEqual(await marks(), before)
})

test.serial(
  'this process learns what a commit changes before its caller goes on, and nothing after a failure',
  async (t) => {
    const told: string[] = []
    const end = db.forgets((ids) => told.push(...ids))
    await db.tenant(A, async (tx) => {
      tx.forget(['one', 'two'])
      await tx.query(MARKS)
      t.deepEqual(told, [])
    })
    t.deepEqual(told, ['one', 'two'])
    const failing = db.tenant(A, async (tx) => {
      tx.forget(['three'])
      await tx.query(FAILS)
    })
    await t.throwsAsync(failing)
    end()
    await db.tenant(A, async (tx) => {
      tx.forget(['four'])
      await tx.query(MARKS)
    })
    t.deepEqual(told, ['one', 'two'])
  },
)

test.serial('of those side by side, all fail with the one that does', async (t) => {
  const before = await marks()
  const outcomes: unknown[] = []
  const failing = db.system(async (tx) => {
    const all = await Promise.allSettled([tx.query(mark(40)), tx.query(FAILS), tx.query(mark(41))])
    outcomes.push(...all.map(({ status }) => status))
  })
  await t.throwsAsync(failing, { code: '22012' })
  t.deepEqual(outcomes, ['rejected', 'rejected', 'rejected'])
  t.deepEqual(await marks(), before)
})

test.serial('what was asked for and not waited for is done before the commit', async (t) => {
  await db.system(async (tx) => {
    void tx.query(mark(50))
    void tx.query(mark(51))
  })
  t.deepEqual((await marks()).slice(-2), [50, 51])
})

test.serial(
  'a dead connection is replaced under the first statements, whose work runs once',
  async (t) => {
    await db.ping()
    const killer = new Client({ connectionString: fresh.superuserUrl })
    await killer.connect()
    let runs = 0
    for (let round = 0; round < 5; round += 1) {
      await killer.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'svc plane' and datname = current_database()`,
      )
      await db.system(async (tx) => {
        runs += 1
        await Promise.all([tx.query(mark(60 + round)), tx.query(MARKS)])
      })
    }
    await killer.end()
    t.is(runs, 5)
    t.deepEqual((await marks()).slice(-5), [60, 61, 62, 63, 64])
  },
)

test.serial('one that can only be sent whole is not sent twice', async (t) => {
  const before = await marks()
  const suicide = { name: 'suicide', text: 'select pg_terminate_backend(pg_backend_pid())' }
  const whole = db.system((tx) => {
    tx.atCommit(mark(70))
    tx.atCommit(suicide)
  })
  await t.throwsAsync(whole, { instanceOf: DatabaseUnavailable })
  t.deepEqual(await marks(), before)
})

test.serial(
  'aborting stops the first statement on the server, and the end of a transaction',
  async (t) => {
    const blocker = new Client({ connectionString: fresh.url })
    await blocker.connect()
    await blocker.query('begin; select from slow for update')
    const slow: Statement = { name: 'slow.lock', text: 'select id from slow for update' }
    for (const work of [
      (tx: Parameters<Parameters<typeof db.system>[0]>[0]) => tx.query(slow),
      (tx: Parameters<Parameters<typeof db.system>[0]>[0]) => tx.atCommit(slow),
    ]) {
      const abort = new AbortController()
      const running = db.system(work, { signal: abort.signal })
      const waits = async () =>
        (
          await blocker.query(
            `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
          )
        ).rowCount === 1
      while (!(await waits()));
      abort.abort(new Error('the client went away'))
      await t.throwsAsync(running, { message: 'the client went away' })
      t.false(await waits())
    }
    await blocker.query('rollback')
    await blocker.end()
    t.is((await db.system((tx) => tx.query(slow))).rowCount, 1)
  },
)

test.serial('a failed statement without a waiting caller fails only its transaction', async (t) => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  const forgotten = db.system(async (tx) => {
    void tx.query(FAILS)
    await tx.query(MARKS).catch(() => undefined)
    return 'done'
  })
  await t.throwsAsync(forgotten, { code: '22012' })
  const early = db.system(async (tx) => {
    const begun = tx.query(FAILS)
    await Promise.resolve()
    throw new Error(`on purpose, before ${typeof begun} is waited for`)
  })
  await t.throwsAsync(early, { message: /on purpose/ })
  await new Promise((resolve) => setTimeout(resolve, 50))
  process.off('unhandledRejection', note)
  t.deepEqual(unhandled, [])
})

test.serial(
  'work that goes on after a failure fails by it, whatever else it asks for',
  async (t) => {
    const before = await marks()
    const later: unknown[] = []
    const swallowed = db.system(async (tx) => {
      tx.atCommit(mark(80))
      await tx.query(FAILS).catch(() => undefined)
      later.push(await tx.query(mark(81)).catch(({ code }: { code: string }) => code))
      const failing = tx.query(FAILS).catch(() => undefined)
      await Promise.resolve().then(() => Promise.resolve())
      later.push(await tx.query(mark(82)).catch(({ code }: { code: string }) => code))
      await failing
      return 'done'
    })
    await t.throwsAsync(swallowed, { code: '22012' })
    t.deepEqual(later, ['22012', '22012'])
    t.deepEqual(await marks(), before)
    const slow = { name: 'too_slow', text: 'select pg_sleep(20)' }
    const limit = {
      name: 'limit.short',
      text: `select set_config('statement_timeout', '50', true)`,
    }
    const givenUp = db.system(async (tx) => {
      await tx.query(limit)
      await tx.query(slow).catch(() => undefined)
    })
    const error = await t.throwsAsync(givenUp, { instanceOf: DatabaseUnavailable })
    t.true((error as DatabaseUnavailable).overloaded)
  },
)

test.serial(
  'a connection that was opened ahead and has rested is asked before it is used',
  async (t) => {
    const ahead = await openDatabase({
      settings: { ...fresh.settings, max_connections: 1, min_connections: 1 },
      urls: sameUrls(relay.url),
      plane: 'all',
      log: silentLogger,
    })
    try {
      await new Promise((resolve) => setTimeout(resolve, 700))
      t.is(await turnsOf(() => ahead.single(MARKS)), 2)
      t.is(await turnsOf(() => ahead.single(MARKS)), 1)
    } finally {
      await ahead.close()
    }
  },
)

test.serial(
  'a server that falls silent as statements are closed costs the connection',
  async (t) => {
    const own = await relayTo(t, fresh.url)
    const small = await openDatabase({
      settings: {
        ...fresh.settings,
        max_connections: 1,
        statement_cache_capacity: 2,
        statement_timeout_secs: 1,
      },
      urls: sameUrls(own.url),
      plane: 'all',
      log: silentLogger,
    })
    try {
      for (const at of [1, 2]) await small.single({ name: `s${at}`, text: `select ${at}` })
      own.fallSilent()
      await t.throwsAsync(small.single({ name: 's3', text: 'select 3' }), {
        instanceOf: DatabaseUnavailable,
      })
      own.speakAgain()
      t.is((await small.single({ name: 's3', text: 'select 3' })).rowCount, 1)
    } finally {
      own.reset()
      await small.close()
    }
  },
)

test.serial(
  'a tenant that holds its share of the connections leaves the rest to others',
  async (t) => {
    const wide = await openDatabase({
      settings: { ...fresh.settings, max_connections: 4 },
      urls: sameUrls(fresh.url),
      plane: 'all',
      log: silentLogger,
    })
    t.teardown(() => wide.close())
    const B = '018f0000-0000-7000-8000-00000000000b'
    const ending: (() => void)[] = []
    const held = Array.from({ length: 8 }, () =>
      wide.tenant(A, async (tx) => {
        await tx.query(MARKS)
        await new Promise<void>((resolve) => ending.push(resolve))
      }),
    )
    while (ending.length < 3) await new Promise(setImmediate)
    t.is((await wide.tenant(B, (tx) => tx.query(MARKS))).rows.length >= 0, true)
    t.is(ending.length, 3, 'three of four, whatever waits')
    t.is(wide.stats().find(({ pool }) => pool === 'plane')?.waiting, 5)
    const end = setInterval(() => ending.splice(0).forEach((done) => done()), 5)
    await Promise.all(held)
    clearInterval(end)
  },
)
