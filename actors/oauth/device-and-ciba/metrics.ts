/** Figures of requests that are decided elsewhere. decisions.md 14, metrics. */
import { Counter, type Registry } from 'prom-client'
import type { BackchannelKind } from '../../../storage/oauth/backchannel-requests.js'

export type BackchannelOutcome =
  | 'started'
  | 'approved'
  | 'denied'
  /** A code that nobody waits for was typed, or one too many. */
  | 'code_unknown'
  | 'guesses_spent'

export interface BackchannelMetrics {
  count(kind: BackchannelKind, outcome: BackchannelOutcome): void
}

const NAME = 'svc_backchannel_requests_total'

export function backchannelMetrics(registry: Registry): BackchannelMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'kind' | 'outcome'> | undefined
  // An instance that replaces a failed one goes on counting where that one stopped.
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Requests that people decide elsewhere, by what became of them.',
      labelNames: ['kind', 'outcome'],
      registers: [registry],
    })
  return { count: (kind, outcome) => counter.inc({ kind, outcome }) }
}
