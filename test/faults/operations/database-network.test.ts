/** The network between the service and PostgreSQL misbehaves: reset, silence, delay. */
import test, { type ExecutionContext } from 'ava'
import { Client } from 'pg'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { openDatabase } from '../../../storage/platform/database.js'
import type { PoolSettings } from '../../../storage/platform/pool-plan.js'
import { DatabaseUnavailable } from '../../../storage/platform/unavailable.js'
import { type FreshDatabase, freshDatabase, sameUrls } from '../../support/storage/database.js'
import { relayTo } from '../../support/storage/database-relay.js'
import { until } from '../../support/service/watch.js'

async function behindRelay(t: ExecutionContext, overrides: Partial<PoolSettings> = {}) {
  const fresh = await freshDatabase(t)
  const relay = await relayTo(t, fresh.url)
  const database = await openDatabase({
    settings: { ...fresh.settings, ...overrides },
    urls: sameUrls(relay.url),
    plane: 'all',
    log: silentLogger,
  })
  t.teardown(() => database.close())
  return { fresh, relay, database }
}

const ONE = { name: 'one', text: 'select 1 as one' }

/** Sessions of the service as the server counts them. */
async function sessions(fresh: FreshDatabase, running = ''): Promise<number> {
  const client = new Client({ connectionString: fresh.superuserUrl })
  await client.connect()
  const { rows } = await client.query(
    `select count(*)::int as n from pg_stat_activity
     where datname = current_database() and application_name = 'svc plane'
       and ($1 = '' or (state = 'active' and query = $1))`,
    [running],
  )
  await client.end()
  return rows[0].n
}

test('a reset in the middle of transactions fails them as unavailable; the next ones succeed', async (t) => {
  const { fresh, relay, database } = await behindRelay(t)
  for (let round = 0; round < 2; round += 1) {
    const sleep = { name: `sleep${round}`, text: `select pg_sleep(8), 'round ${round}'` }
    const late = () =>
      database.system(async (tx) => {
        // The first request would be repeated.
        await tx.query(ONE)
        await tx.query(sleep)
      })
    const hit = Array.from({ length: 4 }, late)
    const outcomes = Promise.allSettled(hit)
    await until('all sleep', async () => (await sessions(fresh, sleep.text)) === 4)
    relay.reset()
    for (const outcome of await outcomes) {
      t.true(outcome.status === 'rejected' && outcome.reason instanceof DatabaseUnavailable)
    }
    t.deepEqual((await database.system((tx) => tx.query(ONE))).rows, [{ one: 1 }])
  }
  t.is(database.stats().find(({ pool }) => pool === 'plane')?.waiting, 0)
  // The server notices only when its statements end. Then it has no more sessions than the pool.
  await until('the sessions end', async () => (await sessions(fresh)) <= 6)
})

test('idle connections that were reset are replaced without an error', async (t) => {
  const { relay, database } = await behindRelay(t, { min_connections: 3 })
  relay.reset()
  const answers = Promise.all(
    Array.from({ length: 6 }, () => database.system((tx) => tx.query(ONE))),
  )
  await t.notThrowsAsync(answers)
})

test('a silent connection is detected when it is taken, and closed in time', async (t) => {
  const { relay, database } = await behindRelay(t, { min_connections: 1, connect_timeout_secs: 1 })
  relay.fallSilent()
  await t.throwsAsync(database.ping(), { instanceOf: DatabaseUnavailable })
  relay.speakAgain()
  await t.notThrowsAsync(database.ping())
})

test('while the server accepts no new connections, the open ones serve all requests', async (t) => {
  const { relay, database } = await behindRelay(t, { min_connections: 1, connect_timeout_secs: 1 })
  relay.openNoMore()
  const sleep = { name: 'sleep_short', text: 'select pg_sleep(0.3)' }
  const work = () => database.system((tx) => tx.query(sleep))
  // The second query would like a separate connection, and works without one.
  await t.notThrowsAsync(Promise.all([work(), work()]))

  // If none is free in time, the server is overloaded. It is not down.
  const over = new AbortController()
  const keepBusy = async () => {
    // It waits in the same queue as the crowd.
    while (!over.signal.aborted) await work().catch(isOverloaded)
  }
  const isOverloaded = (error: unknown) => t.true((error as DatabaseUnavailable).overloaded)
  const long = { name: 'sleep_long', text: 'select pg_sleep(3)' }
  const holder = database.system((tx) => tx.query(long))
  const failed = await t.throwsAsync<DatabaseUnavailable>(work(), {
    instanceOf: DatabaseUnavailable,
  })
  t.false(failed?.overloaded, 'nothing was answered in between')
  await holder
  const begun = keepBusy()
  const crowd = await Promise.allSettled(Array.from({ length: 12 }, work))
  over.abort()
  await begun
  for (const one of crowd) {
    if (one.status === 'rejected') t.true((one.reason as DatabaseUnavailable).overloaded)
  }
})

test('a ping of the database aborts on its signal, even on a silent network', async (t) => {
  const { relay, database } = await behindRelay(t, { min_connections: 2 })
  relay.fallSilent()
  const abort = new AbortController()
  setTimeout(() => abort.abort(new Error('two seconds')), 100)
  await t.throwsAsync(database.ping(abort.signal), { message: 'two seconds' })
  relay.speakAgain()
  await t.notThrowsAsync(database.ping())
})

test('a statement on a silent connection ends shortly after its own limit', async (t) => {
  const { relay, database } = await behindRelay(t, { statement_timeout_secs: 1 })
  const hung = database.system(async (tx) => {
    await tx.query(ONE)
    relay.fallSilent()
    await tx.query(ONE)
  })
  await t.throwsAsync(hung, { instanceOf: DatabaseUnavailable })
  relay.speakAgain()
  await t.notThrowsAsync(database.ping())
})

test('aborting works on a silent network', async (t) => {
  const { relay, database } = await behindRelay(t)
  const abort = new AbortController()
  const hung = database.system(
    async (tx) => {
      await tx.query(ONE)
      relay.fallSilent()
      setTimeout(() => abort.abort(new Error('enough')), 20)
      await tx.query(ONE)
    },
    { signal: abort.signal },
  )
  await t.throwsAsync(hung, { message: 'enough' })
  relay.speakAgain()
  await t.notThrowsAsync(database.ping())
})
