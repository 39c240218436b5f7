/** What may be given to whom, decided from scopes and roles alone. */
import { HUMAN_SCOPES, type Scope, TENANT_SCOPES } from '../../domain/scopes.js'

const SCOPES_OF_ROLES: Readonly<Record<string, readonly string[]>> = HUMAN_SCOPES
const SCOPES_IN_TENANT = new Set<string>(TENANT_SCOPES)

/**
 * The roles among those newly given that would let a human do more than the caller may. Roles other
 * than owner, admin and member mean something to the tenant's own applications only.
 */
export function rolesBeyond(
  roles: readonly string[],
  before: readonly string[],
  callerScopes: readonly string[],
): readonly string[] {
  return roles
    .filter((role) => !before.includes(role))
    .filter((role) => {
      const scopes = scopesOf(role)
      return (
        role !== 'member' &&
        scopes.some((scope) => SCOPES_IN_TENANT.has(scope) && !callerScopes.includes(scope))
      )
    })
}

/** What an owner of a tenant has and nobody below. */
const OWNER_SCOPE: Scope = 'tenant:manage'

/**
 * Whether whoever only manages users is to leave this one as it is: an owner stands above them. Owners are
 * made by nobody who holds less than they do, and unmade by nobody either.
 */
export function standsAbove(roles: readonly string[], callerScopes: readonly string[]): boolean {
  return roles.includes('owner') && !callerScopes.includes(OWNER_SCOPE)
}

/** Whether a human may be given less with these roles than with those of before. */
export function holdsLess(roles: readonly string[], before: readonly string[]): boolean {
  const held = new Set(['member', ...roles].flatMap(scopesOf))
  return before.flatMap(scopesOf).some((scope) => !held.has(scope))
}

function scopesOf(role: string): readonly string[] {
  return Object.hasOwn(SCOPES_OF_ROLES, role) ? SCOPES_OF_ROLES[role]! : []
}
