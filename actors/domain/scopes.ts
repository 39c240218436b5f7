/** The scope catalogue, and the scopes that each kind of principal may have. */

/** All scopes of tenant tokens, in display order. */
export const TENANT_SCOPES = [
  'openid',
  'profile',
  'email',
  'phone',
  'address',
  'offline_access',
  'org:read',
  'org:manage',
  'applications:read',
  'applications:manage',
  'users:read',
  'users:manage',
  'webhooks:read',
  'webhooks:manage',
  'vault:list',
  'vault:read',
  'vault:sign',
  'vault:manage',
  'vault:connect',
  'agents:read',
  'agents:manage',
  'delegations:manage',
  'tenant:manage',
  'commerce:read',
  'commerce:manage',
  'wallet:read',
  'wallet:sign',
  'wallet:manage',
  'audit:read',
  'tokens:introspect',
  'credentials:issue',
  'federation:read',
  'federation:manage',
  'ssf.read',
  'ssf.manage',
  'ssf.manage.poll',
] as const

/**
 * Scopes of this service that any client may have, also one that registered itself: claims about a user and the refresh
 * token. The authorization server lists them, since clients register with everything that is listed.
 */
export const SELF_REGISTERED_SCOPES: readonly Scope[] = [
  'openid',
  'profile',
  'email',
  'phone',
  'address',
  'offline_access',
]

/** Scopes for claims about a user, as opposed to APIs of the service. */
export const PERSON_SCOPES: ReadonlySet<string> = new Set(SELF_REGISTERED_SCOPES)

/** Scopes that are valid only in the control-plane tenant. */
export const CONTROL_PLANE_SCOPES = [
  'org:create',
  'metrics:read',
  'signing_keys:manage',
  'deployment:manage',
] as const

export type Scope = (typeof TENANT_SCOPES)[number] | (typeof CONTROL_PLANE_SCOPES)[number]

export const SCOPES: readonly Scope[] = [...TENANT_SCOPES, ...CONTROL_PLANE_SCOPES]

/** Scopes of an organization's owner in the control-plane tenant. */
export const CONTROL_PLANE_OWNER_SCOPES: readonly Scope[] = [
  'org:read',
  'org:create',
  'org:manage',
  'tenant:manage',
]

/**
 * Scopes for the whole deployment. They come with no role, because any user can own an organization. The operator of the
 * deployment grants them to an agent of the control plane.
 */
export const APPOINTED_SCOPES = [
  'signing_keys:manage',
  'deployment:manage',
] as const satisfies readonly Scope[]
export type AppointedScope = (typeof APPOINTED_SCOPES)[number]

/** Scopes of applications that the operator creates in the control plane. */
export const OPERATOR_APPLICATION_SCOPES: readonly Scope[] = ['metrics:read']

/** Scopes that only operators of the deployment hold. */
const OPERATOR_SCOPES: ReadonlySet<string> = new Set([
  ...APPOINTED_SCOPES,
  ...OPERATOR_APPLICATION_SCOPES,
])

/** True for a scope that only operators of the deployment hold. */
export function isOperatorScope(scope: string): boolean {
  return OPERATOR_SCOPES.has(scope)
}

/** True for a scope that changes something or uses a key. The others read. */
export function isWriteScope(scope: string): boolean {
  return !PERSON_SCOPES.has(scope) && !/[.:](?:read|list|introspect)$/.test(scope)
}

/**
 * True if an agent or a client may ask a person for the scope. One that does not hold a scope of operators itself may not,
 * so that the consent of an operator is not all that keeps it from the deployment.
 */
export function mayAskPersonFor(scope: string, held: readonly string[]): boolean {
  return !isOperatorScope(scope) || held.includes(scope)
}

/** Scopes of the application of a bootstrapped workspace. */
export const WORKSPACE_APPLICATION_SCOPES: readonly Scope[] = [
  ...SELF_REGISTERED_SCOPES,
  'org:read',
  'applications:read',
  'applications:manage',
  'users:read',
  'users:manage',
  'webhooks:read',
  'webhooks:manage',
  'vault:list',
  'vault:read',
  'delegations:manage',
]

/** Default scopes of other registered agents. PATCH /api/v1/agents/{id} replaces them. */
export const REGISTERED_AGENT_SCOPES: readonly Scope[] = ['openid', 'vault:list', 'vault:read']

export type OrganizationRole = 'owner' | 'admin' | 'member'

const HUMAN_MEMBER_SCOPES: readonly Scope[] = [
  ...SELF_REGISTERED_SCOPES,
  'org:read',
  'vault:list',
  'vault:read',
  'vault:sign',
  'vault:connect',
  'delegations:manage',
]

