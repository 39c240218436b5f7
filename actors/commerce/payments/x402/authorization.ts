/**
 * Checks whether an authorization pays the offer, apart from its signature. x402 v2 section 6.1.2,
 * EIP-3009.
 */
import { sameAddress } from '../../../domain/commerce/assets.js'
import type { Offer } from './offers.js'
import type { Authorization } from '../../../platform/evm/transfer-authorization.js'
import type { ErrorReason } from './reasons.js'

/** Time that a facilitator needs to get a transaction into a block. */
const SETTLE_SECS_MIN = 6

/**
 * Tolerance beyond the offer's timeout. A longer authorization would keep a payment of unknown
 * outcome open: it fails only once the authorization can no longer be spent.
 */
const CLOCK_SLACK_SECS = 60

/** Half the order of secp256k1. Tokens refuse signatures with a larger s. */
const S_MAX = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const SIGNATURE_CHARS = 2 + 65 * 2
/** The last 32 bytes of a signature that carries the deployment of its account (ERC-6492). */
const DEPLOYMENT_MARK = '6492'.repeat(16)

/** @param nowSecs Unix time. @returns undefined when the authorization pays the offer. */
export function authorizationFault(
  authorization: Authorization,
  { payTo, amount, maxTimeoutSecs }: Offer,
  nowSecs: number,
): ErrorReason | undefined {
  if (!sameAddress(authorization.to, payTo)) {
    return 'invalid_exact_evm_payload_recipient_mismatch'
  }
  if (authorization.value !== amount) {
    return 'invalid_exact_evm_payload_authorization_value_mismatch'
  }
  // The token contract requires validAfter < now < validBefore at its block, which is later than
  // now.
  if (BigInt(authorization.validAfter) > BigInt(nowSecs)) {
    return 'invalid_exact_evm_payload_authorization_valid_after'
  }
  const validBefore = BigInt(authorization.validBefore)
  const isTooSoon = validBefore < BigInt(nowSecs + SETTLE_SECS_MIN)
  if (isTooSoon || validBefore > BigInt(nowSecs + maxTimeoutSecs + CLOCK_SLACK_SECS)) {
    return 'invalid_exact_evm_payload_authorization_valid_before'
  }
  return undefined
}

/**
 * True if the signature has the only form that tokens accept of a key: 65 bytes, v 27 or 28, the smaller s.
 */
export function isPlainSignature(signature: string): boolean {
  if (signature.length !== SIGNATURE_CHARS) return false
  const v = Number.parseInt(signature.slice(-2), 16)
  const s = BigInt(`0x${signature.slice(66, 130)}`)
  return (v === 27 || v === 28) && s > 0n && s <= S_MAX
}

/** True for the signature of a contract account that is not deployed yet (ERC-6492). */
export function isSignatureBeforeDeployment(signature: string): boolean {
  return signature.endsWith(DEPLOYMENT_MARK)
}
