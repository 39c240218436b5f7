/** What went wrong, in words for whoever typed the command. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const [first] = partsOf(error)
  // Of an attempt at several addresses, which says nothing itself: what it failed by stands in its parts.
  return error.message === '' && first !== error && first !== undefined
    ? reasonOf(first)
    : error.message
}

/** A name with several addresses fails with one error for each; anything else is its own only part. */
export function partsOf(error: unknown): readonly unknown[] {
  return error instanceof AggregateError ? (error.errors as readonly unknown[]) : [error]
}
