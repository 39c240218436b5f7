/** Rules for applications (RFC 7591 section 2). See docs/reference/oauth.md. */
import { COMPARED, httpsUrl, PAGE } from '../../../domain/entities/https-url.js'
import { redirectUriFault } from '../../../domain/redirect-uri.js'
import { clientsOf, isRegistrable } from '../../../domain/oauth/grant-types.js'
import { CONTROL_PLANE_SCOPES, powersBeyond, TENANT_SCOPES } from '../../../domain/scopes.js'
import { DEFAULT_SCOPES } from '../../../../storage/oauth/applications.js'
import type { ScopeBounds } from '../../../../storage/oauth/client-registration.js'
import { CREDENTIAL_SCOPES } from '../../../domain/credentials/catalogue.js'
import { type FaultOf, URL_FAULTS } from '../../../platform/outbound-http/targets.js'
import { importPublicJwk } from '../../../platform/jose/external-jwk.js'
import type {
  ApplicationDraft,
  ApplicationInvalid,
  ClientType,
  TokenEndpointAuthMethod,
} from './protocol.js'

const KNOWN_SCOPES = new Set<string>([
  ...TENANT_SCOPES,
  ...CONTROL_PLANE_SCOPES,
  ...CREDENTIAL_SCOPES,
])
const KEYS_MAX = 10
const AUDIENCE_LENGTH_MAX = 512

/** True if all scopes belong to this service, so that no API resource has to be looked up. */
export function areOwnScopes({ scopes = [] }: Pick<ApplicationDraft, 'scopes'>): boolean {
  return scopes.every((scope) => KNOWN_SCOPES.has(scope))
}

/** How a client authenticates: the two members, made consistent. */
type ClientKind = {
  readonly clientType: ClientType
  readonly tokenEndpointAuthMethod: TokenEndpointAuthMethod
  /** The secret is taken in the place of the method only: its creator named it, or changed to it. */
  readonly heldToMethod: boolean
}

/**
 * Derives an absent member from the other one. Null if they contradict each other.
 * @param before the client that is replaced. Older clients, which may send the secret in either place, stay so until their
 * method changes.
 */
export function clientKind(
  draft: ApplicationDraft,
  before?: Omit<ClientKind, 'clientType'>,
): ClientKind | null {
  const { clientType: type, tokenEndpointAuthMethod: method } = draft
  const clientType = type ?? (method === 'none' ? 'public' : 'confidential')
  const tokenEndpointAuthMethod =
    method ?? (clientType === 'public' ? 'none' : 'client_secret_basic')
  const agree = (clientType === 'public') === (tokenEndpointAuthMethod === 'none')
  const isFree = before?.tokenEndpointAuthMethod === method && !before?.heldToMethod
  const heldToMethod = method?.startsWith('client_secret_') === true && !isFree
  return agree ? { clientType, tokenEndpointAuthMethod, heldToMethod } : null
}

/**
 * The first fault of a draft. Undefined if the draft is valid.
 * @param resourceScopes the scopes of API resources that the application may have, from `resourceScopesFor`.
 * @param urlFaultOf judges the URLs that the service calls.
 */
export async function draftFault(
  draft: ApplicationDraft,
  resourceScopes: readonly string[],
  urlFaultOf: FaultOf,
): Promise<ApplicationInvalid | undefined> {
  const kind = clientKind(draft)
  if (kind === null)
    return bad(
      '/token_endpoint_auth_method',
      'A public client must have "none", a confidential client any other method.',
    )
  return (
    uriFault('/redirect_uris', draft.redirectUris, kind) ??
    uriFault('/post_logout_redirect_uris', draft.postLogoutRedirectUris ?? [], kind) ??
    calledFault('/backchannel_logout_uri', draft.backchannelLogoutUri, urlFaultOf) ??
    logoutFrameFault(draft) ??
    first(draft.allowedOrigins ?? [], '/allowed_origins', originFault) ??
    grantFault(draft.grantTypes ?? [], kind) ??
    first(draft.responseTypes ?? [], '/response_types', (type) =>
      type === 'code' ? undefined : 'must be "code"',
    ) ??
    scopeFault(draft.scopes ?? [], resourceScopes) ??
    defaultScopeFault(draft) ??
    audienceFault(draft.audience) ??
    rotationFault(draft, kind) ??
    requestObjectFault(draft) ??
    (await jwksFault(draft, kind)) ??
    calledFault('/jwks_uri', draft.jwksUri, urlFaultOf) ??
    logoFault(draft.logoUri)
  )
}

