import test from 'ava'
import { POLICIES, type RateLimitsProtocol } from '../../actors/operations/rate-limits/protocol.js'
import { BODIES, LocalWindow, openQuotas } from '../../gateway/request/quotas.js'
import { type ActorRef, ActorUnavailable, withMethods } from '../../runtime/kernel/actor.js'
import { silentLogger } from '../../runtime/kernel/log.js'
import { systemClock } from '../../runtime/kernel/clock.js'
import { heldClock } from '../support/held-clock.js'
import { openStage, type Stage, type StageOptions, TRANSPORTS, type Transport } from './stage.js'
import { IS_LONG } from '../support/runs.js'

type Throttle = Partial<{
  [K in keyof RateLimitsProtocol]: (
    message: RateLimitsProtocol[K]['message'],
  ) => Promise<RateLimitsProtocol[K]['reply']>
}>

/** A fake rate-limits actor with given answers. */
function throttleRef(answers: Throttle): ActorRef<never> {
  const ask = async (kind: keyof RateLimitsProtocol, message: never) => {
    const answer = answers[kind]
    if (answer === undefined) throw new ActorUnavailable('rate-limits', kind, 'stopped')
    return answer(message)
  }
  return withMethods({ name: 'rate-limits', ask } as unknown as ActorRef<never>)
}

/** A clock with a fixed time of day and running timers. */
const standing = () => heldClock(new Date('2030-01-01T00:00:00Z'))

async function withStage(
  options: StageOptions,
  work: (stage: Stage) => Promise<void>,
): Promise<void> {
  const stage = await openStage(options)
  try {
    await work(stage)
  } finally {
    await stage.close()
  }
}

const LIMIT = POLICIES.default[0].limit

/** A quota does not depend on the transport: the long run shows it. */
const COUNTED: readonly Transport[] = IS_LONG ? TRANSPORTS : ['http2']

for (const transport of COUNTED) {
  test(`${transport}: the default quota is announced, counted down and enforced`, async (t) => {
    const clock = standing()
    await withStage({ transport, clock }, async ({ call }) => {
      const first = await call({ path: '/hello' })
      t.is(first.headers['ratelimit-policy'], '"default";q=600;w=60')
      t.is(first.headers['ratelimit'], '"default";r=599;t=60')
      for (let sent = 1; sent < LIMIT; sent += 50) {
        const batch = Math.min(50, LIMIT - sent)
        await Promise.all(Array.from({ length: batch }, () => call({ path: '/hello' })))
      }
      clock.advance(10_500)
      const over = await call({ path: '/hello' })
      t.is(over.status, 429)
      t.is(over.headers['retry-after'], '50')
      t.is(over.headers['ratelimit'], '"default";r=0;t=50')
      t.like(over.json() as object, {
        error: 'rate_limited',
        retry_after: 50,
        'violated-policies': ['default'],
      })
      t.is((await call({ path: '/health/live' })).status, 200, 'probes are never throttled')
      const other = await call({ path: '/guarded', headers: { authorization: 'Bearer good' } })
      t.is(other.status, 200, 'a token has its own quota')
      clock.advance(50_000)
      t.is((await call({ path: '/hello' })).status, 200, 'a new window')
    })
  })
}

test('a light route without quota says nothing of quotas', async (t) => {
  await withStage({ transport: 'uws' }, async ({ call }) => {
    const { headers } = await call({ path: '/health/live' })
    t.is(headers['ratelimit'], undefined)
    t.is(headers['ratelimit-policy'], undefined)
  })
})

test('guessing tokens runs into a quota that leaves honest callers alone', async (t) => {
  const clock = standing()
  await withStage({ transport: 'uws', clock }, async ({ call }) => {
    const guess = () => call({ path: '/guarded', headers: { authorization: 'Bearer wrong' } })
    for (let sent = 0; sent < LIMIT; sent += 50) {
      const replies = await Promise.all(Array.from({ length: 50 }, guess))
      t.true(replies.every(({ status }) => status === 401))
    }
    t.is((await guess()).status, 429)
    t.is((await call({ path: '/hello' })).status, 200)
  })
})

test('with the throttle switched off nothing is counted', async (t) => {
  const server = { endpoint_throttle: { enabled: false } }
  await withStage({ transport: 'uws', server }, async ({ call }) => {
    const { status, headers } = await call({ path: '/hello' })
    t.is(status, 200)
    t.is(headers['ratelimit'], undefined)
    t.is((await call({ method: 'POST', path: '/registration' })).status, 200)
  })
})

test('a strict policy is asked of the throttle by address, all its windows in one call', async (t) => {
  const seen: unknown[] = []
  const ref = throttleRef({
    take: async ({ quotas }) => {
      seen.push(quotas)
      const windows = POLICIES.registration.map((window) => ({
        ...window,
        remaining: window.limit - 1,
        resetSecs: window.windowSecs,
      }))
      return { tag: 'taken', windows }
    },
  })
  await withStage({ transport: 'uws', throttle: ref }, async ({ call }) => {
    const { status, headers } = await call({ method: 'POST', path: '/registration' })
    t.is(status, 200)
    t.is(headers['ratelimit-policy'], '"registration";q=10;w=60, "registration-day";q=100;w=86400')
    t.is(headers['ratelimit'], '"registration";r=9;t=60, "registration-day";r=99;t=86400')
  })
  t.deepEqual(seen, [[{ policy: 'registration', key: '127.0.0.1' }]])
})

