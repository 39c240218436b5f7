/** Downscopes a user's token to one organization. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { AccessGrant } from '../issue/access-token.js'
import type { GrantNeeds } from '../issue/user-tokens.js'
import { issuedEvent } from '../issue/issued-event.js'
import type { GrantOrganization, OrganizationGranted } from '../protocol.js'

/**
 * Keeps the user, session, authentication context and key of the presented token, for the issuer as
 * the only audience. The new token never outlives the presented one. It has the same session and
 * grant, so it is revoked with it.
 */
export async function grantOrganization(
  { commits, signer, metrics, clock, random, issuer, jwt }: GrantNeeds,
  { principal, organizationId, scopes }: GrantOrganization,
  context: MessageContext,
): Promise<OrganizationGranted> {
  const level = /^aal([1-3])$/.exec(principal.acr ?? '')?.[1]
  const grant: AccessGrant = {
    subject: principal.subject,
    subjectType: principal.subjectType,
    tenantId: principal.tenantId,
    organizationId,
    organizationBound: true,
    clientId: principal.clientId,
    scopes,
    audience: [issuer],
    sessionId: principal.sessionId,
    grantId: principal.grantId ?? null,
    level: level === undefined ? null : Number(level),
    amr: principal.amr ?? [],
    authTimeSecs: principal.authTimeSecs,
    jkt: principal.jkt,
    authorizationDetails: null,
  }
  const leftSecs = principal.expiresAtSecs - clock.nowSecs()
  const secs = Math.max(1, Math.min(jwt.access_token_lifetime_human_secs, leftSecs))
  const signed = await signer.sign(grant, secs, context)
  const event = issuedEvent(random, grant, signed, 'organization', context.requestId)
  await commits.write(grant.tenantId, { events: [event] })
  metrics.issued('organization', grant.subjectType)
  const { accessToken, tokenType, expiresInSecs } = signed
  return { tag: 'granted', accessToken, tokenType, expiresInSecs }
}
