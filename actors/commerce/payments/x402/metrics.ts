/** Metrics of x402 payments and of the facilitator. */
import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { counter, gauge, histogram } from '../../../platform/metrics.js'

export type X402Metrics = {
  readonly challenges: Counter
  readonly payments: Counter<'outcome'>
  readonly facilitator: Histogram<'operation' | 'outcome'>
  readonly resolved: Counter<'outcome'>
}

export function x402Metrics(registry: Registry): X402Metrics {
  return {
    challenges: counter(registry, 'svc_x402_challenges_total', 'Payment challenges returned.'),
    payments: counter(registry, 'svc_x402_payments_total', 'Payment proofs by outcome.', [
      'outcome',
    ]),
    facilitator: facilitatorSeconds(registry),
    resolved: counter(
      registry,
      'svc_x402_resolutions_total',
      'Payments of unknown outcome that an operator resolved, by outcome.',
      ['outcome'],
    ),
  }
}

/** Duration of facilitator calls. All callers of the facilitator in a process share the histogram. */
function facilitatorSeconds(registry: Registry): Histogram<'operation' | 'outcome'> {
  return histogram(
    registry,
    'svc_x402_facilitator_seconds',
    'Duration of calls to the facilitator.',
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
    ['operation', 'outcome'],
  )
}

export type ReconciliationMetrics = {
  readonly reconciled: Counter<'outcome'>
  readonly unknown: Gauge
  readonly oldest: Gauge
}

export function reconciliationMetrics(registry: Registry): ReconciliationMetrics {
  return {
    reconciled: counter(
      registry,
      'svc_x402_reconciliations_total',
      'Checks of payments of unknown outcome, by result.',
      ['outcome'],
    ),
    unknown: gauge(registry, 'svc_x402_unknown_payments', 'Payments of unknown outcome.'),
    oldest: gauge(
      registry,
      'svc_x402_unknown_oldest_seconds',
      'Age of the oldest payment of unknown outcome.',
    ),
  }
}
