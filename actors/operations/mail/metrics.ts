/** Metrics of mail. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

/** The outcome of an attempt. An `expired` message was not attempted again. */
type MailOutcome = 'sent' | 'postponed' | 'failed' | 'expired'

export interface MailOutcomes {
  count(kind: string, outcome: MailOutcome): void
}

export function mailOutcomes(registry: Registry): MailOutcomes {
  const attempts = counter(
    registry,
    'svc_mail_attempts_total',
    'Attempts to send mail by kind of message and outcome.',
    ['kind', 'outcome'],
  )
  return { count: (kind, outcome) => attempts.inc({ kind, outcome }) }
}
