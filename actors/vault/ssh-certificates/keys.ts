/** Keys of node:crypto in the words of sshpk: that one signs, this one writes the formats down. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import sshpk from 'sshpk'
import { freshPrivateKey } from '../../../runtime/kernel/key-pair.js'
import { isSoundPoint } from './ed25519-point.js'
import { mpint, publicKeyLine, string } from './wire.js'

const P256_FIELD_BYTES = 32
const UNCOMPRESSED_POINT = 0x04
const CURVE = 'nistp256'

/** Key types that sign or are certified, by their name in SSH. */
export type SshKeyType = 'ssh-ed25519' | 'ecdsa-sha2-nistp256'

/** A private key that can be an authority, or why it cannot. */
export type ReadPrivateKey =
  | { readonly tag: 'key'; readonly key: KeyObject }
  | { readonly tag: 'refused'; readonly detail: string }

/**
 * Reads a private key in OpenSSH or PEM form. An RSA authority would sign with SHA-1, which sshd
 * refuses (dependencies: sshpk), so it is refused here and not at the first login.
 */
export function readPrivateKey(text: string): ReadPrivateKey {
  const parsed = parsePrivateKey(text)
  if (typeof parsed === 'string') return { tag: 'refused', detail: parsed }
  const jwk = jwkOf(parsed)
  if (jwk === undefined) {
    return {
      tag: 'refused',
      detail: `An authority is an ed25519 or ECDSA P-256 key, not ${parsed.type}.`,
    }
  }
  try {
    const key = createPrivateKey({ key: jwk, format: 'jwk' })
    if (isSound(key)) return { tag: 'key', key }
  } catch {
    // Said below: the library's words may hold parts of the key.
  }
  return { tag: 'refused', detail: 'The private and the public half do not belong together.' }
}

/** The key, or what is wrong with it. */
function parsePrivateKey(text: string): sshpk.PrivateKey | string {
  try {
    return sshpk.parsePrivateKey(text, 'auto')
  } catch (error) {
    return (error as Error).name === 'KeyEncryptedError'
      ? 'The private key is encrypted: give it without a passphrase.'
      : 'This is not a private key in OpenSSH or PEM form.'
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
  // A multiple precision integer has a sign byte, or lacks leading zeros.
  const data = rawPart(key, name)
  if (name === 'Q') return data
  const bare = data.subarray(Math.max(0, data.length - P256_FIELD_BYTES))
  return Buffer.concat([Buffer.alloc(P256_FIELD_BYTES - bare.length), bare])
}

function base64url(bytes: Buffer): string {
  return bytes.toString('base64url')
}

/** What stands before the 32 bytes of an ed25519 key in PKCS#8 (RFC 8410 section 7). */
const ED25519_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * Opens an authority's key. OpenSSL takes ten times as long to read PKCS#8 as to sign, so a key of
 * the usual kind is taken out of it; the text this makes of it stays in the thread that signs.
 */
export function openPrivateKey(pkcs8: Buffer): KeyObject {
  const seedAt = ED25519_PREFIX.length
  const usual =
    pkcs8.length === seedAt + P256_FIELD_BYTES && pkcs8.subarray(0, seedAt).equals(ED25519_PREFIX)
  if (!usual) return createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })
  // The public half is not read, it follows from the private one.
  const jwk = { kty: 'OKP', crv: 'Ed25519', d: base64url(pkcs8.subarray(seedAt)), x: '' }
  return createPrivateKey({ key: jwk, format: 'jwk' })
}

const TRIAL = Buffer.from('svc ssh authority')

function isSound(key: KeyObject): boolean {
  const digest = isEd25519(key) ? null : 'sha256'
  return verify(digest, TRIAL, createPublicKey(key), sign(digest, TRIAL, key))
}

export function isEd25519(key: KeyObject): boolean {
  return key.asymmetricKeyType === 'ed25519'
}

/** The public half of a key, of a private one too, for sshpk. */
export function publicKeyOf(key: KeyObject): sshpk.Key {
  const { x = '', y = '' } = key.export({ format: 'jwk' })
  const raw = Buffer.from(x, 'base64url')
  if (isEd25519(key)) return makeKey('ed25519', [{ name: 'A', data: raw }])
  const point = [Buffer.from([UNCOMPRESSED_POINT]), raw, Buffer.from(y, 'base64url')]
  return makeKey('ecdsa', [
    { name: 'curve', data: Buffer.from(CURVE) },
    { name: 'Q', data: Buffer.concat(point) },
  ])
}

function makeKey(type: 'ed25519' | 'ecdsa', parts: { name: string; data: Buffer }[]): sshpk.Key {
  return new sshpk.Key({ type, parts } as unknown as ConstructorParameters<typeof sshpk.Key>[0])
}

export function keyTypeOf(key: sshpk.Key): SshKeyType {
  return key.type === 'ed25519' ? 'ssh-ed25519' : 'ecdsa-sha2-nistp256'
}

export function lineOf(key: sshpk.Key): string {
  return publicKeyLine(keyTypeOf(key), key.toBuffer('rfc4253'))
}

/** A caller's public key line; undefined unless it is one of the types that are certified. */
export function readPublicKey(line: string): sshpk.Key | undefined {
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
    return key
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

/** A fresh ed25519 key: its public half, and the private one as an unencrypted `openssh-key-v1` block. */
export function freshKey(comment: string): { key: sshpk.Key; privateKey: string } {
  const { d = '', x = '' } = freshPrivateKey('ed25519').export({ format: 'jwk' })
  const publicPart = { name: 'A', data: Buffer.from(x, 'base64url') }
  const parts = [publicPart, { name: 'k', data: Buffer.from(d, 'base64url') }]
  const options = { type: 'ed25519', parts }
  const pair = new sshpk.PrivateKey(
    options as unknown as ConstructorParameters<typeof sshpk.PrivateKey>[0],
  )
  pair.comment = comment
  return { key: makeKey('ed25519', [publicPart]), privateKey: pair.toString('openssh') }
}

/**
 * The signature of an authority over the bytes of a certificate, as SSH writes it (RFC 5656 section
 * 3.1.2, RFC 8709 section 6). Not by sshpk: that one takes the curve from the length of `r`, and of 256
 * ECDSA signatures one has an `r` that is shorter than its curve, which no server accepts then.
 */
export function signatureOf(key: KeyObject, blob: Buffer): Buffer {
  if (isEd25519(key)) return Buffer.concat([string('ssh-ed25519'), string(sign(null, blob, key))])
  const both = sign('sha256', blob, { key, dsaEncoding: 'ieee-p1363' })
  const [r, s] = [both.subarray(0, P256_FIELD_BYTES), both.subarray(P256_FIELD_BYTES)]
  return Buffer.concat([string('ecdsa-sha2-nistp256'), string(Buffer.concat([mpint(r), mpint(s)]))])
}
