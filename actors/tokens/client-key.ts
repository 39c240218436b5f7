/** Public keys that clients show: in a DPoP proof, or registered for their assertions. RFC 7517. */
import { createHash, createPublicKey, type JsonWebKey } from 'node:crypto'
import type { VerificationKey } from './jwt.js'

const P256_COORDINATE_BYTES = 32
const ED25519_KEY_BYTES = 32

export type ClientKey = VerificationKey & {
  /** RFC 7638 thumbprint, SHA-256, base64url. */
  readonly thumbprint: string
}

/** A P-256 or Ed25519 key without its private half; null for anything else. */
export function readPublicJwk(jwk: unknown): ClientKey | null {
  if (typeof jwk !== 'object' || jwk === null || Array.isArray(jwk)) return null
  const { kty, crv, x, y, d, k } = jwk as Record<string, unknown>
  if (d !== undefined || k !== undefined) return null
  if (kty === 'EC' && crv === 'P-256') {
    if (!isCoordinate(x, P256_COORDINATE_BYTES) || !isCoordinate(y, P256_COORDINATE_BYTES))
      return null
    return importKey('ES256', { crv, kty, x, y })
  }
  if (kty === 'OKP' && crv === 'Ed25519') {
    if (!isCoordinate(x, ED25519_KEY_BYTES)) return null
    return importKey('EdDSA', { crv, kty, x })
  }
  return null
}

/** @param jwk the required members in lexical order, as RFC 7638 section 3 hashes them. */
function importKey(algorithm: ClientKey['algorithm'], jwk: JsonWebKey): ClientKey | null {
  try {
    const publicKey = createPublicKey({ key: jwk, format: 'jwk' })
    const thumbprint = createHash('sha256').update(JSON.stringify(jwk)).digest('base64url')
    return { algorithm, publicKey, thumbprint }
  } catch {
    // A point that is not on the curve.
    return null
  }
}

function isCoordinate(value: unknown, bytes: number): value is string {
  if (typeof value !== 'string') return false
  const decoded = Buffer.from(value, 'base64url')
  return decoded.length === bytes && decoded.toString('base64url') === value
}
