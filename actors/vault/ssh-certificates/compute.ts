/**
 * The functions of the SSH pool: key generation and certificate signing, off the request thread. Only
 * this code parses an authority's private key, and it wipes the bytes afterwards.
 */
import type { KeyObject } from 'node:crypto'
import { freshPrivateKey } from '../../../runtime/kernel/key-pair.js'
import sshpk from 'sshpk'
import opensshFormat from 'sshpk/lib/formats/openssh-cert.js'
import {
  freshKey,
  keyTypeOf,
  lineOf,
  openPrivateKey,
  publicKeyOf,
  readPrivateKey,
  readPublicKey,
  signatureOf,
} from './keys.js'
import type { AuthorityReady, AuthorityRefused, MakeAuthority } from './protocol.js'
import { string } from './wire.js'

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

export type CertificateInput = {
  /** The authority's private key as PKCS#8 DER; wiped after use. */
  readonly authority: Uint8Array
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
export type CertificateOutput =
  | {
      readonly tag: 'certificate'
      readonly certificate: string
      readonly publicKey: string
      readonly privateKey: string | null
      readonly caPublicKey: string
    }
  /** Not a supported public key. */
  | { readonly tag: 'bad_key' }

/** Signs a user certificate (OpenSSH PROTOCOL.certkeys). */
export function certificate(input: CertificateInput): CertificateOutput {
  const der = Buffer.from(
    input.authority.buffer,
    input.authority.byteOffset,
    input.authority.length,
  )
  let signer: KeyObject
  try {
    signer = openPrivateKey(der)
  } finally {
    der.fill(0)
  }
  const { key, privateKey } = subjectKey(input)
  if (key === undefined) return { tag: 'bad_key' }
  const issuerKey = publicKeyOf(signer)
  const signed = new sshpk.Certificate({
    subjects: input.principals.map((name) => sshpk.Identity.forUser(name)),
    subjectKey: key,
    issuer: sshpk.Identity.forHost('svc'),
    issuerKey,
    serial: serialBytes(input.serial),
    validFrom: new Date(input.validAfterSecs * 1000),
    validUntil: new Date(input.validBeforeSecs * 1000),
    signatures: {
      openssh: {
        nonce: Buffer.from(input.nonce),
        keyId: input.keyId,
        exts: [...criticalOptions(input), ...extensions(input)],
      },
    },
  } as unknown as ConstructorParameters<typeof sshpk.Certificate>[0])
  sign(signed, signer)
  const blob = opensshFormat.toBuffer(signed).toString('base64')
  return {
    tag: 'certificate',
    certificate: `${certificateType(key)} ${blob} ${input.keyId}`,
    publicKey: `${lineOf(key)} ${input.keyId}`,
    privateKey,
    caPublicKey: lineOf(issuerKey),
  }
}

function subjectKey({ publicKey, keyId }: CertificateInput): {
  key: sshpk.Key | undefined
  privateKey: string | null
} {
  if (publicKey !== null) return { key: readPublicKey(publicKey), privateKey: null }
  return freshKey(keyId)
}

/** Option names in lexical order, each once; a value is a string inside a string (PROTOCOL.certkeys). */
function criticalOptions({ forceCommand, sourceAddresses }: CertificateInput) {
  const critical = (name: string, value: string) => ({ critical: true, name, data: string(value) })
  return [
    ...(forceCommand === null ? [] : [critical('force-command', forceCommand)]),
    ...(sourceAddresses.length === 0
      ? []
      : [critical('source-address', sourceAddresses.join(','))]),
  ]
}

function extensions({ targetHost }: CertificateInput) {
  return [
    { critical: false, name: 'permit-pty', data: Buffer.alloc(0) },
    // A private, non-critical extension, which servers ignore if they do not know it.
    { critical: false, name: 'target-host@svc', data: string(targetHost) },
  ]
}

function sign(certificate: sshpk.Certificate, key: KeyObject): void {
  let failed: Error | undefined
  opensshFormat.signAsync(
    certificate,
    (blob, done) => {
      const signature = signatureOf(key, blob)
      done(null, { toBuffer: () => signature })
    },
    (error) => {
      failed = error
    },
  )
  if (failed !== undefined) throw failed
}

function certificateType(key: sshpk.Key): string {
  return `${keyTypeOf(key)}-cert-v01@openssh.com`
}

function serialBytes(serial: string): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(serial))
  return bytes
}
