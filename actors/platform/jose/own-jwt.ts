/**
 * JWTs that the service signs, on node:crypto. Per CPU second it signs 2 to 2.5 times and verifies 1.1 to 1.5
 * times as many as jose (bench/flows/jwt.ts). What a valid signature covers was written here, so that only its spelling
 * is checked. Tokens of others: external-jws.ts.
 */
import { createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from 'node:crypto'
import type { PublicJwk, SigningAlgorithm } from '../../oauth/signing-keys/protocol.js'

const CHARACTERS_MAX = 16_384
const SIGNATURE_BYTES = { ES256: 64, EdDSA: 64, RS256: 256 }
/** Signatures have 64 or 256 bytes. The last character of both carries two bits. */
const COMPACT =
  /^([A-Za-z0-9_-]{1,512})\.([A-Za-z0-9_-]+)\.((?:[A-Za-z0-9_-]{85}|[A-Za-z0-9_-]{341})[AQgw])$/

export type SigningKey = {
  readonly kid: string
  readonly algorithm: SigningAlgorithm
  readonly privateKey: KeyObject
}

/** A public key and the one algorithm it may be used with (RFC 8725 section 3.1). */
export type VerificationKey = {
  readonly algorithm: SigningAlgorithm
  readonly publicKey: KeyObject
}

type OwnJwt = {
  readonly kid: string
  readonly claims: Readonly<Record<string, unknown>>
}

/** The encoded header, the same for every token of one key and type. */
export function headerOf({ algorithm, kid }: SigningKey, typ: string): string {
  return Buffer.from(JSON.stringify({ alg: algorithm, typ, kid })).toString('base64url')
}

/** The raw signature: r || s for ES256 (RFC 7518 section 3.4), 64 bytes for EdDSA (RFC 8037), PKCS #1 for RS256. */
export function signBytes({ algorithm, privateKey }: SigningKey, bytes: Uint8Array): Buffer {
  return algorithm === 'ES256'
    ? sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
    : sign(algorithm === 'RS256' ? 'sha256' : null, bytes, privateKey)
}

/** Verifies a raw signature. */
export function verifyBytes(
  { algorithm, publicKey }: VerificationKey,
  bytes: Uint8Array,
  signature: Uint8Array,
): boolean {
  if (signature.length !== SIGNATURE_BYTES[algorithm]) return false
  return algorithm === 'ES256'
    ? verify('sha256', bytes, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
    : verify(algorithm === 'RS256' ? 'sha256' : null, bytes, publicKey, signature)
}

/** Null for a token that none of our keys signed as this type. It checks no claim. */
export async function verifyOwnJwt(
  token: string,
  typ: string,
  keyOf: (kid: string) => Promise<VerificationKey | null>,
): Promise<OwnJwt | null> {
  if (token.length > CHARACTERS_MAX) return null
  const [, head, payload, signature] = COMPACT.exec(token) ?? []
  const header = head === undefined ? null : readHeader(head)
  if (header?.typ !== typ || typeof header.kid !== 'string') return null
  const { kid } = header
  const key = await keyOf(kid)
  if (key === null || header.alg !== key.algorithm) return null
  const input = Buffer.from(`${head}.${payload}`, 'latin1')
  if (!verifyBytes(key, input, Buffer.from(signature!, 'base64url'))) return null
  const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString('utf8')) as OwnJwt['claims']
  return { kid, claims }
}

/** The JWK of one of our key pairs. */
export function publicJwkOf(key: KeyObject): PublicJwk {
  const { kty, crv, x, y, n, e } = key.export({ format: 'jwk' })
  if (kty === 'EC' && crv === 'P-256' && x !== undefined && y !== undefined) {
    return { kty, crv, x, y }
  }
  if (kty === 'OKP' && crv === 'Ed25519' && x !== undefined) return { kty, crv, x }
  if (kty === 'RSA' && n !== undefined && e !== undefined) return { kty, n, e }
  throw new TypeError('the key is neither P-256, Ed25519 nor RSA')
}

/** The key of a JWK that `publicJwkOf` wrote. */
export function ownPublicKey(jwk: PublicJwk): KeyObject {
  return createPublicKey({ key: { ...jwk } as JsonWebKey, format: 'jwk' })
}

function readHeader(head: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(Buffer.from(head, 'base64url').toString('utf8')) as Record<string, unknown>
  } catch {
    return null
  }
}
