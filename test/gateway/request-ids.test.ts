/** A client's request id is kept if it is safe in logs and header fields. */
import test from 'ava'
import { RequestIds } from '../../gateway/request/request-ids.js'
import { heldClock } from '../support/held-clock.js'
import { systemRandom } from '../../runtime/kernel/random.js'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const clock = heldClock(new Date('2030-01-01T00:00:00.123Z'))
const ids = new RequestIds(clock, systemRandom(clock))

for (const [received, kept] of [
  ['abc-DEF_0.9', true],
  ['x'.repeat(128), true],
  ['x'.repeat(129), false],
  ['', false],
  ['with space', false],
  ['line\nbreak', false],
  ['ünicode', false],
  [undefined, false],
] as const) {
  test(`a request id ${JSON.stringify(received)?.slice(0, 20)} (${received?.length ?? 0}) is ${kept ? 'kept' : 'replaced'}`, (t) => {
    const id = ids.idOf(received, clock.monotonicMs())
    if (kept) t.is(id, received)
    else t.regex(id, UUID_V7)
  })
}
