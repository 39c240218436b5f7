/**
 * Users of a tenant. A tenant user is a membership, not the account: pairwise subject, tenant-local status, roles and
 * metadata. A fixture user is an ordinary one on a reserved mail domain, for tests.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Email } from '../../domain/email.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../domain/idempotency.js'
import type { OrganizationId, TenantId } from '../../domain/ids.js'
import type { ListCursor, Listed } from '../../domain/paging.js'
import type { Profile } from '../../domain/people/profile-claims.js'
import type { SessionSeen } from '../sign-in/sessions/protocol.js'

export type UsersProtocol = {
  /**
   * Generates a fixture user and hashes its password. Nothing is stored: the caller inserts it in its own transaction.
   */
  prepareFixture: Ask<Record<never, never>, FixturePrepared | Busy>
  /** Mints another fixture user of a sandbox; at most five are active. */
  mintFixtureUser: Ask<
    MintFixture,
    FixtureMinted | NotSandbox | FixtureLimit | Busy | IdempotencyRefused
  >
  /** Sets a new password for a fixture user; without an id, for the oldest active one. */
  rotateFixtureUserPassword: Ask<
    RotateFixture,
    FixtureRotated | UnknownUser | RolesBeyondCaller | Busy
  >
  listTenantUsers: Ask<ListUsers, Listed<UserRecord, UserCursor>>
  /** All users that a filter finds, newest first. */
  exportTenantUsers: Ask<
    ExportUsers,
    { readonly tag: 'exported'; readonly users: readonly ExportedUser[] }
  >
  /** Adds the people of a CSV file, each in its own transaction. A trial changes nothing. */
  importTenantUsers: Ask<
    ImportUsers,
    | {
        readonly tag: 'imported'
        readonly isTrial: boolean
        readonly lines: readonly ImportedLine[]
      }
    | { readonly tag: 'unreadable'; readonly detail: string }
  >
  readTenantUser: Ask<OneUser, UserFound | UnknownUser>
  createTenantUser: Ask<
    CreateUser,
    | UserCreated
    | UserExists
    | PasswordUnacceptable
    | PasswordRefused
    | Busy
    | IdempotencyRefused
    | MailThrottled
  >
  /** Resends the invitation of a user who has not accepted yet. */
  sendTenantUserInvitation: Ask<
    OneUser,
    | UserFound
    | UnknownUser
    | { tag: 'not_invited' }
    | { tag: 'absent' }
    | AddressRefused
    | MailThrottled
  >
  updateTenantUser: Ask<
    UpdateUser,
    UserFound | UnknownUser | RolesBeyondCaller | OwnerAbove | LastOwner
  >
  /** Ends the user's sessions in the tenant immediately. */
  suspendTenantUser: Ask<OneUser, UserFound | UnknownUser | OwnerAbove | LastOwner>
  reactivateTenantUser: Ask<
    OneUser,
    | UserFound
    | UnknownUser
    | FixtureLimit
    | OwnerAbove
    /** An operator of the deployment suspended the account. The tenant cannot lift that. */
    | { readonly tag: 'account_suspended' }
  >
  removeTenantUser: Ask<OneUser, { tag: 'removed' } | UnknownUser | OwnerAbove | LastOwner>
  /** Ends the sessions in the tenant, makes the password unusable and mails a link that sets a new one. */
  resetTenantUserPassword: Ask<OneUser, UserReset | UnknownUser | ResetRefused>
  /** Ends the sessions in the tenant and removes passkeys, authenticator app and recovery codes. */
  resetTenantUserFactors: Ask<OneUser, UserReset | UnknownUser | ResetRefused>
  /** The open browser sessions of the user in the tenant, most recently used first. */
  listTenantUserSessions: Ask<OneUser, UserSessions | UnknownUser>
  /** Ends one of them. Tokens that were issued in it end too. */
  revokeTenantUserSession: Ask<
    EndUserSession,
    | { readonly tag: 'session_ended' }
    | UnknownUser
    | OwnerAbove
    | { readonly tag: 'unknown_session' }
  >
}

export type FixturePrepared = {
  tag: 'prepared'
  /** The local part. `fixtureEmail` builds the address. */
  mailbox: string
  displayName: string
  /** Shown once, never stored. */
  password: string
  /** PHC string. */
  passwordHash: string
}
/** The password workers are busy; try again. */
export type Busy = { tag: 'busy' }

export type MintFixture = {
  readonly caller: Caller
  readonly idempotency: IdempotencyClaim | null
}
export type FixtureMinted = {
  readonly tag: 'minted'
  readonly id: string
  readonly email: string
  /** Shown once: null on a replay. */
  readonly password: string | null
  readonly status: 'active'
  readonly createdAt: Date
  readonly replayed: boolean
}
export type NotSandbox = { readonly tag: 'not_sandbox' }
export type FixtureLimit = { readonly tag: 'fixture_user_limit' }
export type RotateFixture = { readonly caller: Caller; readonly userId: string | null }
export type FixtureRotated = {
  readonly tag: 'rotated'
  readonly id: string
  readonly email: string
  readonly password: string
  readonly rotatedAt: Date
}

export type UserStatus = 'invited' | 'pre_provisioned' | 'active' | 'suspended' | 'removed'
export type UserRecord = {
  readonly id: string
  readonly tenantId: TenantId
  readonly sub: string
  readonly email: string
  readonly emailVerified: boolean
  readonly displayName: string
  /** The tenant's own values, otherwise the account's values once the user has signed in. */
  readonly profile: Profile
  readonly status: UserStatus
  readonly roles: readonly string[]
  readonly organizationIds: readonly OrganizationId[]
  readonly fixture: boolean
  readonly metadata: Readonly<Record<string, unknown>>
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly lastLoginAt: Date | null
}

