/** Converts keys between node:crypto, which signs, and the SSH formats. sshpk reads keys of others. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import sshpk from 'sshpk'
import { mpint, publicKeyLine, string, uint32 } from './wire.js'

const P256_FIELD_BYTES = 32
const UNCOMPRESSED_POINT = 0x04
const CURVE = 'nistp256'

/** Supported key types, by their SSH name. */
type SshKeyType = 'ssh-ed25519' | 'ecdsa-sha2-nistp256'

export type SshPublicKey = {
  readonly type: SshKeyType
  /** Type and numbers, as in a public key line (RFC 4253 section 6.6). */
  readonly blob: Buffer
}

/** A private key for an authority, or the reason for its refusal. */
type ReadPrivateKey =
  | { readonly tag: 'key'; readonly key: KeyObject }
  | { readonly tag: 'refused'; readonly detail: string }

/**
 * Parses a private key in OpenSSH or PEM format. Refuses RSA, because sshpk would sign with SHA-1, which
 * sshd rejects at login.
 */
export function readPrivateKey(text: string): ReadPrivateKey {
  const parsed = parsePrivateKey(text)
  if (typeof parsed === 'string') return { tag: 'refused', detail: parsed }
  const jwk = jwkOf(parsed)
  if (jwk === undefined) {
    return {
      tag: 'refused',
      detail: `Must be an ed25519 or ECDSA P-256 key, not ${parsed.type}.`,
    }
  }
  try {
    const key = createPrivateKey({ key: jwk, format: 'jwk' })
    if (isSound(key)) return { tag: 'key', key }
  } catch {
    // Error messages of the library may contain parts of the key, so they are not used.
  }
  return { tag: 'refused', detail: 'The private and the public key do not match.' }
}

/** The key, or the detail of the error. */
function parsePrivateKey(text: string): sshpk.PrivateKey | string {
  try {
    return sshpk.parsePrivateKey(text, 'auto')
  } catch (error) {
    return (error as Error).name === 'KeyEncryptedError'
      ? 'The private key is encrypted. Remove the passphrase.'
      : 'Must be a private key in OpenSSH or PEM format.'
  }
}

function jwkOf(key: sshpk.PrivateKey) {
  const part = (name: string) => partOf(key, name)
  if (key.type === 'ed25519') {
    return { kty: 'OKP', crv: 'Ed25519', d: base64url(part('k')), x: base64url(part('A')) }
  }
  if ((key.type as string) !== 'ecdsa' || key.curve !== CURVE) return undefined
  const point = part('Q').subarray(-2 * P256_FIELD_BYTES)
  return {
    kty: 'EC',
    crv: 'P-256',
    d: base64url(part('d')),
    x: base64url(point.subarray(0, P256_FIELD_BYTES)),
    y: base64url(point.subarray(P256_FIELD_BYTES)),
  }
}

function rawPart(key: sshpk.PrivateKey | sshpk.Key, name: string): Buffer {
  return key.parts.find((part) => part.name === name)?.data ?? Buffer.alloc(0)
}

function partOf(key: sshpk.PrivateKey | sshpk.Key, name: string): Buffer {
  // A multiple-precision integer may have a sign byte or lack leading zeros.
  const data = rawPart(key, name)
  if (name === 'Q') return data
  const bare = data.subarray(Math.max(0, data.length - P256_FIELD_BYTES))
  return Buffer.concat([Buffer.alloc(P256_FIELD_BYTES - bare.length), bare])
}

function base64url(bytes: Buffer): string {
  return bytes.toString('base64url')
}

const TRIAL = Buffer.from('svc ssh authority')

function isSound(key: KeyObject): boolean {
  const digest = isEd25519(key) ? null : 'sha256'
  return verify(digest, TRIAL, createPublicKey(key), sign(digest, TRIAL, key))
}

function isEd25519(key: KeyObject): boolean {
  return key.asymmetricKeyType === 'ed25519'
}

/** The public key of a public or private key. */
export function publicKeyOf(key: KeyObject): SshPublicKey {
  const { x = '', y = '' } = key.export({ format: 'jwk' })
  if (isEd25519(key)) return ed25519PublicKey(Buffer.from(x, 'base64url'))
  const point = Buffer.concat([
    Buffer.of(UNCOMPRESSED_POINT),
    Buffer.from(x, 'base64url'),
    Buffer.from(y, 'base64url'),
  ])
  const type = 'ecdsa-sha2-nistp256'
  return { type, blob: Buffer.concat([string(type), string(CURVE), string(point)]) }
}

