/** What an operator may do with an organization, decided from its token and role alone. */
import { isUuid } from '../domain/ids.js'
import type { Principal } from '../domain/principal.js'
import { CONTROL_PLANE_OWNER_SCOPES, type OrganizationRole, type Scope } from '../domain/scopes.js'
import { slugAllowed } from '../domain/slugs.js'
import type { NotOperator, SlugRefused } from './protocol.js'

/** What a role may do with its organization. Making further organizations is nobody's there. */
const ROLE_SCOPES: Readonly<Record<OrganizationRole, readonly Scope[]>> = {
  owner: CONTROL_PLANE_OWNER_SCOPES.filter((scope) => scope !== 'org:create'),
  admin: ['org:read', 'applications:read', 'applications:manage'],
  member: ['org:read'],
}

/** The scopes of an organization-bound token: never more than the caller's own token has. */
export function organizationScopes(
  role: OrganizationRole,
  held: readonly string[],
): readonly Scope[] {
  return ROLE_SCOPES[role].filter((scope) => held.includes(scope))
}

/** Only those who look after the organization's tenants make new ones (decisions.md 21). */
export function mayCreateTenant(role: OrganizationRole): boolean {
  return ROLE_SCOPES[role].includes('tenant:manage')
}

/** Control-plane routes are for operator tokens: those of the control-plane tenant. */
export function operatorFault(
  { tenantId, organizationId }: Pick<Principal, 'tenantId' | 'organizationId'>,
  controlPlaneId: string,
  unbound: boolean,
): NotOperator | undefined {
  if (tenantId !== controlPlaneId) {
    return { tag: 'not_operator', detail: 'This operation needs a token of the control plane.' }
  }
  // Tokens from tokens must end somewhere: what an operator's login gave is the only source.
  if (unbound && organizationId !== null) {
    return {
      tag: 'not_operator',
      detail: "This operation needs the operator's own token, not one bound to an organization.",
    }
  }
  return undefined
}

/** Whether a token may speak of the organization at all; its caller's membership is another thing. */
export function mayNameOrganization(
  { organizationId }: Pick<Principal, 'organizationId'>,
  asked: string,
): boolean {
  return isUuid(asked) && (organizationId === null || organizationId === asked)
}

export function slugFault(slug: string | undefined): SlugRefused | undefined {
  if (slug === undefined || slugAllowed(slug)) return undefined
  const detail = 'must be 3 to 63 of a-z, 0-9 and hyphens inside, and no reserved name'
  return { tag: 'slug_invalid', detail }
}

/** Whether a token shows a person at AAL2 or higher (decisions.md 17, tenant/activate). */
export function provesTwoFactors({ subjectType, acr }: Principal): boolean {
  return subjectType === 'human' && (acr === 'aal2' || acr === 'aal3')
}
