/** What went wrong, in words for whoever typed the command. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // Of an attempt at several addresses, which says nothing itself: what it failed by stands in its parts.
  const [first] = error instanceof AggregateError ? (error.errors as readonly unknown[]) : []
  return error.message === '' && first !== undefined ? reasonOf(first) : error.message
}
