/** Validation of credentials, grants and leases. All functions are pure (docs/reference/vault.md). */
import { httpsUrl } from '../../domain/entities/https-url.js'
import { normalizeHostname } from '../../domain/hostnames.js'
import { networkContains } from '../../domain/commerce/networks.js'
import { type FaultOf, URL_FAULTS } from '../../platform/outbound-http/targets.js'
import { ANY_AUTH_SCHEME, readAuthScheme } from '../../domain/vault/egress.js'
import { hasSecretDocument } from '../../domain/vault/secret-documents/documents.js'
import { isEmpty } from '../../domain/vault/budgets.js'
import type { CreateCredential, CreateGrant, VaultInvalid } from './protocol.js'
import {
  type Capability,
  type Credential,
  CREDENTIAL_TYPES,
  type CredentialType,
  isForEgress,
} from '../../domain/entities/vault.js'

const HOSTS_MAX = 64
const METADATA_BYTES_MAX = 8 * 1024
const SECRET_BYTES_MAX = 64 * 1024
const PATHS_MAX = 32
const PATH_CHARS_MAX = 512
/** A valid header field value as UTF-8: no control characters. */
const FIELD_VALUE = /^[\t\x20-\x7e\u0080-\u{10ffff}]+$/u
const OUTER_WHITESPACE = /^[\t ]|[\t ]$/
const OPENSSH_KEY =
  /^-----BEGIN OPENSSH PRIVATE KEY-----\r?\n[A-Za-z0-9+/=\r\n]+\r?\n-----END OPENSSH PRIVATE KEY-----\s*$/

/** The scheme of a new credential: `none` for ssh_ca, by default `bearer` for oauth2. */
export function authSchemeOf(type: CredentialType, scheme: string | null): string | VaultInvalid {
  if (type === 'ssh_ca') {
    return scheme === null ? 'none' : invalid('/auth_scheme', 'Must be omitted for an ssh_ca.')
  }
  if (scheme === null) {
    return type === 'oauth2'
      ? 'bearer'
      : invalid('/auth_scheme', 'Required for this credential_type.')
  }
  const read = readAuthScheme(scheme)
  if (read?.kind === 'signed' && type !== 'api_key' && type !== 'custom')
    return invalid('/auth_scheme', `Only an api_key or custom credential supports ${read.text}.`)
  if (read?.kind === 'token' && type === 'ssh_key')
    return invalid('/auth_scheme', `An ssh_key credential does not support ${read.text}.`)
  return read === null ? invalid('/auth_scheme', `Must be ${ANY_AUTH_SCHEME}.`) : read.text
}

/** The normalized hosts without duplicates. */
export function normalizeHosts(hosts: readonly string[]): readonly string[] | VaultInvalid {
  if (hosts.length > HOSTS_MAX)
    return invalid('/allowed_hosts', `Must contain at most ${HOSTS_MAX} hosts.`)
  const normal = hosts.map(normalizeHostname)
  const fault = normal.indexOf(null)
  if (fault >= 0) {
    return invalid(
      `/allowed_hosts/${fault}`,
      'Must be a host name, not a wildcard, port or address.',
    )
  }
  return [...new Set(normal as string[])]
}

/** Fault of the first host that the credential with the token does not allow. */
export function hostsBeyond(
  hosts: readonly string[],
  within: readonly string[],
): VaultInvalid | undefined {
  const outside = hosts.findIndex((host) => !within.includes(host))
  if (outside < 0) return undefined
  return invalid(
    `/allowed_hosts/${outside}`,
    'Must be one of the allowed_hosts of the token_of credential.',
  )
}

/** True if the new hosts allow more than the old ones. */
export function widensHosts(
  type: CredentialType,
  before: readonly string[],
  after: readonly string[],
): boolean {
  if (type === 'ssh_ca') {
    // An SSH CA without hosts signs for any host.
    if (before.length === 0) return false
    if (after.length === 0) return true
  }
  return after.some((host) => !before.includes(host))
}

/** True if the new source addresses allow more than the old ones. Empty allows any. */
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
  return invalid('/metadata', `Must have at most ${METADATA_BYTES_MAX} bytes of JSON.`)
}

/** The fault of a secret; the detail never quotes it. */
export function secretFault(
  type: CredentialType,
  authScheme: string,
  secret: string,
  urlFaultOf: FaultOf,
): VaultInvalid | undefined {
  const fault = (detail: string) => invalid('/secret', detail)
  if (secret === '' || Buffer.byteLength(secret) > SECRET_BYTES_MAX) {
    return fault(`Must have 1 to ${SECRET_BYTES_MAX} bytes.`)
  }
  if (hasSecretDocument(authScheme)) return undefined
  if (type === 'oauth2') return oauthFault(secret, urlFaultOf)
  if (type === 'ssh_key') {
    return OPENSSH_KEY.test(secret) ? undefined : fault('Must be an OpenSSH private key.')
  }
  const kind = readAuthScheme(authScheme)?.kind
  if (kind === 'basic' && !secret.includes(':'))
    return fault('Must be user:password for auth_scheme basic.')
  if (kind === 'query') return undefined
  // Refused here, because it would fail at its first use.
  if (!FIELD_VALUE.test(secret)) return fault('Must not contain line breaks or control characters.')
  // Upstreams trim header values, so the secret would differ. Base64 is not affected.
  if (kind !== 'basic' && OUTER_WHITESPACE.test(secret))
    return fault('Must not start or end with whitespace.')
  return undefined
}

