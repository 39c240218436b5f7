/** Verifies proofs of work, key-ownership proofs and signatures (docs/reference/agents.md). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { PublicJwk } from '../../domain/agents/agent-keys.js'
import type { KeyAlgorithm } from '../../domain/signed-strings.js'

export type PowProtocol = {
  verify: Ask<VerifyWork, WorkVerdict>
  verifyOwnership: Ask<VerifyOwnership, OwnershipVerdict>
  verifySignature: Ask<VerifySignature, SignatureVerdict>
}

export type VerifyWork = {
  challengeToken: string
  /** As received; its syntax is part of the verdict. */
  nonce: string
  difficultyBits: number
}
/** `malformed` when the nonce is not a decimal number below 2^64 without leading zeros. */
export type WorkVerdict = { tag: 'valid' } | { tag: 'invalid' } | { tag: 'malformed' }

export type VerifyOwnership = {
  /** The `public_key` member exactly as received: base64url, base64 or multibase `z`. */
  publicKey: string
  keyAlgorithm: KeyAlgorithm
  /** The `key_ownership_proof` member: base64url of 64 bytes. */
  proof: string
  issuer: string
  tenantId: string
  anchorType: string
  /** With anchor type did_key it must name the same key; absent when the request has none. */
  anchorValue?: string | undefined
}
export type OwnershipVerdict =
  | {
      tag: 'valid'
      jwk: PublicJwk
      /** RFC 7638 thumbprint, SHA-256, base64url. */
      fingerprint: string
      /** The did:key of the key. */
      did: string
      /** 32 bytes (ed25519) or the 33-byte compressed point (es256). */
      rawKey: Uint8Array
    }
  | { tag: 'invalid'; reason: OwnershipFault }
export type OwnershipFault =
  /** Not a key of that algorithm: wrong encoding, length or prefix, or (es256) not on the curve. */
  | 'malformed_key'
  /** A point of small order or a non-canonical encoding, for which signatures can be forged. */
  | 'weak_key'
  /** The anchor is not a did:key or names another key. */
  | 'anchor_mismatch'
  /** The proof is not base64url of 64 bytes. */
  | 'malformed_proof'
  /** The proof does not verify over the ownership string. */
  | 'wrong_signature'

export type VerifySignature = {
  /** 32 bytes (ed25519) or the 33-byte compressed point (es256), as `rawKey` above. */
  publicKey: Uint8Array
  keyAlgorithm: KeyAlgorithm
  /** The signed string; its UTF-8 bytes are verified. */
  payload: string
  /** base64url of 64 bytes, as received. */
  signature: string
}
export type SignatureVerdict = { tag: 'valid' } | { tag: 'invalid' }

export const pow = address<PowProtocol>('pow', {
  idempotent: ['verify', 'verifyOwnership', 'verifySignature'],
})
