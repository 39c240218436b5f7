/** The limits on guesses, and codes of authenticator apps. */
import test from 'ava'
import * as fc from 'fast-check'
import { setImmediate } from 'node:timers/promises'
import { lockout } from '../../../../../actors/identity/sign-in/limits/lockout.js'
import { heldClock } from '../../../../support/held-clock.js'
import { postgresCoordination } from '../../../../../storage/platform/coordination/postgres.js'
import { freshDatabase } from '../../../../support/storage/database.js'
import { recoveryCodeSha256 } from '../../../../../actors/identity/sign-in/second-factors/recovery-codes.js'
import {
  base32,
  otpauthUri,
  stepAt,
  totpCode,
  totpStepOf,
} from '../../../../../actors/identity/sign-in/second-factors/totp.js'

const db = await freshDatabase()
test.after.always(() => db.drop())

const SETTINGS = {
  brute_force_max_attempts: 5,
  brute_force_lockout_secs: 900,
  password_verify_ip_max_attempts: 40,
  password_verify_ip_window_secs: 60,
}
const clock = heldClock(new Date(Date.UTC(2030, 0, 1)))
const guard = lockout(postgresCoordination(db.database), SETTINGS, clock)

const verdict = { right: 'succeeded', wrong: 'failed' } as const

/** One attempt, judged immediately or when `until` resolves: 'right', 'wrong', 'locks' or 'locked'. */
async function tried(
  answer: 'right' | 'wrong',
  name: string,
  address = '192.0.2.1',
  until?: Promise<unknown>,
) {
  const judged = await guard.attempt({ name, address }, async (attempt) => {
    await until
    return (await attempt[verdict[answer]]()) === true ? 'locks' : answer
  })
  return judged.tag === 'judged' ? judged.outcome : judged.tag
}

/** Attempts with the correct secret that wait until `judge` is called. */
async function beingJudged(count: number, name: string, network: string) {
  let judge!: () => void
  const until = new Promise<void>((resolve) => (judge = resolve))
  const all = times(count, (index) => tried('right', name, `${network}.${index}`, until))
  while ((await guard.used(name)) < count) await setImmediate()
  return { judge, all: Promise.all(all) }
}

const times = <T>(count: number, one: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => one(index))

test('the last allowed failure locks the name, and only that name', async (t) => {
  const outcomes = []
  for (let count = 0; count < 7; count += 1) outcomes.push(await tried('wrong', 'one'))
  t.deepEqual(outcomes, ['wrong', 'wrong', 'wrong', 'wrong', 'locks', 'locked', 'locked'])
  const never = () => Promise.reject(new Error('judged'))
  const locked = await guard.attempt({ name: 'one', address: '192.0.2.9' }, never)
  t.deepEqual(locked, { tag: 'locked', retryAfterSecs: 900 })
  t.is(await tried('right', 'one', '192.0.2.9'), 'locked')
  t.is(await tried('right', 'two', '192.0.2.9'), 'right')
})

test('a success resets the failures', async (t) => {
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 4; count += 1)
      t.is(await tried('wrong', 'three', '192.0.2.3'), 'wrong')
    t.is(await tried('right', 'three', '192.0.2.3'), 'right')
  }
})

test('50 concurrent guesses get no more verdicts than 50 sequential ones', async (t) => {
  const outcomes = await Promise.all(
    times(50, (index) => tried('wrong', 'four', `198.51.100.${index}`)),
  )
  t.deepEqual(outcomes.filter((one) => one !== 'locked').toSorted(), [
    'locks',
    'wrong',
    'wrong',
    'wrong',
    'wrong',
  ])
})

test('50 concurrent correct attempts are all judged, five at a time', async (t) => {
  let now = 0
  let most = 0
  const judged = await Promise.all(
    times(50, (index) =>
      guard.attempt({ name: 'five', address: `198.51.101.${index}` }, async (attempt) => {
        most = Math.max(most, (now += 1))
        await setImmediate()
        now -= 1
        await attempt.succeeded()
      }),
    ),
  )
  t.true(judged.every(({ tag }) => tag === 'judged'))
  t.true(most <= 5, `${most} at a time`)
})

