import test from 'ava'
import { lockout } from '../../../actors/login/lockout.js'
import { heldClock } from '../../../runtime/kernel/clock.js'
import { postgresCoordination } from '../../../storage/coordination/postgres.js'
import { freshDatabase } from '../../support/database.js'

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

async function fail(name: string, address = '192.0.2.1') {
  const attempt = await guard.attempt(name, address)
  return attempt.tag === 'open' ? ((await attempt.failed()) ? 'locks' : 'open') : 'locked'
}

test('the last failure that is allowed locks the name, and only that name', async (t) => {
  const outcomes = []
  for (let count = 0; count < 7; count += 1) outcomes.push(await fail('one'))
  t.deepEqual(outcomes, ['open', 'open', 'open', 'open', 'locks', 'locked', 'locked'])
  const locked = await guard.attempt('one', '192.0.2.9')
  t.deepEqual(locked, { tag: 'locked', retryAfterSecs: 900 })
  t.is((await guard.attempt('two', '192.0.2.9')).tag, 'open')
})

test('a success gives back what failures had used', async (t) => {
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 4; count += 1) t.is(await fail('three', '192.0.2.3'), 'open')
    const attempt = await guard.attempt('three', '192.0.2.3')
    if (attempt.tag === 'locked') return t.fail()
    await attempt.succeeded()
  }
})

test('of 50 guesses at once no more are judged than one after another would be', async (t) => {
  const attempts = await Promise.all(
    Array.from({ length: 50 }, (_, index) => guard.attempt('four', `198.51.100.${index}`)),
  )
  t.is(attempts.filter(({ tag }) => tag === 'open').length, 5)
})

test('an address has a quota of checks, whatever names it tries', async (t) => {
  const tags = []
  for (let count = 0; count < 41; count += 1) {
    tags.push((await guard.attempt(`name ${count}`, '203.0.113.1')).tag)
  }
  t.deepEqual(tags.filter((tag) => tag === 'locked').length, 1)
  t.is(tags.at(-1), 'locked')
})
