/** Metrics of webhook deliveries. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

/** The outcome of an attempt. A `cancelled` delivery ended without an attempt. */
export type DeliveryOutcome = 'succeeded' | 'retrying' | 'failed' | 'cancelled'

export interface DeliveryOutcomes {
  count(outcome: DeliveryOutcome, by?: number): void
}

export function deliveryOutcomes(registry: Registry): DeliveryOutcomes {
  const deliveries = counter(
    registry,
    'svc_webhook_deliveries_total',
    'Attempts at webhook deliveries of events by what became of them; test deliveries are not counted.',
    ['outcome'],
  )
  return { count: (outcome, by = 1) => deliveries.inc({ outcome }, by) }
}
