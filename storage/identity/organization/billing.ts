/** Plans, and what organizations have of them. Organizations span tenants, so every transaction here crosses tenants. */
import { allRows, execute, firstRow, isChanged, type Transaction } from '../../platform/sql.js'

export type PlanRow = {
  readonly id: string
  readonly name: string
  readonly features: readonly string[]
  /** Null: no ceiling. */
  readonly maxMembers: number | null
  readonly maxTenants: number | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

const COLUMNS = `p.id, p.name, p.features, p.max_members as "maxMembers", p.max_tenants as "maxTenants",
  p.created_at as "createdAt", p.updated_at as "updatedAt"`

/** False, and nothing written, when another plan has the name. */
export const insertPlan = (tx: Transaction, plan: PlanRow) =>
  isChanged(tx, {
    name: 'billing_plan.insert',
    text: `insert into billing_plans (id, name, features, max_members, max_tenants, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $6) on conflict (name) do nothing`,
    values: [plan.id, plan.name, plan.features, plan.maxMembers, plan.maxTenants, plan.createdAt],
  })

/** Replaces a plan. Undefined when it does not exist, 'name_taken' when another plan has the name. */
export async function updatePlan(
  tx: Transaction,
  plan: Omit<PlanRow, 'createdAt'>,
): Promise<PlanRow | 'name_taken' | undefined> {
  const { rows: taken } = await tx.query({
    name: 'billing_plan.name_taken',
    text: 'select from billing_plans where name = $2 and id <> $1',
    values: [plan.id, plan.name],
  })
  if (taken.length > 0) return 'name_taken'
  return firstRow<PlanRow>(tx, {
    name: 'billing_plan.update',
    text: `update billing_plans p set name = $2, features = $3, max_members = $4, max_tenants = $5, updated_at = $6
           where id = $1 returning ${COLUMNS}`,
    values: [plan.id, plan.name, plan.features, plan.maxMembers, plan.maxTenants, plan.updatedAt],
  })
}

export const findPlan = (tx: Transaction, id: string) =>
  firstRow<PlanRow>(tx, {
    name: 'billing_plan.find',
    text: `select ${COLUMNS} from billing_plans p where p.id = $1`,
    values: [id],
  })

/** A page of all plans, newest first. */
export const listPlans = (
  tx: Transaction,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<PlanRow>(tx, {
    name: 'billing_plan.list',
    text: `select ${COLUMNS} from billing_plans p
           where $2::timestamptz is null or (p.created_at, p.id) < ($2, $3::uuid)
           order by p.created_at desc, p.id desc limit $1`,
    values: [limit, after?.createdAt ?? null, after?.id ?? null],
  })

/** Deletes a plan that no organization has. */
export async function deletePlan(
  tx: Transaction,
  id: string,
): Promise<PlanRow | 'in_use' | undefined> {
  const { rows } = await tx.query<PlanRow>({
    name: 'billing_plan.delete',
    text: `delete from billing_plans p
           where p.id = $1 and not exists (select from organizations o where o.billing_plan_id = p.id)
           returning ${COLUMNS}`,
    values: [id],
  })
  if (rows[0] !== undefined) return rows[0]
  return (await findPlan(tx, id)) === undefined ? undefined : 'in_use'
}

type BillingRow = {
  readonly organizationId: string
  readonly planId: string | null
  readonly planName: string | null
  readonly suspendedAt: Date | null
}

export const findBilling = (tx: Transaction, organizationId: string) =>
  firstRow<BillingRow>(tx, {
    name: 'organization.billing',
    text: `select o.id as "organizationId", o.billing_plan_id as "planId", p.name as "planName",
             o.billing_suspended_at as "suspendedAt"
           from organizations o left join billing_plans p on p.id = o.billing_plan_id where o.id = $1`,
    values: [organizationId],
  })

/** Assigns a plan, and suspends or reactivates. The tenants follow in the same transaction (0088_billing). */
export const setBilling = (
  tx: Transaction,
  { organizationId, planId, suspendedAt }: Omit<BillingRow, 'planName'>,
  now: Date,
) =>
  execute(tx, {
    name: 'organization.set_billing',
    text: `update organizations set billing_plan_id = $2, billing_suspended_at = $3, updated_at = $4
           where id = $1`,
    values: [organizationId, planId, suspendedAt, now],
  })

/** What the audit log counts of a type. `access` distinguishes the uses of a credential. */
export type UsageRow = {
  readonly type: string
  readonly access: string | null
  readonly events: number
}

/**
 * Counts events of the present tenants of an organization, from `from` (inclusive) to `until` (exclusive). The audit log
 * is never deleted. Sign-ins through providers of the deployment, whose ids are no UUIDs, do not count.
 */
export const usageOf = (
  tx: Transaction,
  organizationId: string,
  types: readonly string[],
  { from, until }: { readonly from: Date; readonly until: Date },
) =>
  allRows<UsageRow>(tx, {
    name: 'organization.usage',
    text: `select e.type, e.data ->> 'access' as access, count(*)::float8 as events
           from audit_events e
           where e.tenant_id in (select id from tenants where organization_id = $1)
             and e.type = any ($2) and e.occurred_at >= $3 and e.occurred_at < $4 and e.outcome = 'success'
             and (e.type <> 'sso.login.success' or length(e.data ->> 'provider') = 36)
           group by 1, 2`,
    values: [organizationId, types, from, until],
  })
