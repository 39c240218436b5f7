/** Every coordination driver against its real server: one suite, the same behaviour. */
import test, { type ExecutionContext } from 'ava'
import { silentLogger } from '../../runtime/kernel/log.js'
import { memcachedCoordination } from '../../storage/platform/coordination/memcached.js'
import {
  type Coordination,
  CoordinationUnavailable,
  storedKey,
} from '../../storage/platform/coordination/port.js'
import {
  postgresCoordination,
  sweepCoordination,
} from '../../storage/platform/coordination/postgres.js'
import { redisCoordination } from '../../storage/platform/coordination/redis.js'
import { freshDatabase } from '../support/storage/database.js'
import { IS_LONG } from '../support/runs.js'
import { program } from '../support/service/programs.js'
import { startRedisGroup } from '../support/service/redis-groups.js'
import { type Server, startMemcached, startRedis } from '../support/service/servers.js'
import { until as watch } from '../support/service/watch.js'
import type { RedisSettings } from '../../storage/platform/settings.js'

/** Groups of Redis servers, for the long run: the daily one has a single server. */
const GROUPS = IS_LONG ? (['cluster', 'sentinel'] as const) : []

const REDIS: RedisSettings = {
  mode: 'single',
  nodes: [],
  master_name: 'mymaster',
  tls: false,
  pool_size: 4,
  // A busy machine is no failure: only a stopped server is.
  connect_timeout_secs: 20,
  command_timeout_secs: 20,
}

interface Driver {
  readonly name: string
  /** The program that must be installed. PostgreSQL is bundled. */
  readonly needs?: string
  open(): Promise<{ first: Coordination; second: Coordination; close(): Promise<void> }>
}
const fresh = await freshDatabase()
test.after.always(() => fresh?.drop())

const drivers: Driver[] = [
  {
    name: 'postgres',
    open: async () => ({
      first: postgresCoordination(fresh.database),
      second: postgresCoordination(fresh.database),
      close: async () => undefined,
    }),
  },
  {
    name: 'redis',
    needs: 'redis-server',
    open: () => withServer(startRedis(program('redis-server')!), redisAt),
  },
  ...GROUPS.map((mode) => ({
    name: `redis ${mode}`,
    needs: 'redis-server',
    async open() {
      const servers = await startRedisGroup(mode)
      const [first, second] = [await redisOf(servers.settings), await redisOf(servers.settings)]
      return {
        first,
        second,
        async close() {
          await first.close()
          await second.close()
          await servers.stop()
        },
      }
    },
  })),
  {
    name: 'memcached',
    needs: 'memcached',
    open: () => withServer(startMemcached(program('memcached')!), memcachedAt),
  },
]

const redisOf = (settings: Partial<RedisSettings>) =>
  redisCoordination({ settings: { ...REDIS, ...settings }, log: silentLogger })

const redisAt = ({ port }: Server) => redisOf({ url: `redis://127.0.0.1:${port}` })

const memcachedAt = ({ port }: Server) =>
  memcachedCoordination({
    address: `127.0.0.1:${port}`,
    poolSize: 4,
    maxIdle: 2,
    connectTimeoutMs: 20_000,
    commandTimeoutMs: 20_000,
    log: silentLogger,
  })

/** Two clients of one server, as in two processes without shared memory. */
async function withServer(
  starting: Promise<Server>,
  at: (server: Server) => Promise<Coordination>,
) {
  const server = await starting
  const [first, second] = [await at(server), await at(server)]
  return {
    first,
    second,
    async close() {
      await first.close()
      await second.close()
      await server.stop()
    },
  }
}

const minute = (limit: number) => ({ limit, windowSecs: 60 })

const behaviours: Record<
  string,
  (t: ExecutionContext, first: Coordination, second: Coordination) => Promise<void>
