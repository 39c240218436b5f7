/** Commerce work that becomes due: settlements, renewals, and open requests to providers. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type BillingProtocol = {
  /** Runs one round over everything that is due. The actor also runs it on its own timer. */
  round: Ask<null, RoundDone>
}

export type RoundDone = {
  readonly tag: 'done'
  /** Processed items by kind. */
  readonly counts: Readonly<Record<string, number>>
}

export const billing = address<BillingProtocol>('billing', ['round'])
