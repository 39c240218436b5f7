/**
 * The functions of the SSH pool: key generation and certificate signing, off the request thread. Only
 * this code parses an authority's private key, and it wipes the bytes afterwards.
 */
import { createHash, type KeyObject } from 'node:crypto'
import { freshPrivateKey } from '../../../runtime/kernel/key-pair.js'
import {
  armored,
  authorityKey,
  freshKey,
  lineOf,
  publicKeyOf,
  readPrivateKey,
  readPublicKey,
  signatureOf,
  type SshPublicKey,
} from './keys.js'
import type { AuthorityReady, AuthorityRefused, MakeAuthority } from './protocol.js'
import { afterType, string, uint32, uint64 } from './wire.js'

/** Parses the private key of an authority, or generates one. */
export function authority({ privateKey }: MakeAuthority): AuthorityReady | AuthorityRefused {
  if (privateKey === null) return ready(freshPrivateKey('ed25519'))
  const read = readPrivateKey(privateKey)
  return read.tag === 'key' ? ready(read.key) : read
}

function ready(key: KeyObject): AuthorityReady {
  return {
    tag: 'authority',
    pkcs8: new Uint8Array(key.export({ format: 'der', type: 'pkcs8' })),
    caPublicKey: lineOf(publicKeyOf(key)),
  }
}

/** The key of an authority: the private key as PKCS#8 DER, wiped after use. */
export type AuthorityKey = Pick<AuthorityReady, 'pkcs8' | 'caPublicKey'>

export type CertificateInput = {
  readonly authority: AuthorityKey
  /** The OpenSSH public key to certify; null generates a key pair. */
  readonly publicKey: string | null
  readonly keyId: string
  /** Decimal, unsigned 64 bits. */
  readonly serial: string
  readonly nonce: Uint8Array
  readonly principals: readonly string[]
  readonly targetHost: string
  readonly validAfterSecs: number
  readonly validBeforeSecs: number
  readonly sourceAddresses: readonly string[]
  readonly forceCommand: string | null
}
type CertificateOutput =
  | {
      readonly tag: 'certificate'
      readonly certificate: string
      readonly publicKey: string
      readonly privateKey: string | null
      readonly caPublicKey: string
    }
  /** Not a supported public key. */
  | { readonly tag: 'bad_key' }

/** A public key as an OpenSSH line without a comment. */
export function publicLine({
  line,
}: {
  readonly line: string
}): { readonly tag: 'line'; readonly line: string } | { readonly tag: 'bad_key' } {
  const key = readPublicKey(line)
  return key === undefined ? { tag: 'bad_key' } : { tag: 'line', line: lineOf(key) }
}

/** Signs a file (OpenSSH PROTOCOL.sshsig): `ssh-keygen -Y verify` reads the result. */
export function signature({
  authority: { pkcs8, caPublicKey },
  namespace,
  message,
}: {
  readonly authority: AuthorityKey
  readonly namespace: string
  readonly message: Uint8Array
}): string {
  const der = Buffer.from(pkcs8.buffer, pkcs8.byteOffset, pkcs8.length)
  let signer: KeyObject
  try {
    signer = authorityKey(der, caPublicKey)
  } finally {
    der.fill(0)
  }
  const rest = [string(namespace), string(EMPTY), string('sha512')]
  const digest = createHash('sha512').update(message).digest()
  const signed = Buffer.concat([SSHSIG, ...rest, string(digest)])
  const blob = Buffer.concat([
    SSHSIG,
    uint32(1),
    string(publicKeyOf(signer).blob),
    ...rest,
    string(signatureOf(signer, signed)),
  ])
  return armored('SSH SIGNATURE', blob)
}

const SSHSIG = Buffer.from('SSHSIG')

/** The number of user certificates (OpenSSH PROTOCOL.certkeys). */
const USER_CERTIFICATE = 1
const EMPTY = Buffer.alloc(0)

/** Signs a user certificate (OpenSSH PROTOCOL.certkeys). */
export function certificate(input: CertificateInput): CertificateOutput {
  const { pkcs8, caPublicKey } = input.authority
  const der = Buffer.from(pkcs8.buffer, pkcs8.byteOffset, pkcs8.length)
  let signer: KeyObject
  try {
    signer = authorityKey(der, caPublicKey)
  } finally {
    der.fill(0)
  }
  const { key, privateKey } = subjectKey(input)
  if (key === undefined) return { tag: 'bad_key' }
  const issuer = publicKeyOf(signer)
  const type = `${key.type}-cert-v01@openssh.com`
  const signed = Buffer.concat([
    string(type),
    string(input.nonce),
    afterType(key.blob),
    uint64(BigInt(input.serial)),
    uint32(USER_CERTIFICATE),
    string(input.keyId),
    string(Buffer.concat(input.principals.map(string))),
    uint64(BigInt(input.validAfterSecs)),
    uint64(BigInt(input.validBeforeSecs)),
    string(criticalOptions(input)),
    string(extensions(input)),
    // Reserved.
    string(EMPTY),
    string(issuer.blob),
  ])
  const blob = Buffer.concat([signed, string(signatureOf(signer, signed))])
  return {
    tag: 'certificate',
    certificate: `${type} ${blob.toString('base64')} ${input.keyId}`,
    publicKey: `${lineOf(key)} ${input.keyId}`,
    privateKey,
    caPublicKey: lineOf(issuer),
  }
}

function subjectKey({ publicKey, keyId }: CertificateInput): {
  key: SshPublicKey | undefined
  privateKey: string | null
} {
  if (publicKey !== null) return { key: readPublicKey(publicKey), privateKey: null }
  return freshKey(keyId)
}

/** Option names in lexical order, each once; a value is a string inside a string (PROTOCOL.certkeys). */
function criticalOptions({ forceCommand, sourceAddresses }: CertificateInput): Buffer {
  const options: Buffer[] = []
  const add = (name: string, value: string) => options.push(string(name), string(string(value)))
  if (forceCommand !== null) add('force-command', forceCommand)
  if (sourceAddresses.length > 0) add('source-address', sourceAddresses.join(','))
  return Buffer.concat(options)
}

function extensions({ targetHost }: CertificateInput): Buffer {
  return Buffer.concat([
    string('permit-pty'),
    string(EMPTY),
    // A private, non-critical extension, which servers ignore if they do not know it.
    string('target-host@svc'),
    string(string(targetHost)),
  ])
}
