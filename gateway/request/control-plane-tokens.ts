/**
 * Which tokens of the control plane an operation accepts. Every workspace has such tokens, and their scopes mean
 * something else there than in a tenant. So an operation that does not declare them refuses them.
 */
import type { Principal } from '../../actors/domain/principal.js'
import { isOperatorScope } from '../../actors/domain/scopes.js'
import type { TenantsProtocol } from '../../actors/identity/users/tenants/protocol.js'
import type { ActorRef, AskOptions } from '../../runtime/kernel/actor.js'
import type { Problem } from '../response/problems.js'
import type { ControlPlaneTokens, Security } from '../route.js'
import { scopesOf } from './authenticate.js'

/** Scopes of operators. `deployment:manage` opens every operation for operators, the others those that name them. */
const OPERATOR_SCOPE = 'deployment:manage'

/** Also where an operation itself refuses a token of the control plane. */
export const CONTROL_PLANE_TOKEN = 'control_plane_token'

const CONTROL_PLANE_TOKEN_REFUSED = {
  name: 'forbidden',
  detail: 'A token of the control plane is not valid for this operation: use a token of a tenant.',
  reason: CONTROL_PLANE_TOKEN,
  members: { reason: CONTROL_PLANE_TOKEN },
} as const satisfies Problem

/** The principal as the operation sees it, or the refusal. */
export type Judged = { readonly principal: Principal } | { readonly refused: Problem }

export type ControlPlaneCheck = (
  security: Security,
  principal: Principal,
  options: AskOptions,
) => Judged | Promise<Judged>

/** Which tokens of the control plane the scheme and declaration of an operation accept. */
export function controlPlaneTokensOf(security: Security): ControlPlaneTokens {
  if (security.scheme === 'metrics') return 'operator'
  // Only operators create the SCIM tokens of the control plane.
  if (security.scheme === 'scim') return 'owner'
  return security.scheme === 'bearer' ? (security.controlPlaneTokens ?? 'refused') : 'refused'
}

/** Asks once for the id of the control plane. It never changes. */
export function controlPlaneCheck(tenants: ActorRef<TenantsProtocol>): ControlPlaneCheck {
  let controlPlaneId: string | undefined
  const judge = (security: Security, principal: Principal): Judged =>
    principal.tenantId === controlPlaneId ? judgeControlPlane(security, principal) : { principal }
  return (security, principal, options) => {
    if (controlPlaneId !== undefined) return judge(security, principal)
    return tenants.ensureControlPlane({}, options).then(({ tenant }) => {
      controlPlaneId = tenant.id
      return judge(security, principal)
    })
  }
}

function judgeControlPlane(security: Security, principal: Principal): Judged {
  const accepted = controlPlaneTokensOf(security)
  if (accepted === 'owner') return { principal }
  const wanted = scopesOf(security)
  if (accepted === 'operator') {
    // An operator configures the control plane, where no role has the scopes of a tenant.
    if (principal.scopes.includes(OPERATOR_SCOPE))
      return {
        principal: { ...principal, scopes: [...new Set([...principal.scopes, ...wanted])] },
      }
    const named = wanted.filter(isOperatorScope)
    if (named.some((scope) => principal.scopes.includes(scope))) return { principal }
  }
  return { refused: CONTROL_PLANE_TOKEN_REFUSED }
}
