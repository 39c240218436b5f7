/** Refusals of the token endpoint, as values. RFC 6749 section 5.2; decisions.md 7.3, error map. */
import { isClientGone } from '../../storage/client-gone.js'
import { triesBasic } from './client-authentication.js'
import type { OAuthError, OAuthRefused } from './protocol.js'

export function refuse(error: OAuthError, description: string, basicTried = false): OAuthRefused {
  return { tag: 'oauth_refused', error, description, basicTried }
}

/** The refusal of a valid token without the scope that the operation needs. */
export function refuseScope(scope: string): OAuthRefused {
  return { ...refuse('insufficient_scope', `the token needs ${scope}`), scopes: [scope] }
}

/**
 * Of a request whose client was deleted while it was written down: there is no such client.
 * @throws the error, where it is another one.
 */
export function refuseGone(
  error: unknown,
  { authorization }: { readonly authorization: string | null },
): OAuthRefused {
  if (!isClientGone(error)) throw error
  return refuse('invalid_client', 'client authentication failed', triesBasic(authorization))
}
