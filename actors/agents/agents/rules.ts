/** Decisions of registration and login. All functions are pure. */
import type { LoginCandidate, OpenChallenge } from '../../../storage/agents/agent-challenges.js'
import type { PowChallengeRow } from '../../../storage/agents/pow-challenges.js'
import type { OwnershipFault } from '../proof-of-work/protocol.js'
import type { TenantResolved } from '../../identity/users/tenants/protocol.js'
import type { ChallengeKind, StartRefused } from './protocol.js'

/** Undefined when the tenant allows this method of registration. */
export function refusal(
  tenant: TenantResolved['tenant'],
  method: 'proof_of_work' | 'direct',
): { tag: 'tenant_refuses'; detail: string } | undefined {
  if (tenant.status !== 'active') {
    return { tag: 'tenant_refuses', detail: 'the tenant is suspended' }
  }
  if (method === 'proof_of_work' && !tenant.admitAgents) {
    return { tag: 'tenant_refuses', detail: 'the tenant does not admit agents' }
  }
  if (method === 'direct' && !tenant.directAgentRegistration) {
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
    detail: 'is a weak key: anyone can forge its signatures',
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

type ChallengeVerdict =
  | { tag: 'unknown_challenge' }
  | { tag: 'challenge_mismatch'; detail: string }
  | { tag: 'challenge_expired' }
  | { tag: 'challenge_consumed' }
  | { tag: 'open' }

/** Checks kind, token, expiry and use of a challenge, in this order. */
export function judgeChallenge(
  challenge: Pick<PowChallengeRow, 'kind' | 'status' | 'challengeToken' | 'outlived'> | undefined,
  sent: { readonly kind: ChallengeKind; readonly challengeToken?: string | undefined },
): ChallengeVerdict {
  if (challenge === undefined) return { tag: 'unknown_challenge' }
  if (challenge.kind !== sent.kind) {
    return {
      tag: 'challenge_mismatch',
      detail: 'the other registration route issued it',
    }
  }
  if (sent.challengeToken !== undefined && sent.challengeToken !== challenge.challengeToken) {
    return {
      tag: 'challenge_mismatch',
      detail: 'challenge_token differs from the issued one',
    }
  }
  if (challenge.status === 'expired' || challenge.outlived) return { tag: 'challenge_expired' }
  if (challenge.status === 'consumed') return { tag: 'challenge_consumed' }
  return { tag: 'open' }
}

/** Seconds until the minimum duration is over, at least 1; null when it is over. */
export function secondsTooEarly({
  ageMs,
  minDurationSecs,
}: Pick<PowChallengeRow, 'ageMs' | 'minDurationSecs'>): number | null {
  const remainingMs = minDurationSecs * 1000 - ageMs
  return remainingMs > 0 ? Math.max(1, Math.ceil(remainingMs / 1000)) : null
}

/** The key to challenge and the tenant to log in to. */
type ChosenLogin = { readonly candidate: LoginCandidate; readonly tenantId: string }

/**
 * An agent logs in to its home tenant or to a tenant of an organization it is a member of. A request
 * that names no tenant means the default tenant if the agent belongs to it, else its home tenant.
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
  // A key may be registered in several tenants. An ambiguous request is refused, not guessed.
  const homes = new Set(candidates.map(({ homeTenantId }) => homeTenantId))
  const [only] = candidates
  return only !== undefined && homes.size === 1
    ? { candidate: only, tenantId: only.homeTenantId }
    : undefined
}

/** The control plane belongs to no organization, so only its own agents log in to it. */
function belongs({
  tenantId,
  homeTenantId,
  controlPlane,
  role,
}: Pick<OpenChallenge, 'tenantId' | 'homeTenantId' | 'controlPlane' | 'role'>): boolean {
  return homeTenantId === tenantId || (!controlPlane && role !== null)
}

/** Every condition of a login except the signature. The caller does not learn which one failed. */
export function mayLogIn(open: OpenChallenge, keyId: string | undefined): boolean {
  if (open.outlived) return false
  if (open.agentStatus !== 'active') return false
  // A deprecated key completes a login that started before its deprecation.
  if (open.keyStatus === 'revoked') return false
  if (open.tenantStatus !== 'active' || open.homeStatus !== 'active') return false
  if (keyId !== undefined && keyId !== open.fingerprint) return false
  return belongs(open)
}