test('a refusal of the throttle is a 429 that names the window', async (t) => {
  const ref = throttleRef({
    take: async () => ({
      tag: 'exceeded',
      windows: [{ name: 'token', limit: 120, windowSecs: 60, remaining: 0, resetSecs: 7 }],
      violated: ['token'],
      retryAfterSecs: 7,
    }),
  })
  await withStage({ transport: 'uws', throttle: ref }, async ({ call }) => {
    const { status, headers, json } = await call({
      method: 'POST',
      path: '/oauth/form',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=good',
    })
    t.is(status, 429)
    t.is(headers['retry-after'], '7')
    t.is(headers['content-type'], 'application/problem+json')
    t.like(json() as object, { error: 'rate_limited', 'violated-policies': ['token'] })
    t.is(typeof json()['error_description'], 'string')
  })
})

test('a key made from the request shares the quota of that key only', async (t) => {
  const keys: string[] = []
  const ref = throttleRef({
    take: async ({ quotas }) => {
      keys.push(...quotas.map(({ key }) => key))
      return { tag: 'taken', windows: [] }
    },
  })
  await withStage({ transport: 'uws', throttle: ref }, async ({ call }) => {
    for (const grant of ['good', 'other']) {
      await call({
        method: 'POST',
        path: '/oauth/form',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: `grant_type=${grant}`,
      })
    }
  })
  t.deepEqual(keys, ['good', 'other'])
})

test('without a token, requests with a key of the sender are bounded by address', async (t) => {
  const ref = throttleRef({ take: async () => ({ tag: 'taken', windows: [] }) })
  const options = { transport: 'uws', throttle: ref, clock: standing() } as const
  await withStage(options, async ({ call }) => {
    const ask = (number: number) =>
      call({
        method: 'POST',
        path: '/oauth/form',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: `grant_type=${number}`,
      })
    const answers = await Promise.all(Array.from({ length: LIMIT + 1 }, (_, at) => ask(at)))
    t.is(answers.filter(({ status }) => status === 429).length, 1)
  })
})

test('a throttle that cannot count, or does not answer, is a 503', async (t) => {
  const silent = throttleRef({})
  const unknown = throttleRef({ take: async () => ({ tag: 'unknown' }) })
  for (const ref of [silent, unknown, undefined]) {
    const options: StageOptions = { transport: 'uws', ...(ref ? { throttle: ref } : {}) }
    await withStage(options, async ({ call }) => {
      const { status, headers } = await call({ method: 'POST', path: '/registration' })
      t.is(status, 503)
      t.is(headers['retry-after'], '1')
      t.is((await call({ path: '/hello' })).status, 200, 'the default quota needs no throttle')
    })
  }
})

test('a local window counts others in once they are known', (t) => {
  const clock = heldClock(new Date('2030-01-01T00:00:00Z'))
  const window = new LocalWindow({ name: 'w', limit: 10, windowSecs: 60 }, clock)
  for (let taken = 0; taken < 4; taken += 1) window.take('k')
  t.deepEqual(window.unsettled('default'), [{ policy: 'default', key: 'k', count: 4 }])
  t.deepEqual(window.unsettled('default'), [], 'told once')
  window.absorb('k', 9)
  const last = window.take('k')
  t.is(last.tag, 'taken')
  t.is(window.take('k').tag, 'exceeded')
  t.is(window.spent('k')?.tag, 'exceeded')
  t.is(window.spent('other'), null)
  clock.advance(60_000)
  t.is(window.spent('k'), null)
  t.is(window.take('k').tag, 'taken')
})

test('keys far from their quota are not worth settling', (t) => {
  const window = new LocalWindow({ name: 'w', limit: 100, windowSecs: 60 }, systemClock)
  for (let taken = 0; taken < 9; taken += 1) window.take('k')
  t.deepEqual(window.unsettled('default'), [])
  window.take('k')
  t.deepEqual(window.unsettled('default'), [{ policy: 'default', key: 'k', count: 10 }])
})

// Parsing a large body takes the time of the thread that all requests share.

const LARGE = JSON.stringify({ text: 'x'.repeat(1024 * 1024 - 64) })
/** Above the free part of each. */
const LARGE_KIB = Math.ceil((LARGE.length - 64 * 1024) / 1024)

for (const transport of ['http1', 'http2'] as const) {
  test(`${transport}: large bodies are counted, and beyond the quota not parsed`, async (t) => {
    const clock = standing()
    await withStage({ transport, clock }, async ({ call, notes }) => {
      const echo = (body: string) =>
        call({
          method: 'POST',
          path: '/echo',
          headers: { 'content-type': 'application/json' },
          body,
        })
      const admitted = Math.ceil(BODIES.limit / LARGE_KIB)
      for (let sent = 0; sent < admitted; sent += 1) t.is((await echo(LARGE)).status, 400)
      const over = await echo(LARGE)
      t.is(over.status, 429)
      t.deepEqual(over.json()['violated-policies'], ['body-kib'])
      t.is(over.headers['retry-after'], '60')
      // A body that is no JSON would be 400.
      t.is((await echo('x'.repeat(LARGE.length))).status, 429)
      t.is((await echo('{"text":"small"}')).status, 201)
      clock.advance(60_500)
      t.is((await echo(LARGE)).status, 400)
      t.is(notes.ran.length, 1)
    })
  })
}

test('the quota of large bodies is per key, and small bodies cost nothing', (t) => {
  const quotas = openQuotas({
    enabled: true,
    throttle: undefined,
    clock: standing(),
    log: silentLogger,
  })
  t.teardown(() => quotas.close())
  const large = (key: string) => quotas.refuseBody(() => key, 8 * 1024 * 1024)?.tag ?? 'admitted'
  while (large('tenant:a') === 'admitted');
  t.is(large('tenant:b'), 'admitted')
  for (let times = 0; times < 1000; times += 1)
    t.is(
      quotas.refuseBody(() => 'tenant:a', 64 * 1024),
      null,
    )
})
