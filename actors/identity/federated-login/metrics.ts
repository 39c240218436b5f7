/** Metrics of sign-ins through upstream identity providers. */
import type { Registry } from 'prom-client'
import { counter, histogram } from '../../platform/metrics.js'

export interface SsoMetrics {
  /** `kind` names the owner of the provider, `outcome` a tag or fault of the protocol. */
  count(kind: 'deployment' | 'tenant' | 'unknown', outcome: string): void
  /** The time that the calls to the provider took: token endpoint, JWKS, userinfo. */
  took(secs: number): void
}

export function ssoMetrics(registry: Registry): SsoMetrics {
  const signIns = counter(
    registry,
    'svc_upstream_sign_ins_total',
    'Returns from identity providers, by whose provider it is and what came of them.',
    ['provider', 'outcome'],
  )
  const durations = histogram(
    registry,
    'svc_upstream_duration_seconds',
    'Time that identity providers took to redeem a code.',
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
  )
  return {
    count: (provider, outcome) => signIns.inc({ provider, outcome }),
    took: (secs) => durations.observe(secs),
  }
}
