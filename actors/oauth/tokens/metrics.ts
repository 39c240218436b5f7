/** Figures of the tokens actor. decisions.md 14, metrics. */
import { Counter, type Registry } from 'prom-client'
import type { SubjectType } from '../../domain/principal.js'
import type { GrantType } from './protocol.js'

/** What a token was issued for: a grant of the token endpoint, a login, an approved delegation, an organization. */
export type IssuedFor = GrantType | 'agent_login' | 'delegation' | 'organization'

export interface TokenMetrics {
  issued(grant: IssuedFor, subjectType: SubjectType): void
}

const NAME = 'svc_tokens_issued_total'

export function tokenMetrics(registry: Registry): TokenMetrics {
  const known = registry.getSingleMetric(NAME) as Counter<'grant' | 'subject_type'> | undefined
  // An instance that replaces a failed one goes on counting where that one stopped.
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