test('one wrong attempt among correct ones is one failure', async (t) => {
  const { judge, all } = await beingJudged(4, 'six', '198.51.102')
  t.is(await tried('wrong', 'six', '198.51.102.9'), 'wrong')
  judge()
  t.deepEqual(
    await all,
    times(4, () => 'right'),
  )
})

test('an attempt without verdict is given back, earlier failures are not', async (t) => {
  const address = '192.0.2.4'
  const name = 'seven'
  for (let count = 0; count < 4; count += 1) t.is(await tried('wrong', name, address), 'wrong')
  for (let count = 0; count < 3; count += 1) {
    await guard.attempt({ name, address }, () => Promise.resolve())
    const thrown = guard.attempt({ name, address }, () => Promise.reject(new Error('no answer')))
    await t.throwsAsync(thrown, { message: 'no answer' })
  }
  t.is(await tried('wrong', name, address), 'locks')
})

test('a waiting attempt ends when its request is aborted', async (t) => {
  const { judge, all } = await beingJudged(5, 'eight', '198.51.103')
  const left = new AbortController()
  const never = () => Promise.reject(new Error('judged'))
  const { signal } = left
  const waiting = guard.attempt({ name: 'eight', address: '198.51.103.9', signal }, never)
  left.abort()
  await t.throwsAsync(waiting, { name: 'AbortError' })
  judge()
  await all
  t.is(await guard.used('eight'), 0)
})

test('a network address has a quota of checks over all names', async (t) => {
  const tags = []
  for (let count = 0; count < 41; count += 1)
    tags.push(await tried('wrong', `name ${count}`, '203.0.113.1'))
  t.deepEqual(tags, [...times(40, () => 'wrong'), 'locked'])
})

/** RFC 6238 appendix B, SHA-1; the last six of its eight digits. */
const SECRET = Buffer.from('12345678901234567890')
const VECTORS: readonly [secs: number, code: string][] = [
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
]
for (const [secs, code] of VECTORS) {
  test(`RFC 6238: the code at ${secs} s is ${code}`, (t) => {
    t.is(totpCode(SECRET, stepAt(secs)), code)
    t.is(totpStepOf(SECRET, code, secs), stepAt(secs))
  })
}

test('a code is valid for its own step and one to either side', (t) => {
  const at = 1_234_567_890
  const code = totpCode(SECRET, stepAt(at))
  for (const [shift, holds] of [
    [-60, false],
    [-30, true],
    [0, true],
    [30, true],
    [60, false],
  ] as const) {
    t.is(totpStepOf(SECRET, code, at + shift) !== null, holds, `${shift} s`)
  }
})

test('anything but six digits is refused', (t) => {
  for (const typed of ['', '12345', '1234567', '12345a', ' 287082', '２８７０８２']) {
    t.is(totpStepOf(SECRET, typed, 59), null)
  }
})

test('RFC 4648: base32 without padding', (t) => {
  for (const [text, encoded] of [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ] as const) {
    t.is(base32(Buffer.from(text)), encoded)
  }
})

test('the otpauth URI encodes any names of tenant and user', (t) => {
  t.notThrows(() =>
    fc.assert(
      // A tenant always has a name.
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.string(), (issuer, account) => {
        const uri = new URL(otpauthUri(issuer, account, SECRET))
        return (
          uri.protocol === 'otpauth:' &&
          uri.searchParams.get('issuer') === issuer &&
          uri.searchParams.get('secret') === base32(SECRET) &&
          uri.pathname.endsWith(`${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`)
        )
      }),
    ),
  )
})

test('a recovery code is accepted in any spelling, and belongs to one account', (t) => {
  const hash = recoveryCodeSha256('a', 'ABCD-EFGH-IJKL-MN23')
  t.deepEqual(recoveryCodeSha256('a', ' abcdefgh ijkl mn23 '), hash)
  t.notDeepEqual(recoveryCodeSha256('b', 'ABCD-EFGH-IJKL-MN23'), hash)
  for (const typed of ['', 'ABCD', 'ABCD-EFGH-IJKL-MN21', 'ABCD-EFGH-IJKL-MN23-X']) {
    t.is(recoveryCodeSha256('a', typed), null)
  }
})
