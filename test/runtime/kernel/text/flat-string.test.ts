import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import { flatString } from '../../../../runtime/kernel/text/flat-string.js'

const WHOLE_CHARS = 100_000
const KEPT = 200

test('flatString returns the same text', (t) => {
  for (const text of ['', 'short', 'client_id=00000000-0000', 'ünïcode \u{1f600} and more of it']) {
    t.is(flatString(text), text)
  }
})

test('flatString keeps no reference to the original text', (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const kept: string[] = []
  collect()
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < KEPT; at += 1) {
    const whole = `${'x'.repeat(WHOLE_CHARS)}${at}`
    kept.push(flatString(whole.slice(20, 60)))
  }
  collect()
  const grown = process.memoryUsage().heapUsed - before
  t.is(kept.length, KEPT)
  t.true(grown < (KEPT * WHOLE_CHARS) / 4, `${grown} bytes more`)
})
