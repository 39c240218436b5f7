/** Cache of tenants: bounded, invalidated on change, with a maximum age. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Tenant } from '../../domain/tenants/tenancy.js'

const TENANTS_MAX = 4096
/** Maximum staleness if a notification is lost: a suspension takes effect everywhere within 1 s. */
const AGE_MS_MAX = 900

export interface TenantCache {
  get(key: TenantKey): Tenant | undefined
  put(tenant: Tenant): void
  drop(tenantId: string): void
  clear(): void
}

/** `id:<uuid>` or `slug:<slug>`. */
export type TenantKey = `id:${string}` | `slug:${string}`

export function tenantCache(clock: Clock): TenantCache {
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
