/** The faults that `node dist/test/seeded-faults.js` seeds, and the tests that catch them. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ASSERTIONS } from './seeded/assertions.js'
import { LIMITS } from './seeded/limits.js'
import { LOGOUT } from './seeded/logout.js'
import { MONEY } from './seeded/money.js'
import { SECURITY_EVENTS } from './seeded/security-events.js'
import { SINGLE_USE } from './seeded/single-use.js'
import { TENANCY } from './seeded/tenancy.js'
import type { SeededFault } from './seeded/fault.js'

export const SEEDED_FAULTS: readonly SeededFault[] = [
  ...TENANCY,
  ...SINGLE_USE,
  ...MONEY,
  ...LIMITS,
  ...LOGOUT,
  ...ASSERTIONS,
  ...SECURITY_EVENTS,
]

/** What keeps a row from being seeded: a source or test that was renamed, or a text that is not there once. */
export function wrongIn({ name, edits, tests }: SeededFault, root: string): string[] {
  const paths = [...edits.map(({ source }) => source), ...tests].map(compiled)
  const absent = paths.filter((path) => !existsSync(join(root, path)))
  if (absent.length > 0) return absent.map((path) => `${name}: ${path} does not exist`)
  const long = tests.filter((test) => test.endsWith('.long.test.ts'))
  if (long.length > 0) return long.map((test) => `${name}: npm test does not run ${test}`)
  return edits.flatMap(({ source, find }) => {
    const count = readFileSync(join(root, compiled(source)), 'utf8').split(find).length - 1
    return count === 1
      ? []
      : [`${name}: ${compiled(source)} has '${find}' ${count} times, not once`]
  })
}

/** The program runs the compiled file of a source, and migrations as they are. */
export function compiled(source: string): string {
  return source.endsWith('.ts') ? join('dist', source.replace(/\.ts$/, '.js')) : source
}
