/**
 * Decides what a check of a payment in state `unknown` means. Pure. docs/reference/commerce.md,
 * x402.
 */
import type { AuthorizationStatus } from '../x402/chain.js'
import type { SettlementResult } from '../x402/facilitator.js'
import type { ErrorReason } from '../x402/reasons.js'

export type Finding =
  | { readonly tag: 'settled'; readonly transaction: string }
  | { readonly tag: 'failed'; readonly reason: ErrorReason }
  | { readonly tag: 'unknown'; readonly error: string; readonly transaction: string | null }

/** A reorganization shortly after the end of the authorization may still include the transfer. */
const REORGANIZATION_SECS = 60
/**
 * A facilitator is not asked to settle when less time is left: its transaction would be too late.
 */
const SETTLE_SECS_MIN = 6
const AGAIN_SECS_FIRST = 2
const AGAIN_SECS_MAX = 300

/**
 * After the chain was queried. `ask`: the authorization is not spent and still can be, so ask the
 * facilitator.
 */
export function afterChain(
  seen: AuthorizationStatus,
  validBeforeSecs: number,
  nowSecs: number,
): Finding | { readonly tag: 'ask' } {
  switch (seen.tag) {
    case 'settled':
      return seen
    case 'cancelled':
      return { tag: 'failed', reason: 'invalid_transaction_state' }
    case 'unclear':
      return unknown(seen.error)
    case 'unspent': {
      // Compares with the chain's time: a node that lags has not seen every transaction.
      if (seen.blockTimeSecs >= validBeforeSecs + REORGANIZATION_SECS) {
        return { tag: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' }
      }
      return nowSecs + SETTLE_SECS_MIN < validBeforeSecs
        ? { tag: 'ask' }
        : unknown('authorization not spent and not expired')
    }
  }
}

/**
 * Refusals that also follow when an earlier request settled the payment: the authorization is
 * spent, or the check came too late. They do not tell the outcome.
 */
const AMBIGUOUS: ReadonlySet<ErrorReason> = new Set([
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_transaction_state',
  'unexpected_settle_error',
])

/**
 * After the facilitator was asked again.
 * @param watched the chain can be queried: then only the chain decides that a payment failed, or
 *   that a settlement claimed by the facilitator happened.
 */
export function afterFacilitator(result: SettlementResult, watched: boolean): Finding {
  switch (result.tag) {
    case 'settled':
      return watched ? unknown('awaiting confirmation on the chain', result.transaction) : result
    case 'failed':
      return watched || AMBIGUOUS.has(result.reason) ? unknown(result.reason) : result
    case 'spent':
      return unknown('spent')
    case 'unknown':
      return result
  }
}

/** Delay before the next check. Doubles with each check. */
export function againSecs(checks: number): number {
  return Math.min(AGAIN_SECS_MAX, AGAIN_SECS_FIRST * 2 ** Math.min(Math.max(checks - 1, 0), 20))
}

function unknown(error: string, transaction: string | null = null): Finding {
  return { tag: 'unknown', error, transaction }
}
