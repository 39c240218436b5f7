/** Error messages for operators: what failed, and the driver's reason. */
import { partsOf, reasonOf } from '../kernel/text/reasons.js'

/** The driver's message is half of what an operator needs: no connection, and why. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const reasons = partsOf(error.cause).flatMap((one) =>
    one instanceof Error ? [reasonOf(one)] : [],
  )
  return [reasonOf(error), reasons.join(', ')].filter((part) => part !== '').join(': ')
}
