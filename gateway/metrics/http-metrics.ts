/** HTTP metrics by route: svc_http_requests_total and svc_http_request_duration_seconds. */
import type { Registry } from 'prom-client'
import { Durations, registerPlain } from '../../runtime/kernel/metrics/plain-metrics.js'

const BOUNDS_SECS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const DURATION = 'svc_http_request_duration_seconds'

type Labels = { readonly method: string; readonly route: string }

/** The metrics of one route. The request path calls only `observe`. */
export class RouteMeter {
  readonly labels: Labels
  readonly counts = new Map<number, number>()
  readonly durations = new Durations(BOUNDS_SECS)

  constructor(labels: Labels) {
    this.labels = labels
  }

  observe(status: number, ms: number): void {
    this.counts.set(status, (this.counts.get(status) ?? 0) + 1)
    this.durations.add(ms)
  }
}

export interface HttpMetrics {
  meter(labels: Labels): RouteMeter
}

export function httpMetrics(registry: Registry): HttpMetrics {
  const meters: RouteMeter[] = []
  registerPlain(registry, {
    name: 'svc_http_requests_total',
    help: 'Requests answered, by method, declared route and status.',
    type: 'counter',
    read: () =>
      meters.flatMap(({ labels, counts }) =>
        [...counts].map(([status, value]) => ({ labels: { ...labels, status }, value })),
      ),
  })
  registerPlain(registry, {
    name: DURATION,
    help: 'From the request head to the answer.',
    type: 'histogram',
    read: () =>
      meters
        .filter(({ durations }) => durations.total > 0)
        .flatMap(({ labels, durations }) => durations.samples(DURATION, labels)),
  })
  return {
    meter(labels) {
      const meter = new RouteMeter(labels)
      meters.push(meter)
      return meter
    },
  }
}
