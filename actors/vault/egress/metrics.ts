/** Metrics of the egress proxy. A call counts in plain numbers, which are read at each scrape. */
import type { Registry } from 'prom-client'
import { type PlainFamily, registerPlain } from '../../../runtime/kernel/metrics/plain-metrics.js'
import { BUDGETED, type Budgeted } from '../../domain/vault/budgets.js'
import { RELAY_ENDS, type RelayEnd, type RelayReport } from './protocol.js'

export interface EgressMetrics {
  /** A call was admitted in memory or by the database. */
  admitted(by: 'memory' | 'database'): void
  /** A call was refused by a budget. */
  budgetExceeded(budget: Budgeted): void
  began(): void
  ended(report: RelayReport): void
}

export function egressMetrics(registry: Registry): EgressMetrics {
  const bytes = { request: 0, response: 0 }
  const admissions = { memory: 0, database: 0 }
  const closed = Object.fromEntries(RELAY_ENDS.map((outcome) => [outcome, 0])) as Record<
    RelayEnd,
    number
  >
  const refused = Object.fromEntries(Object.values(BUDGETED).map((name) => [name, 0])) as Record<
    Budgeted,
    number
  >
  const tokens = { input: 0, output: 0 }
  let redactions = 0
  let running = 0
  const families: readonly PlainFamily[] = [
    {
      name: 'svc_egress_bytes_total',
      help: 'Body bytes relayed: request is what upstreams were sent, response what they sent.',
      type: 'counter',
      read: () => samplesOf('direction', bytes),
    },
    {
      name: 'svc_egress_streams_closed_total',
      help: 'Relayed requests that have ended, by how.',
      type: 'counter',
      read: () => samplesOf('outcome', closed),
    },
    {
      name: 'svc_egress_redactions_total',
      help: 'Occurrences of a secret that were taken out of answers.',
      type: 'counter',
      read: () => [{ labels: {}, value: redactions }],
    },
    {
      name: 'svc_egress_admissions_total',
      help: 'Calls that asked for admission, by what decided: memory (a block of the process) or database.',
      type: 'counter',
      read: () => samplesOf('by', admissions),
    },
    {
      name: 'svc_egress_budget_refused_total',
      help: 'Calls that the budget of a grant refused, by what was used up.',
      type: 'counter',
      read: () => samplesOf('budget', refused),
    },
    {
      name: 'svc_egress_llm_tokens_total',
      help: 'Tokens of language models that answers reported.',
      type: 'counter',
      read: () => samplesOf('direction', tokens),
    },
    {
      name: 'svc_egress_running',
      help: 'Relayed requests that have not ended.',
      type: 'gauge',
      read: () => [{ labels: {}, value: running }],
    },
  ]
  for (const family of families) registerPlain(registry, family)
  return {
    admitted(by) {
      admissions[by] += 1
    },
    budgetExceeded(budget) {
      refused[budget] += 1
    },
    began() {
      running += 1
    },
    ended({ outcome, requestBytes, responseBytes, redactions: redacted, tokens: reported }) {
      running -= 1
      bytes.request += requestBytes
      bytes.response += responseBytes
      closed[outcome] += 1
      redactions += redacted
      tokens.input += reported.input ?? 0
      tokens.output += reported.output ?? 0
    },
  }
}

/** A sample for each value of the label, also for those that were never counted. */
function samplesOf(label: string, counts: Readonly<Record<string, number>>) {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }))
}
