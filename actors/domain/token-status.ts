/** The query for the status of a token: every party and object that can revoke it. */
import { isUuid } from './ids.js'
import type { Principal } from './principal.js'

/** The query of `readTokenStatus` for a principal. */
export function tokenStatusQuery(principal: Principal) {
  const { tenantId, sessionId, clientId, subjectType, subject, tokenId, delegationId } = principal
  const { organizationId } = principal
  const agentIds = [{ sub: subject, subjectType }, ...principal.actors]
    .filter((party) => party.subjectType === 'agent')
    .map(({ sub }) => sub)
  return {
    tenantId,
    sessionId,
    /** Every agent of the actor chain, including the subject. */
    agentIds,
    // A client_id that is a URL names no row: deleting such a client revokes its grants.
    applicationId: agentIds.includes(clientId) || !isUuid(clientId) ? null : clientId,
    tokenId,
    grantId: principal.grantId ?? null,
    personSub: subjectType === 'human' ? subject : null,
    delegationId,
    organizationId,
    resourceIds: principal.resourceIds ?? null,
    clientId,
  }
}
