/** Logout tokens of providers (OpenID Connect Back-Channel Logout 1.0 section 2.6). jose verifies signature and times. */
import { type JWTVerifyGetKey, jwtVerify } from 'jose'
import { LOGOUT_EVENT, LOGOUT_TOKEN_TYPE } from '../../../../domain/oauth/logout-tokens.js'
import { readCompactJwt } from '../../../../platform/jose/issuer-jws.js'
import { type Expected, isStored, SKEW_SECS } from './id-token.js'

const AGE_SECS_MAX = 300
/** How long a `jti` is remembered: longer than its token is accepted. */
export const LOGOUT_MEMORY_SECS = AGE_SECS_MAX + 2 * SKEW_SECS

/** What a valid token names: a session at the provider, or all of a user. */
export type UpstreamLogout = {
  readonly issuer: string
  readonly tokenId: string
  readonly subject: string | null
  readonly sid: string | null
}

/** What the token names, or its fault. Throws for a token that jose refuses. Keys are fetched for a token of the provider only. */
export async function verifyLogoutToken(
  token: string,
  keys: JWTVerifyGetKey,
  expected: Omit<Expected, 'nonce'>,
): Promise<UpstreamLogout | string> {
  const logout = readLogoutToken(token, expected)
  if (typeof logout === 'string') return logout
  await jwtVerify(token, keys, {
    algorithms: [...expected.algorithms],
    clockTolerance: SKEW_SECS,
    currentDate: expected.now,
    maxTokenAge: AGE_SECS_MAX,
  })
  return logout
}

function readLogoutToken(
  token: string,
  { issuer, clientId }: Pick<Expected, 'issuer' | 'clientId'>,
): UpstreamLogout | string {
  const read = readCompactJwt(token)
  if (typeof read === 'string') return read
  const { iss, aud, events, jti, sub = null, sid = null } = read.claims
  if (!isType(read.typ)) return 'typ is not logout+jwt'
  if (iss !== issuer) return 'iss is not the provider'
  if (![aud].flat().includes(clientId)) return 'aud is not the client_id at the provider'
  if (!isObject(events) || !isObject(events[LOGOUT_EVENT])) return 'events has no logout event'
  if ('nonce' in read.claims) return 'nonce is forbidden'
  if (!isStored(jti)) return 'jti is not a text'
  if (sub !== null && !isStored(sub)) return 'sub is not a text'
  if (sid !== null && !isStored(sid)) return 'sid is not a text'
  if (sub === null && sid === null) return 'sub and sid are missing'
  return { issuer, tokenId: jti, subject: sub, sid }
}

/** The type is recommended only: providers from before it send none, or `JWT`. */
function isType(typ: unknown): boolean {
  if (typ === undefined) return true
  const name = typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : ''
  return name === LOGOUT_TOKEN_TYPE || name === 'jwt'
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
