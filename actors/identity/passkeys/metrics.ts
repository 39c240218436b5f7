/** Figures of passkeys. decisions.md 14, metrics. */
import { Counter, type Registry } from 'prom-client'

export type PasskeyStep = 'sign_in' | 'second_factor' | 'enrolment' | 'account' | 'removal'

export interface PasskeyMetrics {
  /** `outcome` is the tag of the answer: signed_in, wrong, locked, added, ... */
  count(step: PasskeyStep, outcome: string): void
}

const NAME = 'svc_passkey_ceremonies_total'

export function passkeyMetrics(registry: Registry): PasskeyMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'step' | 'outcome'> | undefined
  // An instance that replaces a failed one goes on counting where that one stopped.
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Answers of authenticators, by what came of them.',
      labelNames: ['step', 'outcome'],
      registers: [registry],
    })
  return { count: (step, outcome) => counter.inc({ step, outcome }) }
}
