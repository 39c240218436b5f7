/**
 * OpenID Connect client: openid-client with all its checks enabled and every request sent through the outbound dialer.
 * ID tokens are verified here, by signature although they arrive over TLS: the library refuses an `auth_time` as text.
 */
import { compactVerify, createRemoteJWKSet, customFetch, errors } from 'jose'
import * as oidc from 'openid-client'
import type { Clock } from '../../../../../runtime/kernel/clock.js'
import { httpsUrl } from '../../../../domain/entities/https-url.js'
import { assertedProfile, type Profile } from '../../../../domain/people/profile-claims.js'
import { shownName } from '../../../../domain/shown-names.js'
import { type BoundedFetch, FetchFailed } from '../../../../platform/outbound-http/bounded-fetch.js'
import type { EventRefused } from '../../../../domain/webhooks/signals.js'
import { readCompactJwt } from '../../../../platform/jose/issuer-jws.js'
import { isStored } from '../../../../platform/jose/logout-claims.js'
import {
  eventRefused,
  readSecurityEvent,
  type SecurityEvent,
} from '../../../../platform/jose/security-event-claims.js'
import { type Claims, momentOf, SIGNATURES, verifyIdToken } from './id-token.js'
import { type UpstreamLogout, verifyLogoutToken } from './logout-token.js'
import type { Provider } from './providers.js'

/** Timeout of one request to a provider. A sign-in makes five at most, so it ends within the request timeout. */
export const UPSTREAM_CALL_SECS = 4
/** Discovery documents, key sets, token and userinfo responses are far smaller. */
export const UPSTREAM_ANSWER_BYTES_MAX = 256 * 1024
const CACHED_MS = 10 * 60_000
const KEYS_CACHED_MS = 5 * 60_000
const POSTED_KEYS_FRESH_MS = 30_000
/** Codes of jose for a key set that cannot be read. */
const KEYS_UNREAD = new Set(['ERR_JOSE_GENERIC', 'ERR_JWKS_INVALID', 'ERR_JWKS_TIMEOUT'])
/** Below this age of a key set, openid-client does not fetch it again for a key that is not in it. */
const KEYS_FRESH_SECS = 60
/** After a failure, discovery is not retried for this long. */
const FAILURE_CACHED_MS = 5_000
const CONFIGURATIONS_MAX = 500

/** openid-client: userinfo is about another subject than the ID token. */
const ANOTHER_SUBJECT = 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED'

export type UpstreamRequest = {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}
export type Ask = {
  readonly loginHint: string | null
  /** Requires the user to re-authenticate (`prompt=login`, `max_age=0`). */
  readonly fresh: boolean
  /** Requests two factors (`acr_values`). */
  readonly strong: boolean
}

/** Verified claims about the user who signed in. */
export type UpstreamClaims = {
  readonly issuer: string
  readonly subject: string
  readonly email: unknown
  readonly emailVerified: unknown
  readonly name: string
  /** Valid profile claims of the provider. */
  readonly profile: Profile
  readonly acr: unknown
  readonly amr: unknown
  /** Null: the provider sent no `auth_time`. */
  readonly authTime: Date | null
  /** The session at the provider. Null: the provider named none. */
  readonly sid: string | null
}

export type UpstreamFault = {
  readonly tag: 'fault'
  readonly fault: 'unavailable' | 'invalid_answer' | 'denied'
  /** For the log and the event. Contains no secret and nothing of the response except its error code. */
  readonly detail: string
}

export interface UpstreamClient {
  authorizationUrl(
    provider: Provider,
    request: UpstreamRequest,
    ask: Ask,
  ): Promise<{ readonly tag: 'url'; readonly url: string } | UpstreamFault>
  /** Validates the authorization response, redeems its code and reads the claims. */
  finish(
    provider: Provider,
    request: UpstreamRequest,
    parameters: URLSearchParams,
  ): Promise<{ readonly tag: 'claims'; readonly claims: UpstreamClaims } | UpstreamFault>
  /** Validates a logout token. */
  logout(
    provider: Provider,
    token: string,
  ): Promise<{ readonly tag: 'logout'; readonly logout: UpstreamLogout } | UpstreamFault>
  /** Validates a security event. A fault: the keys are unavailable. */
  securityEvent(
    provider: Provider,
    token: string,
  ): Promise<
    { readonly tag: 'event'; readonly event: SecurityEvent } | EventRefused | UpstreamFault
  >
}

type RemoteKeys = ReturnType<typeof createRemoteJWKSet>
type Server = {
  readonly metadata: oidc.ServerMetadata
  readonly keys: RemoteKeys
  /** For posted tokens: anybody can send one, so a token with an unknown key rarely makes a request. */
  readonly postedKeys: RemoteKeys
}
type Cached<T> = { readonly version: string; readonly until: number; readonly value: Promise<T> }

