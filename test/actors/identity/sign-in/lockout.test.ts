import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { lockout } from '../../../../actors/identity/sign-in/lockout.js'
import { heldClock } from '../../../support/held-clock.js'
import { postgresCoordination } from '../../../../storage/platform/coordination/postgres.js'
import { freshDatabase } from '../../../support/storage/database.js'

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
