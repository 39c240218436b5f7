import test from 'ava'
import {
  isPublished,
  type KeyRow,
  planFirstUse,
  planMaintenance,
  planRotation,
  PUBLISH_AHEAD_SECS,
  REMEMBERED_SECS,
  type Step,
  VERIFIABLE_AFTER_SECS,
} from '../../../../actors/oauth/signing-keys/rules.js'
import type { SigningAlgorithm } from '../../../../actors/oauth/signing-keys/protocol.js'

const now = new Date('2030-06-01T00:00:00Z')
const DAYS = 30
const DAY_SECS = 86_400
const before = (secs: number) => new Date(now.getTime() - secs * 1000)
const after = (secs: number) => new Date(now.getTime() + secs * 1000)

const row = (kid: string, algorithm: SigningAlgorithm, changes: Partial<KeyRow>): KeyRow => ({
  kid,
  algorithm,
  state: 'next',
  createdAt: before(5 * DAY_SECS),
  currentSince: changes.state === 'next' ? null : before(5 * DAY_SECS),
  verifiableUntil: null,
  ...changes,
})
const healthy = (algorithm: SigningAlgorithm) => [
  row(`${algorithm} current`, algorithm, { state: 'current' }),
  row(`${algorithm} next`, algorithm, { state: 'next' }),
]
const words = (steps: readonly Step[]) =>
  steps.map((step) =>
    step.do === 'create' ? `create ${step.algorithm} ${step.state}` : `${step.do} ${step.kid}`,
  )

test('the first start creates a current and a next key for each algorithm', (t) => {
  t.deepEqual(words(planMaintenance([], now, DAYS).steps), [
    'create ES256 current',
    'create ES256 next',
    'create EdDSA current',
    'create EdDSA next',
  ])
})

test('RSA keys are made with their first use, and follow the same steps from then on', (t) => {
  const others = [...healthy('ES256'), ...healthy('EdDSA')]
  t.deepEqual(words(planFirstUse(others, 'RS256').steps), [
    'create RS256 current',
    'create RS256 next',
  ])
  t.deepEqual(planFirstUse([...others, ...healthy('RS256')], 'RS256').steps, [])
  const rows = [
    ...others,
    row('current', 'RS256', { state: 'current', currentSince: before(DAYS * DAY_SECS) }),
    row('next', 'RS256', { state: 'next' }),
  ]
  const replaced = ['retire current', 'promote next', 'create RS256 next']
  t.deepEqual(words(planMaintenance(rows, now, DAYS).steps), replaced)
  const demanded = planRotation(rows, now, { compromised: false })
  t.true(demanded.tag === 'plan' && words(demanded.steps).includes('promote next'))
  t.deepEqual(words(planMaintenance(others, now, DAYS).steps), [])
})

test('complete and young keys need no change', (t) => {
  t.deepEqual(planMaintenance([...healthy('ES256'), ...healthy('EdDSA')], now, DAYS).steps, [])
})

for (const [title, ageSecs, expected] of [
  ['one second too young', DAYS * DAY_SECS - 1, []],
  ['old enough', DAYS * DAY_SECS, ['retire current', 'promote next', 'create ES256 next']],
] as const) {
  test(`a current key ${title} ${expected.length ? 'is' : 'is not'} replaced`, (t) => {
    const rows = [
      row('current', 'ES256', { state: 'current', currentSince: before(ageSecs) }),
      row('next', 'ES256', { state: 'next' }),
      ...healthy('EdDSA'),
    ]
    t.deepEqual(words(planMaintenance(rows, now, DAYS).steps), [...expected])
  })
}

test('an old current key waits until its successor was published long enough', (t) => {
  const rows = (publishedSecs: number) => [
    row('current', 'ES256', { state: 'current', currentSince: before(90 * DAY_SECS) }),
    row('next', 'ES256', { state: 'next', createdAt: before(publishedSecs) }),
    ...healthy('EdDSA'),
  ]
  t.deepEqual(planMaintenance(rows(PUBLISH_AHEAD_SECS - 1), now, DAYS).steps, [])
  t.is(planMaintenance(rows(PUBLISH_AHEAD_SECS), now, DAYS).steps.length, 3)
})