/** RFC 8709 section 4. */
function ed25519PublicKey(point: Buffer): SshPublicKey {
  const type = 'ssh-ed25519'
  return { type, blob: Buffer.concat([string(type), string(point)]) }
}

export function lineOf({ type, blob }: SshPublicKey): string {
  return publicKeyLine(type, blob)
}

/** Parses an OpenSSH public key line; undefined for unsupported or invalid keys. */
export function readPublicKey(line: string): SshPublicKey | undefined {
  let key: sshpk.Key
  try {
    key = sshpk.parseKey(line, 'ssh')
  } catch {
    return undefined
  }
  const known = key.type === 'ed25519' || ((key.type as string) === 'ecdsa' && key.curve === CURVE)
  if (!known) return undefined
  if (key.type === 'ed25519' && !isSoundPoint(rawPart(key, 'A'))) return undefined
  // OpenSSL refuses a P-256 point that is not on the curve.
  try {
    createPublicKey({ key: publicJwk(key), format: 'jwk' })
    const type = key.type === 'ed25519' ? 'ssh-ed25519' : 'ecdsa-sha2-nistp256'
    return { type, blob: key.toBuffer('rfc4253') }
  } catch {
    return undefined
  }
}

function publicJwk(key: sshpk.Key) {
  if (key.type === 'ed25519') {
    return { kty: 'OKP', crv: 'Ed25519', x: base64url(partOf(key, 'A')) }
  }
  const point = partOf(key, 'Q').subarray(-2 * P256_FIELD_BYTES)
  return {
    kty: 'EC',
    crv: 'P-256',
    x: base64url(point.subarray(0, P256_FIELD_BYTES)),
    y: base64url(point.subarray(P256_FIELD_BYTES)),
  }
}

/** PKCS #8 of Node.js, up to the private number and from it to the point (RFC 8410 section 7, RFC 5915). */
const ED25519_PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')
const P256_PKCS8 = Buffer.from(
  '308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420',
  'hex',
)
const P256_POINT = Buffer.from('a14403420004', 'hex')
const NUMBER_BYTES = 32
const POINT_BYTES = 32

/**
 * The private key of an authority. Imported as JWK, which takes a tenth of the time that OpenSSL takes for PKCS #8. The
 * strings of the JWK live as long as the key.
 * @param line its public key, as `lineOf` writes it.
 */
export function authorityKey(pkcs8: Buffer, line: string): KeyObject {
  const key = ed25519Jwk(pkcs8, line) ?? p256Jwk(pkcs8)
  if (key !== undefined) return createPrivateKey({ key, format: 'jwk' })
  return createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
}

function ed25519Jwk(pkcs8: Buffer, line: string) {
  const [type, text = ''] = line.split(' ')
  const seed = after(ED25519_PKCS8, pkcs8)
  if (type !== 'ssh-ed25519' || seed?.length !== NUMBER_BYTES) return undefined
  const x = Buffer.from(text, 'base64').subarray(-POINT_BYTES)
  return { kty: 'OKP', crv: 'Ed25519', d: base64url(seed), x: base64url(x) }
}

function p256Jwk(pkcs8: Buffer) {
  const numbers = after(P256_PKCS8, pkcs8)
  const point = numbers && after(P256_POINT, numbers.subarray(NUMBER_BYTES))
  if (point?.length !== 2 * P256_FIELD_BYTES) return undefined
  return {
    kty: 'EC',
    crv: 'P-256',
    d: base64url(numbers!.subarray(0, NUMBER_BYTES)),
    x: base64url(point.subarray(0, P256_FIELD_BYTES)),
    y: base64url(point.subarray(P256_FIELD_BYTES)),
  }
}

/** The rest of bytes that begin with a prefix. */
function after(prefix: Buffer, bytes: Buffer): Buffer | undefined {
  const starts = bytes.subarray(0, prefix.length).equals(prefix)
  return starts ? bytes.subarray(prefix.length) : undefined
}

/** A new ed25519 key pair; the private key is an unencrypted `openssh-key-v1` block. */
export function freshKey(comment: string): { key: SshPublicKey; privateKey: string } {
  // Both encodings end with the number, so that no key is imported.
  const { publicKey, privateKey } = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { format: 'der', type: 'spki' },
    privateKeyEncoding: { format: 'der', type: 'pkcs8' },
  })
  const point = publicKey.subarray(-POINT_BYTES)
  const key = ed25519PublicKey(point)
  return { key, privateKey: privateBlock(key, privateKey.subarray(-NUMBER_BYTES), point, comment) }
}

