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

/** Registers `svc_agent_pow_challenges_total`; once per registry. */
export function powOutcomes(registry: Registry): PowOutcomes {
  const counter = new Counter({
    name: 'svc_agent_pow_challenges_total',
    help: 'Proof-of-work challenges by what became of them.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  return { count: (outcome) => counter.inc({ outcome }) }
}
