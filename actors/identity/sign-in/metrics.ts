/** Metrics of sign-in. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

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

export function signInMetrics(registry: Registry): SignInMetrics {
  const steps = counter(
    registry,
    'svc_sign_in_steps_total',
    'Forms of the sign-in pages, by what came of them.',
    ['step', 'outcome'],
  )
  return { count: (step, outcome) => steps.inc({ step, outcome }) }
}
