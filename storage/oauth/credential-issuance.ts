/** Issued credentials, and the facts that they state. Claims are not stored. */
import { ending } from '../platform/ends/ending.js'
import { allRows, execute, firstRow, firstValue, type Transaction } from '../platform/sql.js'
import { removing } from '../platform/portable/expiry.js'
import { columnsOf } from '../platform/portable/tenant-rows.js'

/** What a credential may state about a person. */
export type CredentialPerson = {
  readonly userId: string
  readonly subject: string
  readonly roles: readonly string[]
  readonly email: string
  /** The address is proved, and the person has signed in to this tenant. */
  readonly emailVerified: boolean
  readonly tenantName: string
  readonly organizationId: string | null
  readonly organizationName: string | null
}

/**
 * A person who is neither removed nor suspended, by user id or by subject. The row is locked: a concurrent
 * removal waits, and then finds the credential. Accounts are global, so it crosses tenants.
 */
export const holdCredentialPerson = (
  tx: Transaction,
  tenantId: string,
  { userId, subject }: { readonly userId: string | null; readonly subject: string | null },
) =>
  firstRow<CredentialPerson>(tx, {
    name: 'issued_credential.person',
    text: `select u.id as "userId", u.sub as subject, u.roles, a.email,
             a.email_verified and u.status in ('active', 'pre_provisioned') as "emailVerified", t.name as "tenantName",
             o.id as "organizationId", o.name as "organizationName"
           from tenant_users u
           join accounts a on a.id = u.account_id
           join tenants t on t.id = u.tenant_id
           left join organizations o on o.id = t.organization_id
           where u.tenant_id = $1 and ($2::uuid is null or u.id = $2)
             and ($3::text is null or u.sub = $3) and ($2::uuid is not null or $3::text is not null)
             and u.status not in ('removed', 'suspended') and u.account_active
           for share of u, a`,
    values: [tenantId, userId, subject],
  })

export type CredentialDelegation = {
  readonly id: string
  readonly agentId: string
  readonly subject: string
  readonly scopes: readonly string[]
  readonly expiresAt: Date
  /** The active keys of the agent, raw in hexadecimal: 32 bytes (ed25519) or 33 bytes (es256). */
  readonly keys: readonly { readonly algorithm: 'ed25519' | 'es256'; readonly publicKey: string }[]
}

/** A delegation in force with the keys of its agent. Locked as `holdCredentialPerson`; crosses tenants. */
export const holdCredentialDelegation = (
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
) =>
  firstRow<CredentialDelegation>(tx, {
    name: 'issued_credential.delegation',
    text: `select d.id, d.agent_id as "agentId", d.subject, d.scopes, d.expires_at as "expiresAt",
             (select coalesce(json_agg(json_build_object('algorithm', k.algorithm,
                'publicKey', encode(k.public_key, 'hex'))), '[]')
              from agent_keys k where k.agent_id = d.agent_id and k.status = 'active') as keys
           from delegations d
           where d.tenant_id = $1 and d.id = $2 and d.revoked_at is null and d.expires_at > $3
           for share of d`,
    values: [tenantId, id, now],
  })

type NewIssuedCredential = {
  readonly tenantId: string
  readonly id: string
  readonly offerId: string | null
  readonly userId: string
  readonly subject: string
  readonly delegationId: string | null
  readonly configurationId: string
  readonly roles: readonly string[]
  readonly listId: string
  readonly idx: number
  readonly notificationId: string
  readonly issuedAt: Date
  readonly expiresAt: Date
  /** The key of the tenant that signed it. */
  readonly kid: string
}

