/**
 * Whether an authorization pays what was offered, apart from its signature. x402 v2 section 6.1.2,
 * EIP-3009; decisions.md section 11, verification.
 */
import { sameAddress } from './assets.js'
import type { Offer } from './offers.js'
import type { Authorization } from './proof.js'
import type { ErrorReason } from './reasons.js'

/** A facilitator needs this long to bring a transaction into a block. */
const SETTLE_SECS_MIN = 6

/**
 * Beyond the time that the offer allows. An authorization that is good for longer keeps a payment of
 * unknown outcome open for as long: it fails only when it can no longer be spent.
 */
const CLOCK_SLACK_SECS = 60

/** The order of the curve secp256k1, halved: tokens refuse signatures with a larger s. */
const S_MAX = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const SIGNATURE_CHARS = 2 + 65 * 2

/**
 * @param nowSecs Unix time.
 * @returns null when it does.
 */
export function authorizationFault(
  authorization: Authorization,
  { payTo, amount, maxTimeoutSecs }: Offer,
  nowSecs: number,
): ErrorReason | null {
  if (!sameAddress(authorization.to, payTo)) {
    return 'invalid_exact_evm_payload_recipient_mismatch'
  }
  if (authorization.value !== amount) {
    return 'invalid_exact_evm_payload_authorization_value_mismatch'
  }
  // The contract demands validAfter < now < validBefore of the block that it runs in, which is later.
  if (BigInt(authorization.validAfter) > BigInt(nowSecs)) {
    return 'invalid_exact_evm_payload_authorization_valid_after'
  }
  const validBefore = BigInt(authorization.validBefore)
  const isTooSoon = validBefore < BigInt(nowSecs + SETTLE_SECS_MIN)
  if (isTooSoon || validBefore > BigInt(nowSecs + maxTimeoutSecs + CLOCK_SLACK_SECS)) {
    return 'invalid_exact_evm_payload_authorization_valid_before'
  }
  return null
}

/**
 * Whether a signature has the one form that tokens accept: 65 bytes, v 27 or 28, the smaller s. What
 * contracts sign for accounts of their own (EIP-1271, EIP-6492) cannot be judged without the chain.
 */
export function isPlainSignature(signature: string): boolean {
  if (signature.length !== SIGNATURE_CHARS) return false
  const v = Number.parseInt(signature.slice(-2), 16)
  const s = BigInt(`0x${signature.slice(66, 130)}`)
  return (v === 27 || v === 28) && s > 0n && s <= S_MAX
}
