/** Metrics of commerce. */
import { Counter, type Registry } from 'prom-client'

const NAME = 'svc_commerce_payments_total'
const CALLS = 'svc_commerce_card_calls_total'
const EVENTS = 'svc_commerce_card_events_total'

/** Registers the counter at the first call. */
export function paymentOutcomes(
  registry: Registry,
): (rail: string, outcome: 'succeeded' | 'failed') => void {
  const known = registry.getSingleMetric(NAME) as Counter<'rail' | 'outcome'> | undefined
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Payments by payment provider (rail) and outcome.',
      labelNames: ['rail', 'outcome'],
      registers: [registry],
    })
  return (rail, outcome) => counter.inc({ rail, outcome })
}

/** Counts calls to the card provider by outcome. */
export function providerCalls(
  registry: Registry,
): (outcome: 'ok' | 'refused' | 'unavailable') => void {
  const counter =
    (registry.getSingleMetric(CALLS) as Counter<'outcome'> | undefined) ??
    new Counter({
      name: CALLS,
      help: 'Calls to the card provider by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    })
  return (outcome) => counter.inc({ outcome })
}

/** Counts webhooks of the card provider by outcome. */
export function providerEvents(
  registry: Registry,
): (outcome: 'received' | 'repeated' | 'ignored' | 'refused') => void {
  const counter =
    (registry.getSingleMetric(EVENTS) as Counter<'outcome'> | undefined) ??
    new Counter({
      name: EVENTS,
      help: 'Webhooks of the card provider by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    })
  return (outcome) => counter.inc({ outcome })
}
