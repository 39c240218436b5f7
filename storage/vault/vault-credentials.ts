/** Credentials of the vault. Secrets are sealed and unsealed by the callers. */
import type { Credential } from '../../actors/domain/entities/vault.js'
import {
  allRows,
  execute,
  firstRow,
  isChanged,
  onlyRow,
  type Transaction,
} from '../platform/sql.js'
import { connectionInForce } from '../platform/in-force.js'
import { partsOf, stamped } from '../platform/sealing/stamps.js'
import { columnsOf, listing } from '../platform/portable/tenant-rows.js'

export type VaultCredentialRow = Credential & {
  readonly ownerType: 'human' | 'agent' | 'service'
  readonly ownerId: string
}

/** With the sealed secret; null when revoked, and with `tokenOf`. */
export type SecretCredentialRow = VaultCredentialRow & { secret: Uint8Array | null }

/** The columns that egress admission needs. */
export type HeldCredentialRow = Pick<
  SecretCredentialRow,
  | 'id'
  | 'credentialType'
  | 'authScheme'
  | 'allowedHosts'
  | 'status'
  | 'tokenOf'
  | 'updatedAt'
  | 'secret'
>

type NewVaultCredential = Omit<
  VaultCredentialRow,
  'tenantName' | 'status' | 'updatedAt' | 'lastUsedAt'
> & { readonly secret: Uint8Array | null }

/** Associated data of a sealed secret, which binds it to its row. */
export const credentialSecretContext = (id: string) => ({
  rewritten: `vault_credential:${id}:secret`,
})

/** Inserts a credential. Undefined when the tenant has `most` active ones already (0 for no limit). */
export async function insertVaultCredential(
  tx: Transaction,
  c: NewVaultCredential,
  most: number,
): Promise<VaultCredentialRow | undefined> {
  // Counted under a lock, so that concurrent inserts cannot exceed the limit.
  if (most > 0 && (await countUnderLock(tx, c.tenantId)) >= most) return undefined
  const secret = c.secret && partsOf(c.secret)
  return firstRow<VaultCredentialRow>(tx, {
    name: 'vault_credential.insert',
    text: `with c as (
             insert into vault_credentials (tenant_id, id, owner_type, owner_id, provider,
               credential_type, label, auth_scheme, allowed_hosts, non_exportable, metadata, secret,
               ca_public_key, created_at, updated_at, token_of, secret_stamp)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15, $16)
             returning *)
           select ${COLUMNS} from c join tenants t on t.id = c.tenant_id`,
    values: [
      c.tenantId,
      c.id,
      c.ownerType,
      c.ownerId,
      c.provider,
      c.credentialType,
      c.label,
      c.authScheme,
      c.allowedHosts,
      c.nonExportable,
      JSON.stringify(c.metadata),
      secret?.sealed ?? null,
      c.caPublicKey,
      c.createdAt,
      c.tokenOf,
      secret?.stamp ?? null,
    ],
  })
}

async function countUnderLock(tx: Transaction, tenantId: string): Promise<number> {
  await tx.query({
    name: 'vault_credential.take_turns',
    text: 'select from tenants where id = $1 for no key update',
    values: [tenantId],
  })
  const { rows } = await tx.query<{ count: number }>({
    name: 'vault_credential.count',
    text: `select count(*)::integer as count from vault_credentials
           where tenant_id = $1 and status = 'active'`,
    values: [tenantId],
  })
  return rows[0]!.count
}

export const findVaultCredential = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SecretCredentialRow>(tx, {
    name: 'vault_credential.find',
    text: `select ${COLUMNS}, ${SECRET}
           from vault_credentials c join tenants t on t.id = c.tenant_id
           where c.tenant_id = $1 and c.id = $2`,
    values: [tenantId, id],
  })

/** Locks credentials against changes until the transaction ends. */
export const holdVaultCredentials = (tx: Transaction, tenantId: string, ids: readonly string[]) =>
  allRows<HeldCredentialRow>(tx, {
    name: 'vault_credential.hold',
    text: `select ${HELD} from vault_credentials where tenant_id = $1 and id = any($2::uuid[])
           order by id for no key update`,
    values: [tenantId, ids],
  })

/** The same without a lock, for a decision that may be a second old. */
export const readHeldCredentials = (tx: Transaction, tenantId: string, ids: readonly string[]) =>
  allRows<HeldCredentialRow>(tx, {
    name: 'vault_credential.read_held',
    text: `select ${HELD} from vault_credentials where tenant_id = $1 and id = any($2::uuid[])`,
    values: [tenantId, ids],
  })

