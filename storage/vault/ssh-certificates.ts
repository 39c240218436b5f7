/** Signed SSH certificates, kept until they expire, for revocation. */
import type { CertificateName } from '../../actors/domain/vault/certificate-name.js'
import { allRows, allValues, execute, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'

type SshCertificateRow = {
  tenantId: string
  credentialId: string
  /** Decimal, 1 to 2^64 - 1. */
  serial: string
  agentId: string
  keyId: string
  targetHost: string
  principals: readonly string[]
  /** The OpenSSH line of the CA key that signed it. */
  caPublicKey: string
  /** What it was issued under; null for the owner of the authority. */
  grantId: string | null
  delegationId: string | null
  /** The OpenSSH line of the certified key. */
  publicKey: string
  issuedAt: Date
  expiresAt: Date
}

export const insertSshCertificate = (tx: Transaction, c: SshCertificateRow) =>
  execute(tx, {
    name: 'ssh_certificate.insert',
    text: `insert into ssh_certificates (tenant_id, credential_id, serial, agent_id, key_id,
             target_host, principals, ca_public_key, issued_at, expires_at, grant_id, delegation_id,
             public_key)
           values ($1, $2, $3::numeric, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    values: [
      c.tenantId,
      c.credentialId,
      c.serial,
      c.agentId,
      c.keyId,
      c.targetHost,
      c.principals,
      c.caPublicKey,
      c.issuedAt,
      c.expiresAt,
      c.grantId,
      c.delegationId,
      c.publicKey,
    ],
  })

type RevokedCertificate = {
  readonly serial: string
  readonly revokedAt: Date
  readonly first: boolean
}

/** Revokes the unexpired certificates with a name. Those that were revoked before stay as they are. */
export const revokeCertificates = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  [by, value]: readonly [CertificateName, string],
  now: Date,
) =>
  allRows<RevokedCertificate>(tx, {
    name: 'ssh_certificate.revoke',
    text: `with found as (
             select serial, revoked_at from ssh_certificates
             where tenant_id = $1 and credential_id = $2 and expires_at > $3
               and case $4 when 'serial' then serial::text = $5 when 'key_id' then key_id = $5
                 when 'public_key' then public_key = $5 when 'principal' then $5 = any(principals)
                 else delegation_id::text = $5 end
             for update)
           update ssh_certificates c set revoked_at = coalesce(found.revoked_at, $3),
             revoked_reason = case when found.revoked_at is null then $4 else c.revoked_reason end
           from found
           where c.tenant_id = $1 and c.credential_id = $2 and c.serial = found.serial
           returning c.serial::text as serial, c.revoked_at as "revokedAt",
             found.revoked_at is null as first`,
    values: [tenantId, credentialId, now, by, value],
  })

/** The revoked, unexpired certificates of an authority, by CA key. */
export const listRevokedCertificates = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  now: Date,
) =>
  allRows<{ caPublicKey: string; serial: string }>(tx, {
    name: 'ssh_certificate.revoked',
    text: `select ca_public_key as "caPublicKey", serial::text as serial
           from ssh_certificates
           where tenant_id = $1 and credential_id = $2 and revoked_at is not null
             and expires_at > $3
           order by ca_public_key, ssh_certificates.serial`,
    values: [tenantId, credentialId, now],
  })

/** The CA keys of an authority with unexpired certificates. */
export const listCertifyingKeys = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  now: Date,
) =>
  allValues<string>(tx, {
    name: 'ssh_certificate.keys',
    text: `select distinct ca_public_key as "caPublicKey" from ssh_certificates
           where tenant_id = $1 and credential_id = $2 and expires_at > $3
           order by 1`,
    values: [tenantId, credentialId, now],
  })

/** Deletes up to `limit` certificates that expired before `before`. Crosses tenants. */
export const removeExpiredCertificates = removing(
  'ssh_certificate.sweep',
  'ssh_certificates',
  'expires_at',
  '(tenant_id, credential_id, serial)',
)
