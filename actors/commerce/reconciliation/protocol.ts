/** Finds out what became of x402 payments whose outcome nobody knows (decisions.md section 18). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type ReconciliationProtocol = {
  /** Looks at everything that is due now, and answers when that is done. */
  round: Ask<null, RoundOutcome>
}

export type RoundOutcome = {
  tag: 'done'
  /** Payments that were looked at. */
  looked: number
  /** Of these, settled or failed now. */
  ended: number
}

export const reconciliation = address<ReconciliationProtocol>('reconciliation')
