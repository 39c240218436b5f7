/** Agents: registration by proof of work and key ownership, login by signed challenge. */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { AgentId, KeyFingerprint, TenantId } from '../../domain/ids.js'
import type { KeyAlgorithm } from '../../domain/signed-strings.js'
import type { TenantSelector } from '../../domain/tenants/tenancy.js'
import type { TenantConflict, TenantUnknown } from '../../identity/users/tenants/protocol.js'
import type { DpopProof, ProofRefused } from '../../oauth/tokens/protocol.js'

export type AgentsProtocol = {
  /** Issues a proof-of-work challenge for a key with a valid ownership proof. */
  startAgentRegistration: Ask<StartRegistration, RegistrationStarted | StartRefused>
  /** Spends a challenge of kind `agent` and registers its agent. */
  completeAgentRegistration: Ask<CompleteRegistration, AgentRegistered | CompletionRefused>
  /** Checks a completion without spending the challenge, for the workspace bootstrap. */
  checkCompletion: Ask<
    CompleteRegistration & { kind: ChallengeKind },
    CompletionChecked | CheckRefused
  >
  /** Registers without proof of work, where the tenant allows it. */
  registerAgent: Ask<RegisterDirectly, AgentRegistered | StartRefused>
  /** Issues a login challenge. */
  challengeAgent: Ask<RequestChallenge, AgentChallenged | { tag: 'unknown_agent' }>
  /** Spends a login challenge and issues tokens for a valid signature. */
  verifyAgent: Ask<VerifyChallenge, AgentVerified | VerifyRefused>
  readOwnAgent: Ask<
    { agentId: string },
    { tag: 'found'; agent: AgentRecord } | { tag: 'unknown_agent' }
  >
}

/** The route that issued a challenge; only that route completes it. */
export type ChallengeKind = 'agent' | 'workspace'
export type AnchorType = 'did_key' | 'did_web' | 'erc8004'
/** An agent of the ERC-8004 Identity Registry of a chain. */
export type ChainAgent = {
  /** CAIP-2 id. */
  readonly chain: string
  /** ERC-721 token id, decimal. */
  readonly agentId: string
}

/** An agent of a registry, and the block at which its owner was read. */
export type OnChainAgent = {
  readonly network: string
  /** `network` and the address of the registry. */
  readonly registry: string
  readonly token: string
  readonly block: number
}

export type Registration = {
  readonly name: string
  readonly anchorType: AnchorType
  readonly anchorValue?: string | ChainAgent | undefined
  /** Signature of the owner, where the anchor is an agent of a chain. */
  readonly anchorProof?: string | undefined
  readonly publicKey: string
  readonly keyAlgorithm: KeyAlgorithm
  /** base64url signature over the ownership string (docs/reference/agents.md). */
  readonly keyOwnershipProof?: string | undefined
}
export type StartRegistration = {
  readonly kind: ChallengeKind
  readonly registration: Registration
  readonly tenant: TenantSelector
  /** The network of the client (`ClientAddresses.networkOf`). Default null: not known. */
  readonly network?: string | null | undefined
}
export type RegisterDirectly = Omit<StartRegistration, 'kind'>

export type RegistrationStarted = {
  tag: 'started'
  challengeId: string
  challengeToken: string
  difficultyBits: number
  minDurationSeconds: number
  expiresAt: Date
  expiresInSeconds: number
}
export type StartRefused =
  | { tag: 'invalid_registration'; pointer: string; detail: string }
  | { tag: 'invalid_ownership_proof'; detail: string }
  /** The tenant admits no agents, is suspended, or does not allow direct registration. */
  | { tag: 'tenant_refuses'; detail: string }
  | { tag: 'fingerprint_known' }
  | { tag: 'anchor_known' }
  /** The DID document is temporarily unavailable; the request may be repeated. */
  | { tag: 'anchor_unavailable'; detail: string }
  /** The node of the chain does not respond. */
  | { tag: 'chain_unavailable'; detail: string }
  /** The share of document fetches or of queries of a chain is exhausted. */
  | { tag: 'busy' }
  | TenantUnknown
  | TenantConflict

