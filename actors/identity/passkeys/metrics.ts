/** Metrics of passkeys. */
import { Counter, type Registry } from 'prom-client'

export type PasskeyStep = 'sign_in' | 'second_factor' | 'enrolment' | 'account' | 'removal'

export interface PasskeyMetrics {
  /** `outcome` is the tag of the response: signed_in, wrong, locked, added, ... */
  count(step: PasskeyStep, outcome: string): void
}

const NAME = 'svc_passkey_ceremonies_total'

export function passkeyMetrics(registry: Registry): PasskeyMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'step' | 'outcome'> | undefined
  // A restarted instance continues the registered counter.
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Authenticator responses by outcome.',
      labelNames: ['step', 'outcome'],
      registers: [registry],
    })
  return { count: (step, outcome) => counter.inc({ step, outcome }) }
}
