/** Plans of the deployment. */
import {
  deletePlan,
  findPlan,
  insertPlan,
  listPlans,
  type PlanRow,
  updatePlan,
} from '../../../../storage/identity/organization/billing.js'
import { idempotently, kept } from '../../../../storage/platform/idempotency.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { isUuid } from '../../../domain/ids.js'
import { listed } from '../../../platform/paging.js'
import { recordAudit } from '../../../platform/record-audit.js'
import type { Handling } from './needs.js'

const UNKNOWN_PLAN = { tag: 'unknown_plan' } as const
const NAME_TAKEN = { tag: 'name_taken' } as const

export const listBillingPlans: Handling<'listBillingPlans'> = async (
  { database },
  { limit, after },
  context,
) => {
  const rows = await database.system((tx) => listPlans(tx, limit + 1, after), context)
  return listed(rows, limit)
}

export const readBillingPlan: Handling<'readBillingPlan'> = async (
  { database },
  { planId },
  context,
) => {
  const plan = isUuid(planId)
    ? await database.system((tx) => findPlan(tx, planId), context)
    : undefined
  return plan === undefined ? UNKNOWN_PLAN : { tag: 'found', plan }
}

export const createBillingPlan: Handling<'createBillingPlan'> = (needs, message, context) => {
  const { caller, idempotency, ...members } = message
  const insert = async (tx: Transaction) => {
    const now = needs.clock.now()
    const plan = { ...members, id: needs.random.uuid(), createdAt: now, updatedAt: now }
    if (!(await insertPlan(tx, plan))) return NAME_TAKEN
    recordAudit(tx, needs, caller, context, planChange('created', plan))
    return { tag: 'created', plan, replayed: false } as const
  }
  return needs.database.system(
    (tx) => idempotently(tx, idempotency, () => insert(tx), kept('created')),
    context,
  )
}

/** It applies to its organizations immediately. */
export const replaceBillingPlan: Handling<'replaceBillingPlan'> = async (
  needs,
  { caller, planId, ...members },
  context,
) => {
  if (!isUuid(planId)) return UNKNOWN_PLAN
  const outcome = await needs.database.system(async (tx) => {
    const plan = await updatePlan(tx, { ...members, id: planId, updatedAt: needs.clock.now() })
    if (plan === undefined) return UNKNOWN_PLAN
    if (plan === 'name_taken') return NAME_TAKEN
    recordAudit(tx, needs, caller, context, planChange('updated', plan))
    return { tag: 'found' as const, plan }
  }, context)
  if (outcome.tag === 'found') needs.tenants.send('forget', { tenantId: null })
  return outcome
}

export const deleteBillingPlan: Handling<'deleteBillingPlan'> = async (
  needs,
  { caller, planId },
  context,
) => {
  if (!isUuid(planId)) return UNKNOWN_PLAN
  return needs.database.system(async (tx) => {
    const plan = await deletePlan(tx, planId)
    if (plan === undefined) return UNKNOWN_PLAN
    if (plan === 'in_use') return { tag: plan }
    recordAudit(tx, needs, caller, context, planChange('deleted', plan))
    return { tag: 'deleted' }
  }, context)
}

const planChange = (
  verb: 'created' | 'updated' | 'deleted',
  { id, name, features, maxMembers, maxTenants }: Omit<PlanRow, 'createdAt' | 'updatedAt'>,
) => ({
  type: `admin.billing_plan.${verb}` as const,
  resource: { type: 'billing_plan', id },
  data: { name, features, max_members: maxMembers, max_tenants: maxTenants },
})
