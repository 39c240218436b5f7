/** Metrics of registration by proof of work. */
import { Counter, Histogram, type Registry } from 'prom-client'

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

const NAME = 'svc_agent_pow_challenges_total'
const BITS_NAME = 'svc_agent_pow_difficulty_bits'

/** Reuses metrics that are registered already: a restarted actor continues the counts. */
export function powMetrics(registry: Registry): PowMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'outcome'> | undefined
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Proof-of-work challenges by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    })
  const knownBits = registry.getSingleMetric(BITS_NAME) as Histogram | undefined
  const bits =
    knownBits ??
    new Histogram({
      name: BITS_NAME,
      help: 'Difficulty of issued challenges, in leading zero bits; it rises in a flood.',
      buckets: [8, 12, 16, 18, 20, 21, 22, 23, 24, 26, 28],
      registers: [registry],
    })
  return {
    count: (outcome) => counter.inc({ outcome }),
    observeDifficulty: (value) => bits.observe(value),
  }
}
