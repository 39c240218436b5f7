/**
 * Conditions of statements: who may act at this moment. An operator suspends organizations, tenants and
 * accounts, a tenant suspends its users and agents. Each condition names every level above, so that nothing
 * has to be changed row by row, and everything returns when a suspension is lifted.
 */

/** SQL: the agent is active, and so is the tenant that it is at home in. Crosses tenants. */
export function agentInForce(id: string): string {
  // One row each, by its key: a join would let the planner begin with all tenants.
  return `coalesce((select ia.status = 'active' and coalesce((select ih.status = 'active'
      from tenants ih where ih.id = ia.tenant_id), false)
    from agents ia where ia.id = ${id}), false)`
}

/** SQL: the tenant knows an active user by this subject, and the account behind it is active. */
export function personInForce(tenantId: string, sub: string): string {
  return `exists (select from tenant_users iu where iu.tenant_id = ${tenantId} and iu.sub = ${sub}
    and iu.status = 'active' and iu.account_active)`
}

/** SQL: the tenant is active, and so is its organization (`tenants.status` says both). */
export function tenantInForce(id: string): string {
  return `exists (select from tenants it where it.id = ${id} and it.status = 'active')`
}
