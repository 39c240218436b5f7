/** What an operator may do with an organization, decided from its token and role alone. */
import { isUuid } from '../../domain/ids.js'
import type { Principal } from '../../domain/principal.js'
import {
  CONTROL_PLANE_OWNER_SCOPES,
  type OrganizationRole,
  type Scope,
} from '../../domain/scopes.js'
import { slugAllowed } from '../../domain/tenants/slugs.js'
import type { NotOperator, SlugRefused } from './protocol.js'

/** What a role may do with its organization. Making further organizations is nobody's there. */
const ROLE_SCOPES: Readonly<Record<OrganizationRole, readonly Scope[]>> = {
  owner: CONTROL_PLANE_OWNER_SCOPES.filter((scope) => scope !== 'org:create'),
  admin: ['org:read', 'org:manage', 'applications:read', 'applications:manage'],
  member: ['org:read'],
}

/**
 * The scopes of an organization-bound token: never more than the caller's own token has. A person's
 * is for the control plane alone; applications are managed with the token it was asked with.
 */
export function organizationScopes(
  role: OrganizationRole,
  held: readonly string[],
  subjectType: Principal['subjectType'],
): readonly Scope[] {
  const named = ROLE_SCOPES[role].filter((scope) => held.includes(scope))
  return subjectType === 'human' ? named.filter((scope) => PERSON_SCOPES.has(scope)) : named
}

const PERSON_SCOPES: ReadonlySet<Scope> = new Set<Scope>([
  'org:read',
  'org:manage',
  'tenant:manage',
])

/** Only those who look after the organization's tenants make new ones (decisions.md 21). */
export function mayCreateTenant(role: OrganizationRole): boolean {
  return ROLE_SCOPES[role].includes('tenant:manage')
}

type Asking = Pick<
  Principal,
  'tenantId' | 'subjectType' | 'actors' | 'organizationId' | 'organizationBound'
>

/**
 * Control-plane routes are for operators: an agent's token of the control-plane tenant, or a person's
 * token, which is one of its tenant's organization (interface.md, Authentication 2).
 */
export function operatorFault(
  { tenantId, subjectType, organizationId, organizationBound = false }: Asking,
  controlPlaneId: string,
  unbound: boolean,
): NotOperator | undefined {
  const person = subjectType === 'human' && organizationId !== null
  if (!person && tenantId !== controlPlaneId) {
    return {
      tag: 'not_operator',
      detail: 'This operation needs a token of the control plane, or that of a person.',
    }
  }
  // Tokens from tokens must end somewhere: what an operator's login gave is the only source.
  if (unbound && (person ? organizationBound : organizationId !== null)) {
    return {
      tag: 'not_operator',
      detail: "This operation needs the operator's own token, not one bound to an organization.",
    }
  }
  return undefined
}

/** The one organization that a token speaks for; null where it is the holder's membership that counts. */
export function boundTo({
  subjectType,
  organizationId,
  organizationBound = false,
}: Asking): string | null {
  return subjectType === 'human' && !organizationBound ? null : organizationId
}

/** Whether a token may speak of the organization at all; its caller's membership is another thing. */
export function mayNameOrganization(principal: Asking, asked: string): boolean {
  const bound = boundTo(principal)
  return isUuid(asked) && (bound === null || bound === asked)
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
