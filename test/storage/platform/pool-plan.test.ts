import test from 'ava'
import { Registry } from 'prom-client'
import { silentLogger } from '../../../runtime/kernel/log.js'
import { openDatabase } from '../../../storage/platform/database.js'
import {
  backgroundShare,
  connectionBudget,
  dividePools,
  type PoolSettings,
  planPools,
  serverConnectionLimit,
  connectionOptions,
  tlsOptions,
} from '../../../storage/platform/pool-plan.js'
import { freshDatabase, testPoolSettings } from '../../support/storage/database.js'

const settings: PoolSettings = {
  ...testPoolSettings,
  max_connections: 20,
  min_connections: 2,
  identity_max_connections: 10,
  auth_pool: { max_connections: 40, identity_max_connections: 15 },
  control_pool: { max_connections: 1 },
}
const urls = {
  runtime: 'postgres://runtime/d',
  identity: 'postgres://identity/d',
  listener: 'postgres://listener/d',
  auth: 'postgres://auth/d',
  control: 'postgres://control/d',
  async: 'postgres://async/d',
}

for (const [plane, url, max, min, identity] of [
  ['all', 'postgres://runtime/d', 20, 2, 10],
  ['auth', 'postgres://auth/d', 40, 2, 15],
  ['control', 'postgres://control/d', 1, 1, 10],
  ['async', 'postgres://async/d', 20, 2, 10],
] as const) {
  test(`the plane ${plane} has its own URL and sizes, the base ones where it names none`, (t) => {
    const pools = Object.fromEntries(planPools(settings, urls, plane).map((p) => [p.name, p]))
    t.like(pools['plane'], { url, max, min })
    t.like(pools['identity'], { url: 'postgres://identity/d', max: identity })
  })
}

test('the budget of a plane counts every connection it may open', (t) => {
  t.deepEqual(connectionBudget(settings, 'auth'), {
    identity: 15,
    plane: 40,
    listener: 1,
    total: 56,
  })
})

test('what the server gives is read from the server', async (t) => {
  const { database } = await freshDatabase(t)
  const room = await serverConnectionLimit({
    query: (text) => database.single({ name: 'room', text }),
  })
  t.true(Number.isInteger(room) && room > 10, `${room}`)
})

test('background work gets a quarter of a plane for requests, all of the plane made for it', (t) => {
  t.is(backgroundShare(20, 'all'), 5)
  t.is(backgroundShare(2, 'control'), 1)
  t.is(backgroundShare(20, 'async'), 20)
})

test('limits are set in seconds and reach the session in milliseconds', (t) => {
  const options = connectionOptions(settings, urls.runtime, 3_000, 'svc test')
  t.like(options, {
    statement_timeout: 3_000,
    idle_in_transaction_session_timeout: settings.idle_in_transaction_timeout_secs * 1000,
    connectionTimeoutMillis: settings.connect_timeout_secs * 1000,
    application_name: 'svc test',
  })
})

for (const [url, outcome] of [
  ['postgres://h/d', { ssl: true }],
  ['postgres://h/d?sslmode=verify-full', {}],
  ['postgres://h/d?sslmode=require', {}],
  ['postgres://localhost/d?host=%2Ftmp', {}],
  ['postgres://%2Ftmp/d', {}],
] as const) {
  test(`with require_ssl, ${url} is opened with ${JSON.stringify(outcome)}`, (t) => {
    t.deepEqual(tlsOptions(url, true), outcome)
    t.deepEqual(tlsOptions(url, false), {})
  })
}

for (const mode of ['disable', 'allow', 'prefer']) {
  test(`require_ssl refuses a URL with sslmode=${mode}`, (t) => {
    t.throws(() => tlsOptions(`postgres://h/d?sslmode=${mode}`, true), { message: /require_ssl/ })
  })
}

test('a unix socket crosses no network: require_ssl lets it be', async (t) => {
  const fresh = await freshDatabase(t)
  const db = await openDatabase({
    settings: { ...fresh.settings, require_ssl: true },
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
  })
  await t.notThrowsAsync(db.ping())
  await db.close()
})

test('the metrics have the pools and the outcomes of transactions', async (t) => {
  const fresh = await freshDatabase(t)
  const registry = new Registry()
  const db = await openDatabase({
    settings: fresh.settings,
    urls: fresh.urls,
    plane: 'all',
    log: silentLogger,
    registry,
  })
  const one = { name: 'one', text: 'select 1' }
  await db.system((tx) => tx.query(one))
  let runs = 0
  await db.system(async (tx) => {
    runs += 1
    await tx.query(one)
    if (runs === 1) throw Object.assign(new Error('could not serialize access'), { code: '40001' })
  })
  await t.throwsAsync(
    db.system(async (tx) => {
      await tx.query(one)
      throw new Error('no')
    }),
  )
  const text = await registry.metrics()
  t.regex(text, /svc_db_pool_connections\{pool="plane",state="idle"\} 1/)
  t.regex(text, /svc_db_pool_connections_max\{pool="identity"\} 4/)
  t.regex(text, /svc_database_transactions_total\{pool="plane",outcome="committed"\} 2/)
  t.regex(text, /svc_database_transactions_total\{pool="plane",outcome="rolled_back"\} 1/)
  t.regex(text, /svc_database_transaction_seconds_count\{pool="plane"\} 3/)
  t.regex(text, /svc_database_repeated_transactions_total\{pool="plane"\} 1/)
  await db.close()
})

for (const plane of ['all', 'auth', 'control'] as const) {
  for (const threads of [1, 2, 3, 7]) {
    test(`${threads} gateway threads of the plane ${plane} share its connections`, (t) => {
      const { main, other } = dividePools(settings, plane, threads)
      const [whole, first, next] = [settings, main, other].map((one) =>
        connectionBudget(one, plane),
      )
      for (const pool of ['plane', 'identity'] as const) {
        t.is(first![pool] + (threads - 1) * next![pool], whole![pool], pool)
        t.true(first![pool] >= next![pool])
      }
      const min = ({ min_connections }: PoolSettings) => min_connections
      t.is(min(main) + (threads - 1) * min(other), plane === 'control' && threads > 1 ? 1 : 2)
    })
  }
}
