/** What agents may do when, decided from rows and messages alone. */
import type { LoginCandidate, SpentChallenge } from '../../../storage/agents/agent-challenges.js'
import type { PowChallengeRow } from '../../../storage/agents/pow-challenges.js'
import type { OwnershipFault } from '../proof-of-work/protocol.js'
import type { TenantResolved } from '../../identity/tenants/protocol.js'
import type { ChallengeKind, StartRefused } from './protocol.js'

/** Whether a tenant lets an agent register on this way; the text says why not. */
export function refusal(
  tenant: TenantResolved['tenant'],
  way: 'proof_of_work' | 'direct',
): { tag: 'tenant_refuses'; detail: string } | undefined {
  if (tenant.status !== 'active') {
    return { tag: 'tenant_refuses', detail: 'the tenant is suspended' }
  }
  if (way === 'proof_of_work' && !tenant.admitAgents) {
    return { tag: 'tenant_refuses', detail: 'the tenant does not admit agents' }
  }
  if (way === 'direct' && !tenant.directAgentRegistration) {
    return { tag: 'tenant_refuses', detail: 'the tenant does not allow direct registration' }
  }
  return undefined
}

const FAULTS: Readonly<Record<OwnershipFault, StartRefused>> = {
  malformed_key: {
    tag: 'invalid_registration',
    pointer: '/public_key',
    detail: 'is not a public key of key_algorithm in base64url, base64 or multibase base58btc',
  },
  weak_key: {
    tag: 'invalid_registration',
    pointer: '/public_key',
    detail: 'is a weak key: anybody could sign for it',
  },
  anchor_mismatch: {
    tag: 'invalid_registration',
    pointer: '/anchor_value',
    detail: 'is not the did:key of public_key',
  },
  malformed_proof: {
    tag: 'invalid_ownership_proof',
    detail: 'key_ownership_proof is not base64url of 64 bytes without padding',
  },
  wrong_signature: {
    tag: 'invalid_ownership_proof',
    detail: 'key_ownership_proof does not verify over the ownership string',
  },
}

export function ownershipRefusal(reason: OwnershipFault): StartRefused {
  return FAULTS[reason]
}

export type Standing =
  | { tag: 'unknown_challenge' }
  | { tag: 'challenge_mismatch'; detail: string }
  | { tag: 'challenge_expired' }
  | { tag: 'challenge_consumed' }
  | { tag: 'open' }

/** Checks 2 to 4 of a completion, in their order (decisions.md 1.3). */
export function judgeChallenge(
  challenge: Pick<PowChallengeRow, 'kind' | 'status' | 'challengeToken' | 'outlived'> | undefined,
  sent: { readonly kind: ChallengeKind; readonly challengeToken?: string | undefined },
): Standing {
  if (challenge === undefined) return { tag: 'unknown_challenge' }
  if (challenge.kind !== sent.kind) {
    return {
      tag: 'challenge_mismatch',
      detail: 'the challenge was started on the other registration route',
    }
  }
  if (sent.challengeToken !== undefined && sent.challengeToken !== challenge.challengeToken) {
    return {
      tag: 'challenge_mismatch',
      detail: 'challenge_token is not the one the challenge was issued with',
    }
  }
  if (challenge.status === 'expired' || challenge.outlived) return { tag: 'challenge_expired' }
  if (challenge.status === 'consumed') return { tag: 'challenge_consumed' }
  return { tag: 'open' }
}

/** Seconds until a proof counts, at least 1; null when it counts now. */
export function secondsTooEarly({
  ageMs,
  minDurationSecs,
}: Pick<PowChallengeRow, 'ageMs' | 'minDurationSecs'>): number | null {
  const remainingMs = minDurationSecs * 1000 - ageMs
  return remainingMs > 0 ? Math.max(1, Math.ceil(remainingMs / 1000)) : null
}

/** Which key is challenged, and for which tenant. */
export type ChosenLogin = { readonly candidate: LoginCandidate; readonly tenantId: string }

/**
 * An agent logs in to its home, or to a tenant of an organization it is a member of. Where the
 * request itself names no tenant and the agent has no business in the default one, its home is meant.
 */
export function chooseLogin(
  candidates: readonly LoginCandidate[],
  { tenant, by }: Pick<TenantResolved, 'tenant' | 'by'>,
): ChosenLogin | undefined {
  const here = candidates.find((candidate) =>
    belongs({ ...candidate, tenantId: tenant.id, controlPlane: tenant.controlPlane }),
  )
  if (here !== undefined) return { candidate: here, tenantId: tenant.id }
  if (by === 'explicit' || by === 'host') return undefined
  // The same key may be registered in several tenants; guessing among them would be a trap.
  const homes = new Set(candidates.map(({ homeTenantId }) => homeTenantId))
  const [only] = candidates
  return only !== undefined && homes.size === 1
    ? { candidate: only, tenantId: only.homeTenantId }
    : undefined
}

/** The control plane belongs to no organization: only agents at home there log in to it. */
function belongs({
  tenantId,
  homeTenantId,
  controlPlane,
  role,
}: Pick<SpentChallenge, 'tenantId' | 'homeTenantId' | 'controlPlane' | 'role'>): boolean {
  return homeTenantId === tenantId || (!controlPlane && role !== null)
}

/** Everything short of the signature that a login needs. One verdict: nobody learns which failed. */
export function loginStands(spent: SpentChallenge, keyId: string | undefined): boolean {
  if (spent.outlived) return false
  if (spent.agentStatus !== 'active') return false
  // A deprecated key finishes what it began before (decisions.md 21).
  if (spent.keyStatus === 'revoked') return false
  if (spent.tenantStatus !== 'active' || spent.homeStatus !== 'active') return false
  if (keyId !== undefined && keyId !== spent.fingerprint) return false
  return belongs(spent)
}
