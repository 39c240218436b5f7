/** Metrics of passkeys. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

export type PasskeyStep = 'sign_in' | 'second_factor' | 'enrolment' | 'account' | 'removal'

export interface PasskeyMetrics {
  /** `outcome` is the tag of the response: signed_in, wrong, locked, added, ... */
  count(step: PasskeyStep, outcome: string): void
}

export function passkeyMetrics(registry: Registry): PasskeyMetrics {
  const ceremonies = counter(
    registry,
    'svc_passkey_ceremonies_total',
    'Authenticator responses by outcome.',
    ['step', 'outcome'],
  )
  return { count: (step, outcome) => ceremonies.inc({ step, outcome }) }
}
