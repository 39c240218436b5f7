/** Metrics of x402 payments and of the facilitator. */
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
      help: 'Payment challenges returned.',
      registers,
    }),
    payments: new Counter({
      name: 'svc_x402_payments_total',
      help: 'Payment proofs by outcome.',
      labelNames: ['outcome'],
      registers,
    }),
    facilitator: facilitatorSeconds(registry),
    resolved: new Counter({
      name: 'svc_x402_resolutions_total',
      help: 'Payments of unknown outcome that an operator resolved, by outcome.',
      labelNames: ['outcome'],
      registers,
    }),
  }
}

/** Returns the same histogram to every caller in the process. */
export function facilitatorSeconds(registry: Registry): Histogram<'operation' | 'outcome'> {
  const name = 'svc_x402_facilitator_seconds'
  const known = registry.getSingleMetric(name) as Histogram<'operation' | 'outcome'> | undefined
  return (
    known ??
    new Histogram({
      name,
      help: 'Duration of calls to the facilitator.',
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
      help: 'Checks of payments of unknown outcome, by result.',
      labelNames: ['outcome'],
      registers,
    }),
    unknown: new Gauge({
      name: 'svc_x402_unknown_payments',
      help: 'Payments of unknown outcome.',
      registers,
    }),
    oldest: new Gauge({
      name: 'svc_x402_unknown_oldest_seconds',
      help: 'Age of the oldest payment of unknown outcome.',
      registers,
    }),
  }
}
