/** One plausible mistake in one rule. */
export type SeededFault = {
  /** The rule that it breaks. */
  readonly name: string
  /** A rule that two statements keep needs a change of both. */
  readonly edits: readonly Edit[]
  /** Test files of `npm test`, from the root. */
  readonly tests: readonly string[]
}

/** `find` is exactly once in the compiled file of `source`, or in a migration. */
export type Edit = { readonly source: string; readonly find: string; readonly replace: string }

/** A row with one change. `tests` are paths below test/. */
export function fault(
  name: string,
  source: string,
  [find, replace]: readonly [find: string, replace: string],
  ...tests: readonly string[]
): SeededFault {
  return faults(name, [{ source, find, replace }], ...tests)
}

/** A row with several changes. */
export function faults(
  name: string,
  edits: readonly Edit[],
  ...tests: readonly string[]
): SeededFault {
  return { name, edits, tests: tests.map((test) => `test/${test}`) }
}
