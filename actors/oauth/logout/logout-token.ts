/** Logout tokens (OpenID Connect Back-Channel Logout 1.0 section 2.4). */
import { LOGOUT_EVENT } from '../../domain/oauth/logout-tokens.js'

const LIFETIME_SECS = 120

type LogoutFacts = {
  readonly issuer: string
  readonly clientId: string
  readonly subject: string
  readonly sessionId: string
  readonly tokenId: string
  readonly now: Date
}

/** Its claims. There is no `nonce`, so that no client takes it for an ID token. */
export function logoutClaims(facts: LogoutFacts): Readonly<Record<string, unknown>> {
  const nowSecs = Math.floor(facts.now.getTime() / 1000)
  return {
    iss: facts.issuer,
    sub: facts.subject,
    aud: facts.clientId,
    iat: nowSecs,
    exp: nowSecs + LIFETIME_SECS,
    jti: facts.tokenId,
    sid: facts.sessionId,
    events: { [LOGOUT_EVENT]: {} },
  }
}
