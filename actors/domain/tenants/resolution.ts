/** How a request names its tenant, decided from the request alone. decisions.md 0, Tenant resolution. */
import { isUuid } from '../ids.js'
import { isSlug } from './slugs.js'
import type { TenantSelector } from './tenancy.js'

export type TenancySettings = {
  /** `[server] base_domain`. */
  readonly baseDomain: string
  /** Host of the issuer, which names no tenant even where it lies under the base domain. */
  readonly issuerHost: string
  /** `[tenant] default_tenant_slug`. */
  readonly defaultTenantSlug: string | undefined
}

/** `default` and `control_plane`: the request itself named no tenant. */
export type TenantNaming = 'explicit' | 'host' | 'default' | 'control_plane'

export type NamedTenant =
  | { readonly by: 'id'; readonly id: string; readonly how: TenantNaming }
  | { readonly by: 'slug'; readonly slug: string; readonly how: TenantNaming }
  | { readonly by: 'control_plane' }
  | { readonly by: 'nothing_known' }
  | { readonly by: 'conflict' }

/** A default slug switches the look at the host off (interface.md, [tenant]). */
export function nameTenant(selector: TenantSelector, settings: TenancySettings): NamedTenant {
  const { tenantId, tenantSlug, host } = selector
  if (tenantId !== undefined && tenantSlug !== undefined) return { by: 'conflict' }
  if (tenantId !== undefined) {
    return isUuid(tenantId) ? { by: 'id', id: tenantId, how: 'explicit' } : { by: 'nothing_known' }
  }
  if (tenantSlug !== undefined) return bySlug(tenantSlug, 'explicit')
  const { defaultTenantSlug } = settings
  if (defaultTenantSlug !== undefined) {
    return { by: 'slug', slug: defaultTenantSlug, how: 'default' }
  }
  const slug = host === undefined ? undefined : slugOfHost(host, settings)
  return slug === undefined ? { by: 'control_plane' } : bySlug(slug, 'host')
}

function bySlug(slug: string, how: TenantNaming): NamedTenant {
  return isSlug(slug) ? { by: 'slug', slug, how } : { by: 'nothing_known' }
}

/** The slug in `{slug}.{base_domain}`, whatever the port and the case; undefined elsewhere. */
export function slugOfHost(
  host: string,
  { baseDomain, issuerHost }: Omit<TenancySettings, 'defaultTenantSlug'>,
): string | undefined {
  const name = bareHost(host)
  const suffix = `.${bareHost(baseDomain)}`
  if (name === bareHost(issuerHost) || !name.endsWith(suffix)) return undefined
  const label = name.slice(0, -suffix.length)
  return label === '' || label.includes('.') ? undefined : label
}

function bareHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/:[0-9]*$/, '')
    .replace(/\.$/, '')
}
