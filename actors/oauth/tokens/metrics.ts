/** Metrics of the tokens actor. */
import type { Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'
import type { SubjectType } from '../../domain/principal.js'
import type { GrantType } from '../../domain/oauth/grant-types.js'

/** Why a token was issued: a grant of the token endpoint, agent login, delegation or organization token. */
export type IssuedFor = GrantType | 'agent_login' | 'delegation' | 'organization'

export interface TokenMetrics {
  issued(grant: IssuedFor, subjectType: SubjectType): void
  /** `repeated`: the same client sent an accepted assertion again. `issued`: this service is the issuer. */
  identityAssertion(outcome: 'accepted' | 'repeated' | 'refused' | 'issued'): void
  /** A refresh token of a dead family was refused from memory. */
  deadFamilyRemembered(): void
}

export function tokenMetrics(registry: Registry): TokenMetrics {
  const issued = counter(registry, 'svc_tokens_issued_total', 'Access tokens issued.', [
    'grant',
    'subject_type',
  ])
  const remembered = counter(
    registry,
    'svc_refresh_family_cache_hits_total',
    'Refresh tokens of dead families that were refused from memory.',
    [],
  )
  const assertions = counter(
    registry,
    'svc_identity_assertions_total',
    'Identity assertions (ID-JAG), of trusted issuers and issued.',
    ['outcome'],
  )
  return {
    identityAssertion: (outcome) => assertions.inc({ outcome }),
    issued: (grant, subject_type) => issued.inc({ grant, subject_type }),
    deadFamilyRemembered: () => remembered.inc(),
  }
}
