/**
 * Converts client metadata from and to the wire (RFC 7591 section 2, OpenID Connect Registration
 * section 2). Unknown members are ignored, as both require. Known members of unsupported features
 * (encrypted ID tokens, public subjects) are refused, because the client would otherwise rely on them.
 */
import type { ApplicationRow } from '../../../../storage/oauth/applications.js'
import type { HandedOn } from '../../../../storage/oauth/client-registration.js'
import {
  type ApplicationDraft,
  type ClientJwks,
  REQUEST_OBJECT_ALGORITHMS,
} from '../registered/protocol.js'
import { SIGNING_ALGORITHMS } from '../../signing-keys/protocol.js'
import { RESPONSE_TYPES } from '../../tokens/authorization/protocol.js'
import { httpsUrl, PAGE } from '../../../domain/entities/https-url.js'
import { asId } from '../../../domain/ids.js'
import { isRegistrable } from '../../../domain/oauth/grant-types.js'
import { isLoopbackOnly } from '../../../domain/redirect-uri.js'
import { changedName } from '../../../domain/shown-names.js'
import type { ClientMetadata, MetadataRefused } from './protocol.js'

const NAME_LENGTH_MAX = 120
const TEXT_LENGTH_MAX = 255
const ADDRESS_LENGTH_MAX = 2048
const LIST_MAX = 50
const CONTACTS_MAX = 10
const NO_NAME = 'A client without a name'

/** Stored and returned unchanged: information for users and administrators. */
const ADDRESSES = ['client_uri', 'policy_uri', 'tos_uri'] as const
const TEXTS = ['software_id', 'software_version'] as const
/** Known members of unsupported features. */
const NOT_HERE = [
  'default_max_age',
  'default_acr_values',
  'id_token_encrypted_response_alg',
  'userinfo_encrypted_response_alg',
  'request_object_encryption_alg',
  'introspection_encrypted_response_alg',
  'tls_client_certificate_bound_access_tokens',
  'backchannel_client_notification_endpoint',
  'backchannel_authentication_request_signing_alg',
] as const
const METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const
/** Algorithms of client assertions. The key determines the algorithm, so it is not stored. */
const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519'] as const

export type ReadMetadata = {
  readonly tag: 'read'
  readonly draft: ApplicationDraft
  /** Members that are stored and returned unchanged, with their wire names. */
  readonly handedOn: HandedOn
  readonly sectorIdentifierUri: string | null
  /** `tenant`: a slug or an id. */
  readonly tenant: string | null
}

/** Used only inside readMetadata. */
class Fault extends Error {}

/**
 * Reads metadata as the draft of an application. Returns the first fault instead.
 * @param nameBefore the stored name, in a change.
 */
export function readMetadata(
  metadata: ClientMetadata,
  nameBefore?: string,
): ReadMetadata | MetadataRefused {
  try {
    return read(metadata, nameBefore)
  } catch (error) {
    if (error instanceof Fault) return refused(error.message)
    throw error
  }
}