/** Validates the JSON document of an oauth2 credential. */
function oauthFault(secret: string, urlFaultOf: FaultOf): VaultInvalid | undefined {
  const fault = invalid(
    '/secret',
    'Must be JSON {token_url, client_id, client_secret?, refresh_token?, scope?}.',
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
  const prohibited = urlFaultOf(tokenUrl)
  if (prohibited !== undefined) return invalid('/secret', `token_url: ${URL_FAULTS[prohibited]}`)
  const known = new Set(['client_secret', 'refresh_token', 'scope'])
  return Object.entries(optional).every(
    ([name, value]) => known.has(name) && typeof value === 'string' && value !== '',
  )
    ? undefined
    : fault
}

export function isTokenUrl(text: string): boolean {
  const url = httpsUrl(text, { query: true })
  return url !== null && normalizeHostname(url.hostname) !== null
}

/** The fault of a new credential, except of its secret. */
export function credentialFault(request: CreateCredential): VaultInvalid | undefined {
  const { credentialType, secret, metadata, tokenOf } = request
  if (tokenOf !== null) return tokenFault(request) ?? metadataFault(metadata)
  if (secret === null && credentialType !== 'ssh_ca') {
    return invalid('/secret', 'Required for this credential_type.')
  }
  return metadataFault(metadata)
}

/** A credential with `token_of` works only through the egress proxy. */
function tokenFault({
  credentialType,
  secret,
  authScheme,
  nonExportable,
}: CreateCredential): VaultInvalid | undefined {
  if (!CREDENTIAL_TYPES[credentialType].tokenOf)
    return invalid('/token_of', 'Only an api_key or custom credential supports token_of.')
  if (secret !== null) return invalid('/secret', 'Must be omitted with token_of.')
  if (!nonExportable) return invalid('/non_exportable', 'Must be true with token_of.')
  const scheme = readAuthScheme(authScheme ?? '')
  return scheme === null || scheme.kind === 'field' || scheme.kind === 'query'
    ? undefined
    : invalid('/auth_scheme', `Must not be ${scheme.text} with token_of.`)
}

export function capabilitiesOf(
  type: CredentialType,
  requested: readonly Capability[] | null,
): readonly Capability[] | VaultInvalid {
  const own: Capability = CREDENTIAL_TYPES[type].capability
  if (requested === null) return ['list', own]
  const other = requested.findIndex((capability) => capability !== 'list' && capability !== own)
  if (requested.length === 0) {
    return invalid('/capabilities', 'Must contain at least one capability.')
  }
  if (other >= 0) return invalid(`/capabilities/${other}`, `Must be list or ${own} for this type.`)
  return [...new Set(requested)]
}

export function grantFault(
  { methods, pathPrefixes, maxRequests, maxBytes, approval, budget, expiresAt }: CreateGrant,
  { credentialType: type, authScheme }: Pick<Credential, 'credentialType' | 'authScheme'>,
  now: Date,
): VaultInvalid | undefined {
  const limits = [methods, pathPrefixes, maxRequests, maxBytes, budget]
  const limited = approval !== 'none' || limits.some((limit) => limit !== null)
  // Limits apply to calls through the egress proxy, so other types would not enforce them.
  if (limited && !isForEgress(type, authScheme))
    return invalid('', `An ${type} credential does not support call limits.`)
  if (budget !== null && isEmpty(budget))
    return invalid('/budget', 'Must limit requests, bytes or llm_tokens.')
  if (methods?.length === 0) return invalid('/methods', 'Must contain at least one method.')
  if (pathPrefixes !== null) {
    if (pathPrefixes.length === 0 || pathPrefixes.length > PATHS_MAX) {
      return invalid('/path_prefixes', `Must contain 1 to ${PATHS_MAX} prefixes.`)
    }
    const fault = pathPrefixes.findIndex((path) => !isNormalPath(path))
    if (fault >= 0) {
      const detail = 'Must be a decoded path that starts with "/" and has no dot segments.'
      return invalid(`/path_prefixes/${fault}`, detail)
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
  return invalid('/expires_at', 'Must be in the future.')
}

export function invalid(pointer: string, detail: string): VaultInvalid {
  return { tag: 'invalid', pointer, detail }
}
