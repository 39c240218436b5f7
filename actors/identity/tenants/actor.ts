/** Finds the tenant a request means. Postgres is the truth; what was read is remembered briefly. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import {
  findControlPlane,
  findTenant,
  findTenantBySlug,
  insertControlPlane,
  type TenantRow,
} from '../../../storage/identity/tenants.js'
import { CONTROL_PLANE_SLUG } from '../../domain/tenants/slugs.js'
import type { Tenant } from '../../domain/tenants/tenancy.js'
import { tenantCache } from './cache.js'
import { type TenantsProtocol, tenants } from './protocol.js'
import { nameTenant, type TenancySettings } from '../../domain/tenants/resolution.js'
import { tenantSettings } from './tenant-settings.js'

const UNKNOWN = { tag: 'unknown_tenant' } as const

export type TenantsNeeds = {
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
    changeSettings: ({ caller }) => caller.principal.tenantId,
  },
  create: ({ database, clock, random, settings }) => {
    const cache = tenantCache(clock)
    let controlPlane: Tenant | undefined

    // Which tenant a name means is asked before any tenant is bound.
    const load = async (
      find: (tx: Transaction) => Promise<TenantRow | undefined>,
      signal: AbortSignal,
    ): Promise<Tenant | undefined> => {
      const row = await database.system(find, { signal })
      if (row === undefined) return undefined
      const tenant = tenantOf(row)
      cache.put(tenant)
      return tenant
    }

    const readControlPlane = async (signal: AbortSignal): Promise<Tenant> => {
      const remembered = controlPlane && cache.get(`id:${controlPlane.id}`)
      if (remembered !== undefined) return remembered
      controlPlane = await load(findControlPlane, signal)
      if (controlPlane === undefined) throw new Error('the control-plane tenant does not exist')
      return controlPlane
    }

    return {
      async resolve(selector, { signal }) {
        const named = nameTenant(selector, settings)
        switch (named.by) {
          case 'conflict':
            return { tag: 'conflicting_tenant' }
          case 'nothing_known':
            return UNKNOWN
          case 'control_plane':
            return { tag: 'resolved', tenant: await readControlPlane(signal), by: 'control_plane' }
          case 'id': {
            const tenant =
              cache.get(`id:${named.id}`) ?? (await load((tx) => findTenant(tx, named.id), signal))
            return tenant === undefined ? UNKNOWN : { tag: 'resolved', tenant, by: named.how }
          }
          case 'slug': {
            const tenant =
              cache.get(`slug:${named.slug}`) ??
              (await load((tx) => findTenantBySlug(tx, named.slug), signal))
            return tenant === undefined ? UNKNOWN : { tag: 'resolved', tenant, by: named.how }
          }
        }
      },

      async ensureControlPlane(_message, { signal }) {
        // Of any number of first starts at once the unique index lets one insert; all read the same.
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
        }, signal)
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
  }
}
