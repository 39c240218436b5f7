/**
 * The control plane: organizations, their environments, and tokens for them. An organization the caller is not a member
 * of is reported as not found.
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Email } from '../../../domain/email.js'
import type { Caller } from '../../../domain/audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../../domain/idempotency.js'
import type { OrganizationId, TenantId } from '../../../domain/ids.js'
import type { OrganizationRole } from '../../../domain/scopes.js'
import type { Environment } from '../../../domain/tenants/tenancy.js'
import type { Listed, Page } from '../../../domain/paging.js'
import type { NameRefused } from '../../../domain/shown-names.js'

export type OrganizationsProtocol = {
  listOrganizations: Ask<ListOrganizations, Listed<OrganizationRecord> | NotOperator>
  createOrganization: Ask<
    CreateOrganization,
    OrganizationCreated | NotOperator | SlugRefused | IdempotencyRefused | OrganizationsOff
  >
  /** A control-plane token bound to one organization. */
  issueOrganizationToken: Ask<
    OfOrganization,
    OrganizationToken | NotOperator | UnknownOrganization | Suspended | PolicyRefusal
  >
  listTenants: Ask<ListTenants, Listed<TenantRecord> | NotOperator | UnknownOrganization>
  createTenant: Ask<
    CreateTenant,
    | TenantCreated
    | NotOperator
    | UnknownOrganization
    | Suspended
    | RoleTooLow
    | SlugRefused
    | LimitReached
    | OrganizationsOff
    | IdempotencyRefused
  >
  /** Turns a sandbox into a production environment, once. Its fixture users and secrets end. */
  activateTenant: Ask<ActivateTenant, TenantActivated | ActivationRefused | IdempotencyRefused>
  readOrganization: Ask<
    OfOrganization,
    OrganizationFound | NotOperator | UnknownOrganization | RoleTooLow
  >
  updateOrganization: Ask<
    OfOrganization & RecordChange,
    OrganizationFound | NameRefused | NotOperator | UnknownOrganization | RoleTooLow
  >
  readTenant: Ask<OfTenant, TenantFound | NotOperator | UnknownTenant | RoleTooLow>
  updateTenant: Ask<
    OfTenant & RecordChange,
    TenantFound | NameRefused | NotOperator | UnknownTenant | RoleTooLow
  >

  /** An organization is suspended with everything in it. For operators of the deployment. */
  suspendOrganization: Ask<ById, OrganizationFound | UnknownOrganization>
  reactivateOrganization: Ask<ById, OrganizationFound | UnknownOrganization>
  suspendTenant: Ask<ById, TenantFound | UnknownTenant>
  reactivateTenant: Ask<ById, TenantFound | UnknownTenant>
  suspendAccount: Ask<ById, AccountFound | UnknownAccount>
  reactivateAccount: Ask<ById, AccountFound | UnknownAccount>
  /** All organizations and environments of the deployment. For its operators. */
  listDeploymentOrganizations: Ask<Page, Listed<FoundOrganization>>
  listDeploymentTenants: Ask<Page, Listed<TenantRecord>>
  findAccounts: Ask<{ readonly email: Email }, AccountsListed>
  readAccount: Ask<{ readonly accountId: string }, AccountFound | UnknownAccount>
  listOrganizationMembers: Ask<
    OfOrganization & Page,
    Listed<MemberRecord> | NotOperator | UnknownOrganization | RoleTooLow
  >
  /** The events of the organization after a number, in order. */
  listOrganizationEvents: Ask<
    OfOrganization & { readonly after: number; readonly limit: number },
    OrganizationEventsListed | NotOperator | UnknownOrganization | RoleTooLow
  >
  addOrganizationMember: Ask<
    AddMember,
    | MemberFound
    | NotOperator
    | UnknownOrganization
    | RoleTooLow
    | { readonly tag: 'unknown_agent' }
    | { readonly tag: 'is_member' }
    | LimitReached
    | OrganizationsOff
    | IdempotencyRefused
  >
  updateOrganizationMember: Ask<
    OfMember & { readonly role: OrganizationRole },
    MemberFound | NotOperator | UnknownOrganization | UnknownMember | RoleTooLow | LastOwner
  >
  removeOrganizationMember: Ask<
    OfMember,
    | { readonly tag: 'removed' }
    | NotOperator
    | UnknownOrganization
    | UnknownMember
    | RoleTooLow
    | LastOwner
  >
  /** The limits of an organization, and how much of them is used. */
  readOrganizationPolicy: Ask<
    OfOrganization,
    PolicyFound | NotOperator | UnknownOrganization | RoleTooLow
  >
  updateOrganizationPolicy: Ask<
    OfOrganization & PolicyChange,
    PolicyFound | NotOperator | UnknownOrganization | RoleTooLow | LimitTooHigh
  >
  /** Offers a tenant to another organization of the caller. It moves when an owner there accepts. */
  startTenantTransfer: Ask<
    StartTransfer,
    | TransferFound
    | NotOperator
    | UnknownTenant
    | UnknownOrganization
    | RoleTooLow
    | { readonly tag: 'transfer_pending' }
    | Suspended
    | OrganizationsOff
    | IdempotencyRefused
  >
  listTenantTransfers: Ask<
    OfOrganization & Page,
    Listed<TransferRecord> | NotOperator | UnknownOrganization | RoleTooLow
  >
  acceptTenantTransfer: Ask<
    OfTransfer,
    TransferFound | TransferRefused | LimitReached | Suspended | OrganizationsOff
  >
  /** Cancels a transfer from the organization, or declines one to it. */
  closeTenantTransfer: Ask<OfTransfer, { readonly tag: 'closed' } | TransferRefused>
  /** A token of one of the organization's tenants, with the caller's rights there. */
  switchTenant: Ask<
    OfOrganization & { readonly tenantId: string },
    | TenantToken
    | NotOperator
    | UnknownOrganization
    | { tag: 'unknown_tenant' }
    | Suspended
    | PolicyRefusal
  >
}

