/** Tenants: the environments of organizations, and the one control plane. */
import { allRows, execute, firstRow, type Transaction } from '../platform/sql.js'
import { type TenantKind, tenantKind } from '../platform/in-force.js'
import { columnsOf, listing } from '../platform/portable/tenant-rows.js'

export type TenantRow = {
  id: string
  organizationId: string | null
  name: string
  slug: string
  environment: 'sandbox' | 'production'
  status: 'active' | 'suspended'
  controlPlane: boolean
  admitAgents: boolean
  directAgentRegistration: boolean
  credentialIssuerEnabled: boolean
  supportContact: string | null
  /** What the plan of the organization comes to. Null: everything is permitted. */
  billing: { features: string[] | null; suspended: boolean } | null
  createdAt: Date
  updatedAt: Date
}

type NewTenant = Pick<
  TenantRow,
  'id' | 'organizationId' | 'name' | 'slug' | 'environment' | 'admitAgents' | 'createdAt'
> & { supportContact?: string | null }

/** Inserts a tenant. Undefined, and nothing written, when the slug is taken. */
export const insertTenant = (tx: Transaction, tenant: NewTenant) =>
  firstRow<TenantRow>(tx, {
    name: 'tenant.insert',
    text: `insert into tenants (id, organization_id, name, slug, environment, admit_agents,
             created_at, updated_at, support_contact)
           values ($1, $2, $3, $4, $5, $6, $7, $7, $8)
           on conflict (slug) do nothing
           returning ${COLUMNS}`,
    values: [
      tenant.id,
      tenant.organizationId,
      tenant.name,
      tenant.slug,
      tenant.environment,
      tenant.admitAgents,
      tenant.createdAt,
      tenant.supportContact ?? null,
    ],
  })

/** Inserts the control plane if it does not exist. Exactly one of several concurrent first starts inserts it. */
export const insertControlPlane = (
  tx: Transaction,
  tenant: Pick<NewTenant, 'id' | 'name' | 'slug' | 'createdAt'>,
) =>
  execute(tx, {
    name: 'tenant.insert_control_plane',
    text: `insert into tenants (id, name, slug, environment, control_plane, admit_agents,
             created_at, updated_at)
           values ($1, $2, $3, 'production', true, true, $4, $4)
           on conflict do nothing`,
    values: [tenant.id, tenant.name, tenant.slug, tenant.createdAt],
  })

export const findControlPlane = (tx: Transaction) =>
  firstRow<TenantRow>(tx, {
    name: 'tenant.control_plane',
    text: `select ${COLUMNS} from tenants where control_plane`,
  })

export const findTenant = (tx: Transaction, id: string) =>
  firstRow<TenantRow>(tx, {
    name: 'tenant.find',
    text: `select ${COLUMNS} from tenants where id = $1`,
    values: [id],
  })

/** Undefined for a tenant that does not exist. */
export const findTenantKind = (tx: Transaction, id: string) =>
  firstRow<TenantKind>(tx, {
    name: 'tenant.kind',
    text: `select ${tenantKind('t.id')} from tenants t where t.id = $1`,
    values: [id],
  })