export const USER_SORTS = ['email', 'name', 'created_at', 'last_sign_in_at'] as const
/** `key`: of the last row seen, where the list is not newest first. */
export type UserCursor = ListCursor & { readonly key?: string | undefined }
type ExportUsers = Pick<ListUsers, 'tenantId' | 'status' | 'email' | 'q' | 'role'>
export type ExportedUser = Pick<
  UserRecord,
  'email' | 'displayName' | 'status' | 'roles' | 'createdAt'
>
/** People of one file. Each costs a transaction, and a message. */
export const IMPORT_LINES_MAX = 1_000
export const IMPORT_REFUSALS = [
  'email',
  'name',
  'roles',
  'roles_beyond_caller',
  'mail_throttled',
] as const
export type ImportRefusal = (typeof IMPORT_REFUSALS)[number]
export type ImportUsers = {
  readonly caller: Caller
  /** With a first line that names the columns: email, name and roles. Others do not count. */
  readonly csv: string
  readonly isTrial: boolean
}
export type ImportedLine = {
  readonly line: number
  readonly email: string
  /** `create`: the tenant answers for the address, so the person need not accept. */
  readonly outcome: 'invite' | 'create' | 'exists' | 'refused'
  readonly reason: ImportRefusal | null
}
export type ListUsers = {
  readonly tenantId: TenantId
  /** Null: all users except removed ones. */
  readonly status: UserStatus | null
  readonly email: Email | null
  /** Begins the name or the address. */
  readonly q: string | null
  readonly role: string | null
  /** Null: newest first. */
  readonly order: {
    readonly by: (typeof USER_SORTS)[number]
    readonly descending: boolean
  } | null
  /** 1 to 200. */
  readonly limit: number
  readonly after: UserCursor | null
}

export type OneUser = { readonly caller: Caller; readonly userId: string }
export type UserReset = { readonly tag: 'reset' }
/** Nothing was changed. */
export type ResetRefused =
  | OwnerAbove
  /** The sign-in of the caller is not a recent one with two factors. */
  | { readonly tag: 'step_up'; readonly maxAgeSecs: number }
  /** The account reaches places for which this tenant does not answer. The person got a message. */
  | { readonly tag: 'account_shared' }
  /** Invited or suspended. */
  | { readonly tag: 'user_not_active'; readonly status: UserStatus }
  | AddressRefused
  | MailThrottled
export type EndUserSession = OneUser & { readonly sessionId: string }
export type UserSessions = { readonly tag: 'sessions'; readonly sessions: readonly SessionSeen[] }
export type UserFound = { readonly tag: 'found'; readonly user: UserRecord }
/** Not found, removed, or of another tenant. */
export type UnknownUser = { readonly tag: 'unknown_user' }

export type CreateUser = {
  readonly caller: Caller
  readonly email: Email
  readonly displayName: string | undefined
  readonly profile: ProfileUpdate
  /** With a password the user is pre-provisioned, otherwise invited. */
  readonly password: string | undefined
  readonly idempotency: IdempotencyClaim | null
}
export type UserCreated = {
  readonly tag: 'created'
  readonly user: UserRecord
  readonly replayed: boolean
}
/** The mail limit of the tenant or the address is reached. Nothing was done. */
export type MailThrottled = { readonly tag: 'mail_throttled'; readonly retryAfterSecs: number }
/** The tenant cannot send mail to the address. A sandbox sends to reserved names, verified domains and its owners. */
export type AddressRefused = { readonly tag: 'address_refused' }
export type UserExists = { readonly tag: 'user_exists' }
/** Found in breaches, or the breached-password check is unavailable. */
export type PasswordRefused =
  | { readonly tag: 'password_common' }
  | { readonly tag: 'password_breached' }
  | { readonly tag: 'password_unchecked' }
export type PasswordUnacceptable = { readonly tag: 'password_unacceptable' }

export type UpdateUser = OneUser & {
  /** Null: use the account's name again. */
  readonly displayName: string | null | undefined
  readonly roles: readonly string[] | undefined
  readonly metadata: Readonly<Record<string, unknown>> | undefined
  readonly profile: ProfileUpdate
}
/**
 * The tenant's own profile claims, valid (actors/domain/people/profile-claims.ts). Null uses the value of the account again.
 * A changed phone number is unverified unless the update says `phone_number_verified: true`.
 */
export type ProfileUpdate = {
  readonly [claim in keyof Profile]?: Profile[claim] | null | undefined
}
/** The roles would grant more than the caller holds. */
export type RolesBeyondCaller = {
  readonly tag: 'roles_beyond_caller'
  readonly roles: readonly string[]
}

/** The user is an owner, and the caller may not manage owners. */
/** The change would leave the tenant without an owner who can sign in. */
export type LastOwner = { readonly tag: 'last_owner' }
export type OwnerAbove = { readonly tag: 'owner_above_caller' }

/** Under a `.test` domain (RFC 6761 section 6.2): mail to it is not delivered. */
export function fixtureEmail(mailbox: string, tenantSlug: string): Email {
  return `${mailbox}@${tenantSlug}.test` as Email
}

export const users = address<UsersProtocol>('users', {
  idempotent: [
    'prepareFixture',
    'listTenantUsers',
    'exportTenantUsers',
    'readTenantUser',
    'listTenantUserSessions',
  ],
})
