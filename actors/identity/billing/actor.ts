/** Plans, their assignment to organizations, and suspension for non-payment. */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  deletePlan,
  findBilling,
  findPlan,
  insertPlan,
  listPlans,
  type PlanRow,
  setBilling,
  updatePlan,
  usageOf,
} from '../../../storage/identity/organization/billing.js'
import { lockMembers, tenantIdsOf } from '../../../storage/identity/organization-members.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { type AuditOnlyType, audited, type Caller } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { page } from '../../platform/paging.js'
import {
  appendOrganizationEvent,
  NOTIFIED_TENANTS_MAX,
} from '../../platform/organization-events.js'
import { organizations, type OrganizationsProtocol } from '../organizations/protocol.js'
import { tenants, type TenantsProtocol } from '../tenants/protocol.js'
import { billingPlans, type BillingProtocol } from './protocol.js'
import { boundsOf, monthOf, USAGE_TYPES, usageFigures } from './usage.js'

const UNKNOWN_PLAN = { tag: 'unknown_plan' } as const
const UNKNOWN_ORGANIZATION = { tag: 'unknown_organization' } as const
const NAME_TAKEN = { tag: 'name_taken' } as const

export type BillingNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tenants: ActorRef<TenantsProtocol>
  readonly organizations: ActorRef<OrganizationsProtocol>
}

export const billingActor = defineActor<BillingProtocol, BillingNeeds>({
  address: billingPlans,
  asks: { tenants, organizations },
  // A month of a large organization is a long statement: one at a time for each.
  lane: { readOrganizationUsage: ({ organizationId }) => organizationId },
  mailbox: { capacity: 256, inflightMax: 16 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: ({ database, clock, random, tenants, organizations }) => {
    const crossing = <T>(work: (tx: Transaction) => Promise<T>, { signal }: MessageContext) =>
      database.system(work, { signal })

    function record(
      tx: Transaction,
      caller: Caller,
      type: AuditOnlyType,
      resource: { readonly type: string; readonly id: string },
      data: Readonly<Record<string, unknown>>,
      { requestId }: MessageContext,
    ): void {
      const { tenantId } = caller.principal
      const occurredAt = clock.now()
      const action = { id: random.uuid(), tenantId, type, occurredAt, resource, requestId, data }
      appendAudit(tx, [audited(caller, action)])
    }

    return {
      async listBillingPlans({ limit, after }, context) {
        const rows = await crossing((tx) => listPlans(tx, limit + 1, after), context)
        const { items, next } = page(rows, limit)
        return { tag: 'listed', plans: items, next }
      },

      async readBillingPlan({ planId }, context) {
        const plan = isUuid(planId)
          ? await crossing((tx) => findPlan(tx, planId), context)
          : undefined
        return plan === undefined ? UNKNOWN_PLAN : { tag: 'found', plan }
      },

      async createBillingPlan({ caller, idempotency, ...members }, context) {
        return crossing(
          (tx) =>
            idempotently(
              tx,
              idempotency,
              async () => {
                const now = clock.now()
                const plan = { ...members, id: random.uuid(), createdAt: now, updatedAt: now }
                if (!(await insertPlan(tx, plan))) return NAME_TAKEN
                const resource = { type: 'billing_plan', id: plan.id }
                record(tx, caller, 'admin.billing_plan.created', resource, wire(plan), context)
                return { tag: 'created' as const, plan, replayed: false }
              },
              (outcome) => (outcome.tag === 'created' ? outcome : undefined),
            ),
          context,
        )
      },

      async replaceBillingPlan({ caller, planId, ...members }, context) {
        if (!isUuid(planId)) return UNKNOWN_PLAN
        const outcome = await crossing(async (tx) => {
          const plan = await updatePlan(tx, { ...members, id: planId, updatedAt: clock.now() })
          if (plan === undefined) return UNKNOWN_PLAN
          if (plan === 'name_taken') return NAME_TAKEN
          const resource = { type: 'billing_plan', id: planId }
          record(tx, caller, 'admin.billing_plan.updated', resource, wire(plan), context)
          return { tag: 'found' as const, plan }
        }, context)
        if (outcome.tag === 'found') tenants.send('forget', { tenantId: null })
        return outcome
      },

      async deleteBillingPlan({ caller, planId }, context) {
        if (!isUuid(planId)) return UNKNOWN_PLAN
        return crossing(async (tx) => {
          const plan = await deletePlan(tx, planId)
          if (plan === undefined) return UNKNOWN_PLAN
          if (plan === 'in_use') return { tag: 'in_use' as const }
          const resource = { type: 'billing_plan', id: planId }
          record(tx, caller, 'admin.billing_plan.deleted', resource, wire(plan), context)
          return { tag: 'deleted' as const }
        }, context)
      },

      async readOrganizationBilling({ organizationId }, context) {
        const billing = isUuid(organizationId)
          ? await crossing((tx) => findBilling(tx, organizationId), context)
          : undefined
        return billing === undefined ? UNKNOWN_ORGANIZATION : { tag: 'billing', billing }
      },

      async assignOrganizationBilling({ caller, organizationId, planId, suspended }, context) {
        if (!isUuid(organizationId)) return UNKNOWN_ORGANIZATION
        let changed: readonly string[] = []
        const outcome = await crossing(async (tx) => {
          await lockMembers(tx, organizationId)
          const before = await findBilling(tx, organizationId)
          if (before === undefined) return UNKNOWN_ORGANIZATION
          const plan = planId !== null && isUuid(planId) ? await findPlan(tx, planId) : undefined
          if (planId !== null && plan === undefined) return UNKNOWN_PLAN
          const now = clock.now()
          const billing = {
            organizationId,
            planId: plan?.id ?? null,
            planName: plan?.name ?? null,
            suspendedAt: suspended ? (before.suspendedAt ?? now) : null,
          }
          await setBilling(tx, billing, now)
          const fields = { plan: billing.planName, suspended }
          const resource = { type: 'organization', id: organizationId }
          const data = { ...fields, plan_before: before.planName }
          record(tx, caller, 'admin.organization.billing_changed', resource, data, context)
          const { requestId } = context
          const type = 'org.billing.changed'
          const event = { type, organizationId, fields, by: null, now, requestId } as const
          await appendOrganizationEvent(tx, random, event)
          changed = await tenantIdsOf(tx, organizationId, NOTIFIED_TENANTS_MAX)
          return { tag: 'billing' as const, billing }
        }, context)
        for (const tenantId of changed) tenants.send('forget', { tenantId })
        return outcome
      },

      async readOrganizationUsage({ caller, organizationId, month: wanted }, context) {
        // The limits of an organization have the same readers.
        const readable = await organizations.readOrganizationPolicy(
          { caller, organizationId },
          { signal: context.signal },
        )
        if (readable.tag !== 'policy') return readable
        const month = wanted ?? monthOf(clock.now())
        return crossing(async (tx) => {
          const billing = await findBilling(tx, organizationId)
          if (billing === undefined) return UNKNOWN_ORGANIZATION
          const { planId } = billing
          const plan = planId === null ? null : ((await findPlan(tx, planId)) ?? null)
          const rows = await usageOf(tx, organizationId, USAGE_TYPES, boundsOf(month))
          return { tag: 'usage' as const, billing, plan, month, usage: usageFigures(rows) }
        }, context)
      },
    }
  },
})

function wire(plan: Pick<PlanRow, 'name' | 'features' | 'maxMembers' | 'maxTenants'>) {
  return {
    name: plan.name,
    features: plan.features,
    max_members: plan.maxMembers,
    max_tenants: plan.maxTenants,
  }
}
