/** Resolves the tenant of a request. PostgreSQL holds the truth; results are cached briefly. */
import { defineActor, type MessageContext } from '../../../../runtime/kernel/actor.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import {
  findControlPlane,
  findTenant,
  findTenantBySlug,
  insertControlPlane,
  listEnvironments,
  type TenantRow,
} from '../../../../storage/identity/tenants.js'
import { CONTROL_PLANE_SLUG } from '../../../domain/tenants/slugs.js'
import type { Tenant } from '../../../domain/tenants/tenancy.js'
import { type TenantsProtocol, tenants } from './protocol.js'
import { nameTenant, type TenancySettings } from '../../../domain/tenants/resolution.js'
import { tenantSettings } from './tenant-settings.js'

const UNKNOWN = { tag: 'unknown_tenant' } as const

type TenantsNeeds = {
  database: Database
  clock: Clock
  random: Random
  settings: TenancySettings
}

export const tenantsActor = defineActor<TenantsProtocol, TenantsNeeds>({
  address: tenants,
  asks: {},
  mailbox: { capacity: 4096, inflightMax: 256 },
  lane: {
    ensureControlPlane: () => 'control_plane',
    changeTenantSettings: ({ caller }) => caller.principal.tenantId,
  },
  create: ({ database, clock, random, settings }) => {
    const cache = tenantCache(clock)
    let controlPlane: Tenant | undefined

    // The tenant is resolved before any tenant is bound to the transaction.
    const load = async (
      find: (tx: Transaction) => Promise<TenantRow | undefined>,
      context: MessageContext,
    ): Promise<Tenant | undefined> => {
      const row = await database.system(find, context)
      if (row === undefined) return undefined
      const tenant = tenantOf(row)
      cache.put(tenant)
      return tenant
    }

    const readControlPlane = async (context: MessageContext): Promise<Tenant> => {
      const remembered = controlPlane && cache.get(`id:${controlPlane.id}`)
      if (remembered !== undefined) return remembered
      controlPlane = await load(findControlPlane, context)
      if (controlPlane === undefined) throw new Error('the control-plane tenant does not exist')
      return controlPlane
    }

    return {
      // The signal of a message is created when it is read, which most requests need not pay for.
      async resolve(selector, context) {
        const named = nameTenant(selector, settings)
        switch (named.by) {
          case 'conflict':
            return { tag: 'conflicting_tenant' }
          case 'nothing_known':
            return UNKNOWN
          case 'control_plane':
            return { tag: 'resolved', tenant: await readControlPlane(context), by: 'control_plane' }
          case 'id': {
            const tenant =
              cache.get(`id:${named.id}`) ?? (await load((tx) => findTenant(tx, named.id), context))
            return tenant === undefined ? UNKNOWN : { tag: 'resolved', tenant, by: named.how }
          }
          case 'slug': {
            const tenant =
              cache.get(`slug:${named.slug}`) ??
              (await load((tx) => findTenantBySlug(tx, named.slug), context))
            return tenant === undefined ? UNKNOWN : { tag: 'resolved', tenant, by: named.how }
          }
        }
      },

      async listNewestTenants({ limit }, context) {
        const rows = await database.system((tx) => listEnvironments(tx, limit, null), context)
        return { tag: 'listed', tenants: rows.filter(({ status }) => status === 'active') }
      },

      async ensureControlPlane(_message, context) {
        // The unique index lets one of several concurrent first starts insert. All of them read the same row.
        controlPlane = await load(async (tx) => {
          const known = await findControlPlane(tx)
          if (known !== undefined) return known
          await insertControlPlane(tx, {
            id: random.uuid(),
            name: 'Control plane',
            slug: CONTROL_PLANE_SLUG,
            createdAt: clock.now(),
          })
          return findControlPlane(tx)
        }, context)
        if (controlPlane === undefined) throw new Error('the control-plane tenant was not created')
        return { tag: 'control_plane', tenant: controlPlane }
      },

      ...tenantSettings({ database, clock, random, changed: cache.drop }),

      async forget({ tenantId }) {
        if (tenantId === null) cache.clear()
        else cache.drop(tenantId)
      },
    }
  },
})

function tenantOf(row: TenantRow): Tenant {
  return {
    id: row.id,
    organizationId: row.organizationId,
    name: row.name,
    slug: row.slug,
    environment: row.environment,
    status: row.status,
    controlPlane: row.controlPlane,
    admitAgents: row.admitAgents,
    directAgentRegistration: row.directAgentRegistration,
    credentialIssuerEnabled: row.credentialIssuerEnabled,
    billing: row.billing,
  }
}

const TENANTS_MAX = 4096
/** Maximum staleness if a notification is lost: a suspension takes effect everywhere within 1 s. */
const AGE_MS_MAX = 900

/** Cache of tenants: bounded, invalidated on change, with a maximum age. */
interface TenantCache {
  get(key: TenantKey): Tenant | undefined
  put(tenant: Tenant): void
  drop(tenantId: string): void
  clear(): void
}

/** `id:<uuid>` or `slug:<slug>`. */
type TenantKey = `id:${string}` | `slug:${string}`

function tenantCache(clock: Clock): TenantCache {
  const byId = new Map<string, { tenant: Tenant; readAtMs: number }>()
  const idBySlug = new Map<string, string>()

  const drop = (id: string) => {
    const known = byId.get(id)
    if (known === undefined) return
    byId.delete(id)
    if (idBySlug.get(known.tenant.slug) === id) idBySlug.delete(known.tenant.slug)
  }

  return {
    get(key) {
      const id = key.startsWith('id:') ? key.slice(3) : idBySlug.get(key.slice(5))
      if (id === undefined) return undefined
      const known = byId.get(id)
      if (known === undefined) return undefined
      if (clock.monotonicMs() - known.readAtMs < AGE_MS_MAX) return known.tenant
      drop(id)
      return undefined
    },
    put(tenant) {
      drop(tenant.id)
      if (byId.size >= TENANTS_MAX) drop(byId.keys().next().value!)
      byId.set(tenant.id, { tenant, readAtMs: clock.monotonicMs() })
      idBySlug.set(tenant.slug, tenant.id)
    },
    drop,
    clear() {
      byId.clear()
      idBySlug.clear()
    },
  }
}
