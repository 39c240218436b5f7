/**
 * Agent management. A tenant sees the agents that are registered in it (their home tenant) and the
 * agents that are members of its organization (docs/reference/agents.md).
 */
import { address, type Ask } from '../../../../runtime/kernel/protocol.js'
import type { AgentRecord, AnchorRecord, KeyRecord } from '../protocol.js'
import type { Caller } from '../../../domain/audit.js'
import type { IdempotencyClaim, IdempotencyRefused } from '../../../domain/idempotency.js'
import type { KeyAlgorithm } from '../../../domain/signed-strings.js'
import type { ListCursor, Page } from '../../../domain/paging.js'

export type AgentManagementProtocol = {
  listAgents: Ask<ListAgents, AgentsListed>
  readAgent: Ask<OneAgent, AgentFound | UnknownAgent>
  /** The home tenant suspends everywhere, another tenant in itself. Sessions and tokens end immediately. */
  suspendAgent: Ask<OneAgent, AgentFound | UnknownAgent | LastOwner | OwnerAbove>
  activateAgent: Ask<
    OneAgent,
    AgentFound | UnknownAgent | OwnerAbove | { tag: 'suspended_at_home' }
  >
  deleteAgent: Ask<
    OneAgent,
    { tag: 'removed' } | UnknownAgent | AtHomeElsewhere | LastOwner | OwnerAbove
  >
  updateAgent: Ask<
    UpdateAgent,
    AgentFound | UnknownAgent | AtHomeElsewhere | OwnerAbove | ScopesRefused
  >
  addAgentKey: Ask<AddKey, KeyAdded | KeyRefused | UnknownAgent | MayNotManage | AtHomeElsewhere>
  deprecateAgentKey: Ask<OneKey, KeyChanged | KeyUnchanged>
  /** Also ends the sessions and delegations of logins with the key, immediately. */
  revokeAgentKey: Ask<OneKey, KeyChanged | KeyUnchanged>
  /** The agent loses this name; sessions and keys stay. */
  revokeAgentAnchor: Ask<OneAnchor, AnchorRevoked | AnchorUnchanged>
}

export type ListAgents = Page & {
  readonly caller: Caller
}
export type AgentsListed = {
  readonly tag: 'listed'
  readonly agents: readonly AgentRecord[]
  readonly next: ListCursor | null
}

export type OneAgent = { readonly caller: Caller; readonly agentId: string }
export type AgentFound = { readonly tag: 'found'; readonly agent: AgentRecord }
export type UnknownAgent = { readonly tag: 'unknown_agent' }
/** The agent owns the organization of the tenant, and the caller may not manage owners. */
export type OwnerAbove = { readonly tag: 'owner_above_caller' }
/** An organization would have no owner who can sign in. */
export type LastOwner = { readonly tag: 'last_owner' }
/** Only the agent's home tenant can change this. */
export type AtHomeElsewhere = { readonly tag: 'at_home_elsewhere' }

export type UpdateAgent = OneAgent & { readonly scopes: readonly string[] | undefined }
export type ScopesRefused =
  | { readonly tag: 'unknown_scopes'; readonly scopes: readonly string[] }
  /** Scopes that the caller does not hold. */
  | { readonly tag: 'beyond_caller'; readonly scopes: readonly string[] }

export type AddKey = OneAgent & {
  readonly publicKey: string
  readonly keyAlgorithm: KeyAlgorithm
  readonly keyOwnershipProof: string
  readonly idempotency: IdempotencyClaim | null
}
export type KeyAdded = {
  readonly tag: 'added'
  readonly key: KeyRecord
  readonly replayed: boolean
}
export type KeyRefused =
  | { readonly tag: 'invalid_registration'; readonly pointer: string; readonly detail: string }
  | { readonly tag: 'invalid_ownership_proof'; readonly detail: string }
  | { readonly tag: 'fingerprint_known' }
  | { readonly tag: 'too_many_keys'; readonly most: number }
  /** The agent has scopes that the caller lacks and would gain by a login with the new key. */
  | { readonly tag: 'beyond_caller'; readonly scopes: readonly string[] }
  | IdempotencyRefused

export type OneKey = OneAgent & { readonly keyId: string }
export type KeyChanged = { readonly tag: 'changed'; readonly key: KeyRecord }
export type KeyUnchanged =
  | UnknownAgent
  | { readonly tag: 'unknown_key' }
  | MayNotManage
  | AtHomeElsewhere
  /** Revoked is final. */
  | { readonly tag: 'key_revoked' }
  /** The agent may not end its own logins. */
  | { readonly tag: 'last_active_key' }
  | LastOwner

export type OneAnchor = OneAgent & {
  /** The DID. */
  readonly value: string
}
export type AnchorRevoked = { readonly tag: 'anchor_revoked'; readonly anchor: AnchorRecord }
export type AnchorUnchanged =
  | UnknownAgent
  | { readonly tag: 'unknown_anchor' }
  | MayNotManage
  | AtHomeElsewhere
  | { readonly tag: 'last_active_anchor' }
/**
 * `may_not_manage`: neither the agent with a direct token nor a caller with `agents:manage`.
 * `bound_token`: a token that is restricted to one organization.
 */
export type MayNotManage =
  | { readonly tag: 'may_not_manage' }
  | { readonly tag: 'bound_token' }
  | OwnerAbove

export const agentManagement = address<AgentManagementProtocol>('agent-management', {
  idempotent: ['listAgents', 'readAgent'],
})
