/**
 * Messages for plans and the billing of organizations. All of them are for operators of the deployment, and `usage` also
 * for owners and admins of the organization.
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../../domain/idempotency.js'
import type { Listed, Page } from '../../../domain/paging.js'
import type { NotOperator, RoleTooLow } from '../organizations/protocol.js'

/** What a plan can switch: names of capabilities. */
export const BILLED_FEATURES = [
  'access_control',
  'api_keys',
  'commerce',
  'credential_issuer',
  'scim',
  'sso.enterprise',
  'vault',
  'vault.egress',
  'vault.ssh_ca',
  'webhooks',
] as const
export type BilledFeature = (typeof BILLED_FEATURES)[number]

export type BillingProtocol = {
  listBillingPlans: Ask<Page, Listed<PlanRecord>>
  readBillingPlan: Ask<{ readonly planId: string }, PlanFound | PlanUnknown>
  createBillingPlan: Ask<
    PlanMembers & { readonly caller: Caller; readonly idempotency: IdempotencyClaim | null },
    PlanCreated | NameTaken | IdempotencyRefused
  >
  /** Replaces a plan. It applies to its organizations immediately. */
  replaceBillingPlan: Ask<
    PlanMembers & { readonly caller: Caller; readonly planId: string },
    PlanFound | PlanUnknown | NameTaken
  >
  deleteBillingPlan: Ask<
    { readonly caller: Caller; readonly planId: string },
    { readonly tag: 'deleted' } | PlanUnknown | { readonly tag: 'in_use' }
  >
  readOrganizationBilling: Ask<
    { readonly organizationId: string },
    BillingFound | UnknownOrganization
  >
  assignOrganizationBilling: Ask<AssignPlan, BillingFound | UnknownOrganization | PlanUnknown>
  /** Counts a month, from the audit logs of the organization's tenants. */
  readOrganizationUsage: Ask<
    { readonly caller: Caller; readonly organizationId: string; readonly month: string | null },
    UsageFound | UnknownOrganization | NotOperator | RoleTooLow
  >
}

export type PlanMembers = {
  readonly name: string
  readonly features: readonly BilledFeature[]
  /** Null: no ceiling. */
  readonly maxMembers: number | null
  readonly maxTenants: number | null
}
export type PlanRecord = Omit<PlanMembers, 'features'> & {
  readonly id: string
  readonly features: readonly string[]
  readonly createdAt: Date
  readonly updatedAt: Date
}
export type PlanFound = { readonly tag: 'found'; readonly plan: PlanRecord }
export type PlanCreated = {
  readonly tag: 'created'
  readonly plan: PlanRecord
  readonly replayed: boolean
}
export type PlanUnknown = { readonly tag: 'unknown_plan' }
export type NameTaken = { readonly tag: 'name_taken' }
export type UnknownOrganization = { readonly tag: 'unknown_organization' }

export type AssignPlan = {
  readonly caller: Caller
  readonly organizationId: string
  /** Null: no plan, so that everything is permitted. */
  readonly planId: string | null
  /** Suspended for non-payment: changes are refused, reads work. */
  readonly suspended: boolean
}
export type BillingRecord = {
  readonly organizationId: string
  readonly planId: string | null
  readonly planName: string | null
  readonly suspendedAt: Date | null
}
/** What a feature was used for in a month. */
export type Usage = {
  readonly feature: BilledFeature
  readonly unit: string
  readonly quantity: number
}
export type UsageFound = {
  readonly tag: 'usage'
  readonly billing: BillingRecord
  readonly plan: PlanRecord | null
  /** YYYY-MM, in UTC. */
  readonly month: string
  readonly usage: readonly Usage[]
}
export type BillingFound = { readonly tag: 'billing'; readonly billing: BillingRecord }
export const billingPlans = address<BillingProtocol>('billing-plans', {
  idempotent: [
    'listBillingPlans',
    'readBillingPlan',
    'readOrganizationBilling',
    'readOrganizationUsage',
  ],
})
