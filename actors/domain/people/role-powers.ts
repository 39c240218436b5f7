/** Who may grant what, decided from scopes and roles. Pure functions. */
import { HUMAN_SCOPES, PERSON_SCOPES, type Scope, TENANT_SCOPES } from '../scopes.js'

/** The name of a role. */
export const ROLE = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/
/** Roles that one user may have. */
export const ROLES_MAX = 32

const SCOPES_OF_ROLES: Readonly<Record<string, readonly string[]>> = HUMAN_SCOPES
/** Without claims about a user and the refresh token, which are no power over the tenant. */
const SCOPES_IN_TENANT = new Set<string>(TENANT_SCOPES.filter((scope) => !PERSON_SCOPES.has(scope)))

/**
 * The newly granted roles that would exceed the caller's scopes. Only owner, admin and member matter; other roles
 * belong to the tenant's own applications.
 */
export function rolesBeyond(
  roles: readonly string[],
  before: readonly string[],
  callerScopes: readonly string[],
): readonly string[] {
  return roles
    .filter((role) => !before.includes(role))
    .filter(
      (role) => role !== 'member' && powersOf(role).some((scope) => !callerScopes.includes(scope)),
    )
}

/** A scope that only owners of a tenant have. */
const OWNER_SCOPE: Scope = 'tenant:manage'

/**
 * True if the user is an owner whom this caller may not change. Only callers with the owner's scopes create or remove
 * owners.
 */
export function isProtectedOwner(
  roles: readonly string[],
  callerScopes: readonly string[],
): boolean {
  return roles.includes('owner') && !callerScopes.includes(OWNER_SCOPE)
}

/** True if these roles grant less than the previous ones. */
export function holdsLess(roles: readonly string[], before: readonly string[]): boolean {
  const granted = new Set(['member', ...roles].flatMap(powersOf))
  return before.flatMap(powersOf).some((scope) => !granted.has(scope))
}

/**
 * What a role may do in a tenant. Claims about the user and refresh tokens are no powers: a client that requests neither,
 * such as the console, acts with all powers of its user.
 */
function powersOf(role: string): readonly string[] {
  const scopes = Object.hasOwn(SCOPES_OF_ROLES, role) ? SCOPES_OF_ROLES[role]! : []
  return scopes.filter((scope) => SCOPES_IN_TENANT.has(scope) && !PERSON_SCOPES.has(scope))
}
