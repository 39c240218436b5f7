/** Metrics of the egress proxy. */
import { Counter, Gauge, type Registry } from 'prom-client'
import { RELAY_ENDS, type RelayReport } from './protocol.js'

export interface EgressMetrics {
  began(): void
  ended(report: RelayReport): void
}

export function egressMetrics(registry: Registry): EgressMetrics {
  const registers = [registry]
  const bytes = new Counter({
    name: 'svc_egress_bytes_total',
    help: 'Relayed body bytes: request is sent to upstreams, response is received from them.',
    labelNames: ['direction'],
    registers,
  })
  const closed = new Counter({
    name: 'svc_egress_streams_closed_total',
    help: 'Ended relays by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  const redacted = new Counter({
    name: 'svc_egress_redactions_total',
    help: 'Occurrences of a secret redacted from responses.',
    registers,
  })
  const running = new Gauge({
    name: 'svc_egress_running',
    help: 'Running relays.',
    registers,
  })
  // All series exist from the start, because rate() misses the first increment of a new series.
  for (const outcome of RELAY_ENDS) closed.inc({ outcome }, 0)
  // Resolved once, because resolving a label costs more than incrementing.
  const by = Object.fromEntries(RELAY_ENDS.map((outcome) => [outcome, closed.labels({ outcome })]))
  const sent = bytes.labels({ direction: 'request' })
  const received = bytes.labels({ direction: 'response' })
  return {
    began: () => running.inc(),
    ended({ outcome, requestBytes, responseBytes, redactions }) {
      running.dec()
      sent.inc(requestBytes)
      received.inc(responseBytes)
      by[outcome]!.inc()
      if (redactions > 0) redacted.inc(redactions)
    },
  }
}
