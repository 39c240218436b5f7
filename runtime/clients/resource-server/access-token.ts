/** Verifies access tokens offline (RFC 9068 section 4, RFC 8725). */
import { errors, type JWTPayload, jwtVerify, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '../../kernel/clock.js'
import { type StatusLists, statusReference } from './status-list.js'

const TOKEN_CHARACTERS_MAX = 16_384
const ACT_DEPTH_MAX = 10

/** A party of the chain of actors (RFC 8693 section 4.1). */
export type Actor = { readonly sub: string; readonly subjectType: string | null }

/**
 * The verified claims of an access token. The token itself is not part of it: a resource server must not forward the
 * tokens that it receives. To call another API, exchange it at the authorization server (RFC 8693).
 */
export type AccessToken = {
  /** Unique for the issuer and the tenant. Use it with `tenantId` as the key of a user, never an email address. */
  readonly subject: string
  /** `human`, `agent` or `service`; null if the authorization server sends none. */
  readonly subjectType: string | null
  readonly tenantId: string | null
  readonly clientId: string
  /** The scopes of the token and those that they include. */
  readonly scopes: readonly string[]
  /** Who acts for the subject, the most recent first. Empty for a direct token. */
  readonly actors: readonly Actor[]
  readonly tokenId: string
  readonly expiresAt: Date
  /** The key that the token is bound to (RFC 9449). Null for a bearer token. */
  readonly jkt: string | null
  /** All claims, for those that this type does not name. */
  readonly claims: Readonly<JWTPayload>
}

export type TokenRules = {
  readonly issuer: string
  readonly audience: string
  readonly tenantId: string | undefined
  readonly algorithms: readonly string[]
  readonly implied: Readonly<Record<string, readonly string[]>>
  readonly toleranceSecs: number
  readonly keys: JWTVerifyGetKey
  readonly statusLists: StatusLists
  readonly clock: Clock
}

/** The token is refused. The message is for the developer of the client. */
export class InvalidToken extends Error {
  override readonly name = 'InvalidToken'
}

/**
 * @throws InvalidToken if the token is not valid here.
 * @throws Unavailable while the keys or the status list are unavailable.
 */
export async function verifyAccessToken(rules: TokenRules, token: string): Promise<AccessToken> {
  if (token.length > TOKEN_CHARACTERS_MAX) throw new InvalidToken('The access token is too long.')
  const claims = await verifiedClaims(rules, token)
  if (!hasAudience(claims.aud, rules.audience))
    throw new InvalidToken('The access token is for another resource.')
  const { sub, jti, exp, client_id: clientId, tenant_id: tenantId, scope = '' } = claims
  if (!isText(sub) || !isText(jti) || !isText(clientId) || typeof scope !== 'string')
    throw new InvalidToken('The access token lacks sub, jti, client_id or scope.')
  if (rules.tenantId !== undefined && tenantId !== rules.tenantId)
    throw new InvalidToken('The access token is for another tenant.')
  const jkt = boundKey(claims['cnf'])
  await checkStatus(rules.statusLists, claims)
  return {
    subject: sub,
    subjectType: textOrNull(claims['subject_type']),
    tenantId: textOrNull(tenantId),
    clientId,
    scopes: withImplied(
      scope.split(' ').filter((one) => one !== ''),
      rules.implied,
    ),
    actors: actorsOf(claims['act']),
    tokenId: jti,
    expiresAt: new Date(exp! * 1000),
    jkt,
    claims,
  }
}

async function verifiedClaims(rules: TokenRules, token: string): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, rules.keys, {
      issuer: rules.issuer,
      typ: 'at+jwt',
      algorithms: [...rules.algorithms],
      clockTolerance: rules.toleranceSecs,
      requiredClaims: ['exp', 'iat', 'aud', 'sub', 'jti', 'client_id'],
      currentDate: rules.clock.now(),
    })
    if (payload.iat! > rules.clock.nowSecs() + rules.toleranceSecs)
      throw new InvalidToken('The access token is not valid yet.')
    return payload
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw new InvalidToken('The access token has expired.')
    if (error instanceof errors.JWTClaimValidationFailed)
      throw new InvalidToken(`The claim ${error.claim} of the access token is not valid here.`)
    if (error instanceof errors.JOSEError || error instanceof TypeError)
      throw new InvalidToken('The access token is not a JWT of this authorization server.')
    throw error
  }
}

/**
 * True if the audience contains the resource. With an empty path, `https://api.example` and `https://api.example/` are
 * one resource, because clients normalize URLs (RFC 3986 section 6.2.3).
 */
export function hasAudience(aud: unknown, audience: string): boolean {
  const list: unknown[] = Array.isArray(aud) ? aud : [aud]
  return list.every(isText) && list.some((one) => isSameResource(one, audience))
}

function isSameResource(one: string, other: string): boolean {
  if (one === other) return true
  if (!URL.canParse(one) || !URL.canParse(other)) return false
  const [a, b] = [new URL(one), new URL(other)]
  const isBare = ({ pathname, search, hash, username }: URL) =>
    pathname === '/' && search === '' && hash === '' && username === ''
  // Scheme and host have no case (RFC 3986 section 6.2.2.1). The path is compared as it is.
  const rest = (text: string) => /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*(.*)$/is.exec(text)?.[1]
  return (
    a.origin !== 'null' &&
    a.origin === b.origin &&
    ((isBare(a) && isBare(b)) || rest(one) === rest(other))
  )
}

/** A confirmation that this code does not know must not be ignored (RFC 7800 section 3.1). */
function boundKey(cnf: unknown): string | null {
  if (cnf === undefined) return null
  const { jkt, ...others } = (cnf ?? {}) as { readonly jkt?: unknown }
  if (!isText(jkt) || Object.keys(others).length > 0)
    throw new InvalidToken(
      'The access token is bound in a way that this resource does not support.',
    )
  return jkt
}

async function checkStatus(lists: StatusLists, claims: JWTPayload): Promise<void> {
  const reference = statusReference(claims)
  if (reference === null) return
  if (reference === undefined)
    throw new InvalidToken('The status of the access token is not readable.')
  const status = await lists.statusOf(reference)
  if (status !== 0) throw new InvalidToken('The access token was revoked.')
}

function withImplied(
  scopes: readonly string[],
  implied: Readonly<Record<string, readonly string[]>>,
): readonly string[] {
  const all = new Set(scopes)
  // The set grows while it is read, so implied scopes imply further ones.
  for (const scope of all) {
    if (Object.hasOwn(implied, scope)) for (const narrower of implied[scope]!) all.add(narrower)
  }
  return [...all]
}

function actorsOf(act: unknown): readonly Actor[] {
  const actors: Actor[] = []
  let hop = act
  while (hop !== undefined) {
    const { sub, subject_type, act: next } = (hop ?? {}) as Readonly<Record<string, unknown>>
    if (!isText(sub) || actors.length === ACT_DEPTH_MAX)
      throw new InvalidToken('The actors of the access token are not readable.')
    actors.push({ sub, subjectType: textOrNull(subject_type) })
    hop = next
  }
  return actors
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

const textOrNull = (value: unknown) => (isText(value) ? value : null)