/** What is left of the draft's scopes for a client that registers itself: `openid` if nothing is left (RFC 7591 section 2). */
export function registrableScopes(
  { scopes = DEFAULT_SCOPES }: Pick<ApplicationDraft, 'scopes'>,
  { held, chosen }: ScopeBounds,
  resourceScopes: readonly string[],
): readonly string[] {
  const left = knownScopesWithin(scopes, held, resourceScopes)
  const bounded = chosen === null ? left : left.filter((scope) => chosen.includes(scope))
  return bounded.length === 0 ? ['openid'] : bounded
}

/** The known ones among the scopes, without those that the creator lacks. */
export function knownScopesWithin(
  scopes: readonly string[],
  held: readonly string[],
  resourceScopes: readonly string[],
): readonly string[] {
  const beyond = powersBeyond(scopes, held)
  return scopes.filter(
    (scope) =>
      (KNOWN_SCOPES.has(scope) || resourceScopes.includes(scope)) && !beyond.includes(scope),
  )
}

function uriFault(
  pointer: string,
  uris: readonly string[],
  { clientType }: ClientKind,
): ApplicationInvalid | undefined {
  for (const [index, uri] of uris.entries()) {
    const fault = redirectUriFault(uri, clientType === 'public')
    if (fault !== undefined)
      return invalid('invalid_redirect_uri', `${pointer}/${index}`, `The URI ${fault}.`)
  }
  return undefined
}

function grantFault(grants: readonly string[], kind: ClientKind): ApplicationInvalid | undefined {
  const foreign = grants.map(clientsOf).find((one) => one?.publicClients === false)
  if (kind.clientType === 'public' && foreign !== undefined)
    return bad('/grant_types', `A public client cannot have ${foreign.name}.`)
  return first(grants, '/grant_types', (grant) =>
    isRegistrable(grant) ? undefined : 'is not a supported grant type',
  )
}

function scopeFault(
  scopes: readonly string[],
  resourceScopes: readonly string[],
): ApplicationInvalid | undefined {
  const index = scopes.findIndex(
    (scope) => !KNOWN_SCOPES.has(scope) && !resourceScopes.includes(scope),
  )
  if (index < 0) return undefined
  return invalid('invalid_scope', `/scopes/${index}`, 'The scope is unknown.')
}

/** RFC 6749 section 3.3: the default scopes must be scopes that the application may request. */
function defaultScopeFault(draft: ApplicationDraft): ApplicationInvalid | undefined {
  const own = draft.scopes ?? DEFAULT_SCOPES
  const index = (draft.defaultScopes ?? []).findIndex((scope) => !own.includes(scope))
  if (index < 0) return undefined
  return invalid('invalid_scope', `/default_scopes/${index}`, 'The scope is not in `scopes`.')
}

function originFault(origin: string): string | undefined {
  return httpsUrl(origin, { http: 'of loopback hosts' })?.origin === origin
    ? undefined
    : 'must be only scheme, host and port, in lower case, with HTTPS, or HTTP on a loopback host'
}

