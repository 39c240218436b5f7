/** Refusals of the token endpoint, as values. RFC 6749 section 5.2; decisions.md 7.3, error map. */
import type { OAuthError, OAuthRefused } from './protocol.js'

export function refuse(error: OAuthError, description: string, basicTried = false): OAuthRefused {
  return { tag: 'oauth_refused', error, description, basicTried }
}
