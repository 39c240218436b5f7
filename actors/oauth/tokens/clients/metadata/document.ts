/** Reads client metadata documents (Client ID Metadata Documents, section 4; RFC 7591 section 2). */
import { SIGNING_ALGORITHMS } from '../../../signing-keys/protocol.js'
import { clientsOf } from '../../../../domain/oauth/grant-types.js'
import { sha256Of } from '../../../../platform/outbound-http/remote-documents.js'
import type { DocumentMembers } from '../../../../../storage/oauth/observed-clients.js'
import { COMPARED, httpsUrl } from '../../../../domain/entities/https-url.js'
import { redirectUriFault } from '../../../../domain/redirect-uri.js'
import { PERSON_SCOPES } from '../../../../domain/scopes.js'
import { shownName } from '../../../../domain/shown-names.js'
import { hasPrivateMember } from '../../../../platform/jose/external-jwk.js'
import { hostOfClientId } from './client-id.js'

type Members = Readonly<Record<string, unknown>>

export type ClientDocument = {
  /** What the client calls itself. Not verified. */
  readonly clientName: string | null
  readonly members: DocumentMembers
  readonly document: Members
  /** The digest of the canonical document, in lower-case hex. */
  readonly sha256: string
  /** The digest of the members whose change needs a new consent. */
  readonly decisionSha256: string
}

export type ReadDocument =
  | ({ readonly tag: 'read' } & ClientDocument)
  | { readonly tag: 'faulty'; readonly fault: string }

const LINKS = [
  'client_uri',
  'logo_uri',
  'policy_uri',
  'tos_uri',
  'jwks_uri',
  'backchannel_logout_uri',
] as const
const SECRETS = ['client_secret', 'client_secret_expires_at'] as const
const LIST_MAX = 100
const DECISIVE = [
  'redirect_uris',
  'token_endpoint_auth_method',
  'jwks',
  'jwks_uri',
  'grant_types',
] as const

/** Used only inside of this file. */
class Fault extends Error {}

/**
 * Reads the document of `clientId`. `linkFault` tells what is wrong with a URL inside of it, undefined for a URL that
 * the service may fetch.
 */
export function readClientDocument(
  clientId: string,
  document: unknown,
  linkFault: (url: string) => string | undefined,
): ReadDocument {
  try {
    return { tag: 'read', ...read(clientId, document, linkFault) }
  } catch (error) {
    if (error instanceof Fault) return { tag: 'faulty', fault: error.message }
    throw error
  }
}

