/** Authorization rules of agent management. All functions are pure. */
import type { AgentAnchorRow } from '../../../../storage/agents/agents.js'
import type { VisibleAgent, KeyStatus } from '../../../../storage/agents/agent-management.js'
import { isDirect, type Principal } from '../../../domain/principal.js'
import {
  REGISTERED_AGENT_SCOPES,
  type Scope,
  SCOPES,
  TENANT_SCOPES,
} from '../../../domain/scopes.js'
import type { ScopesRefused } from './protocol.js'

/** True for the agent itself with a direct token, that is without an `act` chain. */
export function isItself(principal: Principal, agentId: string): boolean {
  return principal.subjectType === 'agent' && principal.subject === agentId && isDirect(principal)
}

/** A scope that only owners of a tenant have. */
const OWNER_SCOPE: Scope = 'tenant:manage'

/** True if the agent owns the organization of the tenant, and the caller is neither an owner nor the agent. */
export function isAbove(
  { id, ownerHere }: Pick<VisibleAgent, 'id' | 'ownerHere'>,
  principal: Principal,
): boolean {
  return ownerHere && !principal.scopes.includes(OWNER_SCOPE) && !isItself(principal, id)
}

/**
 * The agent and administrators of its home tenant may change its keys. A token restricted to one
 * organization may not, because a login with a new key would not have that restriction.
 */
export function keyAuthority(
  principal: Principal,
  agent: Pick<VisibleAgent, 'id' | 'homeTenantId' | 'ownerHere' | 'seenFromControlPlane'>,
): 'granted' | 'owner_above_caller' | 'may_not_manage' | 'at_home_elsewhere' | 'bound_token' {
  if (agent.seenFromControlPlane && principal.organizationId !== null) return 'bound_token'
  if (isItself(principal, agent.id)) return 'granted'
  if (!principal.scopes.includes('agents:manage')) return 'may_not_manage'
  if (agent.homeTenantId !== principal.tenantId) return 'at_home_elsewhere'
  return isAbove(agent, principal) ? 'owner_above_caller' : 'granted'
}

/**
 * The agent's scopes that the caller lacks. A caller who adds a key can log in as the agent, so
 * they must hold its scopes already, or be the agent. The scopes that every agent gets at registration
 * are implied by `agents:manage`.
 */
export function scopesBeyond(
  principal: Principal,
  { id, scopes, owner }: Pick<VisibleAgent, 'id' | 'scopes' | 'owner'>,
): readonly string[] {
  if (isItself(principal, id)) return []
  const held = owner ? [...new Set([...TENANT_SCOPES, ...scopes])] : scopes
  const common: readonly string[] = REGISTERED_AGENT_SCOPES
  return held.filter((scope) => !common.includes(scope) && !principal.scopes.includes(scope))
}

/** A caller can grant only scopes that it holds and that exist in the agent's home tenant. */
export function scopesFault(
  scopes: readonly string[],
  caller: readonly string[],
  controlPlane: boolean,
): ScopesRefused | undefined {
  const known: readonly string[] = controlPlane ? SCOPES : TENANT_SCOPES
  const unknown = scopes.filter((scope) => !known.includes(scope))
  if (unknown.length > 0) return { tag: 'unknown_scopes', scopes: unknown }
  const beyond = scopes.filter((scope) => !caller.includes(scope))
  return beyond.length > 0 ? { tag: 'beyond_caller', scopes: beyond } : undefined
}

type KeyVerdict = 'change' | 'ends_logins' | 'unchanged' | 'key_revoked'

/** What a change of a key means. `ends_logins`: the agent would have no active key. */
export function judgeKeyChange(
  fingerprint: string,
  to: Exclude<KeyStatus, 'active'>,
  keys: readonly { readonly fingerprint: string; readonly status: KeyStatus }[],
): KeyVerdict {
  const status = keys.find((key) => key.fingerprint === fingerprint)?.status
  if (status === to) return 'unchanged'
  if (status === 'revoked') return 'key_revoked'
  const isLast = !keys.some((key) => key.fingerprint !== fingerprint && key.status === 'active')
  return status === 'active' && isLast ? 'ends_logins' : 'change'
}

/** An agent cannot revoke its own last active DID; an administrator can. */
export function judgeAnchorRevocation(
  value: string,
  anchors: readonly Pick<AgentAnchorRow, 'type' | 'value' | 'status'>[],
  byItself: boolean,
): 'change' | 'unchanged' | 'last_active_anchor' {
  const active = anchors.filter(({ status }) => status === 'active')
  const revoked = active.find((anchor) => anchor.value === value)
  if (revoked === undefined) return 'unchanged'
  const dids = active.filter(({ type }) => type !== 'erc8004')
  return byItself && dids.length === 1 && dids[0] === revoked ? 'last_active_anchor' : 'change'
}
