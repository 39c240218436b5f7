/** Metrics of sign-ins through upstream identity providers. */
import type { Registry } from 'prom-client'
import { counter, histogram } from '../../../../platform/metrics.js'

export interface FederatedLoginMetrics {
  /** `kind` names the owner of the provider, `outcome` a tag or fault of the protocol. */
  count(kind: 'deployment' | 'tenant' | 'unknown', outcome: string): void
  /** The time that the calls to the provider took: token endpoint, JWKS, userinfo. */
  took(secs: number): void
}

export function federatedLoginMetrics(registry: Registry): FederatedLoginMetrics {
  const signIns = counter(
    registry,
    'svc_upstream_sign_ins_total',
    'Callbacks from identity providers, by owner of the provider and outcome.',
    ['provider', 'outcome'],
  )
  const durations = histogram(
    registry,
    'svc_upstream_duration_seconds',
    'Time identity providers took to redeem a code.',
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
  )
  return {
    count: (provider, outcome) => signIns.inc({ provider, outcome }),
    took: (secs) => durations.observe(secs),
  }
}
