/**
 * Who may see and manage an organization: its members by their role, and operators of the deployment, who are not
 * members. An organization the caller has no access to is reported as not found.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  findAccountOfSubject,
  findMembership,
  findOrganization,
  findPersonOrganization,
  type Member,
  type Membership,
} from '../../../../storage/identity/organizations.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Caller } from '../../../domain/audit.js'
import { isUuid } from '../../../domain/ids.js'
import type { Principal } from '../../../domain/principal.js'
import { type OrganizationRole, reachesOrganization, type Scope } from '../../../domain/scopes.js'
import type { OrganizationsTools } from './needs.js'
import type {
  FoundOrganization,
  NotOperator,
  OfOrganization,
  OrganizationsOff,
  RoleTooLow,
  UnknownOrganization,
} from './protocol.js'
import { mayNameOrganization, operatorFault } from './rules.js'

/** Grants access to every organization, tenant and account. */
const DEPLOYMENT_SCOPE: Scope = 'deployment:manage'
const UNKNOWN = { tag: 'unknown_organization' } as const
const OFF = { tag: 'organizations_off' } as const

export const OWNERS = ['owner'] as const
export const ADMINS = ['owner', 'admin'] as const

type AccessRefused = NotOperator | UnknownOrganization | RoleTooLow

export function isOperatorOfDeployment({ principal }: Caller): boolean {
  return principal.scopes.includes(DEPLOYMENT_SCOPE)
}

/** The refusal of a token that is not one of the control plane. */
export async function tokenFault(
  needs: OrganizationsTools,
  { principal }: Caller,
  context: MessageContext,
  { unbound = false } = {},
): Promise<NotOperator | undefined> {
  return operatorFault(principal, await needs.controlPlaneId(context), unbound)
}

/** The refusal when `organizations.enabled` is false. */
export function offFault(
  { limits }: OrganizationsTools,
  caller: Caller,
): OrganizationsOff | undefined {
  return limits.enabled || isOperatorOfDeployment(caller) ? undefined : OFF
}

/** The member of organizations that the token represents, or undefined. */
export async function memberOf(
  tx: Transaction,
  { subject, subjectType, tenantId }: Principal,
): Promise<Member | undefined> {
  if (subjectType === 'agent') return { memberType: 'agent', memberId: subject }
  const memberId =
    subjectType === 'human' ? await findAccountOfSubject(tx, tenantId, subject) : undefined
  return memberId === undefined ? undefined : { memberType: 'account', memberId }
}

/** The organization with the caller's role; undefined if the caller is not a member. */
export async function membershipOf(
  tx: Transaction,
  { caller: { principal }, organizationId }: OfOrganization,
): Promise<Membership | undefined> {
  if (!mayNameOrganization(principal, organizationId)) return undefined
  const member = await memberOf(tx, principal)
  if (member === undefined) return undefined
  if (member.memberType === 'agent') return findMembership(tx, member, organizationId)
  const { tenantId, scopes } = principal
  if (!reachesOrganization(scopes)) return undefined
  return findPersonOrganization(tx, { accountId: member.memberId, tenantId, organizationId })
}

/**
 * Runs the work for a member with one of the roles, or an operator of the deployment. Organizations belong to no tenant,
 * so the transaction crosses tenants.
 */
export async function inOrganization<T>(
  needs: OrganizationsTools,
  message: OfOrganization,
  roles: readonly OrganizationRole[],
  context: MessageContext,
  work: (tx: Transaction, found: FoundOrganization) => Promise<T>,
): Promise<T | AccessRefused> {
  const { caller, organizationId } = message
  const fault = await tokenFault(needs, caller, context)
  if (fault !== undefined) return fault
  if (!isUuid(organizationId)) return UNKNOWN
  return needs.database.system(async (tx) => {
    const isOperator = isOperatorOfDeployment(caller)
    const organization =
      (await membershipOf(tx, message)) ??
      (isOperator ? await withoutRole(tx, organizationId) : undefined)
    if (organization === undefined) return UNKNOWN
    const { role } = organization
    if (!isOperator && (role === null || !roles.includes(role)))
      return { tag: 'role_too_low' as const, role: role ?? 'member' }
    return work(tx, organization)
  }, context)
}

async function withoutRole(tx: Transaction, organizationId: string) {
  const organization = await findOrganization(tx, organizationId)
  return organization && { ...organization, role: null }
}
