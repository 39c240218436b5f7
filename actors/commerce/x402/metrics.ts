/** What became of payments, and how the facilitator did. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export type X402Metrics = {
  readonly challenges: Counter
  readonly payments: Counter<'outcome'>
  readonly facilitator: Histogram<'operation' | 'outcome'>
  readonly resolved: Counter<'outcome'>
}

export function x402Metrics(registry: Registry): X402Metrics {
  const registers = [registry]
  return {
    challenges: new Counter({
      name: 'svc_x402_challenges_total',
      help: 'Payment challenges given.',
      registers,
    }),
    payments: new Counter({
      name: 'svc_x402_payments_total',
      help: 'Proofs of payment by what became of them.',
      labelNames: ['outcome'],
      registers,
    }),
    facilitator: facilitatorSeconds(registry),
    resolved: new Counter({
      name: 'svc_x402_resolutions_total',
      help: 'Payments of unknown outcome that an operator ended, by how.',
      labelNames: ['outcome'],
      registers,
    }),
  }
}

/** The same histogram for whoever asks the facilitator in this process. */
export function facilitatorSeconds(registry: Registry): Histogram<'operation' | 'outcome'> {
  const name = 'svc_x402_facilitator_seconds'
  const known = registry.getSingleMetric(name) as Histogram<'operation' | 'outcome'> | undefined
  return (
    known ??
    new Histogram({
      name,
      help: 'How long the facilitator took.',
      labelNames: ['operation', 'outcome'],
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
      registers: [registry],
    })
  )
}

export type ReconciliationMetrics = {
  readonly reconciled: Counter<'outcome'>
  readonly unknown: Gauge
  readonly oldest: Gauge
}

export function reconciliationMetrics(registry: Registry): ReconciliationMetrics {
  const registers = [registry]
  return {
    reconciled: new Counter({
      name: 'svc_x402_reconciliations_total',
      help: 'Looks at payments of unknown outcome, by what was found.',
      labelNames: ['outcome'],
      registers,
    }),
    unknown: new Gauge({
      name: 'svc_x402_unknown_payments',
      help: 'Payments whose outcome is not known.',
      registers,
    }),
    oldest: new Gauge({
      name: 'svc_x402_unknown_oldest_seconds',
      help: 'Age of the oldest payment whose outcome is not known.',
      registers,
    }),
  }
}
