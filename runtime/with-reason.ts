/** What an operator is told of an error: what failed, and what the driver said of it. */

/** What a driver said is half of what has to be mended: no connection, and why. */
export function withReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { message, cause } = error
  // A name with several addresses fails with one error for each.
  const causes: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause]
  const reasons = causes.flatMap((one) => (one instanceof Error ? [one.message] : []))
  return [message, reasons.join(', ')].filter((part) => part !== '').join(': ')
}
