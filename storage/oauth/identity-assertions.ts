/** The users for whom trusted issuers speak (docs/guides/oauth/identity-assertions.md). */
import type { Email } from '../../actors/domain/email.js'
import { keysIn, OWN_FIRST } from '../identity/email-keys.js'
import type { TenantUserStatus } from '../identity/tenant-users.js'
import { changedRows, firstRow, isChanged, type Transaction } from '../platform/sql.js'

/** A user of the tenant as an assertion finds them. */
export type AssertedUser = {
  readonly id: string
  readonly sub: string
  /** The user and the account are active. */
  readonly active: boolean
}

const USER = `u.id, u.sub, u.status = 'active' and u.account_active as active`

/** The user that an earlier assertion was linked to. */
export const findLinkedUser = (
  tx: Transaction,
  tenantId: string,
  issuerId: string,
  subject: string,
) =>
  firstRow<AssertedUser>(tx, {
    name: 'identity_assertion_link.user',
    text: `select ${USER} from identity_assertion_links l
             join tenant_users u on u.tenant_id = l.tenant_id and u.id = l.tenant_user_id
           where l.tenant_id = $1 and l.trusted_issuer_id = $2 and l.subject = $3`,
    values: [tenantId, issuerId, subject],
  })

/** The user who signed in through an identity provider of the tenant with this issuer. The transaction crosses tenants. */
export const findSignedInUser = (
  tx: Transaction,
  tenantId: string,
  issuer: string,
  subject: string,
) =>
  firstRow<AssertedUser>(tx, {
    name: 'identity_assertion_link.signed_in',
    text: `select ${USER} from upstream_identities i
             join tenant_users u on u.tenant_id = $1 and u.account_id = i.account_id
           where i.provider = any(array(select p.id::text from sso_providers p where p.tenant_id = $1))
             and i.issuer = $2 and i.subject = $3`,
    values: [tenantId, issuer, subject],
  })

export const findUserBySub = (tx: Transaction, tenantId: string, sub: string) =>
  firstRow<AssertedUser>(tx, {
    name: 'identity_assertion_link.by_sub',
    text: `select ${USER} from tenant_users u where u.tenant_id = $1 and u.sub = $2`,
    values: [tenantId, sub],
  })

/** The account of an address, and its user in the tenant. */
export type AddressedAccount = {
  readonly accountId: string
  /** Its owner has shown control of the mailbox. */
  readonly proved: boolean
  readonly accountActive: boolean
  readonly id: string | null
  readonly sub: string | null
  readonly status: TenantUserStatus | null
}

/**
 * The account that an address means in a tenant. A fixture user has no mailbox: the tenant made the account. The
 * transaction crosses tenants.
 */
export const findAddressed = (tx: Transaction, tenantId: string, email: Email) =>
  firstRow<AddressedAccount>(tx, {
    name: 'identity_assertion_link.addressed',
    text: `select a.id as "accountId", a.email_verified or coalesce(u.fixture, false) as proved,
             a.status = 'active' as "accountActive", u.id, u.sub, u.status
           from accounts a left join tenant_users u on u.tenant_id = $2 and u.account_id = a.id
           where a.email_key in ${keysIn('$1', '$2')} ${OWN_FIRST}`,
    values: [email, tenantId],
  })

/** Links a subject of an issuer to a user. False if it is linked already. */
export const insertLink = (
  tx: Transaction,
  link: {
    readonly tenantId: string
    readonly issuerId: string
    readonly subject: string
    readonly userId: string
    readonly now: Date
  },
) =>
  isChanged(tx, {
    name: 'identity_assertion_link.insert',
    text: `insert into identity_assertion_links (tenant_id, trusted_issuer_id, subject, tenant_user_id, created_at)
           values ($1, $2, $3, $4, $5) on conflict do nothing`,
    values: [link.tenantId, link.issuerId, link.subject, link.userId, link.now],
  })

/** False if the subject is not linked. */
export const removeLink = (
  tx: Transaction,
  tenantId: string,
  issuerId: string,
  subject: string,
): Promise<boolean> =>
  isChanged(tx, {
    name: 'identity_assertion_link.remove',
    text: `delete from identity_assertion_links
           where tenant_id = $1 and trusted_issuer_id = $2 and subject = $3`,
    values: [tenantId, issuerId, subject],
  })

type SignOut = {
  readonly tenantId: string
  readonly issuerId: string
  readonly sub: string
  /** Null: in every tenant of the issuer. */
  readonly tenant: string | null
  readonly issuedAtSecs: number
  readonly now: Date
}

/**
 * Revokes the unexpired tokens that assertions of an issuer gave for a subject before it signed out. Each is found by its
 * audit record, which is committed before the token is issued. Returns how many.
 */
export const revokeAssertedTokens = (tx: Transaction, s: SignOut) =>
  changedRows(tx, {
    name: 'identity_assertion.revoke_tokens',
    text: `insert into revoked_tokens (tenant_id, id, revoked_at, expires_at)
           select tenant_id, (data ->> 'token_id')::uuid, $6, (data ->> 'expires_at')::timestamptz
           from audit_events
           where tenant_id = $1 and type = 'auth.identity_assertion.accepted'
             and occurred_at > $6::timestamptz - interval '1 day' and resource ->> 'id' = $2
             and data ->> 'sub' = $3 and ($4::text is null or data ->> 'tenant' = $4)
             and (data ->> 'issued_at')::numeric <= $5 and (data ->> 'expires_at')::timestamptz > $6
           on conflict do nothing`,
    values: [s.tenantId, s.issuerId, s.sub, s.tenant, s.issuedAtSecs, s.now],
  })