function read(metadata: ClientMetadata, nameBefore: string | undefined): ReadMetadata {
  // RFC 7592 section 2.2: null means that the member is absent. Form libraries send an empty string for it.
  const from = (name: string) => {
    const value = Object.hasOwn(metadata, name) ? metadata[name] : null
    return value === undefined || value === '' ? null : value
  }
  const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0
  const asks = (name: string) => from(name) !== null && from(name) !== false && !isEmpty(from(name))
  const foreign = NOT_HERE.find(asks)
  if (foreign !== undefined) throw new Fault(`${foreign} is not supported`)

  const grantTypes = someOf(from('grant_types'), 'grant_types', isRegistrable) ?? [
    'authorization_code',
  ]
  const codes = grantTypes.includes('authorization_code')
  const responseTypes =
    someOf(from('response_types'), 'response_types', isResponseType) ?? (codes ? ['code'] : [])
  // RFC 7591 section 2.1.
  if (responseTypes.includes('code') !== codes)
    throw new Fault('response_types code and grant_types authorization_code need each other')
  const redirectUris = texts(from('redirect_uris'), 'redirect_uris') ?? []
  if (codes && redirectUris.length === 0)
    throw new Fault('authorization_code needs at least one redirect URI')

  oneOf(from('subject_type'), 'subject_type', ['pairwise'])
  const signingAlg = 'token_endpoint_auth_signing_alg'
  oneOf(from(signingAlg), signingAlg, ASSERTION_ALGORITHMS)
  oneOf(from('backchannel_token_delivery_mode'), 'backchannel_token_delivery_mode', ['poll'])
  const applicationType = oneOf(from('application_type'), 'application_type', ['web', 'native'])
  // A client of the user's own computer is native unless it says otherwise.
  const isNative =
    (applicationType ?? (isLoopbackOnly(redirectUris) ? 'native' : 'web')) === 'native'
  const contacts = texts(from('contacts'), 'contacts', CONTACTS_MAX)
  const sectorIdentifierUri = address(from('sector_identifier_uri'), 'sector_identifier_uri')
  const scope = text(from('scope'), 'scope', 4096)
  const handedOn = {
    application_type: isNative ? 'native' : 'web',
    ...(contacts === null ? {} : { contacts }),
    ...(sectorIdentifierUri === null ? {} : { sector_identifier_uri: sectorIdentifierUri }),
    ...present(ADDRESSES, (name) => shownAddress(from(name), name)),
    ...present(TEXTS, (name) => text(from(name), name, TEXT_LENGTH_MAX)),
  }
  const draft: ApplicationDraft = {
    name: nameOf(from('client_name'), nameBefore),
    redirectUris,
    grantTypes,
    responseTypes,
    tokenEndpointAuthMethod:
      oneOf(from('token_endpoint_auth_method'), 'token_endpoint_auth_method', METHODS) ?? undefined,
    scopes: scope === null ? undefined : [...new Set(scope.split(' '))],
    postLogoutRedirectUris: optional(texts, from, 'post_logout_redirect_uris'),
    backchannelLogoutUri: optional(text, from, 'backchannel_logout_uri'),
    backchannelLogoutSessionRequired: optional(flag, from, 'backchannel_logout_session_required'),
    frontchannelLogoutUri: optional(text, from, 'frontchannel_logout_uri'),
    frontchannelLogoutSessionRequired: optional(flag, from, 'frontchannel_logout_session_required'),
    allowedOrigins: optional(texts, from, 'allowed_origins'),
    authorizationDetailsTypes: optional(texts, from, 'authorization_details_types'),
    jwks: keySet(from('jwks')),
    jwksUri: optional(address, from, 'jwks_uri'),
    logoUri: optional(shownAddress, from, 'logo_uri'),
    loopbackAnyPort: isNative,
    dpopBoundAccessTokens: optional(flag, from, 'dpop_bound_access_tokens'),
    rotateRefreshTokens: optional(flag, from, 'rotate_refresh_tokens'),
    requirePushedAuthorizationRequests: optional(
      flag,
      from,
      'require_pushed_authorization_requests',
    ),
    authorizationSignedResponseAlg:
      oneOf(
        from('authorization_signed_response_alg'),
        'authorization_signed_response_alg',
        SIGNING_ALGORITHMS,
      ) ?? undefined,
    userinfoSignedResponseAlg:
      oneOf(
        from('userinfo_signed_response_alg'),
        'userinfo_signed_response_alg',
        SIGNING_ALGORITHMS,
      ) ?? undefined,
    introspectionSignedResponseAlg:
      oneOf(
        from('introspection_signed_response_alg'),
        'introspection_signed_response_alg',
        SIGNING_ALGORITHMS,
      ) ?? undefined,
    requireSignedRequestObject: optional(flag, from, 'require_signed_request_object'),
    requestObjectSigningAlg:
      oneOf(
        from('request_object_signing_alg'),
        'request_object_signing_alg',
        REQUEST_OBJECT_ALGORITHMS,
      ) ?? undefined,
    idTokenSignedResponseAlg:
      oneOf(
        from('id_token_signed_response_alg'),
        'id_token_signed_response_alg',
        SIGNING_ALGORITHMS,
      ) ?? undefined,
  }
  const tenant = text(from('tenant'), 'tenant', TEXT_LENGTH_MAX)
  return {
    tag: 'read',
    draft,
    handedOn,
    sectorIdentifierUri,
    tenant: tenant === null ? null : asId(tenant),
  }
}

/** The metadata in the registration response: every member in force. */
export function metadataOf(
  row: ApplicationRow,
  handedOn: HandedOn,
  tenantSlug: string,
): ClientMetadata {
  return {
    client_name: row.name,
    redirect_uris: row.redirectUris,
    token_endpoint_auth_method: row.tokenEndpointAuthMethod,
    grant_types: row.grantTypes,
    response_types: row.responseTypes,
    scope: row.scopes.join(' '),
    post_logout_redirect_uris: row.postLogoutRedirectUris,
    ...(row.backchannelLogoutUri === null
      ? {}
      : { backchannel_logout_uri: row.backchannelLogoutUri }),
    backchannel_logout_session_required: row.backchannelLogoutSessionRequired,
    ...(row.frontchannelLogoutUri === null
      ? {}
      : { frontchannel_logout_uri: row.frontchannelLogoutUri }),
    frontchannel_logout_session_required: row.frontchannelLogoutSessionRequired,
    allowed_origins: row.allowedOrigins,
    authorization_details_types: row.authorizationDetailsTypes,
    ...(row.jwks === null ? {} : { jwks: row.jwks }),
    ...(row.jwksUri === null ? {} : { jwks_uri: row.jwksUri }),
    ...(row.logoUri === null ? {} : { logo_uri: row.logoUri }),
    dpop_bound_access_tokens: row.dpopBoundAccessTokens,
    rotate_refresh_tokens: row.rotateRefreshTokens,
    require_pushed_authorization_requests: row.requirePushedAuthorizationRequests,
    id_token_signed_response_alg: row.idTokenSignedResponseAlg,
    ...(row.authorizationSignedResponseAlg === null
      ? {}
      : { authorization_signed_response_alg: row.authorizationSignedResponseAlg }),
    ...(row.userinfoSignedResponseAlg === null
      ? {}
      : { userinfo_signed_response_alg: row.userinfoSignedResponseAlg }),
    ...(row.introspectionSignedResponseAlg === null
      ? {}
      : { introspection_signed_response_alg: row.introspectionSignedResponseAlg }),
    require_signed_request_object: row.requireSignedRequestObject,
    ...(row.requestObjectSigningAlg === null
      ? {}
      : { request_object_signing_alg: row.requestObjectSigningAlg }),
    subject_type: 'pairwise',
    audience: row.audience,
    tenant: tenantSlug,
    ...handedOn,
  }
}

