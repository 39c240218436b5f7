/** The query for the status of a token: every party and object that can revoke it. */
import { isUuid } from './ids.js'
import type { Principal } from './principal.js'

/** The query of `readTokenStatus` for a principal. */
export function tokenStatusQuery(
  principal: Pick<
    Principal,
    | 'tenantId'
    | 'sessionId'
    | 'clientId'
    | 'subjectType'
    | 'subject'
    | 'tokenId'
    | 'delegationId'
    | 'organizationId'
    | 'acr'
    | 'actors'
    | 'grantId'
    | 'resourceIds'
  >,
) {
  const { tenantId, sessionId, clientId, subjectType, subject, tokenId, delegationId } = principal
  const { organizationId } = principal
  // The credential endpoint, for which such a token is, checks the person itself: a tenant may offer a credential to a
  // user before the first sign-in.
  const isPreAuthorized = subjectType === 'human' && sessionId === null && principal.acr === null
  const agentIds = [{ sub: subject, subjectType, issuer: undefined }, ...principal.actors]
    // Agents of other issuers have no row.
    .filter((party) => party.subjectType === 'agent' && party.issuer === undefined)
    .map(({ sub }) => sub)
  return {
    tenantId,
    sessionId,
    /** Every agent of the actor chain, including the subject. */
    agentIds,
    // A client_id that is a URL or `anonymous` names no row.
    applicationId: agentIds.includes(clientId) || !isUuid(clientId) ? null : clientId,
    tokenId,
    grantId: principal.grantId ?? null,
    personSub: subjectType === 'human' && !isPreAuthorized ? subject : null,
    delegationId,
    organizationId,
    resourceIds: principal.resourceIds ?? null,
    clientId,
  }
}
