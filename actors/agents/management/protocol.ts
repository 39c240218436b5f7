/**
 * The agents of a tenant, looked after: decisions.md 1.6, 17 and 21. A tenant sees the agents at home
 * in it and those that are members of its organization; any other agent does not exist for it.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { AgentRecord, AnchorRecord, KeyRecord } from '../agents/protocol.js'
import type { Caller } from '../../domain/audit.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import type { KeyAlgorithm } from '../../domain/signed-strings.js'
import type { ListCursor } from '../../domain/paging.js'

export type RosterProtocol = {
  list: Ask<ListAgents, AgentsListed>
  read: Ask<OneAgent, AgentFound | UnknownAgent>
  /** At home: everywhere. A member from elsewhere: in this tenant. Ends sessions and tokens at once. */
  suspend: Ask<OneAgent, AgentFound | UnknownAgent>
  activate: Ask<OneAgent, AgentFound | UnknownAgent | { tag: 'suspended_at_home' }>
  remove: Ask<OneAgent, { tag: 'removed' } | UnknownAgent | AtHomeElsewhere>
  update: Ask<UpdateAgent, AgentFound | UnknownAgent | AtHomeElsewhere | ScopesRefused>
  addKey: Ask<AddKey, KeyAdded | KeyRefused | UnknownAgent | MayNotManage | AtHomeElsewhere>
  deprecateKey: Ask<OneKey, KeyChanged | KeyUnchanged>
  /** Ends what logins with the key led to, at once. */
  revokeKey: Ask<OneKey, KeyChanged | KeyUnchanged | { tag: 'last_active_key' }>
  /** The agent is no longer known by it; sessions and keys stay. */
  revokeAnchor: Ask<OneAnchor, AnchorRevoked | AnchorUnchanged>
}

export type ListAgents = {
  readonly caller: Caller
  /** 1 to 200. */
  readonly limit: number
  readonly after: ListCursor | null
}
export type AgentsListed = {
  readonly tag: 'listed'
  readonly agents: readonly AgentRecord[]
  readonly next: ListCursor | null
}

export type OneAgent = { readonly caller: Caller; readonly agentId: string }
export type AgentFound = { readonly tag: 'found'; readonly agent: AgentRecord }
export type UnknownAgent = { readonly tag: 'unknown_agent' }
/** The tenant sees the agent and does not decide this about it. */
export type AtHomeElsewhere = { readonly tag: 'at_home_elsewhere' }

export type UpdateAgent = OneAgent & { readonly scopes: readonly string[] | undefined }
export type ScopesRefused =
  | { readonly tag: 'unknown_scopes'; readonly scopes: readonly string[] }
  /** More than the caller itself holds. */
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
  /** The agent may have more than the caller, who could log in as it. */
  | { readonly tag: 'beyond_caller'; readonly scopes: readonly string[] }
  | { readonly tag: 'idempotency_mismatch' }
  | { readonly tag: 'idempotency_in_progress' }

export type OneKey = OneAgent & { readonly keyId: string }
export type KeyChanged = { readonly tag: 'changed'; readonly key: KeyRecord }
export type KeyUnchanged =
  | UnknownAgent
  | { readonly tag: 'unknown_key' }
  | MayNotManage
  | AtHomeElsewhere
  /** Revoked is final. */
  | { readonly tag: 'key_revoked' }

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
/** Neither the agent itself with a direct token nor a holder of agents:manage; or a token for one organization. */
export type MayNotManage = { readonly tag: 'may_not_manage' } | { readonly tag: 'bound_token' }

export const roster = address<RosterProtocol>('roster', ['list', 'read'])
