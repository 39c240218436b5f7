import test from 'ava'
import * as fc from 'fast-check'
import { bitsFor, difficulty } from '../../../../actors/agents/agents/difficulty.js'
import { powMetrics } from '../../../../actors/agents/agents/metrics.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { Registry } from 'prom-client'
import { identityFixture, newcomer } from '../../../support/identity/identity.js'
import { nonceFor } from '../../../support/identity/nonce.js'

const settings = {
  pow_difficulty_bits: 20,
  pow_trickle_per_minute: 60,
  pow_flood_bits_max: 4,
}

/** A clock that moves only when told to. */
function standing() {
  let ms = 0
  return {
    clock: { monotonicMs: () => ms } as Clock,
    pass: (by: number) => {
      ms += by
    },
  }
}

for (const [starts, bits] of [
  [1, 20],
  [60, 20],
  [61, 21],
  [119, 21],
  [120, 22],
  [240, 23],
  [480, 24],
  [300_000, 24],
] as const) {
  test(`${starts} starts per minute, with a trickle of 60, need ${bits} bits`, (t) => {
    t.is(bitsFor(starts, settings), bits)
  })
}

test('the difficulty never exceeds its limit', (t) => {
  t.is(bitsFor(1_000_000, { ...settings, pow_difficulty_bits: 27, pow_flood_bits_max: 8 }), 28)
  t.is(bitsFor(1_000_000, { ...settings, pow_flood_bits_max: 0 }), 20)
})

test('a trickle never raises the difficulty, however it is distributed', (t) => {
  fc.assert(
    fc.property(
      // Five starts in any five seconds: sixty a minute at the most.
      fc.array(fc.integer({ min: 1_000, max: 20_000 }), { minLength: 1, maxLength: 300 }),
      (gapsMs) => {
        const { clock, pass } = standing()
        const cost = difficulty(clock, settings)
        for (const gapMs of gapsMs) {
          t.is(cost.next('tenant'), 20)
          pass(gapMs)
        }
      },
    ),
  )
})

test('a flood raises the difficulty of its tenant only, until it is over', (t) => {
  const { clock, pass } = standing()
  const cost = difficulty(clock, settings)
  const bits = Array.from({ length: 1_000 }, () => {
    pass(10)
    return cost.next('flooded')
  })
  t.deepEqual([...new Set(bits)], [20, 21, 22, 23, 24])
  t.is(cost.next('other'), 20)
  pass(45_000)
  t.is(cost.next('flooded'), 24)
  pass(16_000)
  t.is(cost.next('flooded'), 20)
})

test('a registration succeeds during a flood, with the difficulty it was given', async (t) => {
  const resources = await identityFixture({ difficultyBits: 4, tricklePerMinute: 10 })
  t.teardown(() => resources.close())
  const tenant = { tenantId: resources.controlPlane.id }
  const start = () => {
    const { registration } = newcomer(resources.controlPlane.id)
    return resources.agents.startAgentRegistration({ kind: 'agent', registration, tenant })
  }
  const flood = Promise.all(Array.from({ length: 300 }, start))
  const honest = await start()
  if (honest.tag !== 'started') return t.fail(honest.tag)
  const nonce = nonceFor(honest)
  const done = await resources.agents.completeAgentRegistration({
    challengeId: honest.challengeId,
    nonce,
  })
  t.is(done.tag, 'registered')
  const asked = (await flood).map((one) => (one.tag === 'started' ? one.difficultyBits : 0))
  t.is(Math.min(...asked), 4)
  t.is(Math.max(...asked), 8)
  t.is(asked.filter((bits) => bits === 4).length, 10)
  const after = await start()
  t.is(after.tag === 'started' && after.difficultyBits, 8)
})

test('the difficulty of challenges is a metric', async (t) => {
  const registry = new Registry()
  powMetrics(registry).observeDifficulty(20)
  powMetrics(registry).observeDifficulty(24)
  t.regex(await registry.metrics(), /svc_agent_pow_difficulty_bits_count 2/)
})
