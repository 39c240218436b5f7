import test from 'ava'
import * as fc from 'fast-check'
import {
  type AttemptResult,
  CIRCUIT_FAILURES,
  isAlive,
  judgeAttempt,
  readRetryAfter,
  restSecs,
  slowRestSecs,
} from '../../../../actors/webhooks/delivery/retry-schedule.js'

const SCHEDULE = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
const result = (change: Partial<AttemptResult> = {}): AttemptResult => ({
  attemptedAt: new Date(0),
  durationMs: 1,
  responseStatus: 500,
  error: 'unexpected_status',
  retryAfterSecs: null,
  ...change,
})

for (const [status, verdict] of [
  [200, 'succeeded'],
  [204, 'succeeded'],
  [299, 'succeeded'],
  [301, 'retrying'],
  [304, 'retrying'],
  [400, 'failed'],
  [401, 'failed'],
  [404, 'failed'],
  [408, 'retrying'],
  [409, 'failed'],
  [410, 'failed'],
  [425, 'retrying'],
  [429, 'retrying'],
  [499, 'failed'],
  [500, 'retrying'],
  [503, 'retrying'],
  [599, 'retrying'],
  [null, 'retrying'],
] as const) {
  test(`after an answer ${status} a first attempt has ${verdict}`, (t) => {
    t.is(judgeAttempt(result({ responseStatus: status }), 1, SCHEDULE, 0.5).status, verdict)
  })
}

test('the schedule defines the number of attempts and their waits', (t) => {
  const waits = SCHEDULE.map((_, at) => judgeAttempt(result(), at + 1, SCHEDULE, 0.5).waitSecs)
  t.deepEqual(waits, [...SCHEDULE.slice(1), null])
})

test('jitter stays within a tenth, and no wait is shorter than Retry-After up to a day', (t) => {
  const chances = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(chances, fc.nat(8), fc.nat(200_000), (chance, at, retryAfterSecs) => {
      const plain = judgeAttempt(result(), at + 1, SCHEDULE, chance).waitSecs!
      const planned = SCHEDULE[at + 1]!
      t.true(plain >= planned * 0.9 - 1e-9 && plain <= planned * 1.1 + 1e-9)
      const wished = judgeAttempt(result({ retryAfterSecs }), at + 1, SCHEDULE, chance).waitSecs!
      t.true(wished >= Math.min(retryAfterSecs, 86_400))
      t.true(wished >= plain)
    }),
  )
})

const NOW = new Date('2026-01-01T00:00:00.500Z')
for (const [value, secs] of [
  [undefined, null],
  ['0', 0],
  ['120', 120],
  [' 7 ', 7],
  ['Thu, 01 Jan 2026 00:01:00 GMT', 60],
  ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
  ['-1', null],
  ['1.5', null],
  ['soon', null],
  ['', null],
  ['2026', 2026],
  ['99999999999', null],
] as const) {
  test(`Retry-After ${JSON.stringify(value)} asks for ${secs} seconds`, (t) => {
    t.is(readRetryAfter(value, NOW), secs)
  })
}

test('a receiver that responds is alive unless it reports that it is not', (t) => {
  const alive = [200, 302, 404, 410, 499].map((responseStatus) =>
    isAlive(result({ responseStatus })),
  )
  t.deepEqual(alive, [true, true, true, true, true])
  const not = [429, 500, 503, null].map((responseStatus) => isAlive(result({ responseStatus })))
  t.deepEqual(not, [false, false, false, false])
})

test('the rest of a receiver grows and never exceeds a minute', (t) => {
  t.is(restSecs(CIRCUIT_FAILURES - 1), 0)
  const rests = Array.from({ length: 6 }, (_, at) => restSecs(CIRCUIT_FAILURES + at))
  t.deepEqual(rests, [5, 10, 20, 40, 60, 60])
  t.is(restSecs(1_000_000), 60)
})

for (const [durationsMs, turnMs, rest] of [
  [[], 0, 0],
  [[10, 20, 30], 10_000, 0],
  // One slow response does not make a slow receiver.
  [[10, 10, 14_000], 14_000, 0],
  [[4_999, 4_999], 10_000, 0],
  [[5_000], 5_000, 10],
  [[6_000, 7_000, 10], 12_000, 24],
  [[14_000, 14_000], 28_000, 56],
  [[15_000], 300_000, 60],
] as const) {
  test(`the rest after answers of ${durationsMs.join(', ')} ms in ${turnMs} ms is ${rest} s`, (t) => {
    t.is(slowRestSecs(durationsMs, turnMs), rest)
  })
}
