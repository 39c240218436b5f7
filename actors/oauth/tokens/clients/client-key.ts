/** Public keys that clients show: in a DPoP proof, or registered for their assertions. RFC 7517. */
import { importPublicJwk } from '../../../platform/jose/jwk.js'
import type { VerificationKey } from '../../../platform/jose/jwt.js'

export type ClientKey = VerificationKey & {
  /** RFC 7638 thumbprint, SHA-256, base64url. */
  readonly thumbprint: string
}

/** A P-256 or Ed25519 key without its private half, fit to be verified with; null for anything else. */
export function readPublicJwk(jwk: unknown): ClientKey | null {
  return importPublicJwk(jwk) ?? null
}
