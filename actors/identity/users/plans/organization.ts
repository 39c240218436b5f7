/** The plan of an organization, its suspension for non-payment, and what it uses. */
import {
  findBilling,
  findPlan,
  setBilling,
  usageOf,
} from '../../../../storage/identity/organization/billing.js'
import { holdMembers, tenantIdsOf } from '../../../../storage/identity/organization-members.js'
import { isUuid } from '../../../domain/ids.js'
import {
  appendOrganizationEvent,
  NOTIFIED_TENANTS_MAX,
} from '../../../platform/organization-events.js'
import { recordAudit } from '../../../platform/record-audit.js'
import type { Handling } from './needs.js'
import { boundsOf, monthOf, USAGE_TYPES, usageFigures } from './usage.js'

const UNKNOWN_PLAN = { tag: 'unknown_plan' } as const
const UNKNOWN_ORGANIZATION = { tag: 'unknown_organization' } as const

export const readOrganizationBilling: Handling<'readOrganizationBilling'> = async (
  { database },
  { organizationId },
  context,
) => {
  const billing = isUuid(organizationId)
    ? await database.system((tx) => findBilling(tx, organizationId), context)
    : undefined
  return billing === undefined ? UNKNOWN_ORGANIZATION : { tag: 'billing', billing }
}

export const assignOrganizationBilling: Handling<'assignOrganizationBilling'> = async (
  needs,
  { caller, organizationId, planId, suspended },
  context,
) => {
  if (!isUuid(organizationId)) return UNKNOWN_ORGANIZATION
  let changed: readonly string[] = []
  const outcome = await needs.database.system(async (tx) => {
    await holdMembers(tx, organizationId)
    const before = await findBilling(tx, organizationId)
    if (before === undefined) return UNKNOWN_ORGANIZATION
    const plan = planId !== null && isUuid(planId) ? await findPlan(tx, planId) : undefined
    if (planId !== null && plan === undefined) return UNKNOWN_PLAN
    const now = needs.clock.now()
    const billing = {
      organizationId,
      planId: plan?.id ?? null,
      planName: plan?.name ?? null,
      suspendedAt: suspended ? (before.suspendedAt ?? now) : null,
    }
    await setBilling(tx, billing, now)
    const fields = { plan: billing.planName, suspended }
    recordAudit(tx, needs, caller, context, {
      type: 'admin.organization.billing_changed',
      resource: { type: 'organization', id: organizationId },
      data: { ...fields, plan_before: before.planName },
    })
    const { requestId } = context
    const type = 'org.billing.changed'
    const event = { type, organizationId, fields, by: null, now, requestId } as const
    await appendOrganizationEvent(tx, needs.random, event)
    changed = await tenantIdsOf(tx, organizationId, NOTIFIED_TENANTS_MAX)
    return { tag: 'billing' as const, billing }
  }, context)
  for (const tenantId of changed) needs.tenants.send('forget', { tenantId })
  return outcome
}

export const readOrganizationUsage: Handling<'readOrganizationUsage'> = async (
  { database, clock, organizations },
  { caller, organizationId, month: wanted },
  context,
) => {
  // The limits of an organization have the same readers.
  const readable = await organizations.readOrganizationPolicy(
    { caller, organizationId },
    { signal: context.signal },
  )
  if (readable.tag !== 'policy') return readable
  const month = wanted ?? monthOf(clock.now())
  return database.system(async (tx) => {
    const billing = await findBilling(tx, organizationId)
    if (billing === undefined) return UNKNOWN_ORGANIZATION
    const { planId } = billing
    const plan = planId === null ? null : ((await findPlan(tx, planId)) ?? null)
    const rows = await usageOf(tx, organizationId, USAGE_TYPES, boundsOf(month))
    return { tag: 'usage', billing, plan, month, usage: usageFigures(rows) }
  }, context)
}
