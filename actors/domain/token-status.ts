/** Whose standing decides whether a token still counts. */
import type { Principal } from './principal.js'

/** The members that `readStandings` of the storage asks for. */
export function standingOf(principal: Principal) {
  const { tenantId, sessionId, clientId, subjectType, subject, tokenId, delegationId } = principal
  const { organizationId } = principal
  const agentIds = [{ sub: subject, subjectType }, ...principal.actors]
    .filter((party) => party.subjectType === 'agent')
    .map(({ sub }) => sub)
  return {
    tenantId,
    sessionId,
    /** Every agent of the chain. */
    agentIds,
    applicationId: agentIds.includes(clientId) ? null : clientId,
    tokenId,
    grantId: principal.grantId ?? null,
    personSub: subjectType === 'human' ? subject : null,
    delegationId,
    organizationId,
  }
}
