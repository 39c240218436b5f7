/** What a look at a payment of unknown outcome means. Pure. decisions.md sections 18 and 22. */
import type { Sighting } from '../x402/chain.js'
import type { Settlement } from '../x402/facilitator.js'
import type { ErrorReason } from '../x402/reasons.js'

export type Finding =
  | { readonly tag: 'settled'; readonly transaction: string }
  | { readonly tag: 'failed'; readonly reason: ErrorReason }
  | { readonly tag: 'unknown'; readonly error: string; readonly transaction: string | null }

/** Blocks that are replaced by others shortly after the authorization ended could still hold it. */
const REORGANIZATION_SECS = 60
/** A facilitator is not asked to settle what its transaction could not reach in time. */
const SETTLE_SECS_MIN = 6
const AGAIN_SECS_FIRST = 2
const AGAIN_SECS_MAX = 300

/** After the chain was asked; `ask`: not spent, and it may still be, so the facilitator is asked. */
export function afterChain(
  seen: Sighting,
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
      // By the time of the chain: a node that lags behind has not seen what it will see.
      if (seen.blockTimeSecs >= validBeforeSecs + REORGANIZATION_SECS) {
        return { tag: 'failed', reason: 'invalid_exact_evm_payload_authorization_valid_before' }
      }
      return nowSecs + SETTLE_SECS_MIN < validBeforeSecs
        ? { tag: 'ask' }
        : unknown('not spent, and not over')
    }
  }
}

/**
 * Refusals that a payment gets just as well when an earlier request has settled it: spent, or looked
 * at too late to tell. They say nothing of what became of it.
 */
const AMBIGUOUS: ReadonlySet<ErrorReason> = new Set([
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_transaction_state',
  'unexpected_settle_error',
])

/**
 * After the facilitator was asked once more.
 * @param watched the chain can be asked: then only it says that a payment failed, or, for a claim of
 * the facilitator, that it settled.
 */
export function afterFacilitator(said: Settlement, watched: boolean): Finding {
  switch (said.tag) {
    case 'settled':
      return watched ? unknown('to be seen on the chain', said.transaction) : said
    case 'failed':
      return watched || AMBIGUOUS.has(said.reason) ? unknown(said.reason) : said
    case 'spent':
      return unknown('spent')
    case 'unknown':
      return said
  }
}

/** Doubling from look to look. */
export function againSecs(checks: number): number {
  return Math.min(AGAIN_SECS_MAX, AGAIN_SECS_FIRST * 2 ** Math.min(Math.max(checks - 1, 0), 20))
}

function unknown(error: string, transaction: string | null = null): Finding {
  return { tag: 'unknown', error, transaction }
}
