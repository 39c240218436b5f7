/** Client assertions: a JWT signed by the client's own key. RFC 7523 section 3. */
import type { ClientKey } from './client-key.js'
import { decodeJwt, type DecodedJwt, hasType, verifySignature } from './jwt.js'

/** A client's clock may run ahead by this much. */
const AHEAD_SECS_MAX = 60
/** An assertion is made for one request; its id is remembered until it expires. */
const LIFETIME_SECS_MAX = 3600
const ID_LENGTH_MAX = 256

export type ReadAssertion = {
  readonly jwt: DecodedJwt
  readonly clientId: string
  readonly id: string
  readonly expiresAtSecs: number
}

/**
 * Everything about an assertion short of its signature: `iss` = `sub` = the client, `aud` = the
 * issuer as one string and nothing else, times in range, an id. Null when any of it is wrong.
 */
export function readAssertion(text: string, issuer: string, nowSecs: number): ReadAssertion | null {
  const decoded = decodeJwt(text)
  if (decoded.tag === 'refused') return null
  const { jwt } = decoded
  // Any other type is something else that the client signed.
  if (!hasType(jwt.header, null) && !hasType(jwt.header, 'client-authentication+jwt')) return null
  const { iss, sub, aud, jti, exp, iat, nbf } = jwt.claims
  if (typeof iss !== 'string' || iss === '' || sub !== iss || aud !== issuer) return null
  if (typeof jti !== 'string' || jti === '' || jti.length > ID_LENGTH_MAX) return null
  if (!isTime(exp) || exp <= nowSecs || exp > nowSecs + LIFETIME_SECS_MAX) return null
  for (const time of [iat, nbf]) {
    if (time !== undefined && (!isTime(time) || time > nowSecs + AHEAD_SECS_MAX)) return null
  }
  return { jwt, clientId: iss, id: jti, expiresAtSecs: exp }
}

export type NamedKey = { readonly kid: string; readonly key: ClientKey }

/** True when one of the client's keys made the signature; a `kid` narrows the choice. */
export function isSignedByOneOf(jwt: DecodedJwt, keys: readonly NamedKey[]): boolean {
  const { kid } = jwt.header
  return keys.some(
    (named) => (kid === undefined || kid === named.kid) && verifySignature(jwt, named.key),
  )
}

/** Whole seconds; JSON also knows 1.5, -1 and 1e400. */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
