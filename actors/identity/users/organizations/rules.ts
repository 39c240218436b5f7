/** What an operator may do with an organization, decided from its token and role. Pure functions. */
import { isUuid } from '../../../domain/ids.js'
import type { Principal } from '../../../domain/principal.js'
import {
  CONTROL_PLANE_OWNER_SCOPES,
  type OrganizationRole,
  type Scope,
} from '../../../domain/scopes.js'
import { slugAllowed } from '../../../domain/tenants/slugs.js'
import type { NotOperator, SlugRefused } from './protocol.js'

/** Scopes by role. No role includes creating further organizations. */
const ROLE_SCOPES: Readonly<Record<OrganizationRole, readonly Scope[]>> = {
  owner: CONTROL_PLANE_OWNER_SCOPES.filter((scope) => scope !== 'org:create'),
  admin: ['org:read', 'org:manage'],
  member: ['org:read'],
}

/**
 * The scopes of an organization-bound token: never more than the caller's token has. A user's bound token is valid
 * for the control plane only.
 */
export function organizationScopes(
  role: OrganizationRole,
  held: readonly string[],
): readonly Scope[] {
  return ROLE_SCOPES[role].filter((scope) => held.includes(scope))
}

/** Only roles that manage the organization's tenants create new ones. */
export function mayCreateTenant(role: OrganizationRole): boolean {
  return ROLE_SCOPES[role].includes('tenant:manage')
}

type OperatorToken = Pick<
  Principal,
  'tenantId' | 'subjectType' | 'actors' | 'organizationId' | 'organizationBound'
>

/**
 * Control-plane routes accept an agent's token of the control-plane tenant, or a user's token, which counts for the
 * organization of its tenant (docs/reference/identity.md, "Control plane").
 */
export function operatorFault(
  { tenantId, subjectType, organizationId, organizationBound = false }: OperatorToken,
  controlPlaneId: string,
  unbound: boolean,
): NotOperator | undefined {
  const person = subjectType === 'human' && organizationId !== null
  if (!person && tenantId !== controlPlaneId) {
    return {
      tag: 'not_operator',
      detail: 'This operation needs a control-plane token or a user token.',
    }
  }
  // A token issued from a token cannot be exchanged again: only the token of the operator's login is accepted.
  if (unbound && (person ? organizationBound : organizationId !== null)) {
    return {
      tag: 'not_operator',
      detail: "This operation needs the operator's own token, not an organization-bound one.",
    }
  }
  return undefined
}

/** The organization the token is bound to; null when the holder's memberships decide. */
export function boundTo({
  subjectType,
  organizationId,
  organizationBound = false,
}: OperatorToken): string | null {
  return subjectType === 'human' && !organizationBound ? null : organizationId
}

/** Whether a token may name the organization. Membership is checked separately. */
export function mayNameOrganization(principal: OperatorToken, organizationId: string): boolean {
  const bound = boundTo(principal)
  return isUuid(organizationId) && (bound === null || bound === organizationId)
}

export function slugFault(slug: string | undefined): SlugRefused | undefined {
  if (slug === undefined || slugAllowed(slug)) return undefined
  const detail = 'must be 3 to 63 of a-z, 0-9 and inner hyphens, and not a reserved name'
  return { tag: 'slug_invalid', detail }
}

/** True if the token represents a user at AAL2 or higher. */
export function provesTwoFactors({ subjectType, acr }: Principal): boolean {
  return subjectType === 'human' && (acr === 'aal2' || acr === 'aal3')
}
