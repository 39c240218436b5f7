/** Metrics of sign-in. */
import { Counter, type Registry } from 'prom-client'

export type SignInStep =
  | 'password'
  | 'second_factor'
  | 'enrolment'
  | 'invite'
  | 'mail'
  | 'mail_code'
  | 'mail_link'

export interface SignInMetrics {
  /** `outcome` is the tag of the response: signed_in, wrong, locked, busy, ... */
  count(step: SignInStep, outcome: string): void
}

const NAME = 'svc_sign_in_steps_total'

export function signInMetrics(registry: Registry): SignInMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'step' | 'outcome'> | undefined
  // A restarted instance continues the registered counter.
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Submitted forms of the sign-in pages by outcome.',
      labelNames: ['step', 'outcome'],
      registers: [registry],
    })
  return { count: (step, outcome) => counter.inc({ step, outcome }) }
}
