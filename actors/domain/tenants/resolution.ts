/** Tenant resolution: determines the tenant of a request by id, slug, host or default. */
import { isUuid } from '../ids.js'
import { isSlug } from './slugs.js'
import type { TenantSelector } from './tenancy.js'

export type TenancySettings = {
  /** `[server] base_domain`. */
  readonly baseDomain: string
  /** Host of the issuer. It is no tenant's host, even if it is a sub-domain of the base domain. */
  readonly issuerHost: string
  /** `[tenant] default_tenant_slug`. */
  readonly defaultTenantSlug: string | undefined
}

/** `default` and `control_plane`: the request does not name a tenant. */
export type TenantNaming = 'explicit' | 'host' | 'default' | 'control_plane'

type NamedTenant =
  | { readonly by: 'id'; readonly id: string; readonly how: TenantNaming }
  | { readonly by: 'slug'; readonly slug: string; readonly how: TenantNaming }
  | { readonly by: 'control_plane' }
  | { readonly by: 'nothing_known' }
  | { readonly by: 'conflict' }

/** With a default slug the host is ignored. */
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

/** The slug in `{slug}.{base_domain}`, independent of port and case. Undefined for other hosts. */
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
