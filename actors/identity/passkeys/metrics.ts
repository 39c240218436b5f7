/** Metrics of passkeys. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

export type PasskeyStep = 'sign_in' | 'second_factor' | 'enrolment' | 'account' | 'removal'

export interface PasskeyMetrics {
  /** `outcome` is the tag of the answer: signed_in, wrong, locked, added, ... */
  count(step: PasskeyStep, outcome: string): void
}

export function passkeyMetrics(registry: Registry): PasskeyMetrics {
  const ceremonies = counter(
    registry,
    'svc_passkey_ceremonies_total',
    'Answers of authenticators, by what came of them.',
    ['step', 'outcome'],
  )
  return { count: (step, outcome) => ceremonies.inc({ step, outcome }) }
}
