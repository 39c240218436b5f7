/** What a tenant configures for enterprise SSO: its identity providers, and the domains of its organization. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../domain/idempotency.js'
import type { TenantId } from '../../domain/ids.js'
import type { Listed, Page } from '../../domain/paging.js'
import type { MemberInvalid } from '../../domain/entities/messages.js'

export type IdentityProvidersProtocol = {
  listSsoProviders: Ask<Page & InTenant, Listed<ProviderRecord> | Off>
  createSsoProvider: Ask<
    CreateProvider,
    ProviderCreated | Invalid | Full | IdempotencyRefused | Off
  >
  getSsoProvider: Ask<Named, ProviderFound | Unknown | Off>
  updateSsoProvider: Ask<UpdateProvider, ProviderFound | Invalid | Unknown | Off>
  deleteSsoProvider: Ask<NamedBy, { tag: 'deleted' } | Unknown | Off>
  listDomains: Ask<Page & InTenant, Listed<DomainRecord> | Off>
  createDomain: Ask<
    CreateDomain,
    DomainCreated | Invalid | Full | DomainPresent | NoOrganization | IdempotencyRefused | Off
  >
  getDomain: Ask<Named, DomainFound | Unknown | Off>
  updateDomain: Ask<UpdateDomain, DomainFound | Invalid | Unknown | Off>
  /** Looks up the TXT record. Safe to repeat. */
  verifyDomain: Ask<
    NamedBy,
    DomainFound | RecordMissing | DomainTaken | ResolverSilent | NoOrganization | Unknown | Off
  >
  deleteDomain: Ask<NamedBy, { tag: 'deleted' } | Unknown | Off>
}

/** `enterprise_sso.enabled` or `verified_domains.enabled` is false. */
export type Off = { readonly tag: 'off' }
export type Unknown = { readonly tag: 'unknown' }
export type Invalid = MemberInvalid
export type Full = { readonly tag: 'full'; readonly most: number }
export type NoOrganization = { readonly tag: 'no_organization' }
export type InTenant = { readonly tenantId: TenantId }
export type Named = InTenant & { readonly id: string }
export type NamedBy = { readonly caller: Caller; readonly id: string }

export type AuthMethod = 'client_secret_basic' | 'client_secret_post' | 'none'

export type ProviderRecord = {
  readonly id: string
  readonly tenantId: TenantId
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly hasClientSecret: boolean
  readonly tokenEndpointAuthMethod: AuthMethod
  readonly scopes: readonly string[]
  readonly authorizationEndpoint: string | null
  readonly tokenEndpoint: string | null
  readonly userinfoEndpoint: string | null
  readonly jwksUri: string | null
  readonly trustedAcrValues: readonly string[]
  readonly provision: boolean
  readonly active: boolean
  /** To be registered at the provider. */
  readonly redirectUri: string
  readonly createdAt: Date
  readonly updatedAt: Date
}
/** A provider's configuration. Members left out of an update stay unchanged. */
export type ProviderDraft = {
  readonly name: string
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string | undefined
  readonly tokenEndpointAuthMethod: AuthMethod
  readonly scopes: readonly string[]
  readonly authorizationEndpoint: string | null
  readonly tokenEndpoint: string | null
  readonly userinfoEndpoint: string | null
  readonly jwksUri: string | null
  readonly trustedAcrValues: readonly string[]
  readonly provision: boolean
  readonly active: boolean
}
export type CreateProvider = {
  readonly caller: Caller
  readonly draft: ProviderDraft
  readonly idempotency: IdempotencyClaim | null
}
export type UpdateProvider = NamedBy & {
  readonly change: { readonly [K in keyof ProviderDraft]?: ProviderDraft[K] | undefined }
}
export type ProviderCreated = {
  readonly tag: 'created'
  readonly provider: ProviderRecord
  readonly replayed: boolean
}
export type ProviderFound = { readonly tag: 'found'; readonly provider: ProviderRecord }

export type DomainRecord = {
  readonly id: string
  readonly tenantId: TenantId
  readonly domain: string
  readonly verifiedAt: Date | null
  /** The TXT record that verifies the domain. */
  readonly proof: { readonly name: string; readonly value: string }
  readonly ssoProviderId: string | null
  readonly autoJoin: boolean
  readonly createdAt: Date
}
export type CreateDomain = {
  readonly caller: Caller
  readonly domain: string
  readonly ssoProviderId: string | null
  readonly autoJoin: boolean
  readonly idempotency: IdempotencyClaim | null
}
export type UpdateDomain = NamedBy & {
  readonly change: {
    readonly ssoProviderId: string | null | undefined
    readonly autoJoin: boolean | undefined
  }
}
export type DomainCreated = {
  readonly tag: 'created'
  readonly domain: DomainRecord
  readonly replayed: boolean
}
export type DomainFound = { readonly tag: 'found'; readonly domain: DomainRecord }
/** The tenant already has the domain. */
export type DomainPresent = { readonly tag: 'present' }
export type RecordMissing = {
  readonly tag: 'proof_missing'
  readonly proof: { readonly name: string; readonly value: string }
}
/** Another organization has verified it. */
export type DomainTaken = { readonly tag: 'taken' }
export type ResolverSilent = { readonly tag: 'resolver_silent' }

export const identityProviders = address<IdentityProvidersProtocol>('identity-providers', {
  idempotent: ['listSsoProviders', 'getSsoProvider', 'listDomains', 'getDomain'],
})
