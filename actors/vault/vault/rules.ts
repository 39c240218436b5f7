/** What a credential, a grant and a lease may be. decisions.md 4, 17, 22. */
import { normalizeHostname } from '../../domain/hostnames.js'
import { networkContains } from '../../domain/commerce/networks.js'
import type {
  Capability,
  CreateCredential,
  CreateGrant,
  CredentialType,
  VaultInvalid,
} from './protocol.js'

export const HOSTS_MAX = 64
const METADATA_BYTES_MAX = 8 * 1024
const SECRET_BYTES_MAX = 64 * 1024
const PATHS_MAX = 32
const PATH_CHARS_MAX = 512
/** RFC 9110 section 5.6.2. */
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/
const QUERY_KEY = /^[A-Za-z0-9._~[\]-]{1,64}$/
/** What may stand in a header field, in UTF-8: no line breaks, no other control characters. */
const FIELD_VALUE = /^[\t\x20-\x7e\u0080-\u{10ffff}]+$/u
const SPACE_AROUND = /^[\t ]|[\t ]$/
const OPENSSH_KEY =
  /^-----BEGIN OPENSSH PRIVATE KEY-----\r?\n[A-Za-z0-9+/=\r\n]+\r?\n-----END OPENSSH PRIVATE KEY-----\s*$/
/** Fields that belong to one hop or to us: nobody injects them (RFC 9110 section 7.6.1). */
const RESERVED_FIELDS =
  /^(?:host|content-length|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|forwarded|via|proxy-.*|x-forwarded-.*|x-svc-.*)$/

/** The scheme in its one spelling; undefined when it is none. */
export function normalizeAuthScheme(scheme: string): string | undefined {
  if (scheme === 'bearer' || scheme === 'basic') return scheme
  const colon = scheme.indexOf(':')
  const kind = scheme.slice(0, colon)
  const name = scheme.slice(colon + 1)
  if (kind === 'query') return QUERY_KEY.test(name) ? scheme : undefined
  if (kind !== 'header' || !FIELD_NAME.test(name)) return undefined
  const lower = name.toLowerCase()
  return RESERVED_FIELDS.test(lower) ? undefined : `header:${lower}`
}

/** The scheme of a new credential: ssh_ca has none, oauth2 is a bearer token unless it says so. */
export function authSchemeOf(type: CredentialType, scheme: string | null): string | VaultInvalid {
  if (type === 'ssh_ca') {
    return scheme === null ? 'none' : invalid('/auth_scheme', 'An ssh_ca has no auth_scheme.')
  }
  if (scheme === null) {
    return type === 'oauth2' ? 'bearer' : invalid('/auth_scheme', 'This type needs an auth_scheme.')
  }
  return (
    normalizeAuthScheme(scheme) ??
    invalid('/auth_scheme', 'One of bearer, basic, header:<name>, query:<key>.')
  )
}

/** The hosts in their normalized form, each once. */
export function normalizeHosts(hosts: readonly string[]): readonly string[] | VaultInvalid {
  if (hosts.length > HOSTS_MAX) return invalid('/allowed_hosts', `At most ${HOSTS_MAX} hosts.`)
  const normal = hosts.map(normalizeHostname)
  const odd = normal.indexOf(null)
  if (odd >= 0) {
    return invalid(`/allowed_hosts/${odd}`, 'A host name: no wildcard, no port, no address.')
  }
  return [...new Set(normal as string[])]
}

/** The first of these hosts that is outside of the hosts of the credential whose token is carried. */
export function hostsBeyond(
  hosts: readonly string[],
  within: readonly string[],
): VaultInvalid | undefined {
  const outside = hosts.findIndex((host) => !within.includes(host))
  if (outside < 0) return undefined
  return invalid(
    `/allowed_hosts/${outside}`,
    'One of the allowed_hosts of the credential whose token is carried.',
  )
}

/** Whether other hosts let a credential be used where it was not used before. */
export function widensHosts(
  type: CredentialType,
  before: readonly string[],
  after: readonly string[],
): boolean {
  if (type === 'ssh_ca') {
    // An authority without hosts signs for any.
    if (before.length === 0) return false
    if (after.length === 0) return true
  }
  return after.some((host) => !before.includes(host))
}

/** Whether the certificates of an authority become good from where they were not. Empty: anywhere. */
export function widensSources(before: readonly string[], after: readonly string[]): boolean {
  if (before.length === 0) return false
  if (after.length === 0) return true
  return !after.every((source) => before.some((network) => networkContains(network, source)))
}

export function metadataFault(
  metadata: Readonly<Record<string, unknown>>,
): VaultInvalid | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(metadata))
  if (bytes <= METADATA_BYTES_MAX) return undefined
  return invalid('/metadata', `At most ${METADATA_BYTES_MAX} bytes of JSON.`)
}

