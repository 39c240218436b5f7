/** Short-lived SSH certificates, signed by certificate authorities in the vault. */
import type { Denied } from '../../domain/vault/denied.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { TenantId } from '../../domain/ids.js'
import type { CertificateName } from '../../domain/vault/certificate-name.js'
import type { MemberInvalid } from '../../domain/entities/messages.js'

export type SshCertificatesProtocol = {
  /** Parses or generates an authority's private key, for the vault to store. */
  authority: Ask<MakeAuthority, AuthorityReady | AuthorityRefused>
  signSshCertificate: Ask<SignCertificate, CertificateSigned | SshInvalid | Denied | SshUnknown>
  revokeSshCertificate: Ask<
    RevokeCertificate,
    CertificateRevoked | SshInvalid | SshUnknown | NotOwner
  >
  /** The revocation list of an authority: an OpenSSH KRL. */
  getSshRevocationList: Ask<ReadRevocationList, RevocationList | SshUnknown>
  /** The same, anonymous. */
  pollSshRevocationList: Ask<{ readonly credentialId: string }, HostFile | SshUnknown | SshBusy>
  /** Anonymous: what hosts need to use the list. */
  getSshTrustFile: Ask<
    { readonly credentialId: string; readonly file: TrustFile },
    HostFile | SshUnknown | SshBusy
  >
}

export type MakeAuthority = {
  /** An unencrypted private key in OpenSSH or PEM format; null generates an ed25519 key. */
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
  /** Null for `vault.ssh_default_validity_secs`. */
  readonly validitySecs: number | null
  /** The OpenSSH public key of the caller; null generates a key pair. */
  readonly publicKey: string | null
  /** CIDR networks; empty for the networks of the authority. */
  readonly sourceAddresses: readonly string[]
  readonly forceCommand: string | null
}
export type CertificateSigned = {
  readonly tag: 'signed'
  readonly certificate: string
  /** Null when the caller sent a public key. */
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
export type SshInvalid = MemberInvalid
/** No such authority, or the caller has no grant for it. */
export type SshUnknown = { readonly tag: 'unknown' }
/** As many hosts poll as this process serves at a time. */
export type SshBusy = { readonly tag: 'busy' }

export type RevokeCertificate = {
  readonly caller: Caller
  readonly credentialId: string
  readonly by: CertificateName
  readonly value: string
}
export type CertificateRevoked = {
  readonly tag: 'certificate_revoked'
  /** Decimal. Null when the certificates were named by something else. */
  readonly serial: string | null
  readonly serials: readonly string[]
  readonly revokedAt: Date
}
/** The caller has neither `vault:manage` nor is it the agent that owns the authority. */
export type NotOwner = { readonly tag: 'not_owner' }

export type ReadRevocationList = { readonly tenantId: TenantId; readonly credentialId: string }
export type RevocationList = { readonly tag: 'list'; readonly krl: Uint8Array }

/** Next to the list: the CA keys, signatures of both, and the key of the signatures. */
export const TRUST_FILES = ['krl.sig', 'ca.pub', 'ca.pub.sig', 'allowed_signers'] as const
export type TrustFile = (typeof TRUST_FILES)[number]
export type HostFile = { readonly tag: 'file'; readonly body: Uint8Array }

export const sshCertificates = address<SshCertificatesProtocol>('ssh-certificates', {
  idempotent: ['getSshRevocationList', 'pollSshRevocationList', 'getSshTrustFile'],
})