/** Locks a credential until the transaction ends, to serialise changes. */
export const lockVaultCredential = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SecretCredentialRow>(tx, {
    name: 'vault_credential.lock',
    text: `select ${COLUMNS}, ${SECRET}
           from vault_credentials c join tenants t on t.id = c.tenant_id
           where c.tenant_id = $1 and c.id = $2 for update of c`,
    values: [tenantId, id],
  })

/**
 * Locks a credential until the transaction ends, and before it its `token_of` credential, whose hosts
 * limit its own. All code locks in this order, to avoid deadlocks.
 */
export async function lockWithItsSource(
  tx: Transaction,
  tenantId: string,
  id: string,
): Promise<SecretCredentialRow | undefined> {
  const { rows } = await tx.query<SecretCredentialRow>({
    name: 'vault_credential.lock_with_source',
    text: `select ${COLUMNS}, ${SECRET}
           from vault_credentials c join tenants t on t.id = c.tenant_id
           where c.tenant_id = $1 and (c.id = $2 or c.id = (
             select token_of from vault_credentials where tenant_id = $1 and id = $2))
           order by c.token_of is not null for update of c`,
    values: [tenantId, id],
  })
  return rows.find((row) => row.id === id)
}

/** Changes of a credential; null members are unchanged. */
type CredentialChanges = {
  readonly label: string | null
  readonly allowedHosts: readonly string[] | null
  readonly metadata: Readonly<Record<string, unknown>> | null
}

export const updateVaultCredentialRow = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { label, allowedHosts, metadata }: CredentialChanges,
  now: Date,
) =>
  onlyRow<VaultCredentialRow>(tx, {
    name: 'vault_credential.update',
    text: `with c as (
             update vault_credentials set label = coalesce($3, label),
               allowed_hosts = coalesce($4, allowed_hosts), metadata = coalesce($5, metadata),
               updated_at = $6
             where tenant_id = $1 and id = $2
             returning *)
           select ${COLUMNS} from c join tenants t on t.id = c.tenant_id`,
    values: [tenantId, id, label, allowedHosts, metadata && JSON.stringify(metadata), now],
  })

/** Replaces the secret. */
export const replaceCredentialSecret = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { secret, caPublicKey }: { readonly secret: Uint8Array; readonly caPublicKey: string | null },
  now: Date,
) => {
  const { sealed, stamp } = partsOf(secret)
  return onlyRow<VaultCredentialRow>(tx, {
    name: 'vault_credential.replace_secret',
    text: `with c as (
             update vault_credentials set secret = $3, secret_stamp = $6, ca_public_key = $4,
               updated_at = $5, lapsed_at = null
             where tenant_id = $1 and id = $2
             returning *)
           select ${COLUMNS} from c join tenants t on t.id = c.tenant_id`,
    values: [tenantId, id, sealed, caPublicKey, now, stamp],
  })
}

/** Stores a rotated refresh token without changing `updated_at`. The row must be locked. */
export const keepRenewedSecret = (
  tx: Transaction,
  tenantId: string,
  id: string,
  secret: Uint8Array,
) => {
  const { sealed, stamp } = partsOf(secret)
  return execute(tx, {
    name: 'vault_credential.keep_renewed_secret',
    text: `update vault_credentials set secret = $3, secret_stamp = $4, lapsed_at = null
           where tenant_id = $1 and id = $2 and status = 'active'`,
    values: [tenantId, id, sealed, stamp],
  })
}

/** The upstream refuses the secret for good. False when that is known. The row must be locked. */
export const lapseVaultCredentialRow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(tx, {
    name: 'vault_credential.lapse',
    text: `update vault_credentials set lapsed_at = $3
           where tenant_id = $1 and id = $2 and status = 'active' and lapsed_at is null`,
    values: [tenantId, id, now],
  })

/** Revokes a credential and deletes its secret. Final. */
export const revokeVaultCredentialRow = (
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
) =>
  onlyRow<VaultCredentialRow>(tx, {
    name: 'vault_credential.revoke',
    text: `with c as (
             update vault_credentials
             set status = 'revoked', secret = null, revoked_at = $3, updated_at = $3
             where tenant_id = $1 and id = $2
             returning *)
           select ${COLUMNS} from c join tenants t on t.id = c.tenant_id`,
    values: [tenantId, id, now],
  })

