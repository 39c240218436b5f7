/** What hosts poll of SSH certificate authorities: the key that signs it, revoked keys, and its version. */
import {
  firstRow,
  firstValue,
  execute,
  isChanged,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { tenantInForce } from '../platform/in-force.js'

/** The associated data with which the private key of a list is sealed. */
export const listKeyContext = (credentialId: string) => `ssh_authority:${credentialId}:list_key`

export type SshAuthorityRow = {
  /** An OpenSSH line. */
  readonly listPublicKey: string
  readonly listPrivateSealed: Uint8Array
  /** OpenSSH lines. */
  readonly revokedKeys: readonly string[]
  readonly listDigest: string | null
  /** Decimal. */
  readonly listVersion: string
}

/** The tenant of a certificate authority. Crosses tenants: its address is public. */
export const tenantOfAuthority = (tx: Transaction, id: string) =>
  firstValue<string>(tx, {
    name: 'ssh_authority.tenant',
    text: 'select tenant_id as "tenantId" from vault_credentials where id = $1 and ca_public_key is not null',
    values: [id],
  })

export const findSshAuthority = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SshAuthorityRow>(tx, {
    name: 'ssh_authority.find',
    text: `select ${columnsOf(`list_public_key list_private_sealed revoked_keys list_digest
             list_version::text`)}
           from ssh_authorities where tenant_id = $1 and credential_id = $2`,
    values: [tenantId, id],
  })

type NewSshAuthority = Pick<SshAuthorityRow, 'listPublicKey' | 'listPrivateSealed'> & {
  readonly tenantId: string
  readonly credentialId: string
  readonly createdAt: Date
}

/** Does nothing when another process made the row. */
export const insertSshAuthority = (tx: Transaction, a: NewSshAuthority) =>
  execute(tx, {
    name: 'ssh_authority.insert',
    text: `insert into ssh_authorities (tenant_id, credential_id, list_public_key, list_private_sealed,
             created_at)
           values ($1, $2, $3, $4, $5) on conflict do nothing`,
    values: [a.tenantId, a.credentialId, a.listPublicKey, a.listPrivateSealed, a.createdAt],
  })

/** Keeps what a list revokes as its newest version: the time, or the next number. */
export const keepListVersion = (
  tx: Transaction,
  tenantId: string,
  id: string,
  digest: string,
  now: Date,
) =>
  onlyValue<string>(tx, {
    name: 'ssh_authority.keep_version',
    text: `update ssh_authorities set list_digest = $3,
             list_version = case when list_digest is distinct from $3
               then greatest(list_version + 1, $4) else list_version end
           where tenant_id = $1 and credential_id = $2
           returning list_version::text as version`,
    values: [tenantId, id, digest, now.getTime()],
  })

/** Adds a key to the list. False when the list has it, or has `most`. */
export const revokeSshKey = (
  tx: Transaction,
  tenantId: string,
  id: string,
  line: string,
  most: number,
) =>
  isChanged(tx, {
    name: 'ssh_authority.revoke_key',
    text: `update ssh_authorities set revoked_keys = revoked_keys || $3::text
           where tenant_id = $1 and credential_id = $2 and $3 <> all(revoked_keys)
             and cardinality(revoked_keys) < $4`,
    values: [tenantId, id, line, most],
  })

/** True if no certificate may have the key. */
export const isKeyRevoked = async (tx: Transaction, tenantId: string, id: string, line: string) =>
  (await firstValue<boolean>(tx, {
    name: 'ssh_authority.is_key_revoked',
    text: `select $3 = any(revoked_keys) as revoked from ssh_authorities
           where tenant_id = $1 and credential_id = $2`,
    values: [tenantId, id, line],
  })) ?? false

/** False while the tenant is suspended: then hosts refuse all certificates of its authorities. */
export const servesHosts = (tx: Transaction, tenantId: string) =>
  onlyValue<boolean>(tx, {
    name: 'ssh_authority.serves',
    text: `select ${tenantInForce('$1::uuid')} as serves`,
    values: [tenantId],
  })
