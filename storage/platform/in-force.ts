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

/**
 * SQL: no grant of a connected account, or one of this person while they delegate to the agent.
 * @param grant alias of the grant.
 * @param person SQL of the person for whom an agent acts; null for a direct token.
 */
export function connectionInForce(grant: string, person: string, now: string): string {
  // Look-ups by key: the planner may read whole tables for nested conditions.
  return `not exists (select from vault_connections vc
    where vc.tenant_id = ${grant}.tenant_id and vc.grant_id = ${grant}.id
      and not (vc.subject = coalesce(${person}, vc.subject)
        and coalesce((select iu.status = 'active' and iu.account_active from tenant_users iu
          where iu.tenant_id = vc.tenant_id and iu.sub = vc.subject), false)
        and coalesce((select true from delegations vd where vd.tenant_id = vc.tenant_id and vd.subject = vc.subject
          and vd.agent_id = vc.agent_id and vd.revoked_at is null and vd.expires_at > ${now} limit 1), false)))`
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
      and ${outside(sandboxes, networks)}
    from tenants gt where gt.id = ${id}), false)`
}

/** SQL: the tenant, which may be suspended, is in no full group. Parameters as above. */
export function tenantIsOutside(id: string, sandboxes: string, networks: string): string {
  return `coalesce((select ${outside(sandboxes, networks)} from tenants gt where gt.id = ${id}), false)`
}

const outside = (
  sandboxes: string,
  networks: string,
) => `(not ${sandboxes}::boolean or gt.environment = 'production')
      and (cardinality(${networks}::text[]) = 0 or coalesce((select encode(go.registering_network, 'hex')
        from organizations go where go.id = gt.organization_id), '') <> all(${networks}::text[]))`

/*
 * Leases of work of many tenants. Tenants take turns: the first row of each precedes the second of any, what the worker
 * holds counts, and within a turn the longest due is first.
 */

/** The number of rows that a worker takes, in total and per tenant. */
export type ClaimRoom = {
  readonly limit: number
  /** Maximum rows of one tenant, including those that the worker holds. */
  readonly perTenantMax: number
  /** Rows that the worker holds, by tenant. */
  readonly held: ReadonlyMap<string, number>
  /** Their tenants get none. */
  readonly full: FullGroups
  /** Rows that tenants without one get where there is no room: another tenant gives its place up. */
  readonly firstMax: number
}

/**
 * SQL: joins what the worker holds of a row's tenant, for `placeInTurn`.
 * @param held parameters of `heldValues`.
 */
export function joinHeld(tenantId: string, [tenants, counts]: readonly [string, string]): string {
  return `left join unnest(${tenants}::uuid[], ${counts}::integer[]) as h (tenant_id, held)
    on h.tenant_id = ${tenantId}`
}

/** SQL: the turn in which a row is served. */
export function placeInTurn(partition: string, due: string): string {
  return `row_number() over (partition by ${partition} order by ${due}) + coalesce(h.held, 0)`
}

export function heldValues({ held }: ClaimRoom): [string[], number[]] {
  return [[...held.keys()], [...held.values()]]
}

type Claim = {
  readonly table: string
  /** With `tenant_id` the key of the table. */
  readonly id: string
  /** The column by which rows are due. */
  readonly due: string
  /** SQL condition on a row `q` that may be leased. */
  readonly free: string
  /** SQL: the rows that may be chosen, with the columns of the key and `due`. */
  readonly candidates: string
  /** SQL: further columns that change. */
  readonly set?: string
  /** SQL: the columns of a row `q` that the worker gets. */
  readonly returning: string
}

/** SQL of a lease, with the parameters of `claimValues`. `free` is checked again on the locked row. */
export function claimInTurn(claim: Claim): string {
  const { table, id, due, free, candidates, set = '', returning } = claim
  return `with waiting as (
      select c.tenant_id, c.${id}, c.${due} as due, ${placeInTurn('c.tenant_id', `c.${due}`)} as place
      from (${candidates}) c ${joinHeld('c.tenant_id', ['$4', '$5'])}),
    ranked as (
      select *, row_number() over (order by place, due) as nth
      from (select *, ${tenantHasRoom('tenant_id', '$7', '$8')} as room from waiting where place <= $6) w
      where room or ${isFirst('tenant_id', 'place', '$9')}),
    chosen as (
      select tenant_id, ${id} from ranked where (room and nth <= $2) or (place = 1 and nth <= $9)),
    locked as (
      select q.tenant_id, q.${id} from ${table} q join chosen using (tenant_id, ${id})
      where ${free} and ${tenantInForce('q.tenant_id')} for update of q skip locked)
    update ${table} q
    set lease = $1, leased_until = statement_timestamp() + make_interval(secs => $3)${set}
    from locked where q.tenant_id = locked.tenant_id and q.${id} = locked.${id}
    returning q.tenant_id as "tenantId", ${returning}, ${tenantKind('q.tenant_id')}`
}

/**
 * SQL: the tenant holds none, and may get one where there is no room.
 * @param max parameter of `ClaimRoom.firstMax`.
 */
export function isFirst(tenantId: string, place: string, max: string): string {
  return `(${place} = 1 and ${max}::integer > 0 and ${tenantInForce(tenantId)})`
}

/** @param lease id of the worker. */
export function claimValues(lease: string, room: ClaimRoom, leaseSecs: number): unknown[] {
  const { limit, perTenantMax, full, firstMax } = room
  const held = heldValues(room)
  return [lease, limit, leaseSecs, ...held, perTenantMax, full.sandboxes, full.networks, firstMax]
}

/**
 * SQL: milliseconds until a row may be leased, at most $1. Leaves out the tenants $2 and the groups $3 and $4.
 * @param free SQL: when a row is due and free.
 * @param where SQL condition on a row `q`.
 */
export function dueWithin(
  claim: Pick<Claim, 'table' | 'due'>,
  free: string,
  where = 'true',
): string {
  return `select least($1, greatest(0, coalesce(min(extract(epoch from ${free} - clock_timestamp()) * 1000), $1)))::float8 as ms
    from ${claim.table} q
    where ${where} and q.tenant_id <> all($2::uuid[])
      and q.${claim.due} <= statement_timestamp() + make_interval(secs => $1::float8 / 1000)
      and ${tenantHasRoom('q.tenant_id', '$3', '$4')}`
}
