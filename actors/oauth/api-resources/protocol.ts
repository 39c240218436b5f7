/** Messages for the API resources of a tenant. See docs/guides/oauth/api-resources.md. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import type { ListCursor } from '../../domain/paging.js'
import type { Principal } from '../../domain/principal.js'

export type ApiResourcesProtocol = {
  list: Ask<ListResources, ResourcesListed>
  read: Ask<ReadResource, ResourceFound | ResourceUnknown>
  /** The facts of the metadata document of the resource (RFC 9728). */
  describe: Ask<ReadResource, ResourceDescribed | ResourceUnknown>
  create: Ask<CreateResource, ResourceCreated | ResourceRefused | IdempotencyRefused>
  /** Changes the members of the draft and keeps the others. */
  update: Ask<UpdateResource, ResourceFound | ResourceUnknown | ResourceRefused>
  /** Deletes the resource. Its tokens end. */
  remove: Ask<RemoveResource, { readonly tag: 'removed' } | ResourceUnknown>
}

/** What a scope permits, for the consent page. */
export type ScopeKind = 'read' | 'write' | 'money'
export type ResourceScope = {
  readonly name: string
  readonly description: string
  readonly kind: ScopeKind
}

/** An API or MCP server for which this service issues access tokens (RFC 8707). */
export type ApiResource = {
  readonly id: string
  readonly tenantId: string
  /** As registered: the `aud` of its tokens. */
  readonly resource: string
  readonly name: string
  readonly scopes: readonly ResourceScope[]
  readonly allowedClients: 'any' | 'listed'
  readonly clientIds: readonly string[]
  readonly requireDpop: boolean
  /** Access tokens have an entry in a status list. */
  readonly tokenStatusList: boolean
  /** Seconds. Null selects the lifetime of the deployment. */
  readonly accessTokenLifetimeSecs: number | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** A new resource, or a change of one. */
export type ResourceDraft = {
  readonly resource: string
  readonly name: string
  readonly scopes: readonly ResourceScope[]
  readonly allowedClients: 'any' | 'listed'
  readonly clientIds: readonly string[]
  readonly requireDpop: boolean
  /** Access tokens have an entry in a status list. */
  readonly tokenStatusList: boolean
  readonly accessTokenLifetimeSecs: number | null
}

export type ListResources = {
  readonly principal: Principal
  /** 1 to 200. */
  readonly limit: number
  readonly after: ListCursor | null
}
export type ResourcesListed = {
  readonly tag: 'listed'
  readonly resources: readonly ApiResource[]
  /** Position of the next page. Null on the last page. */
  readonly next: ListCursor | null
}
export type ReadResource = { readonly principal: Principal; readonly resourceId: string }
export type ResourceFound = { readonly tag: 'found'; readonly resource: ApiResource }
export type ResourceDescribed = {
  readonly tag: 'described'
  readonly resource: ApiResource
  readonly issuer: string
}
export type ResourceUnknown = { readonly tag: 'unknown' }

export type CreateResource = {
  readonly caller: Caller
  readonly draft: ResourceDraft
  readonly idempotency: IdempotencyClaim | null
}
export type ResourceCreated = {
  readonly tag: 'created'
  readonly resource: ApiResource
  readonly replayed: boolean
}
export type UpdateResource = {
  readonly caller: Caller
  readonly resourceId: string
  /** Undefined members stay unchanged. */
  readonly change: { readonly [K in keyof ResourceDraft]: ResourceDraft[K] | undefined }
}
export type RemoveResource = { readonly caller: Caller; readonly resourceId: string }

/** Why a tenant may not have an audience. */
export type AudienceRefused =
  /** It is an address of this service. */
  | { readonly tag: 'conflict' }
  /** The host is neither a verified domain of the tenant nor a local one. */
  | { readonly tag: 'domain_not_verified'; readonly host: string }

export type ResourceRefused =
  /** One member of the draft is invalid. */
  | {
      readonly tag: 'invalid'
      /** JSON pointer into the request body, with wire names. */
      readonly pointer: string
      readonly detail: string
    }
  /** `conflict` too if an application or API resource of the deployment has this audience. */
  | AudienceRefused
  | { readonly tag: 'full'; readonly most: number }

/** The owners of all workspaces share the control-plane tenant, which has no API resources. */
export type IdempotencyRefused =
  | { readonly tag: 'idempotency_mismatch' }
  | { readonly tag: 'idempotency_in_progress' }

export const apiResources = address<ApiResourcesProtocol>('api-resources', [
  'list',
  'read',
  'describe',
])
