/** svc_egress_bytes_total, svc_egress_streams_closed_total, svc_egress_running, decisions.md 14. */
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
    help: 'Body bytes relayed: request is what upstreams were sent, response what they sent.',
    labelNames: ['direction'],
    registers,
  })
  const closed = new Counter({
    name: 'svc_egress_streams_closed_total',
    help: 'Relayed requests that have ended, by how.',
    labelNames: ['outcome'],
    registers,
  })
  const redacted = new Counter({
    name: 'svc_egress_redactions_total',
    help: 'Occurrences of a secret that were taken out of answers.',
    registers,
  })
  const running = new Gauge({
    name: 'svc_egress_running',
    help: 'Relayed requests that have not ended.',
    registers,
  })
  // Known from the start: a rate over a series that appears later misses its first step.
  for (const outcome of RELAY_ENDS) closed.inc({ outcome }, 0)
  // Looked up once: a label costs more than a count does.
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
