/** Figures of sign-ins through other providers. decisions.md 14, metrics. */
import { Counter, Histogram, type Registry } from 'prom-client'

export interface SsoMetrics {
  /** `kind` is whose provider it is; `outcome` a tag or fault of the protocol. */
  count(kind: 'deployment' | 'tenant' | 'unknown', outcome: string): void
  /** Time that a provider took to answer a return: token, keys, userinfo. */
  took(secs: number): void
}

const COUNT = 'svc_upstream_sign_ins_total'
const TIME = 'svc_upstream_duration_seconds'

export function ssoMetrics(registry: Registry): SsoMetrics {
  // An instance that replaces a failed one goes on counting where that one stopped.
  const counter =
    (registry.getSingleMetric(COUNT) as Counter<'provider' | 'outcome'> | undefined) ??
    new Counter({
      name: COUNT,
      help: 'Returns from identity providers, by whose provider it is and what came of them.',
      labelNames: ['provider', 'outcome'],
      registers: [registry],
    })
  const histogram =
    (registry.getSingleMetric(TIME) as Histogram | undefined) ??
    new Histogram({
      name: TIME,
      help: 'Time that identity providers took to redeem a code.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
      registers: [registry],
    })
  return {
    count: (provider, outcome) => counter.inc({ provider, outcome }),
    took: (secs) => histogram.observe(secs),
  }
}
