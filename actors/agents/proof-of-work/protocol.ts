/** Checks proofs: of work done, of a key held, of a signature made. Stateless (decisions.md 1.2-1.5). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'

export type PowProtocol = {
  verify: Ask<VerifyWork, WorkVerdict>
  verifyOwnership: Ask<VerifyOwnership, OwnershipVerdict>
  verifySignature: Ask<VerifySignature, SignatureVerdict>
}

export type KeyAlgorithm = 'ed25519' | 'es256'

/** The public half of an agent's key as a JWK (RFC 7517, RFC 8037 section 2). */
export type PublicJwk =
  | { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
  | { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string }

export type VerifyWork = {
  challengeToken: string
  /** As sent; syntax is part of the verdict. */
  nonce: string
  difficultyBits: number
}
/** `malformed` when the nonce is not a decimal number below 2^64 without leading zeros. */
export type WorkVerdict = { tag: 'valid' } | { tag: 'invalid' } | { tag: 'malformed' }

export type VerifyOwnership = {
  /** The `public_key` member exactly as sent: base64url, base64 or multibase `z`. */
  publicKey: string
  keyAlgorithm: KeyAlgorithm
  /** The `key_ownership_proof` member: base64url of 64 bytes. */
  proof: string
  issuer: string
  tenantId: string
  anchorType: string
  /** Of the type did_key: must name the same key; absent when the agent sent none. */
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
  /** Not a key of that algorithm: encoding, length, prefix, or (es256) no point of the curve. */
  | 'malformed_key'
  /** A point of small order or a non-canonical encoding: anybody could sign for it. */
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
  /** base64url of 64 bytes, as sent. */
  signature: string
}
export type SignatureVerdict = { tag: 'valid' } | { tag: 'invalid' }

export const pow = address<PowProtocol>('pow', ['verify', 'verifyOwnership', 'verifySignature'])
