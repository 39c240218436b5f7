/**
 * Speaks with the provider of a connector: redeems codes, reads the name of an account, revokes tokens. Providers answer in
 * several ways that RFC 6749 does not have, which `readTokens` accepts.
 */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { BoundedFetch } from '../../../platform/outbound-http/bounded-fetch.js'
import { parseStrictJson } from '../../../platform/jose/strict-json.js'
import { shownName } from '../../../domain/shown-names.js'
import type { Connector } from '../../../domain/entities/connector.js'
import type { OAuthDocument } from '../../../domain/vault/secret-documents/oauth.js'
import { mayReadLabel } from './endpoints.js'

const DEPTH_MAX = 16
const CHARS_MAX = 16 * 1024
/** The name is not worth a longer wait. */
const LABEL_MS_MAX = 5_000
/** The end of a connection waits this long. */
const REVOCATION_MS_MAX = 10_000
const LIFETIME_SECS_MAX = 365 * 86_400
const JSON_ANSWER = { accept: 'application/json', 'user-agent': 'svc' } as const

export type ProviderTokens = {
  readonly accessToken: string
  readonly refreshToken: string | null
  readonly obtainedAt: Date
  /** Null without `expires_in`. */
  readonly expiresAt: Date | null
  /** Null: the provider does not say. */
  readonly scopes: readonly string[] | null
}
type Members = Readonly<Record<string, unknown>>
/** The client of a connector at its provider. */
type Client = Pick<Connector, 'clientId' | 'clientSecret'> & {
  readonly tokenEndpointAuthMethod: OAuthDocument['auth_method']
}

/** Sends a code, once. The fault may be logged. */
export async function redeemCode(
  send: BoundedFetch,
  connector: Client & Pick<Connector, 'tokenEndpoint'>,
  sent: { readonly code: string; readonly redirectUri: string; readonly verifier: string | null },
  clock: Clock,
): Promise<ProviderTokens | { readonly fault: string }> {
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    code: sent.code,
    redirect_uri: sent.redirectUri,
  })
  if (sent.verifier !== null) form.set('code_verifier', sent.verifier)
  try {
    const request = { method: 'POST', ...authenticated(connector, form) }
    const answer = await send(connector.tokenEndpoint, request)
    return readTokens(answer.status, Buffer.from(await answer.arrayBuffer()), clock)
  } catch (error) {
    return { fault: (error as { fault?: string }).fault ?? 'unreachable' }
  }
}

/** Reads the answer of a token endpoint: JSON or a form, also an error with status 200. */
export function readTokens(
  status: number,
  body: Uint8Array,
  clock: Clock,
): ProviderTokens | { readonly fault: string } {
  const members = membersOf(body)
  if (members === undefined) return { fault: `status_${status}` }
  const { error, ok, authed_user: own } = members
  if (typeof error === 'string' || ok === false)
    return { fault: `refused_${String(error).slice(0, 64)}` }
  if (status !== 200 && status !== 201) return { fault: `status_${status}` }
  // Slack has the token of the person in `authed_user`.
  const tokens: Members = isObject(own) && isToken(own['access_token']) ? own : members
  const { access_token: accessToken, refresh_token: refreshToken } = tokens
  if (!isToken(accessToken)) return { fault: 'no_access_token' }
  const obtainedAt = clock.now()
  const lifetime = Number(tokens['expires_in'])
  return {
    accessToken,
    refreshToken: isToken(refreshToken) ? refreshToken : null,
    obtainedAt,
    expiresAt:
      Number.isFinite(lifetime) && lifetime > 0
        ? new Date(obtainedAt.getTime() + Math.min(lifetime, LIFETIME_SECS_MAX) * 1000)
        : null,
    scopes: scopesOf(tokens['scope']),
  }
}

/** Separated by spaces (RFC 6749 section 3.3) or commas, or a list. */
function scopesOf(scope: unknown): readonly string[] | null {
  const texts: readonly unknown[] =
    typeof scope === 'string' ? scope.split(/[\s,]+/) : Array.isArray(scope) ? scope : []
  const found = texts.filter(
    (one): one is string => typeof one === 'string' && /^[\x21-\x7e]{1,256}$/.test(one),
  )
  return found.length === 0 ? null : [...new Set(found)].slice(0, 100)
}

/** The name of an account at the provider. Null: the provider did not say. */
export async function readAccountLabel(
  send: BoundedFetch,
  connector: Pick<Connector, 'accountLabel' | 'allowedHosts'>,
  accessToken: string,
): Promise<string | null> {
  const { accountLabel } = connector
  if (accountLabel === null || !mayReadLabel(connector)) return null
  try {
    const headers = { ...JSON_ANSWER, authorization: `Bearer ${accessToken}` }
    const signal = AbortSignal.timeout(LABEL_MS_MAX)
    const answer = await send(accountLabel.url, { method: 'GET', headers, signal })
    if (answer.status !== 200) return null
    const document = parseStrictJson(Buffer.from(await answer.arrayBuffer()), DEPTH_MAX)
    const found = valueAt(document, accountLabel.pointer)
    const text = typeof found === 'number' ? String(found) : found
    return typeof text === 'string' ? shownName(text) || null : null
  } catch {
    return null
  }
}

/** `refused`: another request would change nothing. `none`: the provider is unavailable. */
export type RevocationAnswer = 'confirmed' | 'refused' | 'none'

/** Revokes a token (RFC 7009). */
export async function askRevocation(
  send: BoundedFetch,
  { client_id, client_secret, auth_method }: OAuthDocument,
  url: string,
  { token, hint }: { readonly token: string; readonly hint: 'refresh_token' | 'access_token' },
): Promise<RevocationAnswer> {
  const client = {
    clientId: client_id,
    clientSecret: client_secret ?? null,
    tokenEndpointAuthMethod: auth_method,
  }
  const form = new URLSearchParams({ token, token_type_hint: hint })
  try {
    const signal = AbortSignal.timeout(REVOCATION_MS_MAX)
    const request = { method: 'POST', signal, ...authenticated(client, form) }
    const { status } = await send(url, request)
    if (status >= 200 && status < 300) return 'confirmed'
    return status >= 500 || status === 408 || status === 429 ? 'none' : 'refused'
  } catch {
    return 'none'
  }
}

/** RFC 6749 section 2.3.1. */
function authenticated(
  { clientId, clientSecret, tokenEndpointAuthMethod: method }: Client,
  form: URLSearchParams,
) {
  const headers: Record<string, string> = {
    ...JSON_ANSWER,
    'content-type': 'application/x-www-form-urlencoded',
  }
  if (method === 'client_secret_basic' && clientSecret !== null) {
    const pair = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`
    headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
  } else {
    form.set('client_id', clientId)
    if (method === 'client_secret_post' && clientSecret !== null)
      form.set('client_secret', clientSecret)
  }
  return { headers, body: form.toString() }
}

const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

/** The members of JSON, or of a form. */
function membersOf(body: Uint8Array): Members | undefined {
  const json = parseStrictJson(Buffer.from(body), DEPTH_MAX)
  if (isObject(json)) return json
  const text = Buffer.from(body).toString('utf8').trim()
  if (json !== undefined || !/^[\w.%+-]+=[^\s<>{}]*$/.test(text)) return undefined
  return Object.fromEntries(new URLSearchParams(text))
}

/** RFC 6901. */
function valueAt(document: unknown, pointer: string): unknown {
  let value = document
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Members)[name]
  }
  return value
}

/** RFC 6749 appendix A.12: printable ASCII. */
const isToken = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= CHARS_MAX && /^[\x21-\x7e]+$/.test(value)

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
