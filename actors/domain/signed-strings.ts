/** The strings that agents sign: suite first, fields joined by one LF, no trailing LF (decisions.md 0). */
export type KeyAlgorithm = 'ed25519' | 'es256'

export const OWNERSHIP_SUITE = 'svc-agent-key-ownership-v1'
export const CHALLENGE_SUITE = 'svc-agent-challenge-v1'
export const FIELD_SEPARATOR = '\n'

/** The fields of the ownership string in order, as the bootstrap metadata publishes them. */
export const OWNERSHIP_FIELDS = [
  'suite',
  'issuer',
  'tenant_id',
  'anchor_type',
  'key_algorithm',
  'public_key',
] as const

/** The fields of the challenge payload in order. */
export const CHALLENGE_FIELDS = [
  'suite',
  'issuer',
  'tenant_id',
  'agent_id',
  'key_id',
  'challenge_id',
  'nonce',
  'expires_at',
] as const

export type OwnershipClaim = {
  readonly issuer: string
  readonly tenantId: string
  readonly anchorType: string
  readonly keyAlgorithm: KeyAlgorithm
  /** Exactly as sent in the request. */
  readonly publicKey: string
}

/** What a `key_ownership_proof` signs (decisions.md 1.2). */
export function ownershipString(claim: OwnershipClaim): string {
  return joined([
    OWNERSHIP_SUITE,
    claim.issuer,
    claim.tenantId,
    claim.anchorType,
    claim.keyAlgorithm,
    claim.publicKey,
  ])
}

export type ChallengeClaim = {
  readonly issuer: string
  readonly tenantId: string
  readonly agentId: string
  /** The key's fingerprint. */
  readonly keyId: string
  readonly challengeId: string
  readonly nonce: string
  readonly expiresAtSecs: number
}

/** What an agent signs to log in (decisions.md 1.5). */
export function challengePayload(claim: ChallengeClaim): string {
  return joined([
    CHALLENGE_SUITE,
    claim.issuer,
    claim.tenantId,
    claim.agentId,
    claim.keyId,
    claim.challengeId,
    claim.nonce,
    String(claim.expiresAtSecs),
  ])
}

/** @throws RangeError when a field holds a line feed: it could pass for two fields. */
function joined(fields: readonly string[]): string {
  for (const field of fields) {
    if (field.includes(FIELD_SEPARATOR)) throw new RangeError('a signed field holds a line feed')
  }
  return fields.join(FIELD_SEPARATOR)
}

/**
 * How an ownership proof is made, for clients that need not guess: in the bootstrap metadata and in
 * the 400 that answers a bad one (decisions.md 1.2, self-description).
 */
export const OWNERSHIP_DESCRIPTION = {
  suite: OWNERSHIP_SUITE,
  fields: OWNERSHIP_FIELDS,
  separator: FIELD_SEPARATOR,
  signature_encoding: 'base64url',
} as const
