/** Client assertions: a JWT signed by the client's own key. RFC 7523 section 3. */
import {
  type ClientJws,
  type ClientKey,
  isSignedBy,
  readCompactJws,
  readSeconds,
} from './client-jws.js'

/** A client's clock may run ahead by this much (reliability.md, FAPI check-list). */
const AHEAD_SECS_MAX = 60
/** An assertion is made for one request; its id is remembered until it expires. */
const LIFETIME_SECS_MAX = 3600
const ID_LENGTH_MAX = 256
const TYPES = new Set(['jwt', 'client-authentication+jwt'])

export type ReadAssertion = {
  readonly jws: ClientJws
  readonly clientId: string
  readonly id: string
  readonly expiresAtSecs: number
}

/**
 * Everything about an assertion short of its signature: `iss` = `sub` = the client, `aud` = the
 * issuer and nothing else, times in range, an id. Null when any of it is wrong.
 */
export function readAssertion(text: string, issuer: string, nowSecs: number): ReadAssertion | null {
  const jws = readCompactJws(text)
  if (jws === null) return null
  const { typ } = jws.header
  if (typ !== undefined && (typeof typ !== 'string' || !TYPES.has(typ.toLowerCase()))) return null
  const { iss, sub, aud, jti, exp, iat, nbf } = jws.payload
  if (typeof iss !== 'string' || iss === '' || sub !== iss || aud !== issuer) return null
  if (typeof jti !== 'string' || jti === '' || jti.length > ID_LENGTH_MAX) return null
  const expiresAtSecs = readSeconds(exp)
  if (expiresAtSecs === null || expiresAtSecs <= nowSecs) return null
  if (expiresAtSecs > nowSecs + LIFETIME_SECS_MAX) return null
  for (const time of [iat, nbf]) {
    if (time === undefined) continue
    const secs = readSeconds(time)
    if (secs === null || secs > nowSecs + AHEAD_SECS_MAX) return null
  }
  return { jws, clientId: iss, id: jti, expiresAtSecs }
}

/** True when one of the client's keys made the signature; a `kid` narrows the choice to one. */
export function isSignedByOneOf(jws: ClientJws, keys: readonly NamedKey[]): boolean {
  const { kid } = jws.header
  return keys.some(
    (named) => (kid === undefined || kid === named.kid) && isSignedBy(jws, named.key),
  )
}

export type NamedKey = { readonly kid: string; readonly key: ClientKey }
