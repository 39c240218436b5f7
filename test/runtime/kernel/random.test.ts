import test from 'ava'
import { heldClock } from '../../support/held-clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const clock = heldClock(new Date('2030-01-01T00:00:00.123Z'))
const random = systemRandom(clock)

test('a UUID has version 7, begins with the time, and is unique', (t) => {
  const ids = Array.from({ length: 2000 }, () => random.uuid())
  t.is(new Set(ids).size, ids.length)
  for (const id of ids) t.regex(id, UUID_V7)
  const ms = Number.parseInt(ids[0]!.slice(0, 13).replace('-', ''), 16)
  t.is(ms, clock.now().getTime())
})

test('UUIDs of later milliseconds sort later', (t) => {
  const before = random.uuid()
  clock.advance(1)
  t.true(before < random.uuid())
})

test('a token has the requested length and no padding', (t) => {
  t.regex(random.token(32), /^[A-Za-z0-9_-]{43}$/)
  t.is(random.bytes(17).byteLength, 17)
  t.not(random.token(16), random.token(16))
})
