/** Metrics of registration by proof of work. */
import type { Registry } from 'prom-client'
import { counter, histogram } from '../../platform/metrics.js'

export type PowOutcome =
  | 'issued'
  | 'consumed'
  | 'unknown'
  | 'mismatch'
  | 'expired'
  | 'replayed'
  | 'invalid_proof'
  | 'too_early'
  | 'fingerprint_known'
  | 'anchor_known'

export interface PowOutcomes {
  count(outcome: PowOutcome): void
  /** Records the difficulty of an issued challenge. */
  asked(bits: number): void
}

export function powOutcomes(registry: Registry): PowOutcomes {
  const challenges = counter(
    registry,
    'svc_agent_pow_challenges_total',
    'Proof-of-work challenges by what became of them.',
    ['outcome'],
  )
  const difficulty = histogram(
    registry,
    'svc_agent_pow_difficulty_bits',
    'Leading zero bits that issued challenges ask for; they rise in a flood.',
    [8, 12, 16, 18, 20, 21, 22, 23, 24, 26, 28],
  )
  return {
    count: (outcome) => challenges.inc({ outcome }),
    asked: (bits) => difficulty.observe(bits),
  }
}
