/**
 * svc_http_requests_total and svc_http_request_duration_seconds. Counted in plain arrays per route
 * and status, read when somebody scrapes: hashing labels for every request would cost more than a
 * light answer does.
 */
import type { Metric, Registry } from 'prom-client'

const BUCKETS_SECS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

type Labels = { readonly method: string; readonly route: string }

/** The figures of one route; `observe` is all the hot path calls. */
export class RouteMeter {
  readonly labels: Labels
  readonly counts = new Map<number, number>()
  readonly buckets = BUCKETS_SECS.map(() => 0)
  total = 0
  sumSecs = 0

  constructor(labels: Labels) {
    this.labels = labels
  }

  observe(status: number, secs: number): void {
    this.counts.set(status, (this.counts.get(status) ?? 0) + 1)
    this.total += 1
    this.sumSecs += secs
    for (let at = 0; at < BUCKETS_SECS.length; at += 1) {
      if (secs > BUCKETS_SECS[at]!) continue
      this.buckets[at]! += 1
      return
    }
  }
}

export interface HttpMetrics {
  meter(labels: Labels): RouteMeter
}

export function httpMetrics(registry: Registry): HttpMetrics {
  const meters: RouteMeter[] = []
  const requests = {
    name: 'svc_http_requests_total',
    help: 'Requests answered, by method, declared route and status.',
    type: 'counter',
    aggregator: 'sum',
  }
  const duration = {
    name: 'svc_http_request_duration_seconds',
    help: 'From the request head to the answer.',
    type: 'histogram',
    aggregator: 'sum',
  }
  const register = (facts: { name: string }, values: () => unknown[]) => {
    // prom-client types its metrics as its own classes, but takes whatever has a name and a `get`.
    const metric = { ...facts, get: async () => ({ ...facts, values: values() }) }
    registry.registerMetric(metric as unknown as Metric)
  }
  register(requests, () =>
    meters.flatMap(({ labels, counts }) =>
      [...counts].map(([status, value]) => ({ labels: { ...labels, status }, value })),
    ),
  )
  register(duration, () => meters.filter(({ total }) => total > 0).flatMap(samplesOf))
  return {
    meter(labels) {
      const meter = new RouteMeter(labels)
      meters.push(meter)
      return meter
    },
  }
}

function samplesOf({ labels, buckets, total, sumSecs }: RouteMeter) {
  const name = 'svc_http_request_duration_seconds'
  let below = 0
  const cumulative = BUCKETS_SECS.map((le, at) => {
    below += buckets[at]!
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below }
  })
  return [
    ...cumulative,
    { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: total },
    { metricName: `${name}_sum`, labels, value: sumSecs },
    { metricName: `${name}_count`, labels, value: total },
  ]
}
