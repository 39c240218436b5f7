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

export interface PowMetrics {
  count(outcome: PowOutcome): void
  /** Records the difficulty of an issued challenge, in bits. */
  observeDifficulty(bits: number): void
}

export function powMetrics(registry: Registry): PowMetrics {
  const challenges = counter(
    registry,
    'svc_agent_pow_challenges_total',
    'Proof-of-work challenges by outcome.',
    ['outcome'],
  )
  const difficulty = histogram(
    registry,
    'svc_agent_pow_difficulty_bits',
    'Difficulty of issued challenges, in leading zero bits; it rises in a flood.',
    [8, 12, 16, 18, 20, 21, 22, 23, 24, 26, 28],
  )
  return {
    count: (outcome) => challenges.inc({ outcome }),
    observeDifficulty: (bits) => difficulty.observe(bits),
  }
}
