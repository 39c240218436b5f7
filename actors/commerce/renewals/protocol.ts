/** What becomes due by time: settlements, renewals, and rails that owe us an answer. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type BillingProtocol = {
  /** One round over everything that is due; the actor also runs it by its own timer. */
  round: Ask<null, RoundDone>
}

export type RoundDone = {
  readonly tag: 'done'
  /** What was seen to, by kind. */
  readonly counts: Readonly<Record<string, number>>
}

export const billing = address<BillingProtocol>('billing', ['round'])
