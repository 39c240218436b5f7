/**
 * Tokens of ended connections that wait to be revoked at their provider. A row is stored with the end of the connection and
 * deleted after the answer, so that a killed process leads to a repetition, never to a token that lives on.
 */
import { partsOf, stamped } from '../platform/sealing/stamps.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'
import { allRows, execute, type Transaction } from '../platform/sql.js'

export type RevocationRow = {
  readonly tenantId: string
  readonly id: string
  readonly connectorId: string
  /** Associated data of `secret` and `token` names it. */
  readonly credentialId: string
  /** The sealed document of the credential. */
  readonly secret: Uint8Array
  /** The sealed access token. Null: none was stored. */
  readonly token: Uint8Array | null
  /** How often the provider did not answer. */
  readonly tries: number
}

const COLUMNS = (of: string) =>
  `${columnsOf('tenant_id id connector_id credential_id tries', of)}, ${stamped('secret', `${of}.`)} as secret,
   ${stamped('token', `${of}.`)} as token`

/** The tokens of a credential wait, if it belongs to a connection. Before its secret is deleted. */
export const keepRevocationOf = (
  tx: Transaction,
  tenantId: string,
  credentialId: string,
  id: string,
  now: Date,
) =>
  execute(tx, {
    name: 'revocation.keep_of',
    text: `insert into vault_revocations (tenant_id, id, connector_id, credential_id, secret, secret_stamp, token,
             token_stamp, due_at, created_at)
           select v.tenant_id, $3, c.connector_id, v.id, v.secret, v.secret_stamp, m.token, m.token_stamp,
             $4::timestamptz, $4
           from vault_credentials v
             join vault_connections c on c.tenant_id = v.tenant_id and c.credential_id = v.id
             left join vault_managed_tokens m on m.tenant_id = v.tenant_id and m.credential_id = v.id
           where v.tenant_id = $1 and v.id = $2 and v.secret is not null`,
    values: [tenantId, credentialId, id, now],
  })

/** Tokens wait that came after the end of their connection. */
export const keepLateRevocation = (
  tx: Transaction,
  {
    connectionId,
    ...r
  }: Omit<RevocationRow, 'connectorId' | 'tries'> & {
    readonly connectionId: string
    readonly now: Date
  },
) => {
  const secret = partsOf(r.secret)
  const token = r.token && partsOf(r.token)
  return execute(tx, {
    name: 'revocation.keep_late',
    text: `insert into vault_revocations (tenant_id, id, connector_id, credential_id, secret, secret_stamp, token,
             token_stamp, due_at, created_at)
           select tenant_id, $3, connector_id, $4, $5, $6, $7, $8, $9::timestamptz, $9
           from vault_connections where tenant_id = $1 and id = $2`,
    values: [
      r.tenantId,
      connectionId,
      r.id,
      r.credentialId,
      secret.sealed,
      secret.stamp,
      token?.sealed ?? null,
      token?.stamp ?? null,
      r.now,
    ],
  })
}

/** Takes revocations of a tenant that are due. They are due again at `until`, unless they are deleted. */
export const takeRevocationsOf = (
  tx: Transaction,
  tenantId: string,
  { now, until, limit }: { readonly now: Date; readonly until: Date; readonly limit: number },
) =>
  allRows<RevocationRow>(tx, {
    name: 'revocation.take_of',
    text: `with due as (
             select tenant_id, id from vault_revocations where tenant_id = $1 and due_at <= $2
             order by due_at limit $4 for update skip locked)
           update vault_revocations r set due_at = $3 from due
           where r.tenant_id = due.tenant_id and r.id = due.id returning ${COLUMNS('r')}`,
    values: [tenantId, now, until, limit],
  })

/** The same of all tenants, at most `perTenant` of each. Crosses tenants. */
export const takeRevocations = (
  tx: Transaction,
  {
    now,
    until,
    perTenant,
    limit,
  }: {
    readonly now: Date
    readonly until: Date
    readonly perTenant: number
    readonly limit: number
  },
) =>
  allRows<RevocationRow>(tx, {
    name: 'revocation.take',
    text: `with ranked as (
             select tenant_id, id, due_at, row_number() over (partition by tenant_id order by due_at) as nth
             from vault_revocations where due_at <= $1),
           due as (
             select d.tenant_id, d.id from vault_revocations d
               join ranked on ranked.tenant_id = d.tenant_id and ranked.id = d.id and ranked.nth <= $3
             where d.due_at <= $1 order by d.due_at limit $4 for update of d skip locked)
           update vault_revocations r set due_at = $2 from due
           where r.tenant_id = due.tenant_id and r.id = due.id returning ${COLUMNS('r')}`,
    values: [now, until, perTenant, limit],
  })

/** The provider did not answer: again at `dueAt`. */
export const postponeRevocation = (
  tx: Transaction,
  { tenantId, id }: Pick<RevocationRow, 'tenantId' | 'id'>,
  dueAt: Date,
) =>
  execute(tx, {
    name: 'revocation.postpone',
    text: `update vault_revocations set due_at = $3, tries = tries + 1 where tenant_id = $1 and id = $2`,
    values: [tenantId, id, dueAt],
  })

export const removeRevocation = (
  tx: Transaction,
  { tenantId, id }: Pick<RevocationRow, 'tenantId' | 'id'>,
) =>
  execute(tx, {
    name: 'revocation.remove',
    text: `delete from vault_revocations where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
