/** The reason of an error, in words for the user of a command. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const [first] = partsOf(error)
  // An attempt at several addresses has no message: the reasons are in its parts.
  return error.message === '' && first !== error && first !== undefined
    ? reasonOf(first)
    : error.message
}

/**
 * A host name with several addresses fails with one error for each. Any other error is its own only
 * part.
 */
export function partsOf(error: unknown): readonly unknown[] {
  return error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error]
}
