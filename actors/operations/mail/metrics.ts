/** Metrics of mail. */
import { Counter, type Registry } from 'prom-client'

/** Outcome of an attempt. `expired` messages were not attempted any more. */
export type MailOutcome = 'sent' | 'postponed' | 'failed' | 'expired'

export interface MailOutcomes {
  count(kind: string, outcome: MailOutcome): void
}

const NAME = 'svc_mail_attempts_total'

export function mailOutcomes(registry: Registry): MailOutcomes {
  const known = registry.getSingleMetric(NAME) as Counter<'kind' | 'outcome'> | undefined
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Attempts to send mail by kind of message and outcome.',
      labelNames: ['kind', 'outcome'],
      registers: [registry],
    })
  return { count: (kind, outcome) => counter.inc({ kind, outcome }) }
}
