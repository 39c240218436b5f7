/** Figures of commerce: payments by rail and by what became of them. */
import { Counter, type Registry } from 'prom-client'

const NAME = 'svc_commerce_payments_total'

/** The counter of a registry, registered when it is asked for the first time. */
export function paymentOutcomes(
  registry: Registry,
): (rail: string, outcome: 'succeeded' | 'failed') => void {
  const known = registry.getSingleMetric(NAME) as Counter<'rail' | 'outcome'> | undefined
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Payments by rail and by what became of them.',
      labelNames: ['rail', 'outcome'],
      registers: [registry],
    })
  return (rail, outcome) => counter.inc({ rail, outcome })
}
