/** Metrics of the tokens actor. */
import { Counter, type Registry } from 'prom-client'
import type { SubjectType } from '../../domain/principal.js'
import type { GrantType } from './protocol.js'

/** Why a token was issued: a grant of the token endpoint, agent login, delegation or organization token. */
export type IssuedFor = GrantType | 'agent_login' | 'delegation' | 'organization'

export interface TokenMetrics {
  issued(grant: IssuedFor, subjectType: SubjectType): void
}

const NAME = 'svc_tokens_issued_total'

export function tokenMetrics(registry: Registry): TokenMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'grant' | 'subject_type'> | undefined
  // A restarted actor instance continues with the counter of its predecessor.
  const counter =
    known ??
    new Counter({
      name: NAME,
      help: 'Access tokens issued.',
      labelNames: ['grant', 'subject_type'],
      registers: [registry],
    })
  return { issued: (grant, subject_type) => counter.inc({ grant, subject_type }) }
}
