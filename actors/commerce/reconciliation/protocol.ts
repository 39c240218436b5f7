/** Finds the outcome of x402 payments in state `unknown` (docs/reference/commerce.md, x402). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type ReconciliationProtocol = {
  /** Checks every payment that is due now, and answers when all are done. */
  round: Ask<null, RoundOutcome>
}

export type RoundOutcome = {
  tag: 'done'
  /** Payments that were checked. */
  looked: number
  /** Payments among them that are settled or failed now. */
  ended: number
}

export const reconciliation = address<ReconciliationProtocol>('reconciliation')
