/** Signed request objects of the PAR endpoint (RFC 9101, RFC 9126 section 3, FAPI 2.0 Message Signing section 5.3). */
import { type ExternalJws, hasType, isTime, readJws } from '../../../platform/jose/external-jws.js'
import type { FormFields } from '../protocol.js'

const AHEAD_SECS_MAX = 60
/** How old `nbf` may be, and how long after it `exp`. */
const LIFETIME_SECS_MAX = 3600
/** Claims of the JWT, which are no parameters. */
const OF_THE_JWT = new Set(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti'])

type ReadObject = { readonly jws: ExternalJws; readonly parameters: FormFields }
type Expected = { readonly clientId: string; readonly issuer: string; readonly nowSecs: number }

/** Checks everything except the signature. Its parameters are the request: those outside count for nothing. */
export function readRequestObject(
  text: string,
  { clientId, issuer, nowSecs }: Expected,
): ReadObject | { readonly fault: string } {
  const jws = readJws(text)
  if (jws === undefined) return { fault: 'it is not a well-formed JWT, signed with ES256 or EdDSA' }
  if (!hasType(jws, null) && !hasType(jws, 'oauth-authz-req+jwt'))
    return { fault: 'typ must be oauth-authz-req+jwt, JWT or absent' }
  const { iss, aud, exp, nbf, client_id: named = clientId } = jws.claims
  if (iss !== clientId || named !== clientId)
    return { fault: 'iss and client_id must be the client' }
  if (![aud].flat().includes(issuer)) return { fault: `aud must have ${issuer}` }
  if (!isTime(nbf) || nbf > nowSecs + AHEAD_SECS_MAX || nbf < nowSecs - LIFETIME_SECS_MAX)
    return { fault: 'nbf must be a time of the last hour' }
  if (!isTime(exp) || exp <= nowSecs || exp > nbf + LIFETIME_SECS_MAX)
    return { fault: 'exp must be a time to come, at most an hour after nbf' }
  if ('request' in jws.claims || 'request_uri' in jws.claims)
    return { fault: 'it must not contain request or request_uri' }
  const parameters = Object.entries({ ...jws.claims, client_id: clientId })
    .filter(([name]) => !OF_THE_JWT.has(name))
    .flatMap(([name, value]) => textsOf(value).map((each) => [name, each] as const))
  return { jws, parameters }
}

/** A value as the parameters of a form: objects and lists of objects are JSON (RFC 9101 section 4). */
function textsOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  const isList = Array.isArray(value) && value.every((each) => typeof each === 'string')
  return isList ? (value as string[]) : [JSON.stringify(value)]
}