/** Locks the active credentials that refer to this one with `token_of`. */
export const lockTokensOf = (tx: Transaction, tenantId: string, id: string) =>
  allRows<SecretCredentialRow>(tx, {
    name: 'vault_credential.lock_tokens_of',
    text: `select ${COLUMNS}, ${SECRET}
           from vault_credentials c join tenants t on t.id = c.tenant_id
           where c.tenant_id = $1 and c.token_of = $2 and c.status = 'active'
           order by c.id for update of c`,
    values: [tenantId, id],
  })

/**
 * Removes hosts that are not in `hosts` from the credentials that refer to this one with `token_of`. The
 * row of this one must be locked. @returns the ids of changed credentials.
 */
export async function narrowTokensOf(
  tx: Transaction,
  tenantId: string,
  id: string,
  hosts: readonly string[],
  now: Date,
): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'vault_credential.narrow_tokens_of',
    text: `with carriers as (
             select id from vault_credentials
             where tenant_id = $1 and token_of = $2 and status = 'active'
               and not allowed_hosts <@ $3
             order by id for update)
           update vault_credentials c set updated_at = $4, allowed_hosts = array(
             select host from unnest(c.allowed_hosts) with ordinality as h (host, place)
             where host = any($3) order by place)
           from carriers where c.tenant_id = $1 and c.id = carriers.id
           returning c.id`,
    values: [tenantId, id, hosts, now],
  })
  return rows.map((row) => row.id)
}

/** Sets the time of the last use, which never moves back. */
export const touchVaultCredentials = (
  tx: Transaction,
  tenantId: string,
  ids: readonly string[],
  now: Date,
) =>
  execute(tx, {
    name: 'vault_credential.touch',
    text: `update vault_credentials set last_used_at = greatest(last_used_at, $3)
           where tenant_id = $1 and id = any($2::uuid[])`,
    values: [tenantId, ids, now],
  })

/** The agent of a request and the delegation under which it acts. */
export type Grantee = {
  readonly agentId: string | null
  readonly delegationId: string | null
  /** The person for whom the agent acts. Null: a direct token. */
  readonly person: string | null
}

/** A page of credentials that the grantee may list, by a grant with `list` or by a lease. */
export const listGrantedCredentials = (
  tx: Transaction,
  tenantId: string,
  { agentId, delegationId, person }: Grantee,
  now: Date,
  { limit, after }: { limit: number; after: { createdAt: Date; id: string } | null },
) =>
  allRows<VaultCredentialRow>(tx, {
    name: 'vault_credential.list_granted',
    text: `select ${COLUMNS}
           from vault_credentials c join tenants t on t.id = c.tenant_id
           where c.tenant_id = $1 and c.status = 'active'
             and ($6::timestamptz is null or (c.created_at, c.id) < ($6, $7::uuid))
             and (exists (select from vault_grants g
                    where g.tenant_id = $1 and g.credential_id = c.id and g.revoked_at is null
                      and (g.expires_at is null or g.expires_at > $4)
                      and 'list' = any(g.capabilities)
                      and (g.grantee_type, g.grantee_id) in (('agent', $2), ('delegation', $3))
                      and ${connectionInForce('g', '$8', '$4')})
               or exists (select from vault_leases l
                    where l.tenant_id = $1 and l.credential_id = c.id and l.revoked_at is null
                      and (l.expires_at is null or l.expires_at > $4) and l.recipient_id = $2))
           order by c.created_at desc, c.id desc limit $5`,
    values: [
      tenantId,
      agentId,
      delegationId,
      now,
      limit,
      after?.createdAt ?? null,
      after?.id ?? null,
      person,
    ],
  })

const SECRET = `${stamped('secret', 'c.')} as secret`
const HELD = `${columnsOf(
  'id credential_type auth_scheme allowed_hosts status token_of updated_at',
)}, ${stamped('secret')} as secret`

const COLUMNS = `c.id, c.tenant_id as "tenantId", t.name as "tenantName",
  ${columnsOf(
    `owner_type owner_id provider credential_type label auth_scheme allowed_hosts non_exportable
     metadata ca_public_key token_of created_at updated_at last_used_at`,
    'c',
  )}, case when c.status = 'active' and c.lapsed_at is not null then 'needs_reauthorization' else c.status end
    as status`

/** A page of the credentials of a tenant, newest first, revoked ones included. */
export const listVaultCredentialRows = listing<VaultCredentialRow>(
  'vault_credential.list',
  `select ${COLUMNS}
     from vault_credentials c join tenants t on t.id = c.tenant_id
     where c.tenant_id = $1`,
  'c',
)
