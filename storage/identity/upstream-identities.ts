/** Identities of accounts at identity providers. Global, so every transaction here crosses tenants. */
import type { Email } from '../../actors/domain/email.js'
import type { JoinedMember } from './organization-members.js'
import { ending } from '../platform/ends/ending.js'
import { lockUntilEnd } from '../platform/portable/locks.js'
import { allRows, firstRow, firstValue, isChanged, type Transaction } from '../platform/sql.js'
import { HAS_FACTOR, judgeRemoval } from './ways/ways-in.js'

/** Identifies a user at a provider, never by their address. */
export type IdentityKey = {
  readonly provider: string
  readonly issuer: string
  readonly subject: string
}

/** Serializes callbacks of one identity until the transaction ends. */
export async function lockIdentity(tx: Transaction, key: IdentityKey): Promise<void> {
  const subject = JSON.stringify(['upstream_identity', key.provider, key.issuer, key.subject])
  await lockUntilEnd(tx, { kind: 'upstream_identity', tenantId: null, subject })
}

/** The account of an identity, without recording its use. */
export const findIdentity = (tx: Transaction, key: IdentityKey) =>
  firstValue<string>(tx, {
    name: 'upstream_identity.find',
    text: `select account_id as "accountId" from upstream_identities
           where provider = $1 and issuer = $2 and subject = $3`,
    values: [key.provider, key.issuer, key.subject],
  })

/** The account of an identity. Records its use, with the address vouched for this time. */
export const useIdentity = (tx: Transaction, key: IdentityKey, email: Email | null, now: Date) =>
  firstValue<string>(tx, {
    name: 'upstream_identity.use',
    text: `update upstream_identities set last_used_at = $5, email = coalesce($4, email)
           where provider = $1 and issuer = $2 and subject = $3
           returning account_id as "accountId"`,
    values: [key.provider, key.issuer, key.subject, email, now],
  })

/** Links an identity to an account; false when it is already linked to any account. */
export const insertIdentity = (
  tx: Transaction,
  identity: IdentityKey & {
    readonly id: string
    readonly accountId: string
    /** Null: a provider of the deployment. */
    readonly tenantId: string | null
    /** Only if the provider vouches for it. */
    readonly email: Email | null
    readonly createdAt: Date
  },
) =>
  isChanged(tx, {
    name: 'upstream_identity.insert',
    text: `insert into upstream_identities (account_id, id, provider, tenant_id, issuer, subject,
             email, created_at, last_used_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $8)
           on conflict (provider, issuer, subject) do nothing`,
    values: [
      identity.accountId,
      identity.id,
      identity.provider,
      identity.tenantId,
      identity.issuer,
      identity.subject,
      identity.email,
      identity.createdAt,
    ],
  })

/** An account that an identity could be linked to. */
type LinkCandidate = {
  readonly id: string
  readonly active: boolean
  readonly emailVerified: boolean
  /** The provider has vouched for a user of this account before. */
  readonly knownToProvider: boolean
}

/** The account of an address, locked until the transaction ends. */
export const findLinkCandidate = (
  tx: Transaction,
  email: Email,
  { provider, issuer }: IdentityKey,
) =>
  firstRow<LinkCandidate>(tx, {
    name: 'upstream_identity.candidate',
    text: `select a.id, a.status = 'active' as active, a.email_verified as "emailVerified",
             exists (select from upstream_identities i
               where i.account_id = a.id and i.provider = $2 and i.issuer = $3)
               as "knownToProvider"
           from accounts a where a.email_key = lower($1) for update of a`,
    values: [email, provider, issuer],
  })

/** The account of a returning user and its status in the tenant. */
export type ReturningRow = {
  readonly accountActive: boolean
  readonly hasFactor: boolean
  /** The account's address was verified before. */
  readonly emailVerified: boolean
  /** The account's address is verified, or is the one that the provider vouches for. */
  readonly addressProved: boolean
  /** Null: the account is not a user of the tenant. */
  readonly tenantUserId: string | null
  readonly sub: string | null
  readonly status: 'invited' | 'pre_provisioned' | 'active' | 'suspended' | 'removed' | null
}

/** Reads an account as a tenant knows it, locked until the transaction ends. */
export const findReturning = (
  tx: Transaction,
  tenantId: string,
  accountId: string,
  vouchedEmail: Email | null,
) =>
  firstRow<ReturningRow>(tx, {
    name: 'upstream_identity.returning',
    text: `select a.status = 'active' as "accountActive",
             ${HAS_FACTOR} as "hasFactor",
             a.email_verified as "emailVerified",
             a.email_verified or coalesce(a.email_key = lower($3), false) as "addressProved",
             u.id as "tenantUserId", u.sub, u.status
           from accounts a
             left join tenant_users u on u.account_id = a.id and u.tenant_id = $1
           where a.id = $2 for update of a`,
    values: [tenantId, accountId, vouchedEmail],
  })

/** invited -> active: the owner of the address has signed in. */
export const acceptInvitationRow = (
  tx: Transaction,
  tenantId: string,
  tenantUserId: string,
  now: Date,
) =>
  isChanged(tx, {
    name: 'upstream_identity.accept_invitation',
    text: `update tenant_users set status = 'active', updated_at = $3
           where tenant_id = $1 and id = $2 and status = 'invited'`,
    values: [tenantId, tenantUserId, now],
  })

