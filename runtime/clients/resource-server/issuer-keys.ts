/** The keys of the authorization server: discovered (RFC 8414), cached, and refreshed when a token names a new key. */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../kernel/clock.js'
import { Cached, fetchDocument, type FetchLike, Unavailable } from './documents.js'

const DOCUMENT_BYTES_MAX = 256 * 1024
/** Seconds for which a key set is used without a refresh: `max-age` of the response within these limits. */
const KEPT_SECS_DEFAULT = 300
const KEPT_SECS_MIN = 30
const KEPT_SECS_MAX = 3600
/** A key set is used for this long while the authorization server is away. */
const USABLE_SECS = 3600
/** Minimum time between two requests, so that tokens with invented key ids cause no load. */
const PAUSE_MS = 5_000

export type IssuerKeysOptions = {
  readonly issuer: string
  readonly jwksUri: string | undefined
  readonly fetch: FetchLike
  readonly clock: Clock
}

/** Finds the key of a token. Throws `Unavailable` while there are no keys. */
export function issuerKeys({ issuer, jwksUri, fetch, clock }: IssuerKeysOptions): JWTVerifyGetKey {
  let discovered = jwksUri
  const keySet = new Cached(clock, PAUSE_MS, async () => {
    discovered ??= await discover(fetch, issuer)
    const accept = 'application/jwk-set+json, application/json'
    const document = await fetchDocument(fetch, discovered, {
      accept,
      bytesMax: DOCUMENT_BYTES_MAX,
    })
    const keptSecs = document.maxAgeSecs ?? KEPT_SECS_DEFAULT
    const nowMs = clock.monotonicMs()
    const freshSecs = Math.min(Math.max(keptSecs, KEPT_SECS_MIN), KEPT_SECS_MAX)
    return {
      value: localKeySet(document.text),
      freshUntilMs: nowMs + freshSecs * 1000,
      usableUntilMs: nowMs + (freshSecs + USABLE_SECS) * 1000,
    }
  })
  return async (header, token) => {
    const keys = await keySet.get()
    try {
      return await keys(header, token)
    } catch (error) {
      // A rotated key: the set is read once more (RFC 7517 section 4.5 leaves rotation to the reader).
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      return (await keySet.again())(header, token)
    }
  }
}

function localKeySet(text: string): JWTVerifyGetKey {
  try {
    return createLocalJWKSet(JSON.parse(text) as JSONWebKeySet)
  } catch (error) {
    throw new Unavailable('the key set is not valid', { cause: error })
  }
}

/** `jwks_uri` of the metadata, whose `issuer` must be the configured one (RFC 8414 section 3.3). */
async function discover(fetch: FetchLike, issuer: string): Promise<string> {
  const url = new URL(issuer)
  const path = url.pathname === '/' ? '' : url.pathname
  url.pathname = `/.well-known/oauth-authorization-server${path}`
  const { text } = await fetchDocument(fetch, url.href, {
    accept: 'application/json',
    bytesMax: DOCUMENT_BYTES_MAX,
  })
  const metadata = jsonObject(text)
  if (metadata?.['issuer'] !== issuer)
    throw new Unavailable(`${url.href} is not the metadata of ${issuer}`)
  const uri = metadata['jwks_uri']
  if (typeof uri !== 'string' || !isSecureUrl(uri))
    throw new Unavailable(`${url.href} has no jwks_uri that uses https`)
  return uri
}

function jsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

/** https, or http on the same machine for development. */
export function isSecureUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname))
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])