export type CompleteRegistration = {
  readonly challengeId: string
  readonly nonce: string
  readonly challengeToken?: string | undefined
}
export type CompletionRefused =
  | CheckRefused
  | { tag: 'fingerprint_known' }
  | { tag: 'anchor_known' }
export type CheckRefused =
  | { tag: 'unknown_challenge' }
  /** Issued by the other route, or `challenge_token` differs. */
  | { tag: 'challenge_mismatch'; detail: string }
  | { tag: 'challenge_expired' }
  | { tag: 'challenge_consumed' }
  | { tag: 'invalid_proof' }
  | { tag: 'too_early'; waitSeconds: number }

/** A valid proof after the minimum duration, with the registration data of its challenge. */
export type CompletionChecked = {
  tag: 'checked'
  tenantId: TenantId
  name: string
  anchorType: AnchorType
  did: string
  /** Undefined unless the anchor type is erc8004. */
  onChain?: OnChainAgent | undefined
  keyAlgorithm: KeyAlgorithm
  publicKey: Uint8Array
  fingerprint: KeyFingerprint
}
export type AgentRegistered = {
  tag: 'registered'
  agent: AgentRecord
  key: KeyRecord
  issuer: string
}

export type RequestChallenge = {
  /** By its id, its DID or the fingerprint of one of its keys. */
  readonly agent: { readonly by: 'agent_id' | 'did' | 'key_id'; readonly value: string }
  readonly tenant: TenantSelector
}
export type AgentChallenged = {
  tag: 'challenged'
  challengeId: string
  /** The exact string to sign (docs/reference/agents.md). */
  payload: string
  nonce: string
  agentId: AgentId
  keyId: KeyFingerprint
  tenantId: TenantId
  issuer: string
  algorithm: KeyAlgorithm
  expiresAt: Date
  expiresInSeconds: number
}

export type VerifyChallenge = {
  readonly challengeId: string
  readonly signature: string
  readonly keyId?: string | undefined
  readonly scope?: string | undefined
  /** The DPoP header and the request it was sent with (RFC 9449 section 4.3). */
  readonly dpop: DpopProof | null
  /** The address of the client. */
  readonly address: string
}
export type AgentVerified = {
  tag: 'verified'
  accessToken: string
  tokenType: 'Bearer' | 'DPoP'
  expiresInSeconds: number
  refreshToken: string
  scopes: readonly string[]
  agentId: AgentId
  tenantId: TenantId
}
export type VerifyRefused =
  /** Does not disclose which check failed. */
  | { tag: 'invalid_grant' }
  | { tag: 'invalid_scope' }
  /** An access policy of the tenant refuses the login. */
  | { tag: 'policy_denied' }
  | ProofRefused

/** An agent as the API shows it. */
export type AgentRecord = {
  readonly id: AgentId
  readonly tenantId: TenantId
  readonly name: string
  readonly status: 'active' | 'suspended'
  readonly did: string
  readonly anchors: readonly AnchorRecord[]
  readonly keys: readonly KeyRecord[]
  readonly scopes: readonly string[]
  readonly metadata: Readonly<Record<string, unknown>>
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly lastAuthenticatedAt: Date | null
}
export type AnchorRecord = {
  readonly type: AnchorType
  readonly value: string
  readonly status: 'active' | 'revoked'
  readonly verifiedAt: Date
}
export type KeyRecord = {
  /** RFC 7638 thumbprint. */
  readonly id: KeyFingerprint
  readonly algorithm: KeyAlgorithm
  /** base64url of the raw key: 32 bytes ed25519, 33 bytes es256 (compressed point). */
  readonly publicKey: string
  readonly status: 'active' | 'deprecated' | 'revoked'
  readonly createdAt: Date
  readonly revokedAt: Date | null
}

export const agents = address<AgentsProtocol>('agents', { idempotent: ['readOwnAgent'] })