test('a retired key stays until the longest token it may have signed has expired', (t) => {
  const [retire] = planMaintenance(
    [
      row('current', 'ES256', { state: 'current', currentSince: before(90 * DAY_SECS) }),
      row('next', 'ES256', { state: 'next' }),
      ...healthy('EdDSA'),
    ],
    now,
    DAYS,
  ).steps
  t.deepEqual(retire, {
    do: 'retire',
    kid: 'current',
    verifiableUntil: after(VERIFIABLE_AFTER_SECS),
  })
  t.true(VERIFIABLE_AFTER_SECS > 86_400)
  const retired = (verifiableUntil: Date) => [
    ...healthy('ES256'),
    ...healthy('EdDSA'),
    row('old', 'ES256', { state: 'retired', verifiableUntil }),
  ]
  const stays = (verifiableUntil: Date) => {
    t.deepEqual(planMaintenance(retired(verifiableUntil), now, DAYS).steps, [])
    return isPublished({ verifiableUntil }, now)
  }
  t.true(stays(after(1)))
  t.false(stays(now), 'it is remembered, and published no more')
  t.false(stays(before(REMEMBERED_SECS - 1)))
  const over = planMaintenance(retired(before(REMEMBERED_SECS)), now, DAYS)
  t.deepEqual(words(over.steps), ['remove old'])
})

test('the next key replaces a missing current key', (t) => {
  const rows = [row('next', 'ES256', { state: 'next' }), ...healthy('EdDSA')]
  t.deepEqual(words(planMaintenance(rows, now, DAYS).steps), ['promote next', 'create ES256 next'])
})

test('a requested rotation replaces both keys, or the named one', (t) => {
  const rows = [...healthy('ES256'), ...healthy('EdDSA')]
  const both = planRotation(rows, now, { compromised: false })
  t.deepEqual(both.tag === 'plan' && words(both.steps), [
    'retire ES256 current',
    'promote ES256 next',
    'create ES256 next',
    'retire EdDSA current',
    'promote EdDSA next',
    'create EdDSA next',
  ])
  const one = planRotation(rows, now, { algorithm: 'EdDSA', compromised: false })
  t.is(one.tag === 'plan' && one.steps.length, 3)
})

test('a requested rotation is too early while verifiers may not have the next key', (t) => {
  const rows = [
    row('current', 'ES256', { state: 'current' }),
    row('next', 'ES256', { state: 'next', createdAt: before(100) }),
    ...healthy('EdDSA'),
  ]
  t.deepEqual(planRotation(rows, now, { compromised: false }), {
    tag: 'too_early',
    waitSecs: PUBLISH_AHEAD_SECS - 100,
  })
  t.is(planRotation(rows, now, { algorithm: 'EdDSA', compromised: false }).tag, 'plan')
})

test('a compromised key is removed immediately, with or without a known successor', (t) => {
  const rows = [
    row('current', 'ES256', { state: 'current' }),
    row('next', 'ES256', { state: 'next', createdAt: before(1) }),
    ...healthy('EdDSA'),
  ]
  const plan = planRotation(rows, now, { algorithm: 'ES256', compromised: true })
  t.deepEqual(plan.tag === 'plan' && words(plan.steps), [
    'retire current',
    'promote next',
    'create ES256 next',
    'remove current',
  ])
  const lone = planRotation([row('current', 'ES256', { state: 'current' })], now, {
    algorithm: 'ES256',
    compromised: true,
  })
  t.deepEqual(lone.tag === 'plan' && words(lone.steps), [
    'retire current',
    'create ES256 current',
    'create ES256 next',
    'remove current',
  ])
})
