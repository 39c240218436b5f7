/**
 * ID tokens of providers (OpenID Connect Core sections 2 and 3.1.3.7). jose verifies the signature, the issuer, the audience and
 * the times.
 */
import { type JWTVerifyGetKey, jwtVerify } from 'jose'
import { readCompactJwt } from '../../../../platform/jose/issuer-jws.js'

/** Neither `none` nor algorithms whose secret both sides know. */
export const SIGNATURES = [
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
  'PS256',
  'PS384',
  'PS512',
  'RS256',
  'RS384',
  'RS512',
]

/** How far the clocks of a provider and of the service may differ. */
export const SKEW_SECS = 30
/** The year 9999. */
const MOMENT_SECS_MAX = 253_402_300_799

export type Claims = Readonly<Record<string, unknown>>

export type Expected = {
  readonly issuer: string
  readonly clientId: string
  readonly nonce: string
  readonly algorithms: readonly string[]
  readonly now: Date
}

/** The claims of an ID token with a string `sub`, or the fault. Throws for a token that jose refuses. */
export async function verifyIdToken(
  idToken: unknown,
  keys: JWTVerifyGetKey,
  { issuer, clientId, nonce, algorithms, now }: Expected,
): Promise<(Claims & { readonly sub: string }) | string> {
  if (typeof idToken !== 'string') return 'id_token_missing'
  const read = readCompactJwt(idToken)
  if (typeof read === 'string') return 'id_token_malformed'
  const { payload } = await jwtVerify(idToken, keys, {
    issuer,
    audience: clientId,
    algorithms: [...algorithms],
    requiredClaims: ['exp', 'iat'],
    clockTolerance: SKEW_SECS,
    currentDate: now,
  })
  const { aud, azp, sub, iat } = payload
  if (payload['nonce'] !== nonce) return 'id_token_nonce'
  if (typeof sub !== 'string') return 'subject'
  if (Array.isArray(aud) && aud.length !== 1 && azp !== clientId) return 'id_token_azp'
  const soonest = now.getTime() + SKEW_SECS * 1000
  const signedIn = momentOf(payload['auth_time'])?.getTime() ?? 0
  return iat! * 1000 > soonest || signedIn > soonest ? 'issued_in_future' : { ...payload, sub }
}

/** A valid point in time, possibly as text; anything else counts as absent. */
export function momentOf(value: unknown): Date | null {
  const isText = typeof value === 'string' && /^[0-9]+([.][0-9]+)?$/.test(value)
  const secs = isText ? Number(value) : value
  if (typeof secs !== 'number' || secs < 0 || secs > MOMENT_SECS_MAX) return null
  return new Date(secs * 1000)
}