function read(
  clientId: string,
  document: unknown,
  linkFault: (url: string) => string | undefined,
): ClientDocument {
  if (!isObject(document)) throw new Fault('the metadata document is not a JSON object')
  // As in registration, null and an empty string mean that the member is absent.
  const from = (name: string) => {
    const value = Object.hasOwn(document, name) ? document[name] : undefined
    return value === null || value === '' ? undefined : value
  }
  if (from('client_id') !== clientId)
    throw new Fault('client_id of the metadata document is not its URL')
  const secret = SECRETS.find((name) => from(name) !== undefined)
  if (secret !== undefined) throw new Fault(`the metadata document must not have ${secret}`)
  for (const name of LINKS) {
    const link = from(name)
    if (link === undefined) continue
    const fault = typeof link === 'string' ? linkFault(link) : 'is not a string'
    if (fault !== undefined) throw new Fault(`${name} of the metadata document ${fault}`)
  }
  const method = from('token_endpoint_auth_method') ?? 'none'
  if (method !== 'none' && method !== 'private_key_jwt')
    throw new Fault('token_endpoint_auth_method of a metadata document is none or private_key_jwt')
  const jwks = keySet(from('jwks'))
  const jwksUri = (from('jwks_uri') as string | undefined) ?? null
  if (jwks !== null && jwksUri !== null) throw new Fault('jwks and jwks_uri exclude each other')
  if (method === 'private_key_jwt' && jwksUri === null && (jwks === null || jwks.keys.length === 0))
    throw new Fault('private_key_jwt needs a key in jwks, or jwks_uri')

  const grantTypes = grants(from('grant_types'), method)
  const redirectUris = texts(from('redirect_uris'), 'redirect_uris').filter(
    (uri) => redirectUriFault(uri, method === 'none') === undefined,
  )
  if (grantTypes.includes('authorization_code') && redirectUris.length === 0)
    throw new Fault('redirect_uris of the metadata document names no usable redirect URI')
  const clientName = from('client_name')
  const algorithm = from('id_token_signed_response_alg')
  const members: DocumentMembers = {
    // The name is only a claim, so the host is the name of the party.
    name: hostOfClientId(clientId).slice(0, 120),
    clientType: method === 'none' ? 'public' : 'confidential',
    tokenEndpointAuthMethod: method,
    redirectUris,
    postLogoutRedirectUris: texts(
      from('post_logout_redirect_uris'),
      'post_logout_redirect_uris',
    ).filter((uri) => redirectUriFault(uri, method === 'none') === undefined),
    backchannelLogoutUri: (from('backchannel_logout_uri') as string | undefined) ?? null,
    // Scripts of the pages that receive the code may redeem it.
    allowedOrigins: [
      ...new Set(redirectUris.flatMap((uri) => httpsUrl(uri, COMPARED)?.origin ?? [])),
    ],
    grantTypes,
    scopes: scopes(from('scope')),
    jwks,
    jwksUri,
    dpopBoundAccessTokens: from('dpop_bound_access_tokens') === true,
    requirePushedAuthorizationRequests: from('require_pushed_authorization_requests') === true,
    idTokenSignedResponseAlg: SIGNING_ALGORITHMS.find((each) => each === algorithm) ?? 'ES256',
  }
  return {
    clientName: typeof clientName === 'string' ? shownName(clientName) || null : null,
    members,
    document,
    sha256: sha256Of(document),
    decisionSha256: sha256Of(
      Object.fromEntries(DECISIVE.map((name) => [name, from(name) ?? null])),
    ),
  }
}

/** Without `grant_types` the client has the code grant alone. Grants that it cannot have are ignored. */
function grants(value: unknown, method: string): string[] {
  if (value === undefined) return ['authorization_code']
  const known = texts(value, 'grant_types').filter((grant) => {
    const clients = clientsOf(grant)
    return clients?.documented && (clients.publicClients || method !== 'none')
  })
  if (known.length === 0) throw new Fault('grant_types names no grant that such a client can have')
  return known
}

/** The claims about a user that the client may ask for. Scopes of API resources need no listing. */
function scopes(value: unknown): string[] {
  if (typeof value !== 'string') return [...PERSON_SCOPES]
  const listed = value.split(' ').filter((scope) => PERSON_SCOPES.has(scope))
  return listed.length === 0 ? [...PERSON_SCOPES] : [...new Set(listed)]
}

function texts(value: unknown, name: string): string[] {
  if (value === undefined) return []
  const isList =
    Array.isArray(value) &&
    value.length <= LIST_MAX &&
    value.every((one) => typeof one === 'string' && !one.includes('\0'))
  if (!isList) throw new Fault(`${name} of the metadata document is not a list of strings`)
  return [...new Set(value as string[])]
}

function keySet(value: unknown): { keys: Record<string, unknown>[] } | null {
  if (value === undefined) return null
  const keys = isObject(value) ? value['keys'] : undefined
  if (!Array.isArray(keys) || keys.length > LIST_MAX || !keys.every(isObject))
    throw new Fault('jwks of the metadata document is not a JWK Set (RFC 7517 section 5)')
  if (keys.some(hasPrivateMember))
    throw new Fault('jwks of the metadata document contains private key material')
  return { keys: keys.map((key) => ({ ...key })) }
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
