/**
 * Downscopes a grant for one token request: the token may have the same audience and authorization
 * details or fewer. The grant keeps all of them (RFC 8707 section 2.2, RFC 9396 section 6).
 */
import { isDeepStrictEqual } from 'node:util'
import type { AuthorizationDetails } from '../../../../storage/oauth/authorization-codes.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import { resourceKey } from '../../../../storage/oauth/api-resources.js'
import { mayUse, type ResourceLookup } from './api-resource.js'
import { readRequestedAudience, spelledAs, tokenAudience } from './audience.js'
import type { OAuthForm } from '../form.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'

/** The parts of a grant, apart from its scopes, that one token can have less of. */
export type TokenScope = {
  readonly audience: readonly string[]
  readonly authorizationDetails: AuthorizationDetails | null
  /** The API resources that the token is for. Empty for other audiences. */
  readonly resources: readonly ApiResource[]
}

/** The limit of authorization requests: a longer value cannot have been granted. */
const DETAILS_CHARACTERS_MAX = 8192

/**
 * Applies `audience`, `resource` and `authorization_details` of the request to a grant. An absent
 * parameter means all of the grant. A token with service scopes keeps the issuer in its audience.
 */
export function downscope(
  form: OAuthForm,
  granted: Omit<TokenScope, 'resources'>,
  {
    issuer,
    scopes,
    resources,
  }: Pick<TokenScope, 'resources'> & {
    readonly issuer: string
    readonly scopes: readonly string[]
  },
): TokenScope | OAuthRefused {
  const authorizationDetails = downscopeDetails(
    form.get('authorization_details'),
    granted.authorizationDetails,
  )
  const details = () =>
    refuse(
      'invalid_authorization_details',
      'the authorization_details were not granted',
      'details_not_granted',
    )
  if (resources.length > 0) {
    const audience = resources.map(({ resource }) => resource)
    return authorizationDetails === undefined
      ? details()
      : { audience, authorizationDetails, resources }
  }
  const read = readRequestedAudience(form)
  if ('fault' in read) return refuse('invalid_target', read.fault, 'resource_invalid')
  const requested = spelledAs(read.requested, granted.audience)
  if (requested === null)
    return refuse('invalid_target', 'the audience was not granted', 'resource_not_granted')
  if (authorizationDetails === undefined) return details()
  const audience =
    requested.length === 0
      ? granted.audience
      : tokenAudience(requested, { own: requested[0]!, issuer, scopes })
  return { audience, authorizationDetails, resources }
}

/** A grant whose resources can be narrowed. */
type GrantOfResources = {
  readonly tenantId: string
  readonly resourceIds: readonly string[] | null
}

/**
 * The API resources of a grant that one token is for: all of them, or those that the request repeats (RFC 8707 section
 * 2.2). The grant decides, and not the audiences of the client. Empty for a grant for other audiences.
 */
export async function resourcesOfGrant(
  lookup: ResourceLookup,
  { tenantId, resourceIds }: GrantOfResources,
  clientId: string,
  form: OAuthForm,
): Promise<readonly ApiResource[] | OAuthRefused> {
  if (resourceIds === null || resourceIds.length === 0) return []
  const read = readRequestedAudience(form)
  if ('fault' in read) return refuse('invalid_target', read.fault, 'resource_invalid')
  const found = await lookup.byId(tenantId, resourceIds)
  const usable = found.filter((resource) => mayUse(resource, clientId))
  if (usable.length === 0)
    return refuse(
      'invalid_target',
      'the resource was deleted, or the client may not use it',
      'resource_unknown',
    )
  if (read.requested.length === 0) return usable
  const keys = read.requested.map(resourceKey)
  const known = usable.filter(({ resource }) => keys.includes(resourceKey(resource)))
  return known.length === new Set(keys).size
    ? known
    : refuse('invalid_target', 'the resource was not granted', 'resource_not_granted')
}

/** The named details as granted. Undefined if one of them was not granted. */
function downscopeDetails(
  text: string | null,
  granted: AuthorizationDetails | null,
): AuthorizationDetails | null | undefined {
  if (text === null) return granted
  const requested = readArray(text)
  if (requested === null || granted === null) return undefined
  const isSame = (one: unknown, other: AuthorizationDetails[number]) =>
    isDeepStrictEqual(one, other) || isDeepStrictEqual(one, asRequested(other))
  const known = requested.every((one) => granted.some((other) => isSame(one, other)))
  return known ? granted.filter((other) => requested.some((one) => isSame(one, other))) : undefined
}

/** A detail without the `credential_identifiers` that the grant added (OpenID4VCI section 6.2). */
function asRequested(detail: AuthorizationDetails[number]): Readonly<Record<string, unknown>> {
  const { credential_identifiers: _added, ...requested } = detail
  return requested
}

function readArray(text: string): readonly unknown[] | null {
  if (text.length > DETAILS_CHARACTERS_MAX) return null
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) && parsed.length > 0 ? parsed : null
  } catch {
    return null
  }
}
