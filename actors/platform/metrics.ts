/**
 * Metrics of actors. Each function returns the metric that the registry has under `name`, or registers a
 * new one: an instance that replaces a failed one goes on counting where that one stopped.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { MessageContext } from '../../runtime/kernel/actor.js'

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

/** What a handler needs whose outcomes are counted. */
export type CountsOutcomes = { readonly outcomes: Counter<'step' | 'outcome'> }

/** The handler, with its outcomes (the tags of its replies) counted under the name of a step. */
export function counted<Tools extends CountsOutcomes, Message, Reply extends { tag: string }>(
  step: string,
  handle: (tools: Tools, message: Message, context: MessageContext) => Promise<Reply>,
): typeof handle {
  return async (tools, message, context) => {
    const reply = await handle(tools, message, context)
    tools.outcomes.inc({ step, outcome: reply.tag })
    return reply
  }
}
