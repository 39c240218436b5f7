/** Limits of organizations. Organizations span tenants, so every transaction here crosses tenants. */
import { execute, onlyRow, type Transaction } from '../../platform/sql.js'

type OrganizationPolicyRow = {
  /** Null: the limit of the deployment. */
  readonly maxMembers: number | null
  readonly maxTenants: number | null
  readonly invitationTtlSecs: number | null
  /** The ceilings of the plan. Null: none. */
  readonly planMembers: number | null
  readonly planTenants: number | null
  /** Members and open invitations. */
  readonly members: number
  readonly tenants: number
}

export const findOrganizationPolicy = (tx: Transaction, organizationId: string, now: Date) =>
  onlyRow<OrganizationPolicyRow>(tx, {
    name: 'organization.policy',
    text: `select o.max_members as "maxMembers", o.max_tenants as "maxTenants",
             o.invitation_ttl_secs as "invitationTtlSecs",
             p.max_members as "planMembers", p.max_tenants as "planTenants",
             (select count(*)::int from organization_members m where m.organization_id = o.id
               and (m.expires_at is null or m.expires_at > $2)) as members,
             (select count(*)::int from tenants t where t.organization_id = o.id) as tenants
           from organizations o left join billing_plans p on p.id = o.billing_plan_id where o.id = $1`,
    values: [organizationId, now],
  })

/** Undefined stays unchanged. Null removes the organization's own limit. */
type PolicyChangeRow = {
  readonly maxMembers: number | null | undefined
  readonly maxTenants: number | null | undefined
  readonly invitationTtlSecs: number | null | undefined
}

export const setOrganizationPolicy = (
  tx: Transaction,
  organizationId: string,
  { maxMembers, maxTenants, invitationTtlSecs }: PolicyChangeRow,
  now: Date,
) =>
  execute(tx, {
    name: 'organization.set_policy',
    text: `update organizations set
             max_members = case when $2 then $3 else max_members end,
             max_tenants = case when $4 then $5 else max_tenants end,
             invitation_ttl_secs = case when $6 then $7 else invitation_ttl_secs end,
             updated_at = $8
           where id = $1`,
    values: [
      organizationId,
      maxMembers !== undefined,
      maxMembers ?? null,
      maxTenants !== undefined,
      maxTenants ?? null,
      invitationTtlSecs !== undefined,
      invitationTtlSecs ?? null,
      now,
    ],
  })

/**
 * The organization's limit of tenants when it is reached, otherwise undefined. Locks the organization until the
 * transaction ends, so that creations and transfers are counted one after the other.
 */
export async function fullOfTenants(
  tx: Transaction,
  organizationId: string,
  limit: number,
): Promise<number | undefined> {
  const { rows } = await tx.query<{ most: number }>({
    name: 'organization.hold_tenants',
    text: `select least(coalesce(o.max_tenants, $2::int), (select p.max_tenants from billing_plans p
             where p.id = o.billing_plan_id)) as most
           from organizations o where o.id = $1 for no key update`,
    values: [organizationId, limit],
  })
  const most = rows[0]?.most ?? 0
  const { rows: full } = await tx.query({
    name: 'organization.full_of_tenants',
    text: `select where (select count(*) from (select from tenants where organization_id = $1
             limit $2) t) >= $2`,
    values: [organizationId, most],
  })
  return full.length === 0 ? undefined : most
}
