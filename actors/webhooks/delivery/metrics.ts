/** Metrics of deliveries. */
import { Counter, type Registry } from 'prom-client'

/** Outcome of an attempt. `cancelled` deliveries ended without one. */
export type DeliveryOutcome = 'succeeded' | 'retrying' | 'failed' | 'cancelled'

export interface DeliveryOutcomes {
  count(outcome: DeliveryOutcome, by?: number): void
}

const NAME = 'svc_webhook_deliveries_total'

/** Registers the counter at the first call. */
export function deliveryOutcomes(registry: Registry): DeliveryOutcomes {
  const known = registry.getSingleMetric(NAME) as Counter<'outcome'> | undefined
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Attempts of webhook deliveries by outcome, without test deliveries.',
      labelNames: ['outcome'],
      registers: [registry],
    })
  return { count: (outcome, by = 1) => counter.inc({ outcome }, by) }
}
