/**
 * What an application may still have of a grant: what it lost since is not given, whichever way the
 * grant becomes tokens. The grant itself keeps it, for when the application has it again.
 */
import type { AskedClaims } from '../../../../storage/oauth/authorization-codes.js'
import { scopesOfClaims } from '../../../domain/person-claims.js'
import type { Client } from '../clients/clients.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'

/** The granted scopes that the application has; a refusal where none of them is left. */
export function heldScopes(
  granted: readonly string[],
  client: Client,
): readonly string[] | OAuthRefused {
  if (client.kind !== 'application') return granted
  const held = granted.filter((scope) => client.row.scopes.includes(scope))
  return held.length === 0 && granted.length > 0
    ? refuse('invalid_scope', 'the application has none of the granted scopes any more')
    : held
}

/** The same of claims that were asked for by their names. */
export function heldClaims(claims: AskedClaims | null, client: Client): AskedClaims | null {
  if (claims === null || client.kind !== 'application') return claims
  const { scopes } = client.row
  return {
    idToken: claimsWithin(claims.idToken, scopes),
    userinfo: claimsWithin(claims.userinfo, scopes),
  }
}

/** The claims whose scopes are among these. */
export function claimsWithin(
  names: readonly string[],
  scopes: readonly string[],
): readonly string[] {
  return names.filter((name) => scopesOfClaims([name]).every((scope) => scopes.includes(scope)))
}
