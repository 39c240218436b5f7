/** Who may do what to an agent, decided from the token and the agent's place alone. */
import type { AgentPlace, KeyStatus } from '../../../storage/agents/agent-management.js'
import { isDirect, type Principal } from '../../domain/principal.js'
import { REGISTERED_AGENT_SCOPES, SCOPES, TENANT_SCOPES } from '../../domain/scopes.js'
import type { ScopesRefused } from './protocol.js'

/** The agent itself, with a token that nobody else shares. */
export function isItself(principal: Principal, agentId: string): boolean {
  return principal.subjectType === 'agent' && principal.subject === agentId && isDirect(principal)
}

/**
 * Whether keys may be changed: by the agent, or by those who look after its home. A token bound to one
 * organization does not become one of all of them by way of a new key.
 */
export function keyAuthority(
  principal: Principal,
  place: Pick<AgentPlace, 'id' | 'homeTenantId' | 'seenFromControlPlane'>,
): 'granted' | 'may_not_manage' | 'at_home_elsewhere' | 'bound_token' {
  if (place.seenFromControlPlane && principal.organizationId !== null) return 'bound_token'
  if (isItself(principal, place.id)) return 'granted'
  if (!principal.scopes.includes('agents:manage')) return 'may_not_manage'
  return place.homeTenantId === principal.tenantId ? 'granted' : 'at_home_elsewhere'
}

/**
 * What the agent was given and the caller does not hold. Whoever adds a key to an agent can log in as
 * it: but for the agent itself, nobody adds one to an agent that was given more than they have. What
 * every agent has comes with `agents:manage` (decisions.md 17).
 */
export function scopesBeyond(
  principal: Principal,
  { id, scopes, owner }: Pick<AgentPlace, 'id' | 'scopes' | 'owner'>,
): readonly string[] {
  if (isItself(principal, id)) return []
  const held = owner ? [...new Set([...TENANT_SCOPES, ...scopes])] : scopes
  const common: readonly string[] = REGISTERED_AGENT_SCOPES
  return held.filter((scope) => !common.includes(scope) && !principal.scopes.includes(scope))
}

/** Nobody gives what it does not have, nor what means nothing in the agent's home. */
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

export type KeyVerdict = 'change' | 'unchanged' | 'key_revoked' | 'last_active_key'

export function judgeDeprecation(status: KeyStatus): KeyVerdict {
  if (status === 'revoked') return 'key_revoked'
  return status === 'deprecated' ? 'unchanged' : 'change'
}

/** An agent cannot lock itself out; those who look after it can lock it out. */
export function judgeRevocation(
  fingerprint: string,
  keys: readonly { readonly fingerprint: string; readonly status: KeyStatus }[],
  byItself: boolean,
): KeyVerdict {
  const status = keys.find((key) => key.fingerprint === fingerprint)?.status
  if (status === 'revoked') return 'unchanged'
  const others = keys.filter((key) => key.fingerprint !== fingerprint && key.status === 'active')
  return byItself && status === 'active' && others.length === 0 ? 'last_active_key' : 'change'
}

/** An agent keeps a name by which others know it; those who look after it can take the last one. */
export function judgeAnchorRevocation(
  value: string,
  anchors: readonly { readonly value: string; readonly status: 'active' | 'revoked' }[],
  byItself: boolean,
): 'change' | 'unchanged' | 'last_active_anchor' {
  const active = anchors.filter(({ status }) => status === 'active')
  if (!active.some((anchor) => anchor.value === value)) return 'unchanged'
  return byItself && active.length === 1 ? 'last_active_anchor' : 'change'
}
