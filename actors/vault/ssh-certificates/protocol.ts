/** Short-lived SSH certificates from authorities in the vault. decisions.md 6, 18, 22. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { TenantId } from '../../domain/ids.js'

export type SshCertificatesProtocol = {
  /** Reads an authority's private key, or makes a new one. For the vault, which keeps it. */
  authority: Ask<MakeAuthority, AuthorityReady | AuthorityRefused>
  sign: Ask<SignCertificate, CertificateSigned | SshInvalid | SshDenied | SshUnknown>
  revokeCertificate: Ask<RevokeCertificate, CertificateRevoked | SshUnknown | NotOwner>
  /** The revocation list of an authority: an OpenSSH KRL. */
  revocationList: Ask<ReadRevocationList, RevocationList | SshUnknown>
}

export type MakeAuthority = {
  /** An unencrypted private key in OpenSSH or PEM form; null: a new ed25519 key. */
  readonly privateKey: string | null
}
export type AuthorityReady = {
  readonly tag: 'authority'
  /** PKCS#8, DER. */
  readonly pkcs8: Uint8Array
  /** The line for TrustedUserCAKeys. */
  readonly caPublicKey: string
}
export type AuthorityRefused = { readonly tag: 'refused'; readonly detail: string }

export type SignCertificate = {
  readonly caller: Caller
  readonly credentialId: string
  readonly targetHost: string
  readonly principals: readonly string[]
  /** Null: `vault.ssh_default_validity_secs`. */
  readonly validitySecs: number | null
  /** An OpenSSH line of the caller's own key; null: a new key pair. */
  readonly publicKey: string | null
  /** CIDR; empty: from anywhere, unless the authority says otherwise. */
  readonly sourceAddresses: readonly string[]
  readonly forceCommand: string | null
}
export type CertificateSigned = {
  readonly tag: 'signed'
  readonly certificate: string
  /** Null when the caller brought its own key. */
  readonly privateKey: string | null
  readonly publicKey: string
  readonly keyId: string
  /** Decimal, unsigned 64 bits. */
  readonly serial: string
  readonly principals: readonly string[]
  readonly targetHost: string
  readonly validAfter: Date
  readonly validBefore: Date
  readonly caPublicKey: string
}
export type SshInvalid = {
  readonly tag: 'invalid'
  /** JSON pointer into the request body. */
  readonly pointer: string
  readonly detail: string
}
export type SshDenied = { readonly tag: 'denied'; readonly detail: string }
/** No such authority, or not one that the caller may sign with. */
export type SshUnknown = { readonly tag: 'unknown' }

export type RevokeCertificate = {
  readonly caller: Caller
  readonly credentialId: string
  /** Decimal. */
  readonly serial: string
}
export type CertificateRevoked = {
  readonly tag: 'certificate_revoked'
  readonly serial: string
  readonly revokedAt: Date
}
/** Neither `vault:manage` nor the authority's own agent. */
export type NotOwner = { readonly tag: 'not_owner' }

export type ReadRevocationList = { readonly tenantId: TenantId; readonly credentialId: string }
export type RevocationList = { readonly tag: 'list'; readonly krl: Uint8Array }

export const sshCertificates = address<SshCertificatesProtocol>('sshca', ['revocationList'])