> = {
  'of 200 concurrent calls in two processes exactly the limit is allowed': async (t, a, b) => {
    const calls = Array.from({ length: 200 }, (_, i) => (i % 2 ? a : b).take('rush', minute(50)))
    const answers = await Promise.all(calls)
    t.is(answers.filter(({ allowed }) => allowed).length, 50)
    const { allowed, used, remaining } = await a.take('rush', minute(50))
    t.deepEqual({ allowed, used, remaining }, { allowed: false, used: 50, remaining: 0 })
  },
  'quotas of different keys do not touch each other': async (t, a, b) => {
    await a.take('mine', minute(1))
    t.true((await b.take('yours', minute(1))).allowed)
    t.false((await b.take('mine', minute(1))).allowed)
  },
  'the remaining count and the time of the reset are returned': async (t, a, b) => {
    const first = await a.take('told', minute(3))
    t.deepEqual([first.allowed, first.used, first.remaining], [true, 1, 2])
    const second = await b.take('told', minute(3))
    t.deepEqual([second.allowed, second.used, second.remaining], [true, 2, 1])
    t.true(second.resetSecs > 30 && second.resetSecs <= 60, `${second.resetSecs}`)
  },
  'a cost above the limit takes nothing': async (t, a) => {
    t.true((await a.take('cost', minute(10), 7)).allowed)
    const refused = await a.take('cost', minute(10), 4)
    t.deepEqual([refused.allowed, refused.used], [false, 7])
    t.true((await a.take('cost', minute(10), 3)).allowed)
    t.false((await a.take('costly', minute(10), 11)).allowed)
    t.true((await a.take('costly', minute(10), 10)).allowed)
  },
  'a cost of nothing looks, a negative one gives back but not below nothing': async (t, a) => {
    t.deepEqual([(await a.take('look', minute(5), 0)).used], [0])
    await a.take('look', minute(5), 4)
    t.is((await a.take('look', minute(5), 0)).used, 4)
    t.is((await a.take('look', minute(5), -1)).used, 3)
    t.is((await a.take('look', minute(5), -9)).used, 0)
  },
  'many keys in one call, in any order and some of them twice, are each counted alone': async (
    t,
    a,
    b,
  ) => {
    const keys = Array.from({ length: 48 }, (_, at) => `many ${at % 12}`)
    const asked = [...keys, ...keys.toReversed()]
    const answers = await Promise.all(
      asked.map(async (key, at) => ({
        key,
        ...(await (at % 2 ? a : b).take(key, minute(at % 3 === 0 ? 5 : 6))),
      })),
    )
    for (const key of new Set(keys)) {
      const given = answers.filter((one) => one.key === key && one.allowed)
      t.true(given.length >= 5 && given.length <= 6, `${key} ${given.length}`)
      t.is((await a.take(key, minute(6), 0)).used, given.length)
    }
  },
  'a window ends, and the next one begins with its first call': async (t, a) => {
    const second = { limit: 1, windowSecs: 1 }
    await until(async () => !(await a.take('brief', second)).allowed)
    let first = await a.take('brief', second)
    await until(async () => (first = await a.take('brief', second)).allowed)
    t.is(first.used, 1)
  },
  'of 50 concurrent calls with one key, one is the first': async (t, a, b) => {
    const calls = Array.from({ length: 50 }, (_, i) => (i % 2 ? a : b).once('jti', 60))
    t.is((await Promise.all(calls)).filter(Boolean).length, 1)
  },
  'what may happen once may happen again after its time, and not before': async (t, a) => {
    t.true(await a.once('later', 60))
    t.false(await a.once('later', 60))
    t.true(await a.once('again', 1))
    await until(() => a.once('again', 1))
  },
  'a lock has one holder and is free after its release': async (t, a, b) => {
    const tries = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 ? a : b).lock('one', 60)),
    )
    const held = tries.filter((release) => release !== undefined)
    t.is(held.length, 1)
    await held[0]!()
    const again = await b.lock('one', 60)
    t.truthy(again)
    await again?.()
  },
  'a late release leaves the lock of the next holder': async (t, a, b) => {
    const late = await a.lock('late', 1)
    let next: (() => Promise<void>) | undefined
    await until(async () => (next = await b.lock('late', 60)) !== undefined)
    await late!()
    t.is(await a.lock('late', 60), undefined)
    await next!()
  },
  'a value is kept byte for byte, until it is replaced, deleted or expired': async (t, a, b) => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    t.is(await a.get('value'), undefined)
    await a.put('value', bytes, 60)
    t.deepEqual([...(await b.get('value'))!], [...bytes])
    await b.put('value', new Uint8Array(), 60)
    t.is((await a.get('value'))?.length, 0)
    await a.forget('value')
    t.is(await b.get('value'), undefined)
    await a.put('value', bytes, 1)
    await until(async () => (await a.get('value')) === undefined)
  },
  'the same key means something else for each kind of question': async (t, a) => {
    t.true(await a.once('kinds', 60))
    t.truthy(await a.lock('kinds', 60))
    t.true((await a.take('kinds', minute(1))).allowed)
    t.is(await a.get('kinds'), undefined)
  },
  'any text is a key': async (t, a) => {
    const keys = [
      '',
      ' ',
      '\r\nflush_all\r\n',
      '\0',
      'ключ',
      'x'.repeat(5000),
      "'; drop table x; --",
    ]
    for (const key of keys) t.true(await a.once(key, 60), JSON.stringify(key).slice(0, 40))
    for (const key of keys) t.false(await a.once(key, 60), JSON.stringify(key).slice(0, 40))
  },
  'a lifetime that backends would read in different ways is refused': async (t, a) => {
    for (const secs of [0, -1, 1.5, Number.NaN, 31 * 86_400]) {
      await t.throwsAsync(a.once('life', secs), { instanceOf: RangeError })
      await t.throwsAsync(a.take('life', { limit: 1, windowSecs: secs }), {
        instanceOf: RangeError,
      })
    }
  },
}

