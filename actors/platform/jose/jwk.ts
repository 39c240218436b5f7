/** Exports our public keys as JWKs and strictly imports foreign ones (RFC 7517, RFC 8037). */
import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import type { PublicJwk, SigningAlgorithm } from '../../oauth/signing-keys/protocol.js'

/** 32 bytes in base64url. The last character carries four bits, so only 16 values are canonical. */
const COORDINATE = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/

/**
 * Ed25519 public keys of small order: anyone can make signatures that verify with them. Hexadecimal
 * without the sign bit: y and, if it fits in 255 bits, y + p.
 */
const SMALL_ORDER_KEYS: ReadonlySet<string> = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
])

export type ImportedKey = {
  readonly algorithm: SigningAlgorithm
  readonly publicKey: KeyObject
  readonly jwk: PublicJwk
  /** RFC 7638. */
  readonly thumbprint: string
}

/**
 * Imports a public key of another party: EC P-256 or Ed25519 only. Undefined for private or symmetric
 * keys, other curves, points off the curve, keys of small order, and an `alg` or `use` that does not
 * match.
 */
export function importPublicJwk(value: unknown): ImportedKey | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { kty, crv, x, y, alg, use, d, k } = value as Record<string, unknown>
  if (d !== undefined || k !== undefined) return undefined
  if (use !== undefined && use !== 'sig') return undefined
  if (typeof x !== 'string' || !COORDINATE.test(x)) return undefined
  if (kty === 'EC' && crv === 'P-256') {
    if (typeof y !== 'string' || !COORDINATE.test(y)) return undefined
    if (alg !== undefined && alg !== 'ES256') return undefined
    return imported('ES256', { kty, crv, x, y })
  }
  if (kty === 'OKP' && crv === 'Ed25519') {
    // RFC 9864 names the algorithm Ed25519. Clients use both names.
    if (alg !== undefined && alg !== 'EdDSA' && alg !== 'Ed25519') return undefined
    return isSmallOrder(x) ? undefined : imported('EdDSA', { kty, crv, x })
  }
  return undefined
}

/** RFC 7638 thumbprint: the required members in alphabetical order, without white space. */
export function thumbprint({ kty, crv, x, y }: PublicJwk): string {
  const required = kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x }
  return createHash('sha256').update(JSON.stringify(required)).digest('base64url')
}

/** The JWK of one of our key pairs. */
export function publicJwkOf(key: KeyObject): PublicJwk {
  const { kty, crv, x, y } = key.export({ format: 'jwk' })
  if (kty === 'EC' && crv === 'P-256' && x !== undefined && y !== undefined) {
    return { kty, crv, x, y }
  }
  if (kty === 'OKP' && crv === 'Ed25519' && x !== undefined) return { kty, crv, x }
  throw new TypeError('the key is neither P-256 nor Ed25519')
}

function imported(algorithm: SigningAlgorithm, jwk: PublicJwk): ImportedKey | undefined {
  try {
    const publicKey = createPublicKey({ format: 'jwk', key: { ...jwk } as JsonWebKey })
    return { algorithm, publicKey, jwk, thumbprint: thumbprint(jwk) }
  } catch {
    return undefined
  }
}

type JsonWebKey = { kty: string; crv: string; x: string; y?: string }

function isSmallOrder(x: string): boolean {
  const bytes = Buffer.from(x, 'base64url')
  bytes[31]! &= 0x7f
  return SMALL_ORDER_KEYS.has(bytes.toString('hex'))
}
