/** The strings that agents sign: the suite, then fields, joined by LF without a trailing LF. */
export type KeyAlgorithm = 'ed25519' | 'es256'

export const OWNERSHIP_SUITE = 'svc-agent-key-ownership-v1'
export const CHALLENGE_SUITE = 'svc-agent-challenge-v1'
export const FIELD_SEPARATOR = '\n'

/** The fields of the ownership string in order, as the bootstrap metadata publishes them. */
const OWNERSHIP_FIELDS = [
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

type OwnershipClaim = {
  readonly issuer: string
  readonly tenantId: string
  readonly anchorType: string
  readonly keyAlgorithm: KeyAlgorithm
  /** Exactly as sent in the request. */
  readonly publicKey: string
}

/** The signed string of a `key_ownership_proof`. */
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

type ChallengeClaim = {
  readonly issuer: string
  readonly tenantId: string
  readonly agentId: string
  /** The key's fingerprint. */
  readonly keyId: string
  readonly challengeId: string
  readonly nonce: string
  readonly expiresAtSecs: number
}

/** The signed string of an agent's login. */
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

/** @throws RangeError if a field contains a line feed, which would make it ambiguous. */
function joined(fields: readonly string[]): string {
  for (const field of fields) {
    if (field.includes(FIELD_SEPARATOR))
      throw new RangeError('a signed field must not contain a line feed')
  }
  return fields.join(FIELD_SEPARATOR)
}

/** The format of the ownership proof, for the bootstrap metadata and for the 400 after an invalid proof. */
export const OWNERSHIP_DESCRIPTION = {
  suite: OWNERSHIP_SUITE,
  fields: OWNERSHIP_FIELDS,
  separator: FIELD_SEPARATOR,
  signature_encoding: 'base64url',
} as const