const until = (holds: () => Promise<boolean>) => watch('what is waited for', holds)

/** Driver after driver starts its servers, so that none waits for processors that the others have. */
let starting: Promise<unknown> = Promise.resolve()

for (const driver of drivers) {
  const missing = driver.needs !== undefined && program(driver.needs) === undefined
  const note = missing ? ` (skipped: ${driver.needs} is not installed)` : ''
  const run = missing ? test.skip : test
  let opened: ReturnType<Driver['open']> | undefined
  const open = () => {
    if (opened === undefined) {
      opened = starting.then(() => driver.open())
      starting = opened.catch(() => undefined)
    }
    return opened
  }
  for (const [title, behaviour] of Object.entries(behaviours)) {
    run(`${driver.name}: ${title}${note}`, async (t) => {
      const { first, second } = await open()
      await behaviour(t, first, second)
    })
  }
  test.after.always(async () => (await opened)?.close())
}

for (const [name, start, at] of [
  ['redis', startRedis, redisAt],
  ['memcached', startMemcached, memcachedAt],
] as const) {
  const needs = name === 'redis' ? 'redis-server' : name
  const path = program(needs)
  const run = path === undefined ? test.skip : test
  const note = path === undefined ? ` (skipped: ${needs} is not installed)` : ''
  run(
    `${name}: a stopped server causes errors, never a success, and works again after its restart${note}`,
    async (t) => {
      const server = await start(path!)
      const backend = await at(server)
      try {
        t.true(await backend.once('before', 60))
        await server.kill()
        for (let i = 0; i < 3; i += 1) {
          await t.throwsAsync(backend.take('k', minute(100)), {
            instanceOf: CoordinationUnavailable,
          })
          await t.throwsAsync(backend.once(`k${i}`, 60), { instanceOf: CoordinationUnavailable })
          await t.throwsAsync(backend.lock('k', 60), { instanceOf: CoordinationUnavailable })
        }
        await server.restart()
        await until(() => backend.once(`back ${performance.now()}`, 60).catch(() => false))
      } finally {
        await backend.close()
        await server.stop()
      }
    },
  )
  run(`${name}: a server that is not there fails the start${note}`, async (t) => {
    const server = await start(path!)
    await server.stop()
    await t.throwsAsync(at(server), { instanceOf: CoordinationUnavailable })
  })
}

for (const mode of GROUPS) {
  const path = program('redis-server')
  const run = path === undefined ? test.skip : test
  const note = path === undefined ? ' (skipped: redis-server is not installed)' : ''
  run(
    `redis ${mode}: without its primary it refuses, and goes on with the new one${note}`,
    async (t) => {
      const servers = await startRedisGroup(mode)
      const backend = await redisOf(servers.settings)
      try {
        t.true(await backend.once('before', 60))
        await servers.killPrimaryOf(storedKey('once', 'before'))
        await t.throwsAsync(backend.once('before', 60), { instanceOf: CoordinationUnavailable })
        await until(() => backend.once(`after ${performance.now()}`, 60).catch(() => false))
        await until(() =>
          backend.once('before', 60).then(
            () => true,
            () => false,
          ),
        )
        t.false(await backend.once('before', 60), 'the replica had it')
      } finally {
        await backend.close()
        await servers.stop()
      }
    },
  )
}

test('postgres: expired entries are deleted, live ones stay', async (t) => {
  const own = await freshDatabase(t)
  const backend = postgresCoordination(own.database)
  await backend.put('long', new Uint8Array([1]), 600)
  await backend.take('long', minute(5))
  await backend.put('short', new Uint8Array([1]), 1)
  await backend.take('short', { limit: 5, windowSecs: 1 })
  let swept = 0
  await until(async () => (swept += await sweepCoordination(own.database, 100)) >= 2)
  t.is(swept, 2)
  t.is((await backend.take('long', minute(5), 0)).used, 1)
  t.truthy(await backend.get('long'))
})
