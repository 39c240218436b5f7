/**
 * Who may manage an organization: its members by their role, and operators of the deployment, who are not members. An
 * organization the caller has no access to is reported as not found.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Membership } from '../../../storage/identity/organizations.js'
import { findOrganization } from '../../../storage/identity/organizations.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import type { Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import type { OrganizationRole, Scope } from '../../domain/scopes.js'
import type { FoundOrganization, NotOperator, RoleTooLow, UnknownOrganization } from './protocol.js'

/** Grants access to every organization, tenant and account. */
const DEPLOYMENT_SCOPE: Scope = 'deployment:manage'

export type AccessRefused = NotOperator | UnknownOrganization | RoleTooLow

export interface Access {
  /** Runs the work in a transaction that crosses tenants, if the caller is allowed to. */
  inOrganization<T>(
    caller: Caller,
    organizationId: string,
    roles: readonly OrganizationRole[],
    context: MessageContext,
    work: (tx: Transaction, found: FoundOrganization) => Promise<T>,
  ): Promise<T | AccessRefused>
}

export type AccessNeeds = {
  readonly database: Database
  readonly refuse: (caller: Caller, context: MessageContext) => Promise<NotOperator | undefined>
  readonly membership: (
    tx: Transaction,
    caller: Caller,
    organizationId: string,
  ) => Promise<Membership | undefined>
}

export function organizationAccess({ database, refuse, membership }: AccessNeeds): Access {
  async function found(
    tx: Transaction,
    caller: Caller,
    organizationId: string,
  ): Promise<FoundOrganization | undefined> {
    const member = await membership(tx, caller, organizationId)
    if (member !== undefined) return member
    if (!isOperatorOfDeployment(caller)) return undefined
    const organization = await findOrganization(tx, organizationId)
    return organization && { ...organization, role: null }
  }

  return {
    async inOrganization(caller, organizationId, roles, context, work) {
      const fault = await refuse(caller, context)
      if (fault !== undefined) return fault
      if (!isUuid(organizationId)) return { tag: 'unknown_organization' }
      return database.system(
        async (tx) => {
          const organization = await found(tx, caller, organizationId)
          if (organization === undefined) return { tag: 'unknown_organization' as const }
          const { role } = organization
          if (!isOperatorOfDeployment(caller) && (role === null || !roles.includes(role))) {
            return { tag: 'role_too_low' as const, role: role ?? 'member' }
          }
          return work(tx, organization)
        },
        { signal: context.signal },
      )
    },
  }
}

export function isOperatorOfDeployment({ principal }: Caller): boolean {
  return principal.scopes.includes(DEPLOYMENT_SCOPE)
}
