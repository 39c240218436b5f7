/** Verifies DPoP dpopVerifier: content, nonce and single use (RFC 9449). */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Coordination } from '../../../../storage/platform/coordination/port.js'
import { proofMemorySecs, readProof } from './dpop.js'
import type { DpopNonces } from './dpop-nonces.js'
import type { OAuthReason } from '../../../domain/oauth-reasons.js'
import type { KeyProven, ProofRefused } from '../protocol.js'
import type { DpopSettings } from '../settings.js'

type DpopProofWithToken = {
  readonly proof: string
  readonly httpMethod: string
  readonly httpUrl: string
  /** Null at the token endpoint, where no access token exists yet. */
  readonly accessToken: string | null
  /** Thumbprint that the token or refresh family is bound to. Null accepts any key. */
  readonly boundTo: string | null
}

export interface DpopVerifier {
  verify(presented: DpopProofWithToken): Promise<KeyProven | ProofRefused>
  /** The refusal of a request without a proof. */
  missing(description: string, reason?: OAuthReason): Promise<ProofRefused>
}

type DpopVerifierNeeds = {
  readonly clock: Clock
  readonly coordination: Pick<Coordination, 'once'>
  readonly nonces: DpopNonces
  readonly settings: DpopSettings
}

export function createDpopVerifier({
  clock,
  coordination,
  nonces,
  settings,
}: DpopVerifierNeeds): DpopVerifier {
  async function refuse(
    error: ProofRefused['error'],
    description: string,
    reason: OAuthReason,
  ): Promise<ProofRefused> {
    // With nonces required, every refusal carries one, so that the retry can succeed.
    const dpopNonce = settings.require_nonce ? await nonces.current() : undefined
    return { tag: 'proof_refused', error, description, reason, dpopNonce }
  }

  return {
    async verify({ proof, httpMethod, httpUrl, accessToken, boundTo }) {
      if (!settings.enabled)
        return refuse('invalid_dpop_proof', 'DPoP is disabled', 'dpop_disabled')
      const ageSecsMax = settings.proof_max_age_secs
      const nowSecs = clock.nowSecs()
      const context = { httpMethod, httpUrl, nowSecs, ageSecsMax, accessToken }
      const claims = await readProof(proof, context)
      if ('fault' in claims) return refuse('invalid_dpop_proof', claims.fault, 'proof_invalid')
      if (boundTo !== null && claims.jkt !== boundTo)
        return refuse(
          'invalid_dpop_proof',
          'the proof is signed with a key that the token is not bound to',
          'proof_key_mismatch',
        )
      if (settings.require_nonce) {
        if (claims.nonce === null)
          return refuse('use_dpop_nonce', 'the proof must contain a nonce', 'nonce_missing')
        if (!(await nonces.isFresh(claims.nonce)))
          return refuse('use_dpop_nonce', 'the nonce is unknown or too old', 'nonce_expired')
      }
      // Last, so that a proof refused for another reason is not marked as used.
      const id = createHash('sha256').update(`${claims.jkt} ${claims.id}`).digest('base64url')
      const first = await coordination.once(`dpop:${id}`, proofMemorySecs(ageSecsMax))
      if (!first) return refuse('invalid_dpop_proof', 'the proof was used before', 'proof_reused')
      return { tag: 'proven', jkt: claims.jkt }
    },
    missing: (description, reason = 'proof_missing') =>
      refuse('invalid_dpop_proof', description, reason),
  }
}
