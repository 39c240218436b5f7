/** Logout tokens of providers (OpenID Connect Back-Channel Logout 1.0 section 2.6). jose verifies signature and times. */
import { type JWTVerifyGetKey, jwtVerify } from 'jose'
import { readCompactJwt } from '../../../../platform/jose/issuer-jws.js'
import {
  LOGOUT_AGE_SECS_MAX,
  type NamedLogout,
  readLogout,
} from '../../../../platform/jose/logout-claims.js'
import { type Expected, SKEW_SECS } from './id-token.js'

/** How long a `jti` is remembered: longer than its token is accepted. */
export const LOGOUT_MEMORY_SECS = LOGOUT_AGE_SECS_MAX + 2 * SKEW_SECS

export type UpstreamLogout = NamedLogout & { readonly issuer: string }

/** What the token names, or its fault. Throws for a token that jose refuses. Keys are fetched for a token of the provider only. */
export async function verifyLogoutToken(
  token: string,
  keys: JWTVerifyGetKey,
  expected: Omit<Expected, 'nonce'>,
): Promise<UpstreamLogout | string> {
  const { issuer, clientId } = expected
  const read = readCompactJwt(token)
  const logout = typeof read === 'string' ? read : readLogout(read, { issuer, audience: clientId })
  if (typeof logout === 'string') return logout
  await jwtVerify(token, keys, {
    algorithms: [...expected.algorithms],
    clockTolerance: SKEW_SECS,
    currentDate: expected.now,
    maxTokenAge: LOGOUT_AGE_SECS_MAX,
  })
  return { issuer, ...logout }
}
