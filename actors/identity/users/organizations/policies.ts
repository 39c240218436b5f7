/** Limits of an organization: its own, otherwise the deployment's. */
import {
  findOrganizationPolicy,
  setOrganizationPolicy,
} from '../../../../storage/identity/organization/policies.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { recordAudit } from '../../../platform/record-audit.js'
import { ADMINS, inOrganization, isOperatorOfDeployment, OWNERS } from './access.js'
import type { Handling, OrganizationsTools } from './needs.js'
import type { LimitTooHigh, OrganizationPolicy, PolicyChange } from './protocol.js'
import type { OrganizationsSettings } from './settings.js'

export const readOrganizationPolicy: Handling<'readOrganizationPolicy'> = (
  needs,
  message,
  context,
) =>
  inOrganization(needs, message, ADMINS, context, async (tx, { id }) => ({
    tag: 'policy',
    policy: await policyOf(tx, needs, id),
  }))

export const updateOrganizationPolicy: Handling<'updateOrganizationPolicy'> = (
  needs,
  message,
  context,
) =>
  inOrganization(needs, message, OWNERS, context, async (tx, { id }) => {
    const { caller, organizationId: _, ...change } = message
    const tooHigh = isOperatorOfDeployment(caller) ? undefined : above(change, needs.limits)
    if (tooHigh !== undefined) return tooHigh
    const before = await policyOf(tx, needs, id)
    await setOrganizationPolicy(tx, id, change, needs.clock.now())
    const policy = await policyOf(tx, needs, id)
    recordAudit(tx, needs, caller, context, {
      type: 'org.policy.changed',
      resource: { type: 'organization', id },
      data: { before: wire(before), after: wire(policy) },
    })
    return { tag: 'policy', policy }
  })

/** The limits in force. */
export async function policyOf(
  tx: Transaction,
  { clock, limits }: OrganizationsTools,
  organizationId: string,
): Promise<OrganizationPolicy> {
  const row = await findOrganizationPolicy(tx, organizationId, clock.now())
  return {
    maxMembers: least(row.maxMembers ?? limits.max_members, row.planMembers),
    maxTenants: least(row.maxTenants ?? limits.max_tenants, row.planTenants),
    invitationTtlSecs: row.invitationTtlSecs ?? limits.invitation_ttl_secs,
    members: row.members,
    tenants: row.tenants,
  }
}

/** A plan lowers a limit and never raises it. */
function least(limit: number, ofPlan: number | null): number {
  return ofPlan === null ? limit : Math.min(limit, ofPlan)
}

/** The first limit that is above the deployment's. */
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