export function refused(
  description: string,
  error: MetadataRefused['error'] = 'invalid_client_metadata',
): MetadataRefused {
  return { tag: 'refused', error, description }
}

function nameOf(value: unknown, before: string | undefined): string {
  const name = text(value, 'client_name', NAME_LENGTH_MAX)
  if (name === null) return NO_NAME
  const chosen = changedName(name, before)
  if (chosen === null)
    throw new Fault(
      'client_name contains control or bidirectional formatting characters, or an address',
    )
  return chosen
}

function optional<Value>(
  how: (value: unknown, name: string) => Value | null,
  from: (name: string) => unknown,
  name: string,
): Value | undefined {
  return how(from(name), name) ?? undefined
}

function present<Name extends string, Value>(
  names: readonly Name[],
  how: (name: Name) => Value | null,
): Record<string, Value> {
  const found = names.map((name) => [name, how(name)] as const)
  return Object.fromEntries(found.filter((pair): pair is [Name, Value] => pair[1] !== null))
}

function text(value: unknown, name: string, lengthMax = ADDRESS_LENGTH_MAX): string | null {
  if (value === null) return null
  if (typeof value !== 'string' || value === '' || value.length > lengthMax)
    throw new Fault(`${name} must be a string of 1 to ${lengthMax} characters`)
  if (value.includes('\0')) throw new Fault(`${name} contains a NUL character`)
  return value
}

function texts(value: unknown, name: string, most = LIST_MAX): readonly string[] | null {
  if (value === null) return null
  if (!Array.isArray(value) || value.length > most)
    throw new Fault(`${name} must be an array of at most ${most} strings`)
  const given = value.filter((one) => one !== null && one !== '')
  return [...new Set(given.map((one) => text(one, `each of ${name}`)!))]
}

/**
 * The supported values. Libraries list everything that they can do, and the response tells what is
 * registered (RFC 7591 section 3.2.1). If no value is supported, the client is refused.
 */
function someOf(
  value: unknown,
  name: string,
  isKnown: (one: string) => boolean,
): readonly string[] | null {
  const requested = texts(value, name)
  const known = requested?.filter(isKnown) ?? null
  if (known?.length === 0 && requested?.length !== 0)
    throw new Fault(`${name} contains no value that this service supports`)
  return known
}

function isResponseType(type: string): boolean {
  return (RESPONSE_TYPES as readonly string[]).includes(type)
}

function flag(value: unknown, name: string): boolean | null {
  if (value === null || typeof value === 'boolean') return value
  throw new Fault(`${name} must be true or false`)
}

function oneOf<const Value extends string>(
  value: unknown,
  name: string,
  known: readonly Value[],
): Value | null {
  if (value === null) return null
  const found = known.find((one) => one === value)
  if (found === undefined) throw new Fault(`${name} must be one of ${known.join(', ')}`)
  return found
}

/**
 * An address that is for users only. A plain http one, as of a client in development, is left out, because the client can
 * do without it (RFC 7591 section 2).
 */
function shownAddress(value: unknown, name: string): string | null {
  return typeof value === 'string' && /^http:/i.test(value) ? null : address(value, name)
}

/** An HTTPS URL, since it is shown to users as a link or fetched by the service. */
function address(value: unknown, name: string): string | null {
  const uri = text(value, name)
  if (uri === null) return null
  if (httpsUrl(uri, PAGE) === null) throw new Fault(`${name} must be an HTTPS URL`)
  return uri
}

function keySet(value: unknown): ClientJwks | undefined {
  if (value === null) return undefined
  const { keys } = value as { readonly keys?: unknown }
  const whole =
    typeof value === 'object' &&
    Array.isArray(keys) &&
    keys.every((key) => typeof key === 'object' && key !== null && !Array.isArray(key))
  if (!whole) throw new Fault('jwks must be a JWK Set (RFC 7517 section 5)')
  return { keys: keys as readonly Readonly<Record<string, unknown>>[] }
}
