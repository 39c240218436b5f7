/** Figures of registration by proof of work (decisions.md section 14, metrics). */
import { Counter, type Registry } from 'prom-client'

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

export interface PowOutcomes {
  count(outcome: PowOutcome): void
}

const NAME = 'svc_agent_pow_challenges_total'

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
  return { count: (outcome) => counter.inc({ outcome }) }
}
