/** Metrics of delegation. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'
import type { PollOutcome } from './protocol.js'

type DelegationStep = 'requested' | 'approved' | 'denied' | 'revoked'

export interface DelegationMetrics {
  countStep(step: DelegationStep): void
  countPoll(outcome: PollOutcome['tag']): void
}

export function delegationMetrics(registry: Registry): DelegationMetrics {
  const steps = counter(registry, 'svc_delegations_total', 'Delegations by what happened.', [
    'step',
  ])
  const polls = counter(registry, 'svc_delegation_polls_total', 'Polls by outcome.', ['outcome'])
  return {
    countStep: (step) => steps.inc({ step }),
    countPoll: (outcome) => polls.inc({ outcome }),
  }
}
