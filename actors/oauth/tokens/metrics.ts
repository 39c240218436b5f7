/** Metrics of the tokens actor. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'
import type { SubjectType } from '../../domain/principal.js'
import type { GrantType } from './protocol.js'

/** What a token was issued for: a grant of the token endpoint, a login, an approved delegation, an organization. */
export type IssuedFor = GrantType | 'agent_login' | 'delegation' | 'organization'

export interface TokenMetrics {
  issued(grant: IssuedFor, subjectType: SubjectType): void
}

export function tokenMetrics(registry: Registry): TokenMetrics {
  const issued = counter(registry, 'svc_tokens_issued_total', 'Access tokens issued.', [
    'grant',
    'subject_type',
  ])
  return { issued: (grant, subject_type) => issued.inc({ grant, subject_type }) }
}
