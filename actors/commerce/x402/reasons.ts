/** Why a payment is refused: the list of x402 v2 section 9, which is what buyers are told. */

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

/** Words of facilitators for reasons of the list. */
const MEANT: Readonly<Record<string, ErrorReason>> = {
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
 * The reason of the list that a facilitator means; `otherwise` for words of its own.
 * @param message its explanation: where a simulation failed, only that says what of.
 */
export function reasonOf(
  words: string | null,
  otherwise: ErrorReason,
  message: string | null = null,
): ErrorReason {
  if (words === null) return otherwise
  if (message !== null && /exceeds balance|insufficient (?:balance|funds)/i.test(message)) {
    return 'insufficient_funds'
  }
  return meaning(words) ?? otherwise
}

function meaning(words: string): ErrorReason | null {
  if (KNOWN.has(words)) return words as ErrorReason
  return Object.hasOwn(MEANT, words) ? MEANT[words]! : null
}

/**
 * Refusals that follow from the payment alone: a facilitator finds them before it sends a
 * transaction. Every other word, also one of the list, may come after a transaction was sent.
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

/** The refusal that a facilitator means; null where its words do not exclude a transaction. */
export function refusalBeforeBroadcast(words: string | null): ErrorReason | null {
  const reason = words === null ? null : meaning(words)
  return reason !== null && BEFORE_BROADCAST.has(reason) ? reason : null
}

/** Words that say the authorization is spent: by this payment, or by its payer. */
export function saysSpent(words: string | null): boolean {
  return words !== null && /nonce_already_used|authorization_used|already_settled/.test(words)
}
