import test from 'ava'
import {
  type SharedCounts,
  rateLimitsActor,
} from '../../../../actors/operations/rate-limits/actor.js'
import { LocalCounts } from '../../../../actors/operations/rate-limits/local-counts.js'
import { POLICIES } from '../../../../actors/operations/rate-limits/protocol.js'
import { heldClock } from '../../../support/held-clock.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'

const START = new Date('2030-01-01T00:00:00Z')

/** The coordination port over a map. The drivers have a separate conformance suite. */
function counts() {
  const used = new Map<string, number>()
  let dead = false
  let asked = 0
  const coordination: SharedCounts = {
    async take(key, { limit, windowSecs }, cost = 1) {
      asked += 1
      if (dead) throw new Error('no answer')
      const before = used.get(key) ?? 0
      const allowed = before + cost <= limit
      if (allowed) used.set(key, before + cost)
      const now = used.get(key) ?? 0
      return { allowed, used: now, remaining: Math.max(0, limit - now), resetSecs: windowSecs }
    },
  }
  return {
    coordination,
    used,
    kill: () => void (dead = true),
    revive: () => void (dead = false),
    asked: () => asked,
  }
}

function spawn() {
  const shared = counts()
  const clock = heldClock(START)
  const needs = { coordination: shared.coordination, clock, log: silentLogger }
  const { ref, stop } = spawnInline(rateLimitsActor, needs)
  return { ...shared, clock, ref, stop }
}

const registration = { quotas: [{ policy: 'registration', key: '192.0.2.1' }] } as const

test('a registration counts in the minute window and in the day window', async (t) => {
  const { ref, used, stop } = spawn()
  const outcome = await ref.take(registration)
  t.like(outcome, { tag: 'taken', windows: [{ remaining: 9 }, { remaining: 99 }] })
  t.deepEqual([...used.values()], [1, 1])
  await stop()
})

test('of 50 concurrent registrations exactly 10 are admitted, and the others do not count in the day window', async (t) => {
  const { ref, used, stop } = spawn()
  const outcomes = await Promise.all(Array.from({ length: 50 }, () => ref.take(registration)))
  t.is(outcomes.filter(({ tag }) => tag === 'taken').length, 10)
  const exceeded = outcomes.find(({ tag }) => tag === 'exceeded')
  t.like(exceeded, { tag: 'exceeded', violated: ['registration'], retryAfterSecs: 60 })
  t.is(used.get('registration-day:192.0.2.1'), 10)
  await stop()
})

test('two quotas are taken together or not at all', async (t) => {
  const { ref, used, stop } = spawn()
  used.set('token:full', 120)
  const outcome = await ref.take({
    quotas: [
      { policy: 'token', key: 'full' },
      { policy: 'device', key: 'free' },
    ],
  })
  t.like(outcome, { tag: 'exceeded', violated: ['token'] })
  t.is(used.get('device:free'), 0)
  await stop()
})

test('without the backend registrations are refused and tokens are counted locally', async (t) => {
  const { ref, kill, revive, clock, stop } = spawn()
  kill()
  t.deepEqual(await ref.take(registration), { tag: 'unknown' })
  const token = { quotas: [{ policy: 'token', key: 'c1' }] } as const
  const outcomes = await Promise.all(Array.from({ length: 121 }, () => ref.take(token)))
  t.is(outcomes.filter(({ tag }) => tag === 'taken').length, 120)
  t.is(outcomes.filter(({ tag }) => tag === 'exceeded').length, 1)
  revive()
  clock.advance(1_000)
  t.like(await ref.take(registration), { tag: 'taken' })
  await stop()
})

test('a backend that has just failed is not called for a second', async (t) => {
  const { ref, kill, asked, clock, stop } = spawn()
  kill()
  const token = { quotas: [{ policy: 'token', key: 'c1' }] } as const
  for (let call = 0; call < 5; call += 1) await ref.take(token)
  t.is(asked(), 1)
  clock.advance(1_000)
  await ref.take(token)
  t.is(asked(), 2)
  await stop()
})

test('settling adds without a limit and returns the totals in order', async (t) => {
  const { ref, used, kill, stop } = spawn()
  used.set('default:a', 590)
  const message = {
    counts: [
      { policy: 'default', key: 'a', count: 60 },
      { policy: 'default', key: 'b', count: 70 },
    ],
  } as const
  t.deepEqual(await ref.settle(message), { tag: 'settled', totals: [650, 70] })
  kill()
  t.deepEqual(await ref.settle(message), { tag: 'settled', totals: [null, null] })
  await stop()
})

test('a local count restarts with its window', (t) => {
  const clock = heldClock(START)
  const local = new LocalCounts(clock)
  const [window] = POLICIES.device
  for (let taken = 0; taken < window.limit; taken += 1) t.true(local.take('k', window).allowed)
  t.like(local.take('k', window), { allowed: false, remaining: 0, resetSecs: 60 })
  clock.advance(59_001)
  t.like(local.take('k', window), { allowed: false, resetSecs: 1 })
  clock.advance(999)
  t.like(local.take('k', window), { allowed: true, remaining: window.limit - 1 })
})

test('a refusal is repeated from memory for a second, then the backend is called again', async (t) => {
  const { ref, clock, used, asked, stop } = spawn()
  used.set('registration:192.0.2.1', 10)
  const refused = await ref.take(registration)
  t.is(refused.tag, 'exceeded')
  const before = asked()
  for (let context = 0; context < 100; context += 1) {
    t.deepEqual(await ref.take(registration), refused)
  }
  t.is(asked(), before)
  // Other callers are not affected.
  const other = { quotas: [{ policy: 'registration', key: '192.0.2.2' }] } as const
  t.is((await ref.take(other)).tag, 'taken')
  used.set('registration:192.0.2.1', 0)
  clock.advance(1_000)
  t.is((await ref.take(registration)).tag, 'taken')
  await stop()
})