/** Makes an account a member of the organization; undefined when it already was. */
export const joinOrganization = (
  tx: Transaction,
  organizationId: string,
  accountId: string,
  now: Date,
) =>
  firstRow<JoinedMember>(tx, {
    name: 'organization_member.join',
    text: `insert into organization_members (organization_id, member_type, member_id, role,
             created_at)
           values ($1, 'account', $2, 'member', $3) on conflict do nothing
           returning id, organization_id as "organizationId", role`,
    values: [organizationId, accountId, now],
  })

/** What a logout token of a provider names: a session there, or all of a user. One of both is not null. */
type UpstreamLogout = {
  readonly provider: string
  /** Null: a provider of the deployment. */
  readonly tenantId: string | null
  readonly issuer: string
  readonly subject: string | null
  readonly sid: string | null
}

/**
 * Ends the sessions that a provider opened. One that was replaced ends too: its tokens go on in the session that replaced
 * it, which may be another sign-in. One whose session there is unknown ends with its user. One that began after `until`
 * goes on.
 */
export function endUpstreamSessions(
  tx: Transaction,
  logout: UpstreamLogout,
  { reason, until }: { readonly reason: string; readonly until: Date },
  now: Date,
) {
  const { provider, tenantId, issuer, subject, sid } = logout
  const [name, which] =
    subject === null
      ? ['of_sid', 'b.upstream_sid = $6 and $5::text is null']
      : ['of_subject', 'i.subject = $5 and ($6::text is null or coalesce(b.upstream_sid, $6) = $6)']
  return allRows<{ tenantId: string; id: string; sub: string; isReplaced: boolean }>(
    ending(tx, 'browser_session.ended'),
    {
      name: `upstream_identity.log_out_${name}`,
      text: `update browser_sessions b
             set ended_at = coalesce(b.ended_at, $4), ended_reason = $7
             from upstream_identities i, tenant_users u
             where i.provider = $1 and i.issuer = $3 and ($2::uuid is null or b.tenant_id = $2) and ${which}
               and b.provider = i.provider and b.account_id = i.account_id and b.created_at <= $8
               and coalesce(b.upstream_subject, i.subject) = i.subject
               and (b.ended_at is null or (b.ended_reason = 'replaced' and b.replaced_by is not null))
               and u.tenant_id = b.tenant_id and u.account_id = b.account_id
             returning b.tenant_id as "tenantId", b.id, u.sub, b.replaced_by is not null as "isReplaced"`,
      values: [provider, tenantId, issuer, now, subject, sid, reason, until],
    },
  )
}

/** The users whose account is linked to an identity. `tenantId` null: in every tenant. */
export const linkedUsers = (tx: Transaction, key: IdentityKey, tenantId: string | null) =>
  allRows<{ tenantId: string; sub: string; accountId: string }>(tx, {
    name: 'upstream_identity.users',
    text: `select u.tenant_id as "tenantId", u.sub, u.account_id as "accountId"
           from upstream_identities i join tenant_users u on u.account_id = i.account_id
           where i.provider = $1 and i.issuer = $2 and i.subject = $3
             and ($4::uuid is null or u.tenant_id = $4)`,
    values: [key.provider, key.issuer, key.subject, tenantId],
  })

/** Deletes the link of an identity that its provider purged, also if it is the only way in. */
export const purgeIdentity = (tx: Transaction, key: IdentityKey) =>
  isChanged(tx, {
    name: 'upstream_identity.purge',
    text: `delete from upstream_identities where provider = $1 and issuer = $2 and subject = $3`,
    values: [key.provider, key.issuer, key.subject],
  })

type IdentityRow = {
  readonly id: string
  /** Null: a provider of the deployment. */
  readonly tenantId: string | null
  readonly provider: string
  readonly issuer: string
  readonly email: string | null
  readonly createdAt: Date
  readonly lastUsedAt: Date
}

/** The identities linked to an account: at providers of the deployment and of this tenant. */
export const listIdentities = (tx: Transaction, tenantId: string, accountId: string) =>
  allRows<IdentityRow>(tx, {
    name: 'upstream_identity.list',
    text: `select id, tenant_id as "tenantId", provider, issuer, email, created_at as "createdAt",
             last_used_at as "lastUsedAt"
           from upstream_identities
           where account_id = $1 and (tenant_id is null or tenant_id = $2)
           order by created_at, id`,
    values: [accountId, tenantId],
  })

/**
 * Removes a linked identity, unless it is the account's only sign-in method, and ends the sessions it opened in any
 * tenant. Locks the account first, so concurrent removals of the last two identities leave one.
 */
export async function removeIdentity(
  tx: Transaction,
  tenantId: string,
  accountId: string,
  id: string,
  now: Date,
): Promise<'removed' | 'last' | 'unknown'> {
  const verdict = await judgeRemoval(tx, accountId, { kind: 'federated', id, tenantId })
  if (verdict !== 'removable') return verdict
  await ending(tx, 'browser_session.ended').query({
    name: 'upstream_identity.remove',
    text: `with gone as (
             delete from upstream_identities where account_id = $1 and id = $2 returning provider)
           update browser_sessions b set ended_at = $3, ended_reason = 'unlinked'
           from tenant_users u
           where u.account_id = $1 and b.tenant_id = u.tenant_id and b.account_id = $1
             and b.provider in (select provider from gone) and b.ended_at is null
           returning b.tenant_id as "tenantId", b.id`,
    values: [accountId, id, now],
  })
  return 'removed'
}
