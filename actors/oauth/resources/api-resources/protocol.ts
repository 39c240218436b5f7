/** Messages for the API resources of a tenant. See docs/guides/oauth/api-resources.md. */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { ApiResource, ApiResourceMembers } from '../../../domain/entities/api-resource.js'
import type { EntityProtocol, OneRow, RowUnknown } from '../../../domain/entities/messages.js'

export type ApiResourcesProtocol = EntityProtocol<ApiResourceMembers, AudienceRefused> & {
  /** The facts of the metadata document of the resource (RFC 9728). */
  getApiResourceMetadata: Ask<OneRow, ResourceDescribed | RowUnknown>
}

export type ResourceDescribed = {
  readonly tag: 'described'
  readonly row: ApiResource
  readonly issuer: string
}

/** Why a tenant may not have an audience. */
export type AudienceRefused =
  /** It is an address of this service, or another client or API resource has it. */
  | { readonly tag: 'conflict' }
  /** The host is neither a verified domain of the tenant nor a local one. */
  | { readonly tag: 'domain_not_verified'; readonly host: string }

export const apiResources = address<ApiResourcesProtocol>('api-resources', {
  idempotent: ['list', 'read', 'getApiResourceMetadata'],
})
