/** Imports public keys of others with jose (RFC 7517, RFC 8037). */
import { calculateJwkThumbprint, type CryptoKey, importJWK } from 'jose'
import type { CurveJwk, DefaultAlgorithm } from '../../oauth/signing-keys/protocol.js'

/** 32 bytes in base64url. The last character carries four bits, so only 16 values are canonical. */
const COORDINATE = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/
/** Members of private and symmetric keys (RFC 7518 section 6). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'] as const
/** A few MB. Clients sign many requests with one key, and an import costs about as much as half a verification. */
const KEYS_MAX = 5_000

/**
 * Ed25519 public keys of small order: anyone can make signatures that verify with them. jose accepts them. Hexadecimal
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

/** A public key of another party, and the one algorithm it may be used with (RFC 8725 section 3.1). */
export type ImportedKey = {
  readonly algorithm: DefaultAlgorithm
  readonly publicKey: CryptoKey
  readonly jwk: CurveJwk
  /** RFC 7638. */
  readonly thumbprint: string
}

/** By their coordinates: equal coordinates are the same key for every caller. */
const importedKeys = new Map<string, ImportedKey>()

/**
 * Imports a public key of another party: EC P-256 or Ed25519 only. Undefined for private or symmetric
 * keys, other curves, points off the curve, keys of small order, and an `alg`, `use` or `key_ops` that does
 * not allow it to verify.
 */
export async function importPublicJwk(value: unknown): Promise<ImportedKey | undefined> {
  const read = readPublicJwk(value)
  if (read === undefined) return undefined
  const { algorithm, jwk } = read
  const coordinates = `${jwk.x} ${jwk.y}`
  const known = importedKeys.get(coordinates)
  if (known !== undefined) return known
  try {
    const publicKey = (await importJWK(jwk, algorithm)) as CryptoKey
    const key = { algorithm, publicKey, jwk, thumbprint: await calculateJwkThumbprint(jwk) }
    if (importedKeys.size >= KEYS_MAX) importedKeys.delete(importedKeys.keys().next().value!)
    importedKeys.set(coordinates, key)
    return key
  } catch {
    return undefined
  }
}

/** True if a JWK has a member of a private or symmetric key. */
export function hasPrivateMember(jwk: unknown): boolean {
  if (typeof jwk !== 'object' || jwk === null) return false
  return PRIVATE_MEMBERS.some((member) => Object.hasOwn(jwk, member))
}

function readPublicJwk(value: unknown): Pick<ImportedKey, 'algorithm' | 'jwk'> | undefined {
  if (typeof value !== 'object' || value === null || hasPrivateMember(value)) return undefined
  const { kty, crv, x, y, alg, use, key_ops: uses } = value as Record<string, unknown>
  if (use !== undefined && use !== 'sig') return undefined
  if (uses !== undefined && !(Array.isArray(uses) && uses.includes('verify'))) return undefined
  if (typeof x !== 'string' || !COORDINATE.test(x)) return undefined
  if (kty === 'EC' && crv === 'P-256') {
    if (typeof y !== 'string' || !COORDINATE.test(y)) return undefined
    if (alg !== undefined && alg !== 'ES256') return undefined
    return { algorithm: 'ES256', jwk: { kty, crv, x, y } }
  }
  if (kty === 'OKP' && crv === 'Ed25519') {
    // RFC 9864 names the algorithm Ed25519. Clients use both names.
    if (alg !== undefined && alg !== 'EdDSA' && alg !== 'Ed25519') return undefined
    return isSmallOrder(x) ? undefined : { algorithm: 'EdDSA', jwk: { kty, crv, x } }
  }
  return undefined
}

function isSmallOrder(x: string): boolean {
  const bytes = Buffer.from(x, 'base64url')
  bytes[31]! &= 0x7f
  return SMALL_ORDER_KEYS.has(bytes.toString('hex'))
}
