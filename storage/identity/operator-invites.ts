/** Invite links that make the user who accepts them an operator of an organization. Only hashes are stored. */
import { execute, firstRow, type Transaction } from '../platform/sql.js'
import type { Email } from '../../actors/domain/email.js'

export type NewOperatorInvite = {
  tenantId: string
  id: string
  organizationId: string
  tokenSha256: Uint8Array
  /** Null: created by the CLI. */
  invitedByAgentId: string | null
  /** Default: owner. */
  role?: UsedInvite['role'] | undefined
  /** What the user is appointed to in the control plane. Default: nothing. */
  appointedScopes?: readonly string[] | undefined
  createdAt: Date
  expiresAt: Date
}

export const insertOperatorInvite = (tx: Transaction, invite: NewOperatorInvite) =>
  execute(tx, {
    name: 'operator_invite.insert',
    text: `insert into operator_invites (tenant_id, id, organization_id, token_sha256,
             invited_by_agent_id, created_at, expires_at, role, appointed_scopes)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    values: [
      invite.tenantId,
      invite.id,
      invite.organizationId,
      Buffer.from(invite.tokenSha256),
      invite.invitedByAgentId,
      invite.createdAt,
      invite.expiresAt,
      invite.role ?? 'owner',
      invite.appointedScopes ?? [],
    ],
  })

type OperatorInviteRow = { organizationName: string; expiresAt: Date; usedAt: Date | null }

/** Finds an invite by its token, before its tenant is known. */
export const findOperatorInvite = (tx: Transaction, tokenSha256: Uint8Array) =>
  firstRow<OperatorInviteRow>(tx, {
    name: 'operator_invite.find',
    text: `select o.name as "organizationName", i.expires_at as "expiresAt", i.used_at as "usedAt"
           from operator_invites i join organizations o on o.id = i.organization_id
           where i.token_sha256 = $1`,
    values: [Buffer.from(tokenSha256)],
  })

/** An invite that was just used up. */
export type UsedInvite = {
  readonly tenantId: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
  readonly organizationId: string
  readonly organizationName: string
  readonly role: 'owner' | 'admin' | 'member'
  /** What the user is appointed to in the control plane. */
  readonly appointedScopes: readonly string[]
}

/** Uses up an invite, once. Its tenant is unknown before. */
export const useOperatorInvite = (tx: Transaction, tokenSha256: Uint8Array, now: Date) =>
  firstRow<UsedInvite>(tx, {
    name: 'operator_invite.use',
    text: `update operator_invites i set used_at = $2, letters = '{}'
           from organizations o, tenants t
           where i.token_sha256 = $1 and i.used_at is null and i.expires_at > $2
             and o.id = i.organization_id and t.id = i.tenant_id and t.status = 'active'
           returning i.tenant_id as "tenantId", t.settings as "tenantSettings",
             i.organization_id as "organizationId", o.name as "organizationName", i.role,
             i.appointed_scopes as "appointedScopes"`,
    values: [Buffer.from(tokenSha256), now],
  })

/** How many addresses may be tried with one invite. */
const ADDRESSES_MAX = 5

/** What is stored of an invite message until it is accepted. Hashes are SHA-256 in hex. */
export type InviteMessage = {
  /** Hash of the secret in the link. */
  readonly token: string
  readonly email: Email
  readonly displayName: string
  /** The password chosen with the address. Accepted only in the browser that chose it. */
  readonly phc: string
  readonly browser: string
}

/** A valid invite, with what its message and its page show. */
export type InvitePlace = Omit<UsedInvite, 'role' | 'appointedScopes'> & {
  readonly id: string
  readonly tenantName: string
  readonly expiresAt: Date
}

const PLACE = `i.id, i.tenant_id as "tenantId", t.name as "tenantName", t.settings as "tenantSettings",
             i.organization_id as "organizationId", o.name as "organizationName",
             i.expires_at as "expiresAt"`
const OF_INVITE = `o.id = i.organization_id and t.id = i.tenant_id and i.used_at is null`

/**
 * Stores an invite message, replacing one to the same address. Undefined when the invite is invalid, or was tried with
 * five other addresses.
 */
export const keepInviteLetter = (
  tx: Transaction,
  tokenSha256: Uint8Array,
  addressSha256: string,
  letter: InviteMessage,
  now: Date,
) =>
  firstRow<InvitePlace>(tx, {
    name: 'operator_invite.keep_letter',
    text: `update operator_invites i set letters = i.letters || jsonb_build_object($3::text, $4::jsonb)
           from organizations o, tenants t
           where i.token_sha256 = $1 and i.expires_at > $2 and ${OF_INVITE}
             and (i.letters ? $3::text
               or (select count(*) from jsonb_object_keys(i.letters)) < ${ADDRESSES_MAX})
           returning ${PLACE}`,
    values: [Buffer.from(tokenSha256), now, addressSha256, JSON.stringify(letter)],
  })

/** The message of a link and its invite, while it can be accepted. The invite is named by its id. */
export const findInviteMessage = (
  tx: Transaction,
  inviteId: string,
  tokenSha256: string,
  now: Date,
) =>
  firstRow<InvitePlace & { letter: InviteMessage }>(tx, {
    name: 'operator_invite.find_letter',
    text: `select ${PLACE}, l.value as letter
           from operator_invites i, organizations o, tenants t, jsonb_each(i.letters) l
           where i.id = $1 and i.expires_at > $2 and ${OF_INVITE} and l.value ->> 'token' = $3`,
    values: [inviteId, now, tokenSha256],
  })

/** Uses up an invite by one of its messages, once. */
export const useInviteMessage = (
  tx: Transaction,
  { tenantId, id }: { readonly tenantId: string; readonly id: string },
  tokenSha256: string,
  now: Date,
) =>
  firstRow<Pick<UsedInvite, 'role' | 'appointedScopes'>>(tx, {
    name: 'operator_invite.use_letter',
    text: `update operator_invites i set used_at = $3, letters = '{}'
           where i.tenant_id = $1 and i.id = $2 and i.used_at is null and i.expires_at > $3
             and exists (select from jsonb_each(i.letters) l where l.value ->> 'token' = $4)
           returning i.role, i.appointed_scopes as "appointedScopes"`,
    values: [tenantId, id, now, tokenSha256],
  })
