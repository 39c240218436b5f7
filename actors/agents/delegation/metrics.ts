/** Metrics of delegation. */
import { Counter, type Registry } from 'prom-client'
import type { PollOutcome } from './protocol.js'

export type DelegationStep = 'requested' | 'approved' | 'denied' | 'revoked'

export interface DelegationMetrics {
  countStep(step: DelegationStep): void
  countPoll(outcome: PollOutcome['tag']): void
}

export function delegationMetrics(registry: Registry): DelegationMetrics {
  const steps = counter(registry, 'svc_delegations_total', 'Delegations by step.', 'step')
  const polls = counter(registry, 'svc_delegation_polls_total', 'Polls by outcome.', 'outcome')
  return {
    countStep: (step) => steps.inc({ step }),
    countPoll: (outcome) => polls.inc({ outcome }),
  }
}

/** Reuses a registered counter: a restarted actor continues its count. */
function counter<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  label: Label,
): Counter<Label> {
  const known = registry.getSingleMetric(name) as Counter<Label> | undefined
  return known ?? new Counter({ name, help, labelNames: [label], registers: [registry] })
}
