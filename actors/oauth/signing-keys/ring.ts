/** The immutable key ring in memory: signers, verification keys and the encoded JWK Set. */
import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import { SYSTEM_TENANT_ID } from '../../../storage/platform/sealing/seal.js'
import { privateKeyContext, type SigningKeyRow } from '../../../storage/oauth/signing-keys.js'
import { headerOf, signBytes, type SigningKey } from '../../platform/jose/own-jwt.js'
import {
  type KeySet,
  type PublicJwk,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
  type VerificationKeyFound,
} from './protocol.js'
import { isPublished, isVerifying } from './rules.js'

/** The max-age of the JWK Set. */
const KEY_SET_MAX_AGE_SECS = 300
/** Limit of cached headers. Token types come from our own code and are few. */
const HEADERS_MAX = 16
/**
 * Holds the claims and then the signing input of one token, because both are in use at the same time: a buffer for each
 * would cost a token about 1 microsecond and garbage. Longer tokens get separate buffers.
 */
const scratch = Buffer.allocUnsafeSlow(16 * 1024)
/** UTF-8 has at most 3 bytes for a UTF-16 code unit. */
const CLAIMS_CHARACTERS_MAX = Math.floor(scratch.length / 3)

export type Ring = {
  readonly rows: readonly SigningKeyRow[]
  readonly signers: ReadonlyMap<SigningAlgorithm, Signer>
  /** Decrypted private keys of current and next, by kid: a promotion needs no kms. */
  readonly opened: ReadonlyMap<string, KeyObject>
  readonly verification: ReadonlyMap<string, VerificationKeyFound>
  readonly keySet: KeySet
  /** Why a private key could not be decrypted. Null if all could. */
  readonly shut: string | null
}

/** A current key, with the encoded headers of its tokens. */
export class Signer {
  readonly key: SigningKey
  readonly #headers = new Map<string, string>()

  constructor(key: SigningKey) {
    this.key = key
  }

  /** @param claims the claims as JSON. */
  sign(typ: string, claims: string): string {
    const input = `${this.#header(typ)}.${encoded(claims)}`
    return `${input}.${signBytes(this.key, bytesOf(input)).toString('base64url')}`
  }

  #header(typ: string): string {
    const known = this.#headers.get(typ)
    if (known !== undefined) return known
    const header = headerOf(this.key, typ)
    if (this.#headers.size < HEADERS_MAX) this.#headers.set(typ, header)
    return header
  }
}

function encoded(claims: string): string {
  if (claims.length > CLAIMS_CHARACTERS_MAX) return Buffer.from(claims).toString('base64url')
  return scratch.toString('base64url', 0, scratch.write(claims))
}

/** The bytes of ASCII text, valid until the next call. */
function bytesOf(ascii: string): Uint8Array {
  if (ascii.length > scratch.length) return Buffer.from(ascii, 'latin1')
  return scratch.subarray(0, scratch.write(ascii, 'latin1'))
}

/**
 * Decrypts the keys that the previous ring does not have. Omits a key that cannot be decrypted.
 * @param owner the tenant of the keys.
 */
export async function buildRing(
  rows: readonly SigningKeyRow[],
  previous: Ring | undefined,
  sealer: Sealer,
  now: Date,
  owner = SYSTEM_TENANT_ID,
): Promise<Ring> {
  const opened = new Map<string, KeyObject>()
  let shut: string | null = null
  for (const { kid, privateSealed } of rows) {
    if (privateSealed === null) continue
    const known = previous?.opened.get(kid)
    try {
      opened.set(kid, known ?? (await openPrivateKey(sealer, owner, kid, privateSealed)))
    } catch (error) {
      shut = error instanceof Error ? error.message : String(error)
    }
  }
  const signers = new Map<SigningAlgorithm, Signer>()
  for (const algorithm of SIGNING_ALGORITHMS) {
    const current = rows.find((row) => row.algorithm === algorithm && row.state === 'current')
    const privateKey = current && opened.get(current.kid)
    const kept = previous?.signers.get(algorithm)
    if (current === undefined || privateKey === undefined) continue
    const isSame = kept?.key.kid === current.kid
    signers.set(algorithm, isSame ? kept : new Signer({ kid: current.kid, algorithm, privateKey }))
  }
  return {
    rows,
    signers,
    opened,
    verification: new Map(
      rows
        .filter((row) => isVerifying(row, now))
        .map((row) => [row.kid, verificationKeyOf(row)] as const),
    ),
    keySet: keySetOf(rows.filter((row) => isPublished(row, now))),
    shut,
  }
}

async function openPrivateKey(
  sealer: Sealer,
  owner: string,
  kid: string,
  sealed: Uint8Array,
): Promise<KeyObject> {
  const der = await sealer.open(owner, privateKeyContext(kid), sealed)
  const bytes = Buffer.from(der.buffer, der.byteOffset, der.byteLength)
  const key = createPrivateKey({ key: bytes, format: 'der', type: 'pkcs8' })
  bytes.fill(0)
  return key
}

function verificationKeyOf({ kid, algorithm, publicJwk }: SigningKeyRow): VerificationKeyFound {
  return { tag: 'found', kid, algorithm, jwk: publicJwk }
}

/** The database returns the members in another order. */
function inOrder(jwk: PublicJwk): PublicJwk {
  if (jwk.kty === 'RSA') return { kty: jwk.kty, n: jwk.n, e: jwk.e }
  const { kty, crv, x, y } = jwk
  return { kty, crv, x, ...(y === undefined ? {} : { y }) }
}

/** Rows are in a fixed order, so that equal keys have equal bytes in every process. */
export function keySetOf(rows: readonly SigningKeyRow[]): KeySet {
  const members = rows.map(({ kid, algorithm, publicJwk }) => ({
    ...inOrder(publicJwk),
    use: 'sig',
    alg: algorithm,
    kid,
  }))
  const bytes = new Uint8Array(Buffer.from(JSON.stringify({ keys: members })))
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  return { tag: 'key_set', bytes, etag: `"${digest}"`, maxAgeSecs: KEY_SET_MAX_AGE_SECS }
}