export const insertIssuedCredential = (tx: Transaction, one: NewIssuedCredential) =>
  execute(tx, {
    name: 'issued_credential.insert',
    text: `insert into issued_credentials (tenant_id, id, offer_id, user_id, subject, delegation_id,
             configuration_id, roles, list_id, idx, notification_id, issued_at, expires_at, kid)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    values: [
      one.tenantId,
      one.id,
      one.offerId,
      one.userId,
      one.subject,
      one.delegationId,
      one.configurationId,
      one.roles,
      one.listId,
      one.idx,
      one.notificationId,
      one.issuedAt,
      one.expiresAt,
      one.kid,
    ],
  })

/** When a key of the service last signed a credential of the tenant that has not ended; null if none did. */
export const lastOfServiceKey = async (tx: Transaction, tenantId: string, now: Date) =>
  (await firstValue<Date>(tx, {
    name: 'issued_credential.of_service_key',
    text: `select issued_at as "issuedAt" from issued_credentials
           where tenant_id = $1 and kid is null and expires_at > $2
           order by issued_at desc limit 1`,
    values: [tenantId, now],
  })) ?? null

export type IssuedCredentialRow = {
  readonly id: string
  readonly tenantId: string
  readonly offerId: string | null
  readonly userId: string
  readonly delegationId: string | null
  readonly configurationId: string
  readonly listId: string
  readonly idx: number
  /** The time of the issuance. */
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly revokedAt: Date | null
  readonly revokedReason: string | null
}

const ISSUED = `${columnsOf('id tenant_id offer_id user_id delegation_id configuration_id list_id idx')},
  issued_at as "createdAt", ${columnsOf('expires_at revoked_at revoked_reason')}`

/** A page of a tenant's issued credentials, newest first. */
export const listIssuedCredentialRows = (
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<IssuedCredentialRow>(tx, {
    name: 'issued_credential.list',
    text: `select ${ISSUED} from issued_credentials
           where tenant_id = $1
             and ($3::timestamptz is null or (issued_at, id) < ($3, $4::uuid))
           order by issued_at desc, id desc limit $2`,
    values: [tenantId, limit, after?.createdAt ?? null, after?.id ?? null],
  })

export const findIssuedCredential = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<IssuedCredentialRow>(tx, {
    name: 'issued_credential.find',
    text: `select ${ISSUED} from issued_credentials where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })

/** Revokes a credential once, with its status entry. Undefined if it is unknown or revoked. */
export const revokeIssuedCredentialRow = (
  tx: Transaction,
  tenantId: string,
  id: string,
  now: Date,
) =>
  firstRow<IssuedCredentialRow>(ending(tx, 'credential.revoked', [{ tenantId, id }]), {
    name: 'issued_credential.revoke',
    text: `update issued_credentials set revoked_at = $3, revoked_reason = 'revoked'
           where tenant_id = $1 and id = $2 and revoked_at is null returning ${ISSUED}`,
    values: [tenantId, id, now],
  })

type NotifiedCredentials = {
  /** The ids of the credentials of the response. Empty if the person got no such response. */
  readonly ids: readonly string[]
  /** False for a repeated notification. */
  readonly changed: boolean
}

/** Records what the wallet reports about a response (OpenID4VCI section 11). */
export async function notifyIssuedCredentials(
  tx: Transaction,
  tenantId: string,
  of: { readonly notificationId: string; readonly subject: string; readonly event: string },
): Promise<NotifiedCredentials> {
  const { rows } = await tx.query<{ id: string; changed: boolean }>({
    name: 'issued_credential.notify',
    text: `with found as (
             select id, notified_event is distinct from $4 as changed from issued_credentials
             where tenant_id = $1 and notification_id = $2 and subject = $3 for update),
           noted as (
             update issued_credentials c set notified_event = $4 from found f
             where c.tenant_id = $1 and c.id = f.id and f.changed)
           select id, changed from found`,
    values: [tenantId, of.notificationId, of.subject, of.event],
  })
  return { ids: rows.map(({ id }) => id), changed: rows.some(({ changed }) => changed) }
}

/** Deletes up to `limit` credentials that expired before `before`. Crosses tenants. */
export const removeEndedCredentials = removing(
  'issued_credential.remove_ended',
  'issued_credentials',
)
