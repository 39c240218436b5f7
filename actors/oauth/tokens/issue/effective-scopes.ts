/**
 * The part of a grant within the current scopes of its application. Tokens do not get scopes that the
 * application lost after the grant. The grant keeps them, in case the application regains them.
 */
import type { RequestedClaims } from '../../../../storage/oauth/authorization-codes.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import { scopesOfClaims } from '../../../domain/person-claims.js'
import type { Client } from '../clients/clients.js'
import type { OAuthRefused } from '../protocol.js'
import { refuse } from '../refusals.js'
import { resourceScopesWithin, scopesBeside } from './api-resource.js'

/**
 * The granted scopes that the application or the API resources still have. A refusal if none is left.
 */
export function effectiveScopes(
  granted: readonly string[],
  client: Client,
  resources: readonly ApiResource[] = [],
): readonly string[] | OAuthRefused {
  if (client.kind !== 'application') return granted
  const { scopes: held } = client.row
  const effective =
    resources.length === 0
      ? granted.filter((scope) => held.includes(scope))
      : resourceScopesWithin(granted, scopesBeside(client.row), resources)
  return effective.length === 0 && granted.length > 0
    ? refuse(
        'invalid_scope',
        'the application no longer has any of the granted scopes',
        'scope_empty',
      )
    : effective
}

/** The same for individually requested claims. */
export function effectiveClaims(
  claims: RequestedClaims | null,
  client: Client,
): RequestedClaims | null {
  if (claims === null || client.kind !== 'application') return claims
  const { scopes } = client.row
  return {
    idToken: claimsWithin(claims.idToken, scopes),
    userinfo: claimsWithin(claims.userinfo, scopes),
  }
}

/** The claims whose scopes are all among these. */
export function claimsWithin(
  names: readonly string[],
  scopes: readonly string[],
): readonly string[] {
  return names.filter((name) => scopesOfClaims([name]).every((scope) => scopes.includes(scope)))
}