/** An access policy of the tenant refuses the token. */
export type PolicyRefusal = { readonly tag: 'policy_denied' }

export type OrganizationRecord = {
  readonly id: OrganizationId
  readonly name: string
  readonly slug: string
  readonly status: 'active' | 'suspended'
  /** The caller's role. */
  readonly role: OrganizationRole
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type TenantRecord = {
  readonly id: TenantId
  readonly organizationId: OrganizationId
  readonly name: string
  readonly slug: string
  readonly environment: Environment
  readonly status: 'active' | 'suspended'
  readonly supportContact: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

export type ListOrganizations = { readonly caller: Caller } & Page

export type CreateOrganization = {
  readonly caller: Caller
  readonly name: string
  /** Generated from the name when absent. */
  readonly slug: string | undefined
  /** The caller's network. Null where it is not counted. */
  readonly network: string | null
  readonly idempotency: IdempotencyClaim | null
}
export type OrganizationCreated = {
  readonly tag: 'created'
  readonly organization: OrganizationRecord
  readonly replayed: boolean
}

export type OfOrganization = { readonly caller: Caller; readonly organizationId: string }
export type OrganizationToken = {
  readonly tag: 'issued'
  readonly accessToken: string
  readonly tokenType: 'Bearer' | 'DPoP'
  readonly expiresInSecs: number
  readonly scopes: readonly string[]
  readonly organizationId: OrganizationId
}
export type TenantToken = OrganizationToken & {
  readonly tenantId: TenantId
  readonly tenantSlug: string
}

export type ListTenants = OfOrganization & Page

export type CreateTenant = OfOrganization & {
  readonly name: string
  /** Generated from the name when absent. */
  readonly slug: string | undefined
  readonly environment: Environment
  readonly supportContact: string | undefined
  readonly idempotency: IdempotencyClaim | null
}
export type TenantCreated = {
  readonly tag: 'created'
  readonly tenant: TenantRecord
  readonly replayed: boolean
}

export type ActivateTenant = {
  readonly caller: Caller
  readonly idempotency: IdempotencyClaim | null
}
export type RotatedSecret = {
  readonly applicationId: string
  /** Null in a replay: shown once. */
  readonly clientSecret: string | null
}
export type TenantActivated = {
  readonly tag: 'activated'
  readonly tenant: TenantRecord
  readonly retiredFixtureUsers: readonly string[]
  readonly rotated: readonly RotatedSecret[]
  readonly replayed: boolean
}
export type ActivationRefused =
  /** The caller is not a user at AAL2 or higher. */
  | { readonly tag: 'step_up_needed' }
  /** The caller is a fixture user. */
  | { readonly tag: 'fixture_caller' }
  | { readonly tag: 'already_production' }
  /** The token belongs to the control plane. */
  | { readonly tag: 'no_environment' }

/** Absent members stay unchanged. Null removes the contact. */
export type RecordChange = {
  readonly name: string | undefined
  readonly supportContact: string | null | undefined
}
/** `role` is the caller's; null for an operator of the deployment who is not a member. */
export type FoundOrganization = Omit<OrganizationRecord, 'role'> & {
  readonly role: OrganizationRole | null
  readonly supportContact: string | null
}
export type OrganizationFound = { readonly tag: 'found'; readonly organization: FoundOrganization }
export type OfTenant = { readonly caller: Caller; readonly tenantId: string }
export type TenantFound = { readonly tag: 'found'; readonly tenant: TenantRecord }

/** Names an organization, a tenant or an account. */
export type ById = { readonly caller: Caller; readonly id: string }

export type AccountRecord = {
  readonly id: string
  readonly email: string
  readonly emailVerified: boolean
  readonly status: 'active' | 'suspended'
  readonly tenants: readonly {
    readonly tenantId: TenantId
    readonly tenantSlug: string
    readonly tenantUserId: string
    readonly sub: string
    readonly status: string
  }[]
  readonly createdAt: Date
}
export type AccountFound = { readonly tag: 'found'; readonly account: AccountRecord }
export type AccountsListed = { readonly tag: 'listed'; readonly accounts: readonly AccountRecord[] }

export type MemberRecord = {
  readonly id: string
  readonly organizationId: OrganizationId
  readonly kind: 'user' | 'agent'
  readonly agentId: string | null
  /** The account's user in the organization's oldest environment; null if the account has none there. */
  readonly userId: string | null
  readonly email: string | null
  readonly displayName: string
  readonly role: OrganizationRole
  readonly status: 'active' | 'invited'
  readonly createdAt: Date
  /** When an invitation ends; null for members. */
  readonly expiresAt: Date | null
}
export type AddMember = OfOrganization & {
  readonly who: { readonly email: Email } | { readonly agentId: string }
  readonly role: OrganizationRole
  readonly idempotency: IdempotencyClaim | null
}
export type OfMember = OfOrganization & { readonly memberId: string }
export type MemberFound = {
  readonly tag: 'member'
  readonly member: MemberRecord
  readonly replayed: boolean
}
export type OrganizationEventRecord = {
  readonly organizationId: OrganizationId
  readonly sequence: number
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
  readonly occurredAt: Date
}
export type OrganizationEventsListed = {
  readonly tag: 'listed'
  readonly events: readonly OrganizationEventRecord[]
  /** Value of `after` for the next call. */
  readonly nextAfter: number
}
/** The limits in force, the organization's own or the deployment's. */
export type OrganizationPolicy = {
  readonly maxMembers: number
  readonly maxTenants: number
  readonly invitationTtlSecs: number
  /** Members and open invitations. */
  readonly members: number
  readonly tenants: number
}
export type PolicyFound = { readonly tag: 'policy'; readonly policy: OrganizationPolicy }
/** Absent members stay unchanged. Null: the limit of the deployment. */
export type PolicyChange = {
  readonly maxMembers: number | null | undefined
  readonly maxTenants: number | null | undefined
  readonly invitationTtlSecs: number | null | undefined
}
/** An owner may lower the limits of the deployment. Only its operators raise them. */
export type LimitTooHigh = {
  readonly tag: 'limit_too_high'
  readonly member: 'max_members' | 'max_tenants' | 'invitation_ttl_secs'
  readonly most: number
}
export type LimitReached = {
  readonly tag: 'limit_reached'
  readonly what: 'members' | 'environments'
  readonly most: number
}
/** `organizations.enabled` is false, and the caller is not an operator of the deployment. */
export type OrganizationsOff = { readonly tag: 'organizations_off' }

export type StartTransfer = OfTenant & {
  readonly organizationId: string
  readonly idempotency: IdempotencyClaim | null
}
export type OfTransfer = OfOrganization & { readonly transferId: string }
export type TransferRecord = {
  readonly id: string
  readonly tenantId: TenantId
  readonly tenantName: string
  readonly fromOrganizationId: OrganizationId
  readonly fromOrganizationName: string
  readonly toOrganizationId: OrganizationId
  readonly toOrganizationName: string
  readonly status: 'pending' | 'accepted' | 'canceled' | 'declined' | 'expired'
  readonly createdAt: Date
  readonly expiresAt: Date
  readonly decidedAt: Date | null
}
export type TransferFound = {
  readonly tag: 'transfer'
  readonly transfer: TransferRecord
  readonly replayed: boolean
}
export type TransferRefused =
  | NotOperator
  | UnknownOrganization
  | RoleTooLow
  | { readonly tag: 'unknown_transfer' }
  /** Accepted, canceled, declined or expired before. */
  | { readonly tag: 'transfer_closed'; readonly status: TransferRecord['status'] }

/** An organization keeps at least one active owner. */
export type LastOwner = { readonly tag: 'last_owner' }
export type UnknownMember = { readonly tag: 'unknown_member' }
/** Not found, or the caller has no access. */
export type UnknownTenant = { readonly tag: 'unknown_tenant' }
export type UnknownAccount = { readonly tag: 'unknown_account' }

/** The token is not a control-plane token, or is bound to an organization where an unbound one is required. */
export type NotOperator = { readonly tag: 'not_operator'; readonly detail: string }
/** Not found, or the caller has no access. */
export type UnknownOrganization = { readonly tag: 'unknown_organization' }
export type Suspended = { readonly tag: 'suspended'; readonly what: 'organization' | 'tenant' }
export type RoleTooLow = { readonly tag: 'role_too_low'; readonly role: OrganizationRole }
export type SlugRefused =
  | { readonly tag: 'slug_taken' }
  | { readonly tag: 'slug_invalid'; readonly detail: string }
export const organizations = address<OrganizationsProtocol>('organizations', {
  idempotent: [
    'listOrganizations',
    'listTenants',
    'readOrganization',
    'readTenant',
    'listDeploymentOrganizations',
    'listDeploymentTenants',
    'findAccounts',
    'readAccount',
    'listOrganizationMembers',
    'listOrganizationEvents',
    'readOrganizationPolicy',
    'listTenantTransfers',
  ],
})
