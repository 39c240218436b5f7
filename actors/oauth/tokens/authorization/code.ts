/** Issues an authorization code for the granted request (RFC 6749 section 4.1.2). */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { type RequestedClaims, insertCode } from '../../../../storage/oauth/authorization-codes.js'
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { consumeAuthorizationRequests } from '../../../../storage/oauth/authorization-requests.js'
import { rememberConsent, rememberResourceConsent } from '../../../../storage/oauth/consents.js'
import { redeemIssuerState } from '../../../../storage/oauth/credential-offers.js'
import { joinSession } from '../../../../storage/oauth/logouts.js'
import { openPersonSession } from '../../../../storage/oauth/token-sessions.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { BrowserSession } from '../../../identity/sign-in/sessions/protocol.js'
import { storeAnswer } from '../../../platform/sealed-answer.js'
import { answeringOf, sealDecision } from './answered.js'
import { grantedDetails } from './credential-requests.js'
import type { InteractionNeeds, PendingRequest } from './pending-request.js'
import { scopesAt } from './resource-consent.js'
import { codeAnswer } from './locations.js'
import type { Answered, Refused } from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

const CODE_BYTES = 32

/** What the user grants with their consent. */
export type Granting = {
  readonly session: BrowserSession
  readonly scopes: readonly string[]
  /** The scopes that need consent: the requested ones, and scopes of individually requested claims. */
  readonly consented: readonly string[]
  readonly audience: readonly string[]
  /** The API resources among the audience. Empty for other audiences. */
  readonly resources: readonly ApiResource[]
  readonly claims: RequestedClaims | null
  /** The credential offer that the code redeems. Null without one. */
  readonly offerId: string | null
}

/** Rolls the transaction back: a concurrent request consumed the request, or the session ended. */
class RequestConsumed extends Error {}

/** Consumes the request, stores the consent and inserts the code in one transaction. */
export async function issueCode(
  needs: InteractionNeeds,
  pending: PendingRequest,
  granting: Granting,
  context: MessageContext,
): Promise<Answered | Refused> {
  const { client } = pending
  const code = needs.random.token(CODE_BYTES)
  try {
    await inTenant(needs.database, client.tenantId, context, (tx) =>
      write(tx, needs, pending, granting, code),
    )
  } catch (error) {
    if (!(error instanceof RequestConsumed)) throw error
    return { tag: 'refused', error: 'invalid_request_uri', description: error.message }
  }
  return codeAnswer(needs, pending, code)
}

async function write(
  tx: Transaction,
  { clock, random, oidc, sessionSecsMax }: InteractionNeeds,
  { client, request, pushedId, stored, browserId, allowed }: PendingRequest,
  { session, scopes, consented, audience, resources, claims, offerId }: Granting,
  code: string,
): Promise<void> {
  const now = clock.now()
  const expiry = (secs: number) => new Date(now.getTime() + secs * 1000)
  const { tenantId, id: clientId } = client
  const { id: sessionId, sub: subject, organizationId, level, amr, authTime } = session
  const used = [stored?.id ?? null, pushedId].filter((id) => id !== null)
  const codeSha256 = sha256(code)
  let answer: Uint8Array | null = null
  if (stored !== null) {
    const by = { handle: stored.handle, browserId }
    const hex = Buffer.from(codeSha256).toString('hex')
    answer = sealDecision(random, by, { codeSha256: hex, subject })
  }
  if (used.length > 0 && !(await consumeAuthorizationRequests(tx, tenantId, used, now, answer)))
    throw new RequestConsumed('the request was already used')
  if (stored !== null) {
    const { handle } = stored
    const by = answeringOf({ handle, browserId })
    await storeAnswer(tx, { clock, random }, { tenantId, secret: handle }, by, code)
  }
  const isOpen = await openPersonSession(tx, {
    tenantId,
    sessionId,
    subject,
    clientId,
    organizationId,
    expiresAt: expiry(sessionSecsMax),
  })
  if (!isOpen) throw new RequestConsumed('the session has ended')
  if (client.backchannelLogoutUri !== null || client.frontchannelLogoutUri !== null)
    await joinSession(tx, { tenantId, sessionId, applicationId: clientId, subject })
  const grantId = random.uuid()
  if (
    offerId !== null &&
    !(await redeemIssuerState(tx, tenantId, { id: offerId, subject, grantId, now }))
  )
    throw new RequestConsumed('the credential offer was used or has expired')
  if (allowed !== null) {
    const key = { tenantId, subject, clientId }
    if (resources.length === 0) await rememberConsent(tx, key, consented, now)
    for (const resource of resources)
      await rememberResourceConsent(
        tx,
        key,
        resource.id,
        scopesAt(resource, resources, consented),
        now,
      )
  }
  await insertCode(tx, {
    tenantId,
    id: grantId,
    codeSha256,
    clientId,
    sessionId,
    subject,
    organizationId,
    redirectUri: request.redirectUri,
    codeChallenge: request.codeChallenge,
    jkt: request.jkt,
    scopes,
    audience,
    resourceIds: resources.length === 0 ? null : resources.map(({ id }) => id),
    nonce: request.nonce,
    level,
    amr,
    authTime,
    authorizationDetails: grantedDetails(random, request.details),
    claims,
    documentSha256: request.documentSha256 ?? null,
    createdAt: now,
    expiresAt: expiry(oidc.code_ttl_secs),
  })
}
