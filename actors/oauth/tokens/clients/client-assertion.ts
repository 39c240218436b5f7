/** Client assertions: a JWT that the client signs with its own key (RFC 7523 section 3). */
import { type ExternalJws, hasType, isTime, readJws } from '../../../platform/jose/external-jws.js'

/** Tolerance for a client clock that runs ahead. */
const AHEAD_SECS_MAX = 60
/** Upper bound of `exp`: the `jti` must be remembered until the assertion expires. */
const LIFETIME_SECS_MAX = 3600
const ID_LENGTH_MAX = 256

export type ReadAssertion = {
  readonly jws: ExternalJws
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
  const jws = readJws(text)
  if (jws === undefined) return { fault: 'it is not a well-formed signed JWT' }
  // Any other type is a different kind of JWT that the same client signed.
  if (!hasType(jws, null) && !hasType(jws, 'client-authentication+jwt'))
    return { fault: 'typ must be client-authentication+jwt, JWT or absent' }
  const { iss, sub, aud, jti, exp, iat, nbf } = jws.claims
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
  return { jws, clientId: iss, id: jti, expiresAtSecs: Math.ceil(exp) }
}
