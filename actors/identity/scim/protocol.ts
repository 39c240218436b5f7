/** Provisioning of tenant users by directories (RFC 7643, RFC 7644, docs/reference/identity.md, SCIM). */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../domain/idempotency.js'
import type { Listed, Page } from '../../domain/paging.js'
import type { Principal } from '../../domain/principal.js'

export type ScimProtocol = {
  /** Verifies a bearer token of a directory. Access tokens of applications are unknown here. */
  authenticate: Ask<{ readonly token: string }, ScimAuthenticated | { readonly tag: 'unknown' }>
  createScimToken: Ask<
    CreateScimToken,
    ScimTokenCreated | UnknownOrganization | RolesBeyond | Expired | IdempotencyRefused
  >
  listScimTokens: Ask<Page & { readonly caller: Caller }, Listed<ScimTokenRecord>>
  deleteScimToken: Ask<
    { readonly caller: Caller; readonly tokenId: string },
    { readonly tag: 'deleted' } | { readonly tag: 'unknown_token' }
  >
  readScimServiceProviderConfig: Ask<Record<never, never>, Described | ScimRefusal>
  /** A schema by its URI, or a resource type by its name. Null: all of them. */
  readScimSchema: Ask<{ readonly id: string | null }, Described | ScimRefusal>
  readScimResourceType: Ask<{ readonly id: string | null }, Described | ScimRefusal>
  createScimUser: Ask<WriteUser & AskedAttributes, ScimUserCreated | ScimRefusal>
  readScimUser: Ask<OneScimUser & AskedAttributes, ScimUserFound | ScimRefusal>
  listScimUsers: Ask<ListScimUsers & AskedAttributes, ScimUsersListed | ScimRefusal>
  replaceScimUser: Ask<
    OneScimUser & WriteUser & Conditional & AskedAttributes,
    ScimUserFound | ScimRefusal
  >
  patchScimUser: Ask<
    OneScimUser & WriteUser & Conditional & AskedAttributes,
    ScimUserFound | ScimRefusal
  >
  deleteScimUser: Ask<OneScimUser & Conditional, { readonly tag: 'deleted' } | ScimRefusal>
  /** Operations that this service does not have. */
  bulkScim: Ask<Record<never, never>, { readonly tag: 'not_implemented' }>
}

/** The values of `scimType` that this service sends (RFC 7644, table 9). */
export type ScimType =
  | 'invalidFilter'
  | 'invalidPath'
  | 'invalidSyntax'
  | 'invalidValue'
  | 'mutability'
  | 'noTarget'
  | 'tooMany'
  | 'uniqueness'

export type ScimRefusal = {
  readonly tag: 'refused'
  readonly status: 400 | 403 | 404 | 409 | 412 | 503
  readonly scimType: ScimType | null
  readonly detail: string
}

export type JsonObject = Readonly<Record<string, unknown>>

export type ScimAuthenticated = { readonly tag: 'authenticated'; readonly principal: Principal }

/** A role above member that a token may give and take. */
export type GrantableRole = 'admin' | 'owner'

export type CreateScimToken = {
  readonly caller: Caller
  readonly description: string | null
  readonly expiresAt: Date | null
  readonly organizationId: string | null
  /** Undefined: `admin` if the caller may give that role. */
  readonly roles: readonly GrantableRole[] | undefined
  readonly idempotency: IdempotencyClaim | null
}
export type ScimTokenRecord = {
  readonly id: string
  readonly organizationId: string | null
  readonly description: string | null
  readonly roles: readonly GrantableRole[]
  readonly createdAt: Date
  readonly expiresAt: Date | null
}
export type ScimTokenCreated = {
  readonly tag: 'created'
  readonly record: ScimTokenRecord
  /** Shown once: null on a replay. */
  readonly token: string | null
  readonly replayed: boolean
}
/** The tenant belongs to another organization. */
export type UnknownOrganization = { readonly tag: 'unknown_organization' }
/** The caller may not give a role that the token should give. */
export type RolesBeyond = {
  readonly tag: 'roles_beyond_caller'
  readonly roles: readonly string[]
}
/** `expires_at` is not in the future. */
export type Expired = { readonly tag: 'expired' }

/** Which attributes an answer has (RFC 7644 section 3.9), as in the query. */
export type AskedAttributes = {
  readonly attributes: string | null
  readonly excludedAttributes: string | null
}
export type OneScimUser = { readonly caller: Caller; readonly userId: string }
export type WriteUser = { readonly caller: Caller; readonly body: JsonObject }
export type Conditional = {
  /** The If-Match header, or null. */
  readonly ifMatch: string | null
}
export type ListScimUsers = {
  readonly caller: Caller
  readonly filter: string | null
  /** As in the query. */
  readonly startIndex: string | null
  readonly count: string | null
}

export type Described = { readonly tag: 'described'; readonly document: JsonObject }
/** A resource as the client gets it, with `meta`. */
export type ScimUserFound = {
  readonly tag: 'found'
  readonly id: string
  readonly resource: JsonObject
  /** The weak entity tag. */
  readonly version: string
}
export type ScimUserCreated = Omit<ScimUserFound, 'tag'> & { readonly tag: 'created' }
export type ScimUsersListed = {
  readonly tag: 'listed'
  readonly total: number
  readonly startIndex: number
  readonly resources: readonly JsonObject[]
}

export const scim = address<ScimProtocol>('scim', {
  idempotent: [
    'authenticate',
    'listScimTokens',
    'readScimServiceProviderConfig',
    'readScimSchema',
    'readScimResourceType',
    'readScimUser',
    'listScimUsers',
  ],
})
