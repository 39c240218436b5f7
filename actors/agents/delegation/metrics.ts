/** Figures of delegation (decisions.md section 14, metrics). */
import { Counter, type Registry } from 'prom-client'
import type { PollOutcome } from './protocol.js'

export type DelegationStep = 'requested' | 'approved' | 'denied' | 'revoked'

export interface DelegationMetrics {
  took(step: DelegationStep): void
  polled(outcome: PollOutcome['tag']): void
}

export function delegationMetrics(registry: Registry): DelegationMetrics {
  const steps = counter(registry, 'svc_delegations_total', 'Delegations by what happened.', 'step')
  const polls = counter(registry, 'svc_delegation_polls_total', 'Polls by outcome.', 'outcome')
  return {
    took: (step) => steps.inc({ step }),
    polled: (outcome) => polls.inc({ outcome }),
  }
}

/** An instance that replaces a failed one goes on counting where that one stopped. */
function counter<Label extends string>(
  registry: Registry,
  name: string,
  help: string,
  label: Label,
): Counter<Label> {
  const known = registry.getSingleMetric(name) as Counter<Label> | undefined
  return known ?? new Counter({ name, help, labelNames: [label], registers: [registry] })
}