/** What is wrong with a secret, if anything; its own text is never repeated. */
export function secretFault(
  type: CredentialType,
  authScheme: string,
  secret: string,
): VaultInvalid | undefined {
  const fault = (detail: string) => invalid('/secret', detail)
  if (secret === '' || Buffer.byteLength(secret) > SECRET_BYTES_MAX) {
    return fault(`Between 1 and ${SECRET_BYTES_MAX} bytes.`)
  }
  if (type === 'oauth2') return oauthFault(secret)
  if (type === 'ssh_key') {
    return OPENSSH_KEY.test(secret) ? undefined : fault('An OpenSSH private key.')
  }
  if (authScheme === 'basic' && !secret.includes(':')) return fault('user:password, for basic.')
  if (authScheme.startsWith('query:')) return undefined
  // A secret that no header can carry would fail at its first use.
  if (!FIELD_VALUE.test(secret)) return fault('Without line breaks and control characters.')
  // It would arrive as another one. In base64 it does not.
  if (authScheme !== 'basic' && SPACE_AROUND.test(secret)) return fault('Without space around it.')
  return undefined
}

/** decisions.md 22, oauth2 credentials. */
function oauthFault(secret: string): VaultInvalid | undefined {
  const fault = invalid(
    '/secret',
    'A JSON document {token_url, client_id, client_secret?, refresh_token?, scope?}.',
  )
  let members: Readonly<Record<string, unknown>>
  try {
    members = JSON.parse(secret) as Readonly<Record<string, unknown>>
  } catch {
    return fault
  }
  if (typeof members !== 'object' || members === null || Array.isArray(members)) return fault
  const { token_url: tokenUrl, client_id: clientId, ...optional } = members
  if (typeof clientId !== 'string' || clientId === '') return fault
  if (typeof tokenUrl !== 'string' || !isTokenUrl(tokenUrl)) return fault
  const known = new Set(['client_secret', 'refresh_token', 'scope'])
  return Object.entries(optional).every(
    ([name, value]) => known.has(name) && typeof value === 'string' && value !== '',
  )
    ? undefined
    : fault
}

function isTokenUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const url = new URL(text)
  return (
    url.protocol === 'https:' &&
    url.username === '' &&
    url.password === '' &&
    url.hash === '' &&
    normalizeHostname(url.hostname) !== null
  )
}

/** What is wrong with a new credential before its secret is looked at. */
export function credentialFault(asked: CreateCredential): VaultInvalid | undefined {
  const { credentialType, secret, metadata, tokenOf } = asked
  if (tokenOf !== null) return tokenFault(asked) ?? metadataFault(metadata)
  if (secret === null && credentialType !== 'ssh_ca') {
    return invalid('/secret', 'This type needs a secret.')
  }
  return metadataFault(metadata)
}

/** A credential whose secret is the access token of another one: used through egress, and only so. */
function tokenFault({
  credentialType,
  secret,
  authScheme,
  nonExportable,
}: CreateCredential): VaultInvalid | undefined {
  if (credentialType !== 'api_key' && credentialType !== 'custom') {
    return invalid('/token_of', 'For an api_key or custom credential.')
  }
  if (secret !== null) return invalid('/secret', 'Its secret is the token of the other credential.')
  if (!nonExportable) return invalid('/non_exportable', 'What carries a token is not exportable.')
  return authScheme === 'basic'
    ? invalid('/auth_scheme', 'A token is no user:password.')
    : undefined
}

export function capabilitiesOf(
  type: CredentialType,
  asked: readonly Capability[] | null,
): readonly Capability[] | VaultInvalid {
  const own: Capability = type === 'ssh_ca' ? 'sign' : 'use'
  if (asked === null) return ['list', own]
  const other = asked.findIndex((capability) => capability !== 'list' && capability !== own)
  if (asked.length === 0) return invalid('/capabilities', 'At least one capability.')
  if (other >= 0)
    return invalid(`/capabilities/${other}`, `A credential of this type is to ${own}.`)
  return [...new Set(asked)]
}

export function grantFault(
  { methods, pathPrefixes, allowRange, maxRequests, maxBytes, expiresAt }: CreateGrant,
  type: CredentialType,
  now: Date,
): VaultInvalid | undefined {
  const limits = [methods, pathPrefixes, maxRequests, maxBytes]
  const limited = !allowRange || limits.some((limit) => limit !== null)
  // The limits are of calls through the egress proxy: elsewhere they would promise what nobody holds.
  if (limited && (type === 'ssh_ca' || type === 'oauth2')) {
    return invalid('', `An ${type} has no limits of calls.`)
  }
  if (methods?.length === 0) return invalid('/methods', 'At least one method.')
  if (pathPrefixes !== null) {
    if (pathPrefixes.length === 0 || pathPrefixes.length > PATHS_MAX) {
      return invalid('/path_prefixes', `Between 1 and ${PATHS_MAX} prefixes.`)
    }
    const odd = pathPrefixes.findIndex((path) => !isNormalPath(path))
    if (odd >= 0) {
      return invalid(`/path_prefixes/${odd}`, 'A decoded path from "/" on, without dot segments.')
    }
  }
  return expiryFault(expiresAt, now)
}

function isNormalPath(path: string): boolean {
  if (!path.startsWith('/') || path.length > PATH_CHARS_MAX) return false
  if (/[\p{Cc}?#\\]|\/\/|%[0-9A-Fa-f]{2}/u.test(path)) return false
  return !path.split('/').some((segment) => segment === '.' || segment === '..')
}

export function expiryFault(expiresAt: Date | null, now: Date): VaultInvalid | undefined {
  if (expiresAt === null || expiresAt > now) return undefined
  return invalid('/expires_at', 'A time to come.')
}

export function invalid(pointer: string, detail: string): VaultInvalid {
  return { tag: 'invalid', pointer, detail }
}
