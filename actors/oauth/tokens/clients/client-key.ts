/** Public keys of clients: from a DPoP proof, or registered for client assertions (RFC 7517). */
import { importPublicJwk } from '../../../platform/jose/jwk.js'
import type { VerificationKey } from '../../../platform/jose/jwt.js'

export type ClientKey = VerificationKey & {
  /** RFC 7638 thumbprint, SHA-256, base64url. */
  readonly thumbprint: string
}

/** Imports a public P-256 or Ed25519 JWK for verification. Returns null for any other value. */
export function readPublicJwk(jwk: unknown): ClientKey | null {
  return importPublicJwk(jwk) ?? null
}
