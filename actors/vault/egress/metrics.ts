/** Metrics of the egress proxy. */
import type { Registry } from 'prom-client'
import { counter, gauge } from '../../platform/metrics.js'
import { RELAY_ENDS, type RelayReport } from './protocol.js'

export interface EgressMetrics {
  /** A call was admitted in memory or by the database. */
  admitted(by: 'memory' | 'database'): void
  began(): void
  ended(report: RelayReport): void
}

export function egressMetrics(registry: Registry): EgressMetrics {
  const bytes = counter(
    registry,
    'svc_egress_bytes_total',
    'Body bytes relayed: request is what upstreams were sent, response what they sent.',
    ['direction'],
  )
  const closed = counter(
    registry,
    'svc_egress_streams_closed_total',
    'Relayed requests that have ended, by how.',
    ['outcome'],
  )
  const redacted = counter(
    registry,
    'svc_egress_redactions_total',
    'Occurrences of a secret that were taken out of answers.',
  )
  const admissions = counter(
    registry,
    'svc_egress_admissions_total',
    'Calls that asked for admission, by what decided: memory (a block of the process) or database.',
    ['by'],
  )
  const inMemory = admissions.labels({ by: 'memory' })
  const inDatabase = admissions.labels({ by: 'database' })
  inMemory.inc(0)
  inDatabase.inc(0)
  const running = gauge(registry, 'svc_egress_running', 'Relayed requests that have not ended.')
  // Series exist from the start: a rate over a series that appears later misses its first step.
  for (const outcome of RELAY_ENDS) closed.inc({ outcome }, 0)
  // Labels are looked up once: a look-up costs more than a count.
  const by = Object.fromEntries(RELAY_ENDS.map((outcome) => [outcome, closed.labels({ outcome })]))
  const sent = bytes.labels({ direction: 'request' })
  const received = bytes.labels({ direction: 'response' })
  return {
    admitted: (by) => (by === 'memory' ? inMemory : inDatabase).inc(),
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
