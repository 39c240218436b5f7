/** Domains of tenants, and the one organization that owns each. Statements on `domain_owners` cross tenants. */
import { firstRow, firstValue, isChanged, onlyValue, type Transaction } from '../platform/sql.js'
import { listing } from '../platform/portable/tenant-rows.js'

export type VerifiedDomainRow = {
  readonly tenantId: string
  readonly id: string
  readonly domain: string
  readonly proof: string
  readonly ssoProviderId: string | null
  readonly autoJoin: boolean
  readonly createdAt: Date
  readonly verifiedAt: Date | null
}

const COLUMNS = `tenant_id as "tenantId", id, domain, proof, sso_provider_id as "ssoProviderId",
  auto_join as "autoJoin", created_at as "createdAt", verified_at as "verifiedAt"`

type DomainInserted = 'inserted' | 'present' | 'full'

/** Adds an unverified domain, unless the tenant already has it or has `most` domains. */
export async function insertVerifiedDomain(
  tx: Transaction,
  row: Omit<VerifiedDomainRow, 'verifiedAt'>,
  most: number,
): Promise<DomainInserted> {
  const { rows } = await tx.query<{ present: boolean; full: boolean }>({
    name: 'verified_domain.room',
    text: `with turn as (select id from tenants where id = $1 for no key update)
           select count(*) filter (where d.domain = $2) > 0 as present, count(d.id) >= $3 as full
           from turn left join verified_domains d on d.tenant_id = turn.id`,
    values: [row.tenantId, row.domain, most],
  })
  if (rows[0]?.present === true) return 'present'
  if (rows[0]?.full === true) return 'full'
  const { rowCount } = await tx.query({
    name: 'verified_domain.insert',
    text: `insert into verified_domains (tenant_id, id, domain, proof, sso_provider_id, auto_join,
             created_at)
           values ($1, $2, $3, $4, $5, $6, $7) on conflict (tenant_id, domain) do nothing`,
    values: [
      row.tenantId,
      row.id,
      row.domain,
      row.proof,
      row.ssoProviderId,
      row.autoJoin,
      row.createdAt,
    ],
  })
  return rowCount === 1 ? 'inserted' : 'present'
}

