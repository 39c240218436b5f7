/** Figures of mail. decisions.md section 14, metrics. */
import { Counter, type Registry } from 'prom-client'

/** What became of an attempt; `expired` letters were not tried any more. */
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
      help: 'Attempts at sending mail by kind of letter and what became of them.',
      labelNames: ['kind', 'outcome'],
      registers: [registry],
    })
  return { count: (kind, outcome) => counter.inc({ kind, outcome }) }
}
