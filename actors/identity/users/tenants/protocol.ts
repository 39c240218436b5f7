/** Tenant resolution and tenant settings. Tenants are read often and change rarely, so answers may be cached. */
import type { TenantNaming } from '../../../domain/tenants/resolution.js'
import { address, type Ask, type Send } from '../../../../runtime/kernel/protocol.js'
import type { Locale } from '../../../domain/i18n/locales.js'
import type { Caller } from '../../../domain/audit.js'
import type { TenantId } from '../../../domain/ids.js'
import type { PageTexts } from '../../../domain/tenants/branding.js'
import type { Tenant, TenantSelector } from '../../../domain/tenants/tenancy.js'

export type TenantsProtocol = {
  /** By id or slug, then `[tenant].default_tenant_slug`, then the host, then the control plane. */
  resolve: Ask<TenantSelector, TenantResolved | TenantUnknown | TenantConflict>
  /** The newest active tenants, without the control plane. */
  listNewestTenants: Ask<
    { readonly limit: number },
    { tag: 'listed'; tenants: readonly Pick<Tenant, 'name' | 'slug'>[] }
  >
  /** Creates the control-plane tenant at the very first start. Later only reads it. */
  ensureControlPlane: Ask<Record<never, never>, { tag: 'control_plane'; tenant: Tenant }>
  /** The settings that administrators of a tenant control. The control plane has none. */
  readTenantSettings: Ask<{ readonly tenantId: TenantId }, SettingsFound | NoEnvironment>
  changeTenantSettings: Ask<ChangeSettings, SettingsFound | SettingInvalid | NoEnvironment>
  /** Invalidates the cache of a changed tenant; null: of all tenants. */
  forget: Send<{ tenantId: string | null }>
}

export type TenantResolved = {
  tag: 'resolved'
  tenant: Tenant
  by: TenantNaming
}

/**
 * True if the host names another tenant than the token. A host that names no existing tenant counts as neutral, because
 * other addresses of the service lie under the base domain too.
 */
export function namesOtherTenant(
  named: TenantResolved | TenantUnknown | TenantConflict,
  tenantId: TenantId,
): boolean {
  return named.tag === 'resolved' && named.by === 'host' && named.tenant.id !== tenantId
}

export type TenantUnknown = { tag: 'unknown_tenant' }
/** Both `tenant_id` and `tenant_slug` were sent. */
export type TenantConflict = { tag: 'conflicting_tenant' }

/** Members are added with the features that read them. */
export type TenantSettingsRecord = {
  readonly admitAgents: boolean
  readonly directAgentRegistration: boolean
  readonly credentialIssuerEnabled: boolean
  /** Allowed redirect hosts of checkouts, in addition to `commerce.redirect_hosts`. */
  readonly checkoutRedirectHosts: readonly string[]
  /** Default x402 payees: addresses by CAIP-2 network. */
  readonly x402PayTo: Readonly<Record<string, string>>
  /** Whether signing out also revokes refresh tokens with `offline_access`. */
  readonly logoutRevokesOffline: boolean
  readonly idJag: IdJagPolicy
  /** Clients that are identified by their metadata documents. */
  readonly clientIdMetadata: ClientIdMetadataPolicy
  readonly branding: Branding
  readonly session: SessionLifetimes
  readonly social: SocialSignIn
  readonly signUp: SignUpPolicy
  readonly anonymous: AnonymousSignIn
}
/** Which clients a tenant admits without registration (Client ID Metadata Documents). */
export type ClientIdMetadataPolicy = {
  readonly enabled: boolean
  /** Hosts, `*.example.com` for those below a name, or `*`. */
  readonly allow: readonly string[]
  /** As `allow`, and wins over it. */
  readonly deny: readonly string[]
  /** Refuses clients without client authentication. */
  readonly requireAuth: boolean
  readonly maxNewClientsPerHour: number
}
/** The look of a tenant's pages. Absent members use our defaults. */
export type Branding = {
  readonly name?: string | undefined
  /** `#rrggbb` */
  readonly color?: string | undefined
  /** A `data:` URI of a PNG, JPEG or WebP picture. */
  readonly logo?: string | undefined
  /** Language for users whose requested languages are not available. */
  readonly locale?: Locale | undefined
  /** Links at the end of each page, such as terms and privacy. */
  readonly links?: readonly { readonly label: string; readonly url: string }[] | undefined
  /** Texts of the sign-in page, by language. */
  readonly texts?: PageTexts | undefined
}
/** Session lifetimes. Absent members use `[session_cookie]`. */
export type SessionLifetimes = {
  readonly idleSecs?: number | undefined
  readonly absoluteSecs?: number | undefined
}
/** Sign-in through the deployment's providers. Default: enabled, without provisioning of new users. */
export type SocialSignIn = {
  readonly enabled?: boolean | undefined
  /** Users whom a provider vouches for are provisioned. */
  readonly provision?: boolean | undefined
}
/** The identity assertions (ID-JAG) that the tenant issues. */
export type IdJagPolicy = {
  /** Also for delegated tokens, with the agents in `act`. */
  readonly includeAct: boolean
}
/** Whether people may create accounts in the tenant. Default: as the deployment. */
export type SignUpPolicy = { readonly enabled?: boolean | undefined }
/** Whether people may continue as guests. Default: no. */
export type AnonymousSignIn = { readonly enabled?: boolean | undefined }
export type ChangeSettings = {
  readonly caller: Caller
  /**
   * Absent members stay unchanged. `idJag`, `clientIdMetadata`, `branding`, `session`, `social`, `signUp` and
   * `anonymous` are replaced as a whole.
   */
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
/** The token belongs to the control plane, which all operators share. */
export type NoEnvironment = { tag: 'no_environment' }

/** PostgreSQL notifies this channel at the commit, with the id of every changed tenant. */
export const TENANTS_CHANNEL = 'svc_tenants'

export const tenants = address<TenantsProtocol>('tenants', {
  idempotent: ['resolve', 'listNewestTenants', 'ensureControlPlane', 'readTenantSettings'],
})
