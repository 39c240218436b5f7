/**
 * SQL conditions for active principals. Operators suspend organizations, tenants and accounts, and tenants suspend
 * their users and agents. Each condition checks all levels, so that a suspension changes one row and its end
 * restores everything.
 */

/** SQL: the agent and its home tenant are active. Crosses tenants. */
export function agentInForce(id: string): string {
  // Look-ups by key: with a join the planner could start with all tenants.
  return `coalesce((select ia.status = 'active' and coalesce((select ih.status = 'active'
      from tenants ih where ih.id = ia.tenant_id), false)
    from agents ia where ia.id = ${id}), false)`
}

/** SQL: the tenant has an active user with this subject, and the user's account is active. */
export function personInForce(tenantId: string, sub: string): string {
  return `exists (select from tenant_users iu where iu.tenant_id = ${tenantId} and iu.sub = ${sub}
    and iu.status = 'active' and iu.account_active)`
}

/** SQL: the tenant and its organization are active (`tenants.status` covers both). */
export function tenantInForce(id: string): string {
  return `exists (select from tenants it where it.id = ${id} and it.status = 'active')`
}
