/**
 * JWS that clients make: DPoP proofs and client assertions. Compact form only, two algorithms only.
 * Header members that name keys elsewhere (`jku`, `x5u`, `kid` as a path) are never followed.
 */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'

/** A proof or an assertion is a few hundred bytes; more is refused before it is decoded. */
const COMPACT_LENGTH_MAX = 16_384
const COMPACT_FORM = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/
const SIGNATURE_BYTES = 64
const P256_COORDINATE_BYTES = 32
const ED25519_KEY_BYTES = 32

export type ClientJws = {
  readonly header: Readonly<Record<string, unknown>>
  readonly payload: Readonly<Record<string, unknown>>
  readonly signingInput: string
  readonly signature: Uint8Array
}

/** Algorithm name and key: neither is ever taken from the token alone. */
export type ClientKey = {
  readonly algorithm: 'ES256' | 'EdDSA'
  readonly key: KeyObject
  /** RFC 7638 thumbprint, SHA-256, base64url. */
  readonly thumbprint: string
}

/** Takes a compact JWS apart, strictly; null when it is anything else. */
export function readCompactJws(text: string): ClientJws | null {
  if (text.length > COMPACT_LENGTH_MAX || !COMPACT_FORM.test(text)) return null
  const [head, body, tail] = text.split('.') as [string, string, string]
  const header = readObject(head)
  const payload = readObject(body)
  const signature = readBase64url(tail)
  if (header === null || payload === null || signature === null) return null
  // No extension is understood here, so none may be critical (RFC 7515 section 4.1.11).
  if ('crit' in header || 'b64' in header || 'zip' in header) return null
  return { header, payload, signingInput: `${head}.${body}`, signature }
}

/** A public key out of a JWK (RFC 7517): P-256 or Ed25519, without its private half; else null. */
export function readPublicJwk(jwk: unknown): ClientKey | null {
  if (!isObject(jwk) || 'd' in jwk || 'k' in jwk) return null
  if (jwk['kty'] === 'EC' && jwk['crv'] === 'P-256') {
    const { x, y } = jwk
    if (!isCoordinate(x, P256_COORDINATE_BYTES) || !isCoordinate(y, P256_COORDINATE_BYTES))
      return null
    return importKey('ES256', { kty: 'EC', crv: 'P-256', x, y }, { crv: 'P-256', kty: 'EC', x, y })
  }
  if (jwk['kty'] === 'OKP' && jwk['crv'] === 'Ed25519') {
    const { x } = jwk
    if (!isCoordinate(x, ED25519_KEY_BYTES)) return null
    const members = { crv: 'Ed25519', kty: 'OKP', x }
    return importKey('EdDSA', members, members)
  }
  return null
}

/** Checks the signature with a key whose algorithm the header must name. */
export function isSignedBy(jws: ClientJws, { algorithm, key }: ClientKey): boolean {
  if (jws.header['alg'] !== algorithm || jws.signature.length !== SIGNATURE_BYTES) return false
  const input = Buffer.from(jws.signingInput, 'ascii')
  return algorithm === 'ES256'
    ? verify('sha256', input, { key, dsaEncoding: 'ieee-p1363' }, jws.signature)
    : verify(null, input, key, jws.signature)
}

/** The value of a JSON member that must be a time in Unix seconds; null when it is not one. */
export function readSeconds(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null
}

/** RFC 7638 section 3: the required members in lexical order, without white space. */
function importKey(
  algorithm: ClientKey['algorithm'],
  jwk: Record<string, string>,
  required: Record<string, string>,
): ClientKey | null {
  try {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const thumbprint = createHash('sha256').update(JSON.stringify(required)).digest('base64url')
    return { algorithm, key, thumbprint }
  } catch {
    // A point that is not on the curve.
    return null
  }
}

function isCoordinate(value: unknown, bytes: number): value is string {
  return typeof value === 'string' && readBase64url(value)?.length === bytes
}

/** base64url without padding, in its one canonical spelling (RFC 4648 section 3.5). */
function readBase64url(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : null
}

function readObject(text: string): Record<string, unknown> | null {
  const bytes = readBase64url(text)
  if (bytes === null) return null
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