/** Caches what is read of a provider. Concurrent callers share one request. */
function remembered<T>(clock: Clock, read: (provider: Provider) => Promise<T>) {
  const cache = new Map<string, Cached<T>>()
  return (provider: Provider): Promise<T> => {
    const key = `${provider.tenantId ?? ''}:${provider.id}`
    const known = cache.get(key)
    const now = clock.monotonicMs()
    if (known !== undefined && known.version === provider.version && known.until > now) {
      return known.value
    }
    const value = read(provider)
    const { version } = provider
    const entry = { version, until: now + CACHED_MS, value }
    cache.delete(key)
    if (cache.size >= CONFIGURATIONS_MAX) cache.delete(cache.keys().next().value!)
    cache.set(key, entry)
    value.catch(() => {
      const until = clock.monotonicMs() + FAILURE_CACHED_MS
      if (cache.get(key) === entry) cache.set(key, { ...entry, until })
    })
    return value
  }
}

export function upstreamClient(fetch: BoundedFetch, clock: Clock): UpstreamClient {
  const serverOf = remembered(clock, (provider) => checkedServer(provider, fetch))
  const transmitterKeysOf = remembered(clock, (provider) => transmitterKeys(provider, fetch))
  return {
    async authorizationUrl(provider, request, { loginHint, fresh, strong }) {
      try {
        const configuration = configure((await serverOf(provider)).metadata, provider, fetch)
        const url = oidc.buildAuthorizationUrl(configuration, {
          redirect_uri: request.redirectUri,
          scope: provider.scopes.join(' '),
          state: request.state,
          nonce: request.nonce,
          code_challenge: await oidc.calculatePKCECodeChallenge(request.verifier),
          code_challenge_method: 'S256',
          ...(loginHint === null ? {} : { login_hint: loginHint }),
          ...(fresh ? { prompt: 'login', max_age: '0' } : {}),
          ...(strong && provider.trustedAcrValues.length > 0
            ? { acr_values: provider.trustedAcrValues.join(' ') }
            : {}),
        })
        return { tag: 'url', url: url.href }
      } catch (error) {
        return faultOf(error)
      }
    },

    async finish(provider, request, parameters) {
      try {
        const { metadata, keys } = await serverOf(provider)
        const configuration = configure(metadata, provider, fetch)
        const url = new URL(request.redirectUri)
        url.search = parameters.toString()
        const tokens = await oidc.authorizationCodeGrant(configuration, url, {
          pkceCodeVerifier: request.verifier,
          expectedState: request.state,
        })
        const idToken = await verifyIdToken(tokens[ID_TOKEN], keys, {
          issuer: metadata.issuer,
          clientId: provider.clientId,
          nonce: request.nonce,
          algorithms: metadata.id_token_signing_alg_values_supported!,
          now: clock.now(),
        })
        if (typeof idToken === 'string') return invalid(idToken)
        // For signed userinfo. With an unknown key, the library fetches keys of this age again.
        const uat = clock.nowSecs() - KEYS_FRESH_SECS
        oidc.setJwksCache(configuration, { jwks: keys.jwks()!, uat })
        const more = await userinfoOf(configuration, tokens.access_token, idToken)
        return claimsOf(merged(idToken, more))
      } catch (error) {
        return faultOf(error)
      }
    },

    async logout(provider, token) {
      try {
        const { metadata, postedKeys } = await serverOf(provider)
        const logout = await verifyLogoutToken(token, postedKeys, {
          issuer: metadata.issuer,
          clientId: provider.clientId,
          algorithms: metadata.id_token_signing_alg_values_supported!,
          now: clock.now(),
        })
        return typeof logout === 'string' ? invalid(logout) : { tag: 'logout', logout }
      } catch (error) {
        return faultOf(error)
      }
    },

    async securityEvent(provider, token) {
      const read = readCompactJwt(token)
      if (typeof read === 'string') return eventRefused(read)
      const { issuer, clientId: audience } = provider
      const event = readSecurityEvent(read, { issuer, audience, nowSecs: clock.nowSecs() })
      // Keys are fetched for a token that names the provider and its client only.
      if ('tag' in event) return event
      try {
        const keys = (await transmitterKeysOf(provider)) ?? (await serverOf(provider)).postedKeys
        await compactVerify(token, keys, { algorithms: SIGNATURES })
        return { tag: 'event', event }
      } catch (error) {
        const isOfToken = error instanceof errors.JOSEError && !KEYS_UNREAD.has(error.code)
        return isOfToken
          ? eventRefused('no key of the issuer made the signature', 'invalid_key')
          : faultOf(error)
      }
    },
  }
}

/**
 * What the ID token lacks. With the address in the ID token only the name may be missing, so the sign-in goes on if the
 * endpoint fails, as in AD FS for tokens of other resources. Claims about another subject always end it.
 */
