/** Hand-written timestamps and strings are equal to those of the built-in functions. */
import test from 'ava'
import * as fc from 'fast-check'
import { isoTime } from '../../../runtime/kernel/text/iso-time.js'
import { quoted } from '../../../runtime/kernel/text/json-text.js'
import { runs } from '../../support/runs.js'

const NUM_RUNS = runs(2_000)

test('isoTime returns the same text as toISOString, in any order of times', (t) => {
  const anywhere = fc.date({ noInvalidDate: true })
  const close = fc.integer({ min: -3_000, max: 3_000 }).map((ms) => new Date(ms))
  fc.assert(
    fc.property(fc.array(fc.oneof(anywhere, close), { minLength: 1, maxLength: 8 }), (dates) => {
      for (const date of dates) t.is(isoTime(date), date.toISOString())
    }),
    { numRuns: NUM_RUNS },
  )
})

test('an invalid date throws, and does not affect the next one', (t) => {
  const date = new Date('2026-02-28T23:59:59.007Z')
  t.is(isoTime(date), '2026-02-28T23:59:59.007Z')
  t.throws(() => isoTime(new Date(Number.NaN)), { instanceOf: RangeError })
  t.is(isoTime(date), '2026-02-28T23:59:59.007Z')
})

test('quoted returns the same text as JSON.stringify', (t) => {
  const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), fc.constant('"\\\n\u2028\x7f'))
  fc.assert(
    fc.property(fc.option(texts), (text) => {
      t.is(quoted(text), JSON.stringify(text))
    }),
    { numRuns: NUM_RUNS },
  )
})