/** A page of all environments of the deployment, newest first. */
export const listEnvironments = (
  tx: Transaction,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<TenantRow>(tx, {
    name: 'tenant.list_all',
    text: `select ${COLUMNS} from tenants
           where organization_id is not null
             and ($2::timestamptz is null or (created_at, id) < ($2, $3::uuid))
           order by created_at desc, id desc limit $1`,
    values: [limit, after?.createdAt ?? null, after?.id ?? null],
  })

type TenantSettingsChange = {
  readonly admitAgents: boolean | undefined
  readonly directAgentRegistration: boolean | undefined
  readonly credentialIssuerEnabled: boolean | undefined
  /** Members of `settings` to replace, each as a whole. */
  readonly settings: Readonly<Record<string, unknown>>
}

/** A tenant with its settings, which most queries do not need. */
export type TenantWithSettings = TenantRow & {
  readonly settings: Readonly<Record<string, unknown>>
}

export const findTenantWithSettings = (tx: Transaction, id: string) =>
  firstRow<TenantWithSettings>(tx, {
    name: 'tenant.find_with_settings',
    text: `select ${COLUMNS}, settings from tenants where id = $1`,
    values: [id],
  })

/** Updates the given settings of an environment. Returns the row before and after. */
export async function updateTenantSettings(
  tx: Transaction,
  id: string,
  change: TenantSettingsChange,
  now: Date,
): Promise<{ before: TenantWithSettings; after: TenantWithSettings } | undefined> {
  const before = await tx.query<TenantWithSettings>({
    name: 'tenant.hold',
    text: `select ${COLUMNS}, settings from tenants
           where id = $1 and not control_plane for no key update`,
    values: [id],
  })
  const after = await tx.query<TenantWithSettings>({
    name: 'tenant.update_settings',
    text: `update tenants set admit_agents = coalesce($2, admit_agents),
             direct_agent_registration = coalesce($3, direct_agent_registration),
             credential_issuer_enabled = coalesce($4, credential_issuer_enabled),
             settings = settings || $6::jsonb, updated_at = $5
           where id = $1 and not control_plane returning ${COLUMNS}, settings`,
    values: [
      id,
      change.admitAgents ?? null,
      change.directAgentRegistration ?? null,
      change.credentialIssuerEnabled ?? null,
      now,
      JSON.stringify(change.settings),
    ],
  })
  const [was, is] = [before.rows[0], after.rows[0]]
  return was === undefined || is === undefined ? undefined : { before: was, after: is }
}

/** Updates an environment. Undefined members stay unchanged. Null removes the contact. */
export async function updateTenantRow(
  tx: Transaction,
  id: string,
  change: { readonly name: string | undefined; readonly supportContact: string | null | undefined },
  now: Date,
): Promise<void> {
  const { name, supportContact } = change
  // Lock the organization before the tenant, in the same order as a change of the organization: pages show the contact
  // of both.
  await tx.query({
    name: 'tenant.hold_parent',
    text: `select from organizations
           where id = (select organization_id from tenants where id = $1) for share`,
    values: [id],
  })
  await tx.query({
    name: 'tenant.update',
    text: `update tenants set name = coalesce($2, name),
             support_contact = case when $4 then $3 else support_contact end, updated_at = $5
           where id = $1 and not control_plane`,
    values: [id, name ?? null, supportContact ?? null, supportContact !== undefined, now],
  })
}

/** Locks a tenant until the transaction ends, so that its kind does not change. */
export const holdTenant = (tx: Transaction, id: string) =>
  firstRow<TenantRow>(tx, {
    name: 'tenant.hold_as_it_is',
    text: `select ${COLUMNS} from tenants where id = $1 for no key update`,
    values: [id],
  })

/**
 * sandbox -> production, once: undefined for the second call. Switches off the admission of agents, as in a new
 * production environment.
 */
export const activateTenantRow = (tx: Transaction, id: string, now: Date) =>
  firstRow<TenantRow>(tx, {
    name: 'tenant.activate',
    text: `update tenants set environment = 'production', admit_agents = false,
             direct_agent_registration = false, updated_at = $2
           where id = $1 and environment = 'sandbox' and not control_plane
           returning ${COLUMNS}`,
    values: [id, now],
  })

export const findTenantBySlug = (tx: Transaction, slug: string) =>
  firstRow<TenantRow>(tx, {
    name: 'tenant.by_slug',
    text: `select ${COLUMNS} from tenants where slug = $1`,
    values: [slug],
  })

const COLUMNS =
  columnsOf(`id organization_id name slug environment status control_plane admit_agents
  direct_agent_registration credential_issuer_enabled support_contact billing created_at updated_at`)

/** A page of the environments of an organization, newest first. */
export const listTenantRows = listing<TenantRow>(
  'tenant.list',
  `select ${COLUMNS} from tenants where organization_id = $1`,
)
