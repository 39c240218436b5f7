/** The faults that `node dist/test/seeded-faults.js` seeds, and the tests that catch them. */
import { LIMITS } from './seeded/limits.js'
import { MONEY } from './seeded/money.js'
import { SINGLE_USE } from './seeded/single-use.js'
import { TENANCY } from './seeded/tenancy.js'
import type { SeededFault } from './seeded/fault.js'

export const SEEDED_FAULTS: readonly SeededFault[] = [
  ...TENANCY,
  ...SINGLE_USE,
  ...MONEY,
  ...LIMITS,
]
