/**
 * A throw-away certificate authority for one run. Its key is generated in memory, is not extractable, and
 * is lost with the process. Only the child process trusts it. Issues one leaf certificate per host.
 */
// Must be imported before the certificate library.
// oxlint-disable-next-line import/no-unassigned-import
import 'reflect-metadata'
import { KeyObject, webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext } from 'node:tls'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'
import type { Clock } from '../../kernel/clock.js'
import type { Random } from '../../kernel/random.js'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const LIFETIME_MS = 365 * 86_400_000
/** Tolerance for the clock of the child. */
const BACKDATED_MS = 5 * 60_000
const LEAVES_MAX = 1_000
const SERIAL_BYTES = 16

export interface ThrowawayAuthority {
  /** The CA certificate that the child trusts. */
  readonly certificatePem: string
  /** Key and certificate of a host name or address, issued on first use. */
  contextOf(host: string): Promise<SecureContext>
}

export async function createAuthority(clock: Clock, random: Random): Promise<ThrowawayAuthority> {
  cryptoProvider.set(webcrypto as never)
  const now = clock.now().getTime()
  const notBefore = new Date(now - BACKDATED_MS)
  const notAfter = new Date(now + LIFETIME_MS)
  const serialNumber = () => `4${Buffer.from(random.bytes(SERIAL_BYTES)).toString('hex').slice(1)}`
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, false, ['sign', 'verify'])
  const name = `CN=svc run ${serialNumber().slice(0, 8)}`
  const authority = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name,
    notBefore,
    notAfter,
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  const leafKeys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const leafKeyPem = KeyObject.from(leafKeys.privateKey).export({ type: 'pkcs8', format: 'pem' })

  async function leafOf(host: string): Promise<SecureContext> {
    const type = isIP(host) === 0 ? 'dns' : 'ip'
    const leaf: X509Certificate = await X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      // A common name has at most 64 characters; clients check the alternative name only.
      subject: host.length <= 64 && type === 'dns' ? `CN=${host}` : '',
      issuer: authority.subject,
      notBefore,
      notAfter,
      publicKey: leafKeys.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: ALGORITHM,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension([{ type, value: host }]),
        await AuthorityKeyIdentifierExtension.create(authority, false),
      ],
    })
    return createSecureContext({
      key: leafKeyPem,
      cert: leaf.toString('pem'),
      minVersion: 'TLSv1.2',
    })
  }

  const leaves = new Map<string, Promise<SecureContext>>()
  return {
    certificatePem: `${authority.toString('pem')}\n`,
    contextOf(host) {
      const known = leaves.get(host)
      if (known !== undefined) return known
      if (leaves.size >= LEAVES_MAX) leaves.clear()
      const leaf = leafOf(host)
      leaves.set(host, leaf)
      return leaf
    },
  }
}
