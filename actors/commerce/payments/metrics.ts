/** Metrics of payments and of the card provider. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

/** Counts payments by payment provider and outcome. */
export function paymentOutcomes(
  registry: Registry,
): (rail: string, outcome: 'succeeded' | 'failed') => void {
  const payments = counter(
    registry,
    'svc_commerce_payments_total',
    'Payments by rail and by what became of them.',
    ['rail', 'outcome'],
  )
  return (rail, outcome) => payments.inc({ rail, outcome })
}

/** Counts calls to the card provider by outcome. */
export function providerCalls(
  registry: Registry,
): (outcome: 'ok' | 'refused' | 'unavailable') => void {
  const calls = counter(
    registry,
    'svc_commerce_card_calls_total',
    'Calls to the card provider by what became of them.',
    ['outcome'],
  )
  return (outcome) => calls.inc({ outcome })
}

/** Counts webhooks of the card provider by outcome. */
export function providerEvents(
  registry: Registry,
): (outcome: 'received' | 'repeated' | 'ignored' | 'refused') => void {
  const events = counter(
    registry,
    'svc_commerce_card_events_total',
    'Webhooks of the card provider by what became of them.',
    ['outcome'],
  )
  return (outcome) => events.inc({ outcome })
}
