/**
 * Metrics of actors. Each function returns the metric that the registry has under `name`, or registers a
 * new one: an instance that replaces a failed one goes on counting where that one stopped.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

export function counter<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly Label[] = [],
): Counter<Label> {
  const known = registry.getSingleMetric(name) as Counter<Label> | undefined
  return known ?? new Counter({ name, help, labelNames, registers: [registry] })
}

export function gauge<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  labelNames: readonly Label[] = [],
): Gauge<Label> {
  const known = registry.getSingleMetric(name) as Gauge<Label> | undefined
  return known ?? new Gauge({ name, help, labelNames, registers: [registry] })
}

/** @param buckets Upper bounds in the unit of `name`, ascending. */
export function histogram<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  buckets: readonly number[],
  labelNames: readonly Label[] = [],
): Histogram<Label> {
  const known = registry.getSingleMetric(name) as Histogram<Label> | undefined
  return (
    known ?? new Histogram({ name, help, labelNames, buckets: [...buckets], registers: [registry] })
  )
}
