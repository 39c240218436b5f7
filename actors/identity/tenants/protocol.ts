/** Which tenant a request means. Tenants are read often and change rarely: answers may be cached. */
import type { TenantNaming } from '../../domain/tenants/resolution.js'
import { address, type Ask, type Send } from '../../../runtime/kernel/protocol.js'
import type { Locale } from '../../domain/locales.js'
import type { Caller } from '../../domain/audit.js'
import type { TenantId } from '../../domain/ids.js'
import type { Tenant, TenantSelector } from '../../domain/tenants/tenancy.js'

export type TenantsProtocol = {
  /** Explicit id or slug, else `[tenant].default_tenant_slug`, else the host, else control plane. */
  resolve: Ask<TenantSelector, TenantResolved | TenantUnknown | TenantConflict>
  /** Creates the control-plane tenant at the first start of all; afterwards only reads it. */
  ensureControlPlane: Ask<Record<never, never>, { tag: 'control_plane'; tenant: Tenant }>
  /** What those who look after a tenant may decide about it. The control plane is no such tenant. */
  readSettings: Ask<{ readonly tenantId: TenantId }, SettingsFound | NoEnvironment>
  changeSettings: Ask<ChangeSettings, SettingsFound | SettingInvalid | NoEnvironment>
  /** Drops what is remembered of a tenant that changed, here or elsewhere; null: of all of them. */
  forget: Send<{ tenantId: string | null }>
}

export type TenantResolved = {
  tag: 'resolved'
  tenant: Tenant
  by: TenantNaming
}

/**
 * Whether a host names a tenant that is not the one of the token it was asked with (decisions.md 21,
 * token and host). One that names no tenant that exists says nothing: other addresses of the service
 * lie under the base domain too.
 */
export function namesAnother(
  named: TenantResolved | TenantUnknown | TenantConflict,
  tenantId: TenantId,
): boolean {
  return named.tag === 'resolved' && named.by === 'host' && named.tenant.id !== tenantId
}

export type TenantUnknown = { tag: 'unknown_tenant' }
/** Both `tenant_id` and `tenant_slug` were sent. */
export type TenantConflict = { tag: 'conflicting_tenant' }

/** decisions.md 17; members appear with the features that read them. */
export type TenantSettingsRecord = {
  readonly admitAgents: boolean
  readonly directAgentRegistration: boolean
  readonly credentialIssuerEnabled: boolean
  /** Where checkouts may lead to besides `commerce.redirect_hosts`. */
  readonly checkoutRedirectHosts: readonly string[]
  /** Default payees of x402: addresses by CAIP-2 network. */
  readonly x402PayTo: Readonly<Record<string, string>>
  /** A sign-out also ends grants with `offline_access`. */
  readonly logoutRevokesOffline: boolean
  readonly branding: Branding
  readonly session: SessionLifetimes
  readonly social: SocialSignIn
}
/** How a tenant's pages look; what is absent is ours. */
export type Branding = {
  readonly name?: string | undefined
  /** `#rrggbb` */
  readonly color?: string | undefined
  /** A `data:` URI of a PNG, JPEG or WebP picture. */
  readonly logo?: string | undefined
  /** The language for those who ask for none that there is. */
  readonly locale?: Locale | undefined
}
/** How long people stay signed in; what is absent is `[session_cookie]`. */
export type SessionLifetimes = {
  readonly idleSecs?: number | undefined
  readonly absoluteSecs?: number | undefined
}
/** Sign-in through the providers of the deployment; what is absent is yes, and nobody new. */
export type SocialSignIn = {
  readonly enabled?: boolean | undefined
  /** People whom a provider vouches for become users of the tenant. */
  readonly provision?: boolean | undefined
}
export type ChangeSettings = {
  readonly caller: Caller
  /** What is left out stays; `branding`, `session` and `social` are replaced as a whole. */
  readonly change: {
    readonly [K in keyof TenantSettingsRecord]?: TenantSettingsRecord[K] | undefined
  }
}
export type SettingsFound = { tag: 'found'; settings: TenantSettingsRecord }
export type SettingInvalid = {
  tag: 'invalid'
  /** JSON pointer into the body. */
  pointer: string
  detail: string
}
/** The token is one of the control plane, which belongs to all operators. */
export type NoEnvironment = { tag: 'no_environment' }

/** The database notifies it with the id of every tenant that changes, at the commit. */
export const TENANTS_CHANNEL = 'svc_tenants'

export const tenants = address<TenantsProtocol>('tenants', [
  'resolve',
  'ensureControlPlane',
  'readSettings',
])
