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

/** What a tenant is counted with in resources that tenants share (actors/platform/tenant-groups.ts). */
export type TenantKind = {
  readonly sandbox: boolean
  /** The network that registered its organization, as a hexadecimal digest. Null: not counted. */
  readonly network: string | null
}

const networkOf = (
  id: string,
) => `(select encode(go.registering_network, 'hex') from organizations go
  where go.id = (select gt.organization_id from tenants gt where gt.id = ${id}))`

const environmentOf = (id: string) => `(select gt.environment from tenants gt where gt.id = ${id})`

/** SQL: the columns of a `TenantKind`. */
export function tenantKind(id: string): string {
  return `${environmentOf(id)} = 'sandbox' as sandbox, ${networkOf(id)} as network`
}

/** Groups of tenants that hold all they may. */

export type FullGroups = {
  readonly sandboxes: boolean
  /** Digests of registering networks, hexadecimal. */
  readonly networks: readonly string[]
}

/**
 * SQL: the tenant is active (as `tenantInForce`), and in no full group.
 * @param sandboxes parameter of `FullGroups.sandboxes`.
 * @param networks parameter of `FullGroups.networks`.
 */
export function tenantHasRoom(id: string, sandboxes: string, networks: string): string {
  // Look-ups by key: with a join the planner could start with all tenants.
  return `coalesce((select gt.status = 'active'
      and (not ${sandboxes}::boolean or gt.environment = 'production')
      and (cardinality(${networks}::text[]) = 0 or coalesce((select encode(go.registering_network, 'hex')
        from organizations go where go.id = gt.organization_id), '') <> all(${networks}::text[]))
    from tenants gt where gt.id = ${id}), false)`
}