async function userinfoOf(
  configuration: oidc.Configuration,
  accessToken: string,
  { sub, email, name }: Claims & { readonly sub: string },
): Promise<Claims> {
  const { userinfo_endpoint: userinfo } = configuration.serverMetadata()
  if (userinfo === undefined || (email !== undefined && name !== undefined)) return {}
  try {
    return await oidc.fetchUserInfo(configuration, accessToken, sub)
  } catch (error) {
    const isOfAnother = (error as { code?: unknown }).code === ANOTHER_SUBJECT
    if (email === undefined || isOfAnother) throw error
    return {}
  }
}

/**
 * The ID token is signed, so its claims win. `email_verified` counts only for the `email` in the same document (OpenID
 * Connect Core section 5.1): the flag of one document says nothing about the address in the other.
 */
function merged(claims: Claims, more: Claims): Claims {
  const [own, other] = claims['email'] === undefined ? [more, claims] : [claims, more]
  const otherVerified = own['email'] === other['email'] ? other['email_verified'] : undefined
  // The same rule for phone numbers.
  const phone = claims['phone_number'] === undefined ? more : claims
  const phoneVerified = phone['phone_number_verified']
  return {
    ...more,
    ...claims,
    email_verified: own['email_verified'] ?? otherVerified,
    phone_number_verified: truthOf(phoneVerified),
  }
}

function claimsOf(
  claims: Readonly<Record<string, unknown>>,
): { readonly tag: 'claims'; readonly claims: UpstreamClaims } | UpstreamFault {
  const { iss: issuer, sub: subject, sid, name, auth_time: authTime } = claims
  if (typeof issuer !== 'string' || !isStored(subject)) return invalid('subject')
  return {
    tag: 'claims',
    claims: {
      issuer,
      subject,
      email: claims['email'],
      emailVerified: truthOf(claims['email_verified']),
      name: typeof name === 'string' ? shownName(name) : '',
      profile: assertedProfile(claims),
      acr: claims['acr'],
      amr: claims['amr'],
      authTime: momentOf(authTime),
      sid: isStored(sid) ? sid : null,
    },
  }
}

/** Some providers send the words (Cognito, Apple). */
function truthOf(value: unknown): unknown {
  if (value === 'true') return true
  if (value === 'false') return false
  return value
}

/** The metadata of a provider, with the supported signatures, and its keys. */
async function checkedServer(provider: Provider, fetch: BoundedFetch): Promise<Server> {
  const server =
    provider.endpoints === null ? await discover(provider, fetch) : statedServer(provider)
  const { authorization_endpoint: authorization, jwks_uri: jwks } = server
  // The browser is redirected to the one, and the other decides who signs, so only https is allowed.
  if (!isHttps(authorization) || !isHttps(jwks)) throw new BadProvider('endpoint')
  const offered = server.id_token_signing_alg_values_supported ?? SIGNATURES
  const signatures = offered.filter((alg) => SIGNATURES.includes(alg))
  if (signatures.length === 0) throw new BadProvider('signatures')
  return {
    metadata: { ...server, id_token_signing_alg_values_supported: signatures },
    // A provider may sign with a key that it made just after its key set was fetched.
    keys: remoteKeys(fetch, jwks, 0),
    postedKeys: remoteKeys(fetch, jwks, POSTED_KEYS_FRESH_MS),
  }
}

const remoteKeys = (fetch: BoundedFetch, url: string, cooldownDuration: number): RemoteKeys =>
  createRemoteJWKSet(new URL(url), {
    [customFetch]: (address, { headers, ...init }) =>
      fetch(address, { ...init, headers: Object.fromEntries(headers) }),
    timeoutDuration: UPSTREAM_CALL_SECS * 1000,
    cacheMaxAge: KEYS_CACHED_MS,
    cooldownDuration,
  })

/** The keys of a provider as a transmitter (SSF 1.0 section 7.2). Null: it has no such configuration. */
async function transmitterKeys(
  { issuer }: Provider,
  bounded: BoundedFetch,
): Promise<RemoteKeys | null> {
  const url = new URL(issuer)
  url.pathname = `/.well-known/ssf-configuration${url.pathname.replace(/\/$/, '')}`
  const signal = AbortSignal.timeout(UPSTREAM_CALL_SECS * 1000)
  const response = await bounded(url.href, { method: 'GET', signal })
  if (response.status === 404) return null
  if (response.status !== 200) throw new BadProvider('transmitter')
  const { issuer: named, jwks_uri: jwks } = (await response.json()) as Claims
  if (named !== issuer) throw new BadProvider('issuer')
  if (typeof jwks !== 'string' || !isHttps(jwks)) throw new BadProvider('endpoint')
  return remoteKeys(bounded, jwks, POSTED_KEYS_FRESH_MS)
}