function audienceFault(audience: string | undefined): ApplicationInvalid | undefined {
  if (audience === undefined) return undefined
  const absolute = URL.canParse(audience) && !/[\s#\0]/.test(audience)
  return absolute && audience.length <= AUDIENCE_LENGTH_MAX
    ? undefined
    : bad('/audience', 'The audience must be an absolute URI without a fragment (RFC 8707).')
}

/** A stolen refresh token is of no use without the key that it is bound to, nor without the client's credential. */
function rotationFault(
  { rotateRefreshTokens = true, dpopBoundAccessTokens = false }: ApplicationDraft,
  { clientType }: ClientKind,
): ApplicationInvalid | undefined {
  if (rotateRefreshTokens || (clientType === 'confidential' && dpopBoundAccessTokens))
    return undefined
  const detail = 'Only a confidential client with `dpop_bound_access_tokens` keeps refresh tokens.'
  return bad('/rotate_refresh_tokens', detail)
}

function requestObjectFault(draft: ApplicationDraft): ApplicationInvalid | undefined {
  const { requireSignedRequestObject = false, jwks, jwksUri } = draft
  return requireSignedRequestObject && jwks === undefined && jwksUri === undefined
    ? bad('/require_signed_request_object', 'Signed requests need `jwks` or `jwks_uri`.')
    : undefined
}

async function jwksFault(
  draft: ApplicationDraft,
  kind: ClientKind,
): Promise<ApplicationInvalid | undefined> {
  const keys = draft.jwks?.keys ?? []
  if (draft.jwksUri !== undefined) {
    // RFC 7591 section 2 forbids both together.
    if (draft.jwks !== undefined)
      return bad('/jwks_uri', '`jwks` and `jwks_uri` exclude each other.')
    return undefined
  }
  if (kind.tokenEndpointAuthMethod === 'private_key_jwt' && keys.length === 0)
    return bad('/jwks', 'private_key_jwt needs at least one public key.')
  if (keys.length > KEYS_MAX) return bad('/jwks/keys', `There must be at most ${KEYS_MAX} keys.`)
  const imported = await Promise.all(keys.map(importPublicJwk))
  const index = imported.indexOf(undefined)
  if (index < 0) return undefined
  return bad(`/jwks/keys/${index}`, 'The key must be a public P-256 or Ed25519 key.')
}

function logoFault(uri: string | undefined): ApplicationInvalid | undefined {
  if (uri === undefined || httpsUrl(uri, PAGE) !== null) return undefined
  return bad('/logo_uri', '`logo_uri` must be an HTTPS URL.')
}

/**
 * A URL that the service calls. HTTPS for every client (OpenID Connect Back-Channel Logout 1.0 section 2.2, RFC 7591 section
 * 2), and a host that it may call.
 */
function calledFault(
  pointer: string,
  uri: string | undefined,
  urlFaultOf: FaultOf,
): ApplicationInvalid | undefined {
  if (uri === undefined) return undefined
  if (httpsUrl(uri, { query: true }) === null)
    return bad(pointer, 'The URL must be an HTTPS URL without a fragment.')
  const fault = urlFaultOf(uri)
  return fault === undefined ? undefined : bad(pointer, URL_FAULTS[fault])
}

/** OpenID Connect Front-Channel Logout 1.0 section 2: it has the scheme, host and port of a redirect URI. */
function logoutFrameFault({
  frontchannelLogoutUri: uri,
  redirectUris,
}: ApplicationDraft): ApplicationInvalid | undefined {
  if (uri === undefined) return undefined
  const origin = httpsUrl(uri, { query: true, http: 'of loopback hosts' })?.origin
  const origins = redirectUris.map((one) => httpsUrl(one, COMPARED)?.origin)
  if (origin !== undefined && origins.includes(origin)) return undefined
  const detail = 'The URI must be at the origin of a redirect URI, without a fragment.'
  return bad('/frontchannel_logout_uri', detail)
}

function first(
  values: readonly string[],
  pointer: string,
  fault: (value: string) => string | undefined,
): ApplicationInvalid | undefined {
  for (const [index, value] of values.entries()) {
    const found = fault(value)
    if (found !== undefined) return bad(`${pointer}/${index}`, `The value ${found}.`)
  }
  return undefined
}

function bad(pointer: string, detail: string): ApplicationInvalid {
  return invalid('bad_request', pointer, detail)
}

function invalid(
  error: ApplicationInvalid['error'],
  pointer: string,
  detail: string,
): ApplicationInvalid {
  return { tag: 'invalid', error, pointer, detail }
}
