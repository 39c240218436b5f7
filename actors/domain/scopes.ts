/** The scope catalogue, and what each kind of principal may hold (decisions.md 7.5, 17, 21). */

/** Every scope of a tenant token, in the order in which they are listed to people and clients. */
export const TENANT_SCOPES = [
  'openid',
  'profile',
  'email',
  'phone',
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
  'agents:read',
  'agents:manage',
  'delegations:manage',
  'tenant:manage',
  'commerce:read',
  'commerce:manage',
  'audit:read',
  'tokens:introspect',
] as const

/** Scopes that speak of a user, not of this service's own APIs. */
export const PERSON_SCOPES: ReadonlySet<string> = new Set<Scope>([
  'openid',
  'profile',
  'email',
  'phone',
  'offline_access',
])

/**
 * What a client that registers itself can be given of this service: the data of its user. A client asks
 * for `offline_access` where the authorization server lists it, so a resource does not list it.
 */
export const SELF_REGISTERED_SCOPES: readonly Scope[] = ['openid', 'profile', 'email', 'phone']

/** Scopes that mean something in the control-plane tenant only. */
export const CONTROL_PLANE_SCOPES = [
  'org:create',
  'metrics:read',
  'signing_keys:manage',
  'deployment:manage',
] as const

export type Scope = (typeof TENANT_SCOPES)[number] | (typeof CONTROL_PLANE_SCOPES)[number]

export const SCOPES: readonly Scope[] = [...TENANT_SCOPES, ...CONTROL_PLANE_SCOPES]

/** What the owner of an organization holds in the control-plane tenant. */
export const CONTROL_PLANE_OWNER_SCOPES: readonly Scope[] = [
  'org:read',
  'org:create',
  'org:manage',
  'applications:read',
  'applications:manage',
  'tenant:manage',
]

/**
 * What concerns the whole deployment. No role brings it, since anybody becomes the owner of an
 * organization: whoever runs the deployment gives it to an agent of the control plane.
 */
export const APPOINTED_SCOPES = [
  'signing_keys:manage',
  'deployment:manage',
] as const satisfies readonly Scope[]
export type AppointedScope = (typeof APPOINTED_SCOPES)[number]

/** What an application that the operator makes in the control plane may have. */
export const OPERATOR_APPLICATION_SCOPES: readonly Scope[] = ['metrics:read']

/** What the application of a bootstrapped workspace may ask for: decisions.md 7.5 within a tenant. */
export const WORKSPACE_APPLICATION_SCOPES: readonly Scope[] = [
  'openid',
  'profile',
  'email',
  'phone',
  'offline_access',
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

/** What any other registered agent holds; PATCH /api/v1/agents/{id} replaces it. */
export const REGISTERED_AGENT_SCOPES: readonly Scope[] = ['openid', 'vault:list', 'vault:read']

export type OrganizationRole = 'owner' | 'admin' | 'member'

const HUMAN_MEMBER_SCOPES: readonly Scope[] = [
  'openid',
  'profile',
  'email',
  'phone',
  'offline_access',
  'org:read',
  'vault:list',
  'vault:read',
  'vault:sign',
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
  'audit:read',
]

/** What a human of a role may be given. A delegation grants the intersection with it. */
export const HUMAN_SCOPES: Readonly<Record<OrganizationRole, readonly Scope[]>> = {
  member: HUMAN_MEMBER_SCOPES,
  admin: HUMAN_ADMIN_SCOPES,
  owner: [...HUMAN_ADMIN_SCOPES, 'tenant:manage', 'org:create'],
}

/** Where an agent logs in, and as what. */
export type AgentStanding = {
  /** The token would be one of the control-plane tenant. */
  readonly controlPlane: boolean
  /**
   * The agent's highest role: in the organization of the tenant, or, in the control-plane tenant,
   * in any organization. Null when it belongs to none.
   */
  readonly role: OrganizationRole | null
  /** The scopes stored with the agent: `REGISTERED_AGENT_SCOPES` until somebody changes them. */
  readonly granted: readonly string[]
}

/** Everything an agent may have in a token, in catalogue order (decisions.md 21, scopes at login). */
export function agentScopes({ controlPlane, role, granted }: AgentStanding): readonly Scope[] {
  if (!controlPlane) {
    return role === 'owner' ? TENANT_SCOPES : TENANT_SCOPES.filter((each) => granted.includes(each))
  }
  if (role !== 'owner') return SCOPES.filter((scope) => granted.includes(scope))
  const appointed = APPOINTED_SCOPES.filter((scope) => granted.includes(scope))
  return [...CONTROL_PLANE_OWNER_SCOPES, ...appointed]
}

/** The scopes of a space-separated list (RFC 6749 section 3.3), each once, in the order given. */
export function parseScope(scope: string): readonly string[] {
  return [...new Set(scope.split(' ').filter((token) => token !== ''))]
}

/**
 * What a request for scopes gives out of what is allowed. Nothing asked for is everything allowed.
 * Undefined when something outside was asked for.
 */
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
 * The highest of the known roles; whoever has none of them is a member (decisions.md 21). Roles are
 * those in the tenant alone: who owns the organization and was made a member here is a member here.
 */
export function highestRole(roles: readonly string[]): OrganizationRole {
  return ROLES.find((role) => roles.includes(role)) ?? 'member'
}
