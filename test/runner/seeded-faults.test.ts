import test from 'ava'
import { SEEDED_FAULTS, wrongIn } from './seeded-faults.js'

test('every seeded fault has its place in the program, and a daily test', (t) => {
  t.deepEqual(
    SEEDED_FAULTS.flatMap((fault) => wrongIn(fault, '.')),
    [],
  )
})
