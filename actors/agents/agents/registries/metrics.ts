/** Metrics of the chain monitor of agents. */
import type { Counter, Gauge, Registry } from 'prom-client'
import { counter, gauge } from '../../../platform/metrics.js'

export type RegistryMetrics = {
  readonly events: Counter<'type'>
  readonly faults: Counter<'network'>
  readonly unread: Gauge<'network'>
}

export function registryMetrics(registry: Registry): RegistryMetrics {
  return {
    events: counter(registry, 'svc_chain_events_total', 'Events about agents on chains, by type.', [
      'type',
    ]),
    faults: counter(
      registry,
      'svc_chain_faults_total',
      'Readings of registries that failed because of the node of the chain.',
      ['network'],
    ),
    unread: gauge(
      registry,
      'svc_chain_unread_blocks',
      'Blocks with enough confirmations whose registries are not read yet.',
      ['network'],
    ),
  }
}
