/** Client assertions: a JWT that the client signs with its own key (RFC 7523 section 3). */
import type { ClientKey } from './client-key.js'
import {
  decodeJwt,
  type DecodedJwt,
  hasType,
  isTime,
  verifySignature,
} from '../../../platform/jose/jwt.js'

/** Tolerance for a client clock that runs ahead. */
const AHEAD_SECS_MAX = 60
/** Upper bound of `exp`: the `jti` must be remembered until the assertion expires. */
const LIFETIME_SECS_MAX = 3600
const ID_LENGTH_MAX = 256

export type ReadAssertion = {
  readonly jwt: DecodedJwt
  readonly clientId: string
  readonly id: string
  readonly expiresAtSecs: number
}

/**
 * Checks everything except the signature: `iss` and `sub` are the client, `aud` is exactly the issuer
 * as one string, the times are in range, and a `jti` is present.
 * @returns the fault as a sentence for the client that made the assertion. It holds no server state.
 */
export function readAssertion(
  text: string,
  issuer: string,
  nowSecs: number,
): ReadAssertion | { readonly fault: string } {
  const decoded = decodeJwt(text)
  if (decoded.tag === 'refused') return { fault: 'it is not a well-formed signed JWT' }
  const { jwt } = decoded
  // Any other type is a different kind of JWT that the same client signed.
  if (!hasType(jwt.header, null) && !hasType(jwt.header, 'client-authentication+jwt'))
    return { fault: 'typ must be client-authentication+jwt, JWT or absent' }
  const { iss, sub, aud, jti, exp, iat, nbf } = jwt.claims
  if (typeof iss !== 'string' || iss === '' || sub !== iss)
    return { fault: 'iss and sub must both be the client_id' }
  if (aud !== issuer) return { fault: `aud must be ${issuer}, as a single string` }
  if (typeof jti !== 'string' || jti === '' || jti.length > ID_LENGTH_MAX)
    return { fault: `jti must be a string of 1 to ${ID_LENGTH_MAX} characters` }
  if (!isTime(exp)) return { fault: 'exp must be a time in seconds' }
  if (exp <= nowSecs) return { fault: 'it has expired' }
  if (exp > nowSecs + LIFETIME_SECS_MAX)
    return { fault: `exp is more than ${LIFETIME_SECS_MAX} seconds ahead` }
  for (const time of [iat, nbf]) {
    if (time !== undefined && (!isTime(time) || time > nowSecs + AHEAD_SECS_MAX))
      return { fault: 'iat and nbf must be times in seconds and not in the future' }
  }
  return { jwt, clientId: iss, id: jti, expiresAtSecs: Math.ceil(exp) }
}

export type NamedKey = { readonly kid: string; readonly key: ClientKey }

/** True if one of the client's keys made the signature. A `kid` selects the key. */
export function isSignedByOneOf(jwt: DecodedJwt, keys: readonly NamedKey[]): boolean {
  const { kid } = jwt.header
  return keys.some(
    (named) => (kid === undefined || kid === named.kid) && verifySignature(jwt, named.key),
  )
}
