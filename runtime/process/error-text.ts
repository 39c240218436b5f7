/** What an operator is told of an error: what failed, and what the driver said of it. */
import { partsOf, reasonOf } from '../client/reasons.js'

/** What a driver said is half of what has to be mended: no connection, and why. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const reasons = partsOf(error.cause).flatMap((one) =>
    one instanceof Error ? [reasonOf(one)] : [],
  )
  return [reasonOf(error), reasons.join(', ')].filter((part) => part !== '').join(': ')
}
