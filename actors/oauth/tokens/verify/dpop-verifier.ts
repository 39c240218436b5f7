/** Judges DPoP proofs completely: their content, their nonce, and that each is used once. RFC 9449. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { Coordination } from '../../../../storage/platform/coordination/port.js'
import { proofMemorySecs, readProof } from './dpop.js'
import type { ProofNonces } from './dpop-nonces.js'
import type { KeyProven, ProofRefused } from '../protocol.js'
import type { DpopSettings } from '../settings.js'

export type PresentedWithToken = {
  readonly proof: string
  readonly httpMethod: string
  readonly httpUrl: string
  /** Null at the token endpoint, where there is no access token yet. */
  readonly accessToken: string | null
  /** The key it must be: of the token or of the refresh family; null accepts any. */
  readonly boundTo: string | null
}

export interface ProofJudge {
  judge(presented: PresentedWithToken): Promise<KeyProven | ProofRefused>
  /** A refusal for a proof that is missing altogether. */
  missing(description: string): Promise<ProofRefused>
}

export type ProofJudgeNeeds = {
  readonly clock: Clock
  readonly coordination: Pick<Coordination, 'once'>
  readonly nonces: ProofNonces
  readonly settings: DpopSettings
}

export function proofJudge({ clock, coordination, nonces, settings }: ProofJudgeNeeds): ProofJudge {
  async function refuse(error: ProofRefused['error'], description: string): Promise<ProofRefused> {
    // decisions.md 7.6: the nonce goes with every failure while nonces are required.
    const dpopNonce = settings.require_nonce ? await nonces.current() : undefined
    return { tag: 'proof_refused', error, description, dpopNonce }
  }

  return {
    async judge({ proof, httpMethod, httpUrl, accessToken, boundTo }) {
      if (!settings.enabled)
        return refuse('invalid_dpop_proof', 'proofs of possession are not enabled here')
      const ageSecsMax = settings.proof_max_age_secs
      const nowSecs = clock.nowSecs()
      const claims = readProof(proof, { httpMethod, httpUrl, nowSecs, ageSecsMax, accessToken })
      if ('fault' in claims) return refuse('invalid_dpop_proof', claims.fault)
      if (boundTo !== null && claims.jkt !== boundTo)
        return refuse(
          'invalid_dpop_proof',
          'the proof is by another key than the token is bound to',
        )
      if (settings.require_nonce) {
        if (claims.nonce === null) return refuse('use_dpop_nonce', 'the proof must carry a nonce')
        if (!(await nonces.isFresh(claims.nonce)))
          return refuse('use_dpop_nonce', 'the nonce is not one of ours, or too old')
      }
      // Last, so that a proof that is refused for another reason is not used up.
      const id = createHash('sha256').update(`${claims.jkt} ${claims.id}`).digest('base64url')
      const first = await coordination.once(`dpop:${id}`, proofMemorySecs(ageSecsMax))
      if (!first) return refuse('invalid_dpop_proof', 'the proof was used before')
      return { tag: 'proven', jkt: claims.jkt }
    },
    missing: (description) => refuse('invalid_dpop_proof', description),
  }
}
