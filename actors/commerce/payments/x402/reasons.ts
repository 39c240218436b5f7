/** Error codes of refused payments (x402 v2 section 9), as returned to buyers. */

export const ERROR_REASONS = [
  'insufficient_funds',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_payload_authorization_value_mismatch',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_payload_recipient_mismatch',
  'invalid_network',
  'invalid_payload',
  'invalid_payment_requirements',
  'invalid_scheme',
  'unsupported_scheme',
  'invalid_x402_version',
  'invalid_transaction_state',
  'unexpected_verify_error',
  'unexpected_settle_error',
] as const
export type ErrorReason = (typeof ERROR_REASONS)[number]

const KNOWN: ReadonlySet<string> = new Set(ERROR_REASONS)

/** Facilitators' own codes for reasons of the list. */
const LISTED_REASONS: Readonly<Record<string, ErrorReason>> = {
  invalid_exact_evm_insufficient_balance: 'insufficient_funds',
  invalid_exact_evm_signature: 'invalid_exact_evm_payload_signature',
  invalid_exact_evm_recipient_mismatch: 'invalid_exact_evm_payload_recipient_mismatch',
  invalid_exact_evm_network_mismatch: 'invalid_network',
  invalid_exact_evm_scheme: 'invalid_scheme',
  invalid_exact_evm_nonce_already_used: 'invalid_transaction_state',
  invalid_exact_evm_transaction_failed: 'invalid_transaction_state',
  invalid_exact_evm_transaction_simulation_failed: 'invalid_transaction_state',
  invalid_exact_evm_transfer_event_mismatch: 'invalid_transaction_state',
}

/**
 * Maps a facilitator's code to the list, or to `otherwise`.
 * @param message the facilitator's explanation. When a simulation failed, only the message contains
 *   the cause.
 */
export function reasonOf(
  code: string | null,
  otherwise: ErrorReason,
  message: string | null = null,
): ErrorReason {
  if (code === null) return otherwise
  if (message !== null && /exceeds balance|insufficient (?:balance|funds)/i.test(message)) {
    return 'insufficient_funds'
  }
  return listedReason(code) ?? otherwise
}

function listedReason(code: string): ErrorReason | null {
  if (KNOWN.has(code)) return code as ErrorReason
  return Object.hasOwn(LISTED_REASONS, code) ? LISTED_REASONS[code]! : null
}

/**
 * Refusals that follow from the payment alone: a facilitator detects them before it sends a
 * transaction. Any other code, even one of the list, may be returned after a transaction was sent.
 */
const BEFORE_BROADCAST: ReadonlySet<ErrorReason> = new Set([
  'insufficient_funds',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_payload_authorization_value_mismatch',
  'invalid_exact_evm_payload_signature',
  'invalid_exact_evm_payload_recipient_mismatch',
  'invalid_network',
  'invalid_payload',
  'invalid_payment_requirements',
  'invalid_scheme',
  'unsupported_scheme',
  'invalid_x402_version',
])

/**
 * The refusal that a facilitator's code means.
 * @returns null when the code does not exclude a transaction.
 */
export function refusalBeforeBroadcast(code: string | null): ErrorReason | null {
  const reason = code === null ? null : listedReason(code)
  return reason !== null && BEFORE_BROADCAST.has(reason) ? reason : null
}

/**
 * True if the facilitator says that the authorization is spent, by this payment or by the payer.
 */
export function saysSpent(code: string | null): boolean {
  return code !== null && /nonce_already_used|authorization_used|already_settled/.test(code)
}
