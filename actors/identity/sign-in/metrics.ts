/** Figures of signing in. decisions.md 14, metrics. */
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
  /** `outcome` is the tag of the answer: signed_in, wrong, locked, busy, ... */
  count(step: SignInStep, outcome: string): void
}

const NAME = 'svc_sign_in_steps_total'

export function signInMetrics(registry: Registry): SignInMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'step' | 'outcome'> | undefined
  // An instance that replaces a failed one goes on counting where that one stopped.
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Forms of the sign-in pages, by what came of them.',
      labelNames: ['step', 'outcome'],
      registers: [registry],
    })
  return { count: (step, outcome) => counter.inc({ step, outcome }) }
}