export const findVerifiedDomain = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<VerifiedDomainRow>(tx, {
    name: 'verified_domain.find',
    text: `select ${COLUMNS} from verified_domains where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })

/** A page of a tenant's domains, newest first. */
export const listVerifiedDomains = listing<VerifiedDomainRow>(
  'verified_domain.list',
  `select ${COLUMNS} from verified_domains where tenant_id = $1`,
)

type DomainChange = {
  /** Undefined leaves it unchanged; null removes the route. */
  readonly ssoProviderId: string | null | undefined
  readonly autoJoin: boolean | undefined
}

export const updateVerifiedDomain = (
  tx: Transaction,
  tenantId: string,
  id: string,
  { ssoProviderId, autoJoin }: DomainChange,
) =>
  firstRow<VerifiedDomainRow>(tx, {
    name: 'verified_domain.update',
    text: `update verified_domains set
             sso_provider_id = case when $3 then $4::uuid else sso_provider_id end,
             auto_join = coalesce($5, auto_join)
           where tenant_id = $1 and id = $2 returning ${COLUMNS}`,
    values: [tenantId, id, ssoProviderId !== undefined, ssoProviderId ?? null, autoJoin ?? null],
  })

/** Claims a domain for an organization; false when another one owns it. One statement decides. */
export const claimDomain = (tx: Transaction, domain: string, organizationId: string, now: Date) =>
  isChanged(tx, {
    name: 'domain_owner.claim',
    text: `insert into domain_owners as o (domain, organization_id, verified_at)
           values ($1, $2, $3)
           on conflict (domain) do update set verified_at = excluded.verified_at
             where o.organization_id = excluded.organization_id`,
    values: [domain, organizationId, now],
  })

/** Marks a domain as verified; the first time is kept. */
export const verifyDomainRow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  firstRow<VerifiedDomainRow>(tx, {
    name: 'verified_domain.verify',
    text: `update verified_domains set verified_at = coalesce(verified_at, $3)
           where tenant_id = $1 and id = $2 returning ${COLUMNS}`,
    values: [tenantId, id, now],
  })

/**
 * Deletes a domain of a tenant. With the last verified one the organization's claim ends. The owner's row, locked
 * first, serializes this with a concurrent claim.
 */
export async function deleteVerifiedDomain(
  tx: Transaction,
  tenantId: string,
  id: string,
): Promise<string | undefined> {
  await tx.query({
    name: 'domain_owner.lock',
    text: `select from domain_owners where domain in (
             select domain from verified_domains where tenant_id = $1 and id = $2) for update`,
    values: [tenantId, id],
  })
  const { rows } = await tx.query<{ domain: string }>({
    name: 'verified_domain.delete',
    text: 'delete from verified_domains where tenant_id = $1 and id = $2 returning domain',
    values: [tenantId, id],
  })
  const domain = rows[0]?.domain
  if (domain === undefined) return undefined
  await tx.query({
    name: 'domain_owner.release',
    text: `delete from domain_owners o where o.domain = $1 and not exists (
             select from verified_domains d join tenants t on t.id = d.tenant_id
             where d.domain = $1 and d.verified_at is not null
               and t.organization_id = o.organization_id)`,
    values: [domain],
  })
  return domain
}

/** The provider that addresses of a domain are routed to in a tenant. */
export type DomainRoute = {
  readonly organizationId: string
  readonly organizationName: string
  readonly providerId: string
  readonly autoJoin: boolean
}

/** The route of a verified domain whose provider is enabled. */
export const findDomainRoute = (tx: Transaction, tenantId: string, domain: string) =>
  firstRow<DomainRoute>(tx, {
    name: 'verified_domain.route',
    text: `select o.id as "organizationId", o.name as "organizationName",
             p.id::text as "providerId", d.auto_join as "autoJoin"
           from verified_domains d
             join sso_providers p on p.tenant_id = d.tenant_id and p.id = d.sso_provider_id
               and p.active
             join tenants t on t.id = d.tenant_id and t.status = 'active'
             join organizations o on o.id = t.organization_id and o.status = 'active'
           where d.tenant_id = $1 and d.domain = $2 and d.verified_at is not null`,
    values: [tenantId, domain],
  })

/** True if the tenant verified the domain, whatever its route. */
export async function hasVerifiedDomain(
  tx: Transaction,
  tenantId: string,
  domain: string,
): Promise<boolean> {
  const { rows } = await tx.query({
    name: 'verified_domain.is_of_tenant',
    text: `select from verified_domains
           where tenant_id = $1 and domain = $2 and verified_at is not null`,
    values: [tenantId, domain],
  })
  return rows.length === 1
}

/**
 * True if the tenant verified the most specific of these domains that any organization owns. Owners are global, so the
 * transaction crosses tenants.
 */
export const ownsDomain = (tx: Transaction, tenantId: string, domains: readonly string[]) =>
  onlyValue<boolean>(tx, {
    name: 'verified_domain.owns',
    text: `select exists (select from verified_domains d join tenants t on t.id = d.tenant_id
             where d.tenant_id = $1 and d.domain = any($2) and d.verified_at is not null
               and not exists (select from domain_owners o
                 where o.domain = any($2) and length(o.domain) > length(d.domain)
                   and o.organization_id <> t.organization_id)) as owns`,
    values: [tenantId, domains],
  })

/** True if the account is a user of any tenant with this domain verified. A pending invitation does not count. */
export const isUserOfDomainOwner = async (tx: Transaction, accountId: string, domain: string) =>
  (await firstValue<boolean>(tx, {
    name: 'verified_domain.is_owners_user',
    text: `select exists (select from verified_domains d
             join tenant_users u on u.tenant_id = d.tenant_id and u.account_id = $1
               and u.status in ('pre_provisioned', 'active', 'suspended')
             where d.domain = $2 and d.verified_at is not null) as is`,
    values: [accountId, domain],
  })) === true
