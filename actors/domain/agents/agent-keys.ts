/** Public keys of agents: parsing, did:key, JWK and fingerprint. */
import { ECDH, createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { base58btc } from 'multiformats/bases/base58'
import { fromAnyBase64, fromBase64Url, toBase64Url } from './base64.js'
import type { KeyAlgorithm } from '../signed-strings.js'

/** The public half of an agent's key as a JWK (RFC 7517, RFC 8037 section 2). */
export type PublicJwk =
  | { readonly kty: 'OKP'; readonly crv: 'Ed25519'; readonly x: string }
  | { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string }

const DID_KEY_PREFIX = 'did:key:'
/** Longer than base64 of any key and shorter than multibase of any key, so it distinguishes them. */
const MULTIBASE_CHARS_MIN = 46
/** The longest encoding of any key has 49 characters. */
const KEY_CHARS_MAX = 64

/** Multicodec codes as varints (did:key method, key-type table) and raw key lengths. */
const KEY_TYPES = {
  ed25519: { codec: [0xed, 0x01], bytes: 32 },
  es256: { codec: [0x80, 0x24], bytes: 33 },
} as const

type KeyReading =
  | { readonly tag: 'key'; readonly raw: Uint8Array }
  | { readonly tag: 'malformed' }
  | { readonly tag: 'weak' }

/** Reads a `public_key` member: base64url, base64 or the multibase part of a did:key. */
export function readPublicKey(text: string, algorithm: KeyAlgorithm): KeyReading {
  if (text.length > KEY_CHARS_MAX) return { tag: 'malformed' }
  const raw = looksMultibase(text) ? fromMultibase(text, algorithm) : fromAnyBase64(text)
  if (raw === null || raw.length !== KEY_TYPES[algorithm].bytes) return { tag: 'malformed' }
  return algorithm === 'ed25519' ? judgeEd25519(raw) : judgeP256(raw)
}

/** The did:key of a raw public key; ed25519 always begins `did:key:z6Mk`. */
export function didKey(raw: Uint8Array, algorithm: KeyAlgorithm): string {
  const { codec } = KEY_TYPES[algorithm]
  const prefixed = new Uint8Array(codec.length + raw.length)
  prefixed.set(codec)
  prefixed.set(raw, codec.length)
  return DID_KEY_PREFIX + base58btc.encode(prefixed)
}

type DidKey = { readonly algorithm: KeyAlgorithm; readonly raw: Uint8Array }

/** The key of a did:key; null for anything but a did:key of a supported algorithm. */
export function readDidKey(did: string): DidKey | null {
  if (!did.startsWith(DID_KEY_PREFIX)) return null
  const multibase = did.slice(DID_KEY_PREFIX.length)
  if (!looksMultibase(multibase)) return null
  for (const algorithm of ['ed25519', 'es256'] as const) {
    const raw = fromMultibase(multibase, algorithm)
    if (raw === null) continue
    const judged = algorithm === 'ed25519' ? judgeEd25519(raw) : judgeP256(raw)
    return judged.tag === 'key' ? { algorithm, raw } : null
  }
  return null
}

/** The public JWK with only the members that identify the key. */
export function publicJwk(raw: Uint8Array, algorithm: KeyAlgorithm): PublicJwk {
  if (algorithm === 'ed25519') return { kty: 'OKP', crv: 'Ed25519', x: toBase64Url(raw) }
  const point = expandP256(raw)
  const x = toBase64Url(point.subarray(1, 33))
  const y = toBase64Url(point.subarray(33, 65))
  return { kty: 'EC', crv: 'P-256', x, y }
}

/** The raw form of a public JWK, the inverse of `publicJwk`; null when it is not such a key. */
export function rawFromJwk(jwk: PublicJwk): Uint8Array | null {
  const x = fromBase64Url(jwk.x)
  if (jwk.kty === 'OKP') return x?.length === 32 ? x : null
  const y = fromBase64Url(jwk.y)
  if (x?.length !== 32 || y?.length !== 32) return null
  const raw = new Uint8Array(33)
  raw[0] = 0x02 | (y[31]! & 1)
  raw.set(x, 1)
  return raw
}

/** RFC 7638 thumbprint, SHA-256, base64url: required members only, in lexical order. */
export function fingerprint(jwk: PublicJwk): string {
  const members =
    jwk.kty === 'OKP'
      ? { crv: jwk.crv, kty: jwk.kty, x: jwk.x }
      : { crv: jwk.crv, kty: jwk.kty, x: jwk.x, y: jwk.y }
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url')
}

/** The key for `node:crypto`. @throws when `raw` is not a key of the algorithm. */
export function keyObject(raw: Uint8Array, algorithm: KeyAlgorithm): KeyObject {
  return createPublicKey({ key: publicJwk(raw, algorithm), format: 'jwk' })
}

function looksMultibase(text: string): boolean {
  const { length } = text
  return text.startsWith('z') && length >= MULTIBASE_CHARS_MIN && length <= KEY_CHARS_MAX
}

function fromMultibase(text: string, algorithm: KeyAlgorithm): Uint8Array | null {
  const { codec, bytes } = KEY_TYPES[algorithm]
  let decoded: Uint8Array
  try {
    decoded = base58btc.decode(text)
  } catch {
    return null
  }
  if (decoded.length !== codec.length + bytes) return null
  if (decoded[0] !== codec[0] || decoded[1] !== codec[1]) return null
  return decoded.slice(codec.length)
}

/** 2^255 - 19, the field of the curve, little endian (RFC 8032 section 5.1). */
const ED25519_FIELD = bytesOf('ed' + 'ff'.repeat(30) + '7f')

/**
 * The y coordinates of the eight points of small order. With such a key one signature verifies for many
 * messages, so a signature proves no possession.
 */
const ED25519_SMALL_ORDER = [
  '00'.repeat(32),
  '01' + '00'.repeat(31),
  'ec' + 'ff'.repeat(30) + '7f',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
].map(bytesOf)

function judgeEd25519(raw: Uint8Array): KeyReading {
  const y = Uint8Array.from(raw)
  y[31]! &= 0x7f
  if (!belowLittleEndian(y, ED25519_FIELD)) return { tag: 'weak' }
  const small = ED25519_SMALL_ORDER.some((point) => point.every((byte, at) => byte === y[at]))
  return small ? { tag: 'weak' } : { tag: 'key', raw }
}

function judgeP256(raw: Uint8Array): KeyReading {
  if (raw[0] !== 0x02 && raw[0] !== 0x03) return { tag: 'malformed' }
  try {
    expandP256(raw)
    return { tag: 'key', raw }
  } catch {
    return { tag: 'malformed' }
  }
}

/** The 65-byte uncompressed point. @throws when there is no such point on the curve. */
function expandP256(raw: Uint8Array): Uint8Array {
  return ECDH.convertKey(raw, 'prime256v1', undefined, undefined, 'uncompressed') as Buffer
}

function belowLittleEndian(value: Uint8Array, bound: Uint8Array): boolean {
  for (let at = bound.length - 1; at >= 0; at--) {
    if (value[at] !== bound[at]) return value[at]! < bound[at]!
  }
  return false
}

function bytesOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'))
}