const HUMAN_ADMIN_SCOPES: readonly Scope[] = [
  ...HUMAN_MEMBER_SCOPES,
  'org:manage',
  'applications:read',
  'applications:manage',
  'users:read',
  'users:manage',
  'webhooks:read',
  'webhooks:manage',
  'vault:manage',
  'agents:read',
  'agents:manage',
  'commerce:read',
  'commerce:manage',
  'wallet:read',
  'wallet:sign',
  'wallet:manage',
  'audit:read',
  'credentials:issue',
  'federation:read',
  'federation:manage',
  'ssf.read',
  'ssf.manage',
  'ssf.manage.poll',
]

/** Scopes of users by role. A delegation grants the intersection with them. */
export const HUMAN_SCOPES: Readonly<Record<OrganizationRole, readonly Scope[]>> = {
  member: HUMAN_MEMBER_SCOPES,
  admin: HUMAN_ADMIN_SCOPES,
  owner: [...HUMAN_ADMIN_SCOPES, 'tenant:manage', 'org:create'],
}

/** They reach the organization of a tenant, and so its other tenants. */
const ORGANIZATION_SCOPES = new Set<string>(['org:read', 'org:create', 'org:manage'])

/** False for a token of a person that reaches no organization. */
export const reachesOrganization = (scopes: readonly string[]): boolean =>
  scopes.some((scope) => ORGANIZATION_SCOPES.has(scope))

/**
 * The upper limit of a person's scopes in a session. A session that a tenant's own provider opened reaches this tenant
 * alone. The control plane, which has no organization, trusts its provider with the others.
 */
export function sessionScopes({
  role,
  confined,
  organizationId,
}: {
  readonly role: OrganizationRole
  readonly confined: boolean
  readonly organizationId: string | null
}): readonly Scope[] {
  const scopes = HUMAN_SCOPES[role]
  if (!confined || organizationId === null) return scopes
  return scopes.filter((scope) => !ORGANIZATION_SCOPES.has(scope))
}

/**
 * The powers at this service that a caller would give and does not hold. Scopes of user claims do not count, since a client
 * uses them only with the consent of a user, nor do scopes of credentials and API resources.
 */
export function powersBeyond(given: readonly string[], held: readonly string[]): readonly string[] {
  return given.filter(
    (scope) =>
      (SCOPES as readonly string[]).includes(scope) &&
      !PERSON_SCOPES.has(scope) &&
      !held.includes(scope),
  )
}

/** The tenant and role of an agent at login. */
type AgentLogin = {
  /** True if the agent logs in to the control-plane tenant. */
  readonly controlPlane: boolean
  /**
   * The agent's highest role in the organization of the tenant, or in any organization for the control-plane tenant.
   * Null if it is not a member.
   */
  readonly role: OrganizationRole | null
  /** The stored scopes of the agent, by default `REGISTERED_AGENT_SCOPES`. */
  readonly granted: readonly string[]
}

/** All scopes that an agent's token may have, in catalogue order. */
export function agentScopes({ controlPlane, role, granted }: AgentLogin): readonly Scope[] {
  if (!controlPlane) {
    return role === 'owner' ? TENANT_SCOPES : TENANT_SCOPES.filter((each) => granted.includes(each))
  }
  if (role !== 'owner') return SCOPES.filter((scope) => granted.includes(scope))
  const appointed = APPOINTED_SCOPES.filter((scope) => granted.includes(scope))
  return [...CONTROL_PLANE_OWNER_SCOPES, ...appointed]
}

/** The scopes of a space-separated list (RFC 6749 section 3.3), without duplicates, in order. */
export function parseScope(scope: string): readonly string[] {
  return [...new Set(scope.split(' ').filter((token) => token !== ''))]
}

/** The requested scopes, or all allowed ones without a request. Undefined if a requested scope is not allowed. */
export function narrowScopes(
  asked: readonly string[] | null,
  allowed: readonly Scope[],
): readonly Scope[] | undefined {
  if (asked === null || asked.length === 0) return allowed
  const known = new Set<string>(allowed)
  return asked.every((scope) => known.has(scope))
    ? allowed.filter((scope) => asked.includes(scope))
    : undefined
}

const ROLES: readonly OrganizationRole[] = ['owner', 'admin']

/**
 * The highest of the known roles, otherwise member. Only roles in the tenant count: an owner of the organization who is
 * a member of the tenant has the scopes of a member there.
 */
export function highestRole(roles: readonly string[]): OrganizationRole {
  return ROLES.find((role) => roles.includes(role)) ?? 'member'
}
