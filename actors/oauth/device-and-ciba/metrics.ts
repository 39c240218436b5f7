/** Metrics of device and CIBA requests. */
import { Counter, type Registry } from 'prom-client'
import type { BackchannelKind } from '../../../storage/oauth/backchannel-requests.js'

export type BackchannelOutcome =
  | 'started'
  | 'approved'
  | 'denied'
  /** The user code does not exist. */
  | 'code_unknown'
  | 'guesses_spent'

export interface BackchannelMetrics {
  count(kind: BackchannelKind, outcome: BackchannelOutcome): void
}

const NAME = 'svc_backchannel_requests_total'

export function backchannelMetrics(registry: Registry): BackchannelMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'kind' | 'outcome'> | undefined
  // A restarted actor instance continues with the counter of its predecessor.
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Device and CIBA requests, by outcome.',
      labelNames: ['kind', 'outcome'],
      registers: [registry],
    })
  return { count: (kind, outcome) => counter.inc({ kind, outcome }) }
}
