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
  /** `outcome` is the tag of the response: signed_in, wrong, locked, busy, ... */
  count(step: SignInStep, outcome: string): void
}

export function signInMetrics(registry: Registry): SignInMetrics {
  const steps = counter(
    registry,
    'svc_sign_in_steps_total',
    'Submitted forms of the sign-in pages by outcome.',
    ['step', 'outcome'],
  )
  return { count: (step, outcome) => steps.inc({ step, outcome }) }
}
