/** Metrics of the device flow and CIBA. */
import type { Registry } from 'prom-client'
import { counter } from '../../../platform/metrics.js'
import type { BackchannelKind } from '../../../../storage/oauth/backchannel-requests.js'

type BackchannelOutcome =
  | 'started'
  | 'approved'
  | 'denied'
  /** The user typed a user code that no request has, or used up the attempts. */
  | 'code_unknown'
  | 'guesses_spent'

export interface BackchannelMetrics {
  count(kind: BackchannelKind, outcome: BackchannelOutcome): void
}

export function backchannelMetrics(registry: Registry): BackchannelMetrics {
  const requests = counter(
    registry,
    'svc_backchannel_requests_total',
    'Requests that people decide elsewhere, by what became of them.',
    ['kind', 'outcome'],
  )
  return { count: (kind, outcome) => requests.inc({ kind, outcome }) }
}
