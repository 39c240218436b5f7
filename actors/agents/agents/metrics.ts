/** Figures of registration by proof of work (decisions.md section 14, metrics). */
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

export interface PowOutcomes {
  count(outcome: PowOutcome): void
  /** The bits of a challenge that was issued. */
  asked(bits: number): void
}

const NAME = 'svc_agent_pow_challenges_total'
const BITS_NAME = 'svc_agent_pow_difficulty_bits'

/** The counter of a registry, registered when it is asked for the first time. */
export function powOutcomes(registry: Registry): PowOutcomes {
  const known = registry.getSingleMetric(NAME) as Counter<'outcome'> | undefined
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Proof-of-work challenges by what became of them.',
      labelNames: ['outcome'],
      registers: [registry],
    })
  const knownBits = registry.getSingleMetric(BITS_NAME) as Histogram | undefined
  const bits =
    knownBits ??
    new Histogram({
      name: BITS_NAME,
      help: 'Leading zero bits that issued challenges ask for; they rise in a flood.',
      buckets: [8, 12, 16, 18, 20, 21, 22, 23, 24, 26, 28],
      registers: [registry],
    })
  return { count: (outcome) => counter.inc({ outcome }), asked: (asked) => bits.observe(asked) }
}
