/** Limits of an organization: those of the deployment, unless the organization has its own. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  findOrganizationPolicy,
  updateOrganizationPolicy,
} from '../../../storage/identity/organization/policies.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { audited } from '../../domain/audit.js'
import type { OrganizationsSettings } from './settings.js'
import { type Access, isOperatorOfDeployment } from './access.js'
import type {
  LimitTooHigh,
  OfOrganization,
  OrganizationPolicy,
  OrganizationsProtocol,
  PolicyChange,
} from './protocol.js'

const READERS = ['owner', 'admin'] as const
const OWNERS = ['owner'] as const

export type PoliciesNeeds = {
  readonly clock: Clock
  readonly random: Random
  readonly access: Access
  readonly limits: OrganizationsSettings
}

type Outcome<K extends keyof OrganizationsProtocol> = Promise<OrganizationsProtocol[K]['reply']>

export function policies({ clock, random, access, limits }: PoliciesNeeds) {
  async function policyOf(tx: Transaction, organizationId: string): Promise<OrganizationPolicy> {
    const row = await findOrganizationPolicy(tx, organizationId, clock.now())
    return {
      maxMembers: least(row.maxMembers ?? limits.max_members, row.planMembers),
      maxTenants: least(row.maxTenants ?? limits.max_tenants, row.planTenants),
      invitationTtlSecs: row.invitationTtlSecs ?? limits.invitation_ttl_secs,
      members: row.members,
      tenants: row.tenants,
    }
  }

  return {
    async readOrganizationPolicy(
      { caller, organizationId }: OfOrganization,
      context: MessageContext,
    ): Outcome<'readOrganizationPolicy'> {
      return access.inOrganization(caller, organizationId, READERS, context, async (tx) => ({
        tag: 'policy' as const,
        policy: await policyOf(tx, organizationId),
      }))
    },

    async updateOrganizationPolicy(
      { caller, organizationId, ...change }: OfOrganization & PolicyChange,
      context: MessageContext,
    ): Outcome<'updateOrganizationPolicy'> {
      return access.inOrganization(caller, organizationId, OWNERS, context, async (tx) => {
        const tooHigh = isOperatorOfDeployment(caller) ? undefined : above(change, limits)
        if (tooHigh !== undefined) return tooHigh
        const now = clock.now()
        const before = await policyOf(tx, organizationId)
        await updateOrganizationPolicy(tx, organizationId, change, now)
        const policy = await policyOf(tx, organizationId)
        appendAudit(tx, [
          audited(caller, {
            id: random.uuid(),
            tenantId: caller.principal.tenantId,
            type: 'org.policy.changed',
            occurredAt: now,
            resource: { type: 'organization', id: organizationId },
            requestId: context.requestId,
            data: { before: wire(before), after: wire(policy) },
          }),
        ])
        return { tag: 'policy' as const, policy }
      })
    },
  }
}

/** A plan lowers a limit and never raises it. */
function least(limit: number, ofPlan: number | null): number {
  return ofPlan === null ? limit : Math.min(limit, ofPlan)
}

/** The first limit that is above that of the deployment. */
function above(change: PolicyChange, limits: OrganizationsSettings): LimitTooHigh | undefined {
  const asked = [
    ['max_members', change.maxMembers],
    ['max_tenants', change.maxTenants],
    ['invitation_ttl_secs', change.invitationTtlSecs],
  ] as const
  const found = asked.find(([member, value]) => (value ?? 0) > limits[member])
  return found && { tag: 'limit_too_high', member: found[0], most: limits[found[0]] }
}

function wire({ maxMembers, maxTenants, invitationTtlSecs }: OrganizationPolicy) {
  return {
    max_members: maxMembers,
    max_tenants: maxTenants,
    invitation_ttl_secs: invitationTtlSecs,
  }
}
