/** Logout tokens of other parties (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
import { LOGOUT_EVENT, LOGOUT_TOKEN_TYPE } from '../../domain/oauth/logout-tokens.js'
import type { IssuerJws } from './issuer-jws.js'

/** The longest time since `iat`. */
export const LOGOUT_AGE_SECS_MAX = 300
const NAME_LENGTH_MAX = 255

/** A session at the sender, or all of a user. */
export type NamedLogout = {
  readonly tokenId: string
  readonly subject: string | null
  readonly sid: string | null
}

/** What the token names, or its fault. The caller verifies the signature and the times. */
export function readLogout(
  read: Pick<IssuerJws, 'typ' | 'claims'>,
  { issuer, audience }: { readonly issuer: string; readonly audience: string },
): NamedLogout | string {
  const { iss, aud, events, jti, sub = null, sid = null } = read.claims
  if (!isType(read.typ)) return 'typ is not logout+jwt'
  if (iss !== issuer) return `iss is not ${issuer}`
  if (![aud].flat().includes(audience)) return `aud is not ${audience}`
  if (!isObject(events) || !isObject(events[LOGOUT_EVENT])) return 'events has no logout event'
  if ('nonce' in read.claims) return 'nonce is forbidden'
  if (!isStored(jti)) return 'jti is not a text'
  if (sub !== null && !isStored(sub)) return 'sub is not a text'
  if (sid !== null && !isStored(sid)) return 'sid is not a text'
  if (sub === null && sid === null) return 'sub and sid are missing'
  return { tokenId: jti, subject: sub, sid }
}

/** The type is recommended only: providers from before it send none, or `JWT`. */
function isType(typ: unknown): boolean {
  if (typ === undefined) return true
  const name = typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : ''
  return name === LOGOUT_TOKEN_TYPE || name === 'jwt'
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** True for a name of a user, a session or a token that can be stored and found again. */
export const isStored = (value: unknown): value is string =>
  typeof value === 'string' &&
  value !== '' &&
  value.length <= NAME_LENGTH_MAX &&
  // PostgreSQL stores one character for each half of a surrogate pair.
  !/\0|\p{Surrogate}/u.test(value)
