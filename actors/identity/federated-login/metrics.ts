/** Metrics of federated sign-in. */
import { Counter, Histogram, type Registry } from 'prom-client'

export interface FederatedLoginMetrics {
  /**
   * `kind`: whether the provider belongs to the deployment or to a tenant. `outcome`: a tag or fault of the protocol.
   */
  count(kind: 'deployment' | 'tenant' | 'unknown', outcome: string): void
  /** Seconds a provider took to complete a callback: token, keys and userinfo. */
  took(secs: number): void
}

const COUNT = 'svc_upstream_sign_ins_total'
const TIME = 'svc_upstream_duration_seconds'

export function federatedLoginMetrics(registry: Registry): FederatedLoginMetrics {
  // A restarted instance continues the registered counter.
  const counter =
    (registry.getSingleMetric(COUNT) as Counter<'provider' | 'outcome'> | undefined) ??
    new Counter({
      name: COUNT,
      help: 'Callbacks from identity providers, by owner of the provider and outcome.',
      labelNames: ['provider', 'outcome'],
      registers: [registry],
    })
  const histogram =
    (registry.getSingleMetric(TIME) as Histogram | undefined) ??
    new Histogram({
      name: TIME,
      help: 'Time identity providers took to redeem a code.',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
      registers: [registry],
    })
  return {
    count: (provider, outcome) => counter.inc({ provider, outcome }),
    took: (secs) => histogram.observe(secs),
  }
}
