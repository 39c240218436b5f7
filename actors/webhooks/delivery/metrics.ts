/** Figures of deliveries (decisions.md section 14, metrics). */
import { Counter, type Registry } from 'prom-client'

/** What became of an attempt; `cancelled` are deliveries that ended without one. */
export type DeliveryOutcome = 'succeeded' | 'retrying' | 'failed' | 'cancelled'

export interface DeliveryOutcomes {
  count(outcome: DeliveryOutcome, by?: number): void
}

const NAME = 'svc_webhook_deliveries_total'

/** The counter of a registry, registered when it is asked for the first time. */
export function deliveryOutcomes(registry: Registry): DeliveryOutcomes {
  const known = registry.getSingleMetric(NAME) as Counter<'outcome'> | undefined
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Attempts at webhook deliveries of events by what became of them; test deliveries are not counted.',
      labelNames: ['outcome'],
      registers: [registry],
    })
  return { count: (outcome, by = 1) => counter.inc({ outcome }, by) }
}