const AUTH_MAGIC = Buffer.from('openssh-key-v1\0')
const NOT_ENCRYPTED = Buffer.concat([string('none'), string('none'), string('')])
const CHECK_BYTES = 4
const BLOCK_BYTES = 8
const LINE_LENGTH = 70

/** OpenSSH PROTOCOL.key, without encryption. Wipes the seed. */
function privateBlock(key: SshPublicKey, seed: Buffer, point: Buffer, comment: string): string {
  // Any number, twice: a reader of an encrypted block recognises a wrong passphrase by it.
  const check = point.subarray(0, CHECK_BYTES)
  const pair = Buffer.concat([seed, point])
  const members = [check, check, key.blob, string(pair), string(comment)]
  const length = members.reduce((sum, member) => sum + member.length, 0)
  for (let byte = 1; (length + byte - 1) % BLOCK_BYTES !== 0; byte += 1) {
    members.push(Buffer.of(byte))
  }
  const list = Buffer.concat(members)
  const block = Buffer.concat([
    AUTH_MAGIC,
    NOT_ENCRYPTED,
    uint32(1),
    string(key.blob),
    string(list),
  ])
  const text = armored('OPENSSH PRIVATE KEY', block)
  for (const secret of [seed, pair, members[3]!, list, block]) secret.fill(0)
  return text
}

/** A blob between the lines with which OpenSSH marks it. */
export function armored(label: string, blob: Buffer): string {
  const lines = blob.toString('base64').match(LINES)!.join('\n')
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`
}

const LINES = new RegExp(`.{1,${LINE_LENGTH}}`, 'g')

/**
 * The SSH signature of an authority over a certificate (RFC 5656 section 3.1.2, RFC 8709 section 6). Not
 * made by sshpk, which derives the curve from the length of `r`: one of 256 ECDSA signatures has a
 * shorter `r`, and servers reject the result.
 */
export function signatureOf(key: KeyObject, blob: Buffer): Buffer {
  if (isEd25519(key)) return Buffer.concat([string('ssh-ed25519'), string(sign(null, blob, key))])
  const both = sign('sha256', blob, { key, dsaEncoding: 'ieee-p1363' })
  const [r, s] = [both.subarray(0, P256_FIELD_BYTES), both.subarray(P256_FIELD_BYTES)]
  return Buffer.concat([string('ecdsa-sha2-nistp256'), string(Buffer.concat([mpint(r), mpint(s)]))])
}

const P = 2n ** 255n - 19n
/** -121665 / 121666 (RFC 8032 section 5.1). */
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n
/** y of four points of order 8; the other four have -y. Points of order 4, 1 and 2 have y = 0, 1, -1. */
const ORDER_8_Y = 2707385501144840649318225287225658788936804267575313519463743609750303402022n
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([0n, 1n, P - 1n, ORDER_8_Y, P - ORDER_8_Y])

/**
 * True for a point on the curve, in its canonical encoding, whose order is not 1, 2, 4 or 8 (RFC 8032
 * sections 5.1.3 and 5.1.7). OpenSSL accepts any 32 bytes. A point of small order verifies forged
 * signatures, and a non-canonical encoding lets a revoked key pass a revocation list under another name.
 */
export function isSoundPoint(encoded: Uint8Array): boolean {
  if (encoded.length !== POINT_BYTES) return false
  // Little-endian; the highest bit is the sign of x.
  const hex = Buffer.from(encoded.toReversed()).toString('hex')
  const y = BigInt(`0x${hex}`) & (2n ** 255n - 1n)
  if (y >= P || SMALL_ORDER_Y.has(y)) return false
  // x^2 = (y^2 - 1) / (d y^2 + 1): a square, or zero. Its sign is free as x = 0 is of small order.
  const square = (y * y) % P
  const ratio = ((square - 1n) * (D * square + 1n)) % P
  return power(ratio, (P - 1n) / 2n) === 1n
}

/** Modular exponentiation. Not constant-time, because all values are public. */
function power(base: bigint, exponent: bigint): bigint {
  let result = 1n
  let square = base % P
  for (let left = exponent; left > 0n; left >>= 1n) {
    if ((left & 1n) === 1n) result = (result * square) % P
    square = (square * square) % P
  }
  return result
}