const isHttps = (url: string | undefined): url is string =>
  url !== undefined && httpsUrl(url, { query: true }) !== null

function configure(
  server: oidc.ServerMetadata,
  provider: Provider,
  fetch: BoundedFetch,
): oidc.Configuration {
  const authentication = authenticationOf(provider)
  const configuration = new oidc.Configuration(server, provider.clientId, {}, authentication)
  configuration[oidc.customFetch] = fetchOf(fetch)
  configuration.timeout = UPSTREAM_CALL_SECS
  oidc.enableNonRepudiationChecks(configuration)
  return configuration
}

async function discover(provider: Provider, fetch: BoundedFetch): Promise<oidc.ServerMetadata> {
  const discovered = await oidc.discovery(
    new URL(provider.issuer),
    provider.clientId,
    {},
    oidc.None(),
    { [oidc.customFetch]: fetchOf(fetch), timeout: UPSTREAM_CALL_SECS },
  )
  const { supportsPKCE: _, ...server } = discovered.serverMetadata()
  // Compared as a string, not as a parsed URL (OpenID Connect Discovery section 4.3).
  if (server.issuer !== provider.issuer) throw new BadProvider('issuer')
  return server
}

function statedServer({ issuer, endpoints }: Provider): oidc.ServerMetadata {
  const { authorization, token, userinfo, jwks } = endpoints!
  return {
    issuer,
    authorization_endpoint: authorization,
    token_endpoint: token,
    jwks_uri: jwks,
    ...(userinfo === null ? {} : { userinfo_endpoint: userinfo }),
  }
}

function authenticationOf({ authMethod, clientSecret }: Provider): oidc.ClientAuth {
  if (authMethod === 'none' || clientSecret === null) return oidc.None()
  return authMethod === 'client_secret_post'
    ? oidc.ClientSecretPost(clientSecret)
    : oidc.ClientSecretBasic(clientSecret)
}

function fetchOf(bounded: BoundedFetch): oidc.CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    const response = await bounded(url, { method, headers, body, signal: signal ?? undefined })
    // Only tokens are requested by POST.
    return rewritten(response, method === 'POST' ? usedOfTokens : (stated) => stated)
  }
}

const USED_OF_TOKENS = new Set(['access_token', 'token_type', 'error'])
/** The ID token has another name for the library, which would judge it. */
const ID_TOKEN = 'signed_claims'

/**
 * What is used of a token response. Some providers leave out `token_type`, write scopes as a list (Twitch), or the
 * lifetime in words.
 */
function usedOfTokens(stated: Claims): Claims {
  const used = Object.entries(stated).filter(([name]) => USED_OF_TOKENS.has(name))
  return { token_type: 'Bearer', ...Object.fromEntries(used), [ID_TOKEN]: stated['id_token'] }
}

/** Null members of a document count as absent. openid-client refuses some of them. */
async function rewritten(
  response: Response,
  change: (stated: Claims) => Claims,
): Promise<Response> {
  if (response.status !== 200) return response
  const text = await response.text()
  const copy = (body: string) => new Response(body, { headers: response.headers })
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return copy(text)
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    return copy(text)
  const stated = Object.entries(document).filter(([, value]) => value !== null)
  // The library compares the media type with its case.
  response.headers.set('content-type', 'application/json')
  return copy(JSON.stringify(change(Object.fromEntries(stated))))
}

class BadProvider extends Error {
  override readonly name = 'BadProvider'
  readonly code: string

  constructor(what: string) {
    super(`invalid provider metadata: ${what}`)
    this.code = `provider_${what}`
  }
}

const CAUSES_MAX = 5

/** The cause of a failure, without any text of the provider's response. */
function faultOf(error: unknown): UpstreamFault {
  if (error instanceof oidc.AuthorizationResponseError) {
    return { tag: 'fault', fault: 'denied', detail: codeOf(error.error) }
  }
  let cause = error
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
    if (cause instanceof FetchFailed)
      return { tag: 'fault', fault: 'unavailable', detail: cause.fault }
    if (cause.name === 'TimeoutError')
      return { tag: 'fault', fault: 'unavailable', detail: 'timeout' }
    cause = cause.cause
  }
  if (error instanceof oidc.ResponseBodyError) return invalid(codeOf(error.error))
  return invalid(codeOf((error as { code?: unknown } | null)?.code))
}

const invalid = (detail: string): UpstreamFault => ({
  tag: 'fault',
  fault: 'invalid_answer',
  detail,
})

/** Error codes are plain tokens. Anything else is not repeated. */
const codeOf = (code: unknown): string =>
  typeof code === 'string' && /^[A-Za-z0-9_.-]{1,64}$/.test(code) ? code : 'unknown'
