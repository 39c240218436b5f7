/**
 * Metrics that are counted in plain numbers and read at each scrape. prom-client hashes the labels
 * at every count, which costs more than a light request or an ask.
 */
import type { Metric, Registry } from 'prom-client'

/** A family of samples, as prom-client returns them and as they cross threads. */
export type MetricFamily = {
  name: string
  help: string
  type: string
  aggregator?: string
  values: MetricSample[]
}
export type MetricSample = {
  metricName?: string
  labels: Record<string, string | number>
  value: number
}

/** How samples with the same labels from several threads become one. */
export type Aggregator = 'sum' | 'min' | 'max'

export type PlainFamily = Pick<MetricFamily, 'name' | 'help'> & {
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** Default: sum. */
  readonly aggregator?: Aggregator | undefined
  read(): MetricSample[]
}

/** Registers a family that is read at each scrape. */
export function registerPlain(
  registry: Registry,
  { name, help, type, read, aggregator = 'sum' }: PlainFamily,
): void {
  const metric = {
    name,
    help,
    type,
    aggregator,
    // Plain data: it crosses threads.
    get: async () => ({ name, help, type, aggregator, values: read() }),
  }
  // prom-client types its metrics as its own classes, but accepts any object with a name and a
  // `get`.
  registry.registerMetric(metric as unknown as Metric)
}

/** Counts durations in buckets. There are few bounds: a linear scan is cheaper than a search. */
export class Durations {
  readonly #boundsSecs: readonly number[]
  readonly #counts: number[]
  #sumMs = 0
  total = 0

  constructor(boundsSecs: readonly number[]) {
    this.#boundsSecs = boundsSecs
    this.#counts = [...boundsSecs, Number.POSITIVE_INFINITY].map(() => 0)
  }

  add(ms: number): void {
    this.#sumMs += ms
    this.total += 1
    const secs = ms / 1000
    const bounds = this.#boundsSecs
    let index = 0
    while (index < bounds.length && secs > bounds[index]!) index += 1
    this.#counts[index]! += 1
  }

  samples(name: string, labels: MetricSample['labels']): MetricSample[] {
    const samples: MetricSample[] = []
    let below = 0
    for (const [index, count] of this.#counts.entries()) {
      below += count
      const le = this.#boundsSecs[index] ?? '+Inf'
      samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: below })
    }
    samples.push({ metricName: `${name}_sum`, labels, value: this.#sumMs / 1000 })
    samples.push({ metricName: `${name}_count`, labels, value: this.total })
    return samples
  }
}
