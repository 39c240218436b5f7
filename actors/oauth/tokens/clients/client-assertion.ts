/** Client assertions: a JWT signed by the client's own key. RFC 7523 section 3. */
import type { ClientKey } from './client-key.js'
import { decodeJwt, type DecodedJwt, hasType, verifySignature } from '../../../platform/jose/jwt.js'

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
 * issuer as one string and nothing else, times in range, an id.
 * @returns what is wrong, in words for whoever made it, instead: nothing that they do not know.
 */
export function readAssertion(
  text: string,
  issuer: string,
  nowSecs: number,
): ReadAssertion | { readonly fault: string } {
  const decoded = decodeJwt(text)
  if (decoded.tag === 'refused') return { fault: 'it is not one well-formed signed JWT' }
  const { jwt } = decoded
  // Any other type is something else that the client signed.
  if (!hasType(jwt.header, null) && !hasType(jwt.header, 'client-authentication+jwt'))
    return { fault: 'typ is that of something else' }
  const { iss, sub, aud, jti, exp, iat, nbf } = jwt.claims
  if (typeof iss !== 'string' || iss === '' || sub !== iss)
    return { fault: 'iss and sub must both be the client_id' }
  if (aud !== issuer) return { fault: `aud must be ${issuer} and nothing else, as one string` }
  if (typeof jti !== 'string' || jti === '' || jti.length > ID_LENGTH_MAX)
    return { fault: `jti must be a string of 1 to ${ID_LENGTH_MAX} characters` }
  if (!isTime(exp)) return { fault: 'exp must be whole seconds' }
  if (exp <= nowSecs) return { fault: 'it has expired' }
  if (exp > nowSecs + LIFETIME_SECS_MAX)
    return { fault: `exp is more than ${LIFETIME_SECS_MAX} seconds ahead` }
  for (const time of [iat, nbf]) {
    if (time !== undefined && (!isTime(time) || time > nowSecs + AHEAD_SECS_MAX))
      return { fault: 'iat and nbf must be whole seconds and not lie in the future' }
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
