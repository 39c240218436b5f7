/**
 * Sign-outs at a trusted issuer (OpenID Connect Back-Channel Logout 1.0): they end the tokens that its identity assertions
 * gave, and the assertions that it made before (docs/guides/oauth/identity-assertions.md).
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { numberEvents } from '../../../storage/platform/event-numbers.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { removeLink, revokeAssertedTokens } from '../../../storage/oauth/identity-assertions.js'
import { findIssuerOfPeople } from '../../../storage/oauth/trusted-issuers.js'
import { withoutCaller } from '../../domain/audit.js'
import type { TrustedIssuer } from '../../domain/entities/trusted-issuer.js'
import { isUuid } from '../../domain/ids.js'
import { inTenant } from '../../platform/in-tenant.js'
import { isTime } from '../../platform/jose/external-jws.js'
import { type IssuerJws, readIssuerJws } from '../../platform/jose/issuer-jws.js'
import { isStored, LOGOUT_AGE_SECS_MAX, readLogout } from '../../platform/jose/logout-claims.js'
import { type AdmissionNeeds, signatureFault } from './admission.js'
import type { TrustedIssuerHandler, TrustedIssuerTools } from './needs.js'
import type { AssertedSubject, LogoutRefused } from './protocol.js'

/** Longer than an assertion is accepted. */
const KEPT_SECS = 2 * 86_400
const SKEW_SECS = 30

const refused = (detail: string): LogoutRefused => ({ tag: 'refused', detail })

type Who = Pick<AssertedSubject, 'issuerId' | 'sub' | 'tenant'>

/** The keys of the last sign-out of a subject: in its tenant of the issuer, and in any. */
const keysOf = ({ issuerId, sub, tenant }: Who) => [
  `issuer-sign-out:${issuerId} ${JSON.stringify([sub])}`,
  ...(tenant === null ? [] : [`issuer-sign-out:${issuerId} ${JSON.stringify([sub, tenant])}`]),
]

/** True if the subject signed out when the assertion was made, or later. Times are of the clock of the issuer. */
export async function isSignedOut(
  { coordination }: Pick<AdmissionNeeds, 'coordination'>,
  { issuedAtSecs, ...who }: AssertedSubject,
): Promise<boolean> {
  const times = await Promise.all(keysOf(who).map((key) => coordination.get(key)))
  return times.some((at) => at !== undefined && issuedAtSecs <= Number(Buffer.from(at).toString()))
}

/**
 * The record is written before the look: a sign-out is noted before it looks for records, so one of the two sees the other.
 */
export const recordAssertedToken: TrustedIssuerHandler<'recordAssertedToken'> = async (
  tools,
  { asserted, subject, clientId, tokenId, expiresAt },
  context,
) => {
  const { database, random, clock } = tools
  const { tenantId, issuerId, sub, tenant, issuedAtSecs } = asserted
  const record = withoutCaller({
    id: random.uuid(),
    tenantId,
    type: 'auth.identity_assertion.accepted',
    occurredAt: clock.now(),
    resource: { type: 'trusted_issuer', id: issuerId },
    data: {
      token_id: tokenId,
      expires_at: expiresAt.toISOString(),
      sub,
      ...(tenant !== null && { tenant }),
      issued_at: issuedAtSecs,
    },
  })
  const by = { subject: { sub: subject, subject_type: 'human' }, clientId }
  const done = { ...record, ...by, requestId: context.requestId ?? null }
  await inTenant(database, tenantId, context, async (tx) => appendAudit(tx, [done]))
  return { tag: (await isSignedOut(tools, asserted)) ? 'signed_out' : 'recorded' }
}

/** The tenant is unknown until the issuer is found, so the look-up crosses tenants. */
export const issuerOfPeople = async (
  { database }: Pick<TrustedIssuerTools, 'database'>,
  id: string,
  context: MessageContext,
): Promise<TrustedIssuer | undefined> =>
  isUuid(id) ? database.system((tx) => findIssuerOfPeople(tx, id), context) : undefined

export const endAssertedTokens: TrustedIssuerHandler<'endAssertedTokens'> = async (
  tools,
  { issuerId, token },
  context,
) => {
  const { coordination, clock, ownIssuer } = tools
  const issuer = await issuerOfPeople(tools, issuerId, context)
  if (issuer === undefined) return refused('the provider is unknown')
  const jws = readIssuerJws(token)
  if ('step' in jws) return refused(jws.detail)
  if (!issuer.allowedAlgs.includes(jws.alg)) return refused(`the issuer may not use ${jws.alg}`)
  const logout = readLogout(jws, { issuer: issuer.issuer, audience: ownIssuer })
  if (typeof logout === 'string') return refused(logout)
  const { subject: sub, tokenId } = logout
  // Assertions name no session.
  if (sub === null) return refused('sub is missing')
  const late = timeFault(jws, clock.nowSecs())
  if (late !== undefined) return refused(late)
  const { iat, tenant = null } = jws.claims
  if (tenant !== null && !isStored(tenant)) return refused('tenant is not a text')
  const unsigned = await signatureFault(tools, jws, issuer)
  if (unsigned !== undefined) return refused(unsigned.detail)
  const key = `issuer-logout:${issuer.id} ${tokenId}`
  const forget = await coordination.lock(key, LOGOUT_AGE_SECS_MAX + 2 * SKEW_SECS)
  if (forget === undefined) return refused('jti was used before')
  const { tenantId } = issuer
  const asserted = { tenantId, issuerId: issuer.id, sub, tenant, issuedAtSecs: Number(iat) }
  try {
    await endTokens(tools, asserted, context)
    return { tag: 'logged_out' }
  } catch (error) {
    // The issuer may send the token again.
    await forget()
    throw error
  }
}

/**
 * Ends the tokens of assertions that the issuer made until `issuedAtSecs`, and the assertions.
 * @param event the security event that says so.
 */
export async function endTokens(
  tools: TrustedIssuerTools,
  asserted: AssertedSubject,
  context: MessageContext,
  event?: { readonly type: string; readonly jti: string; readonly isPurge: boolean },
): Promise<void> {
  const { database, coordination, random, clock } = tools
  const { tenantId, issuerId, sub, tenant, issuedAtSecs } = asserted
  // Tokens can arrive in another order than they were made.
  if (!(await isSignedOut(tools, asserted))) {
    const at = Buffer.from(String(issuedAtSecs))
    await coordination.put(keysOf(asserted).at(-1)!, at, KEPT_SECS)
  }
  const now = clock.now()
  await inTenant(database, tenantId, context, async (tx) => {
    await numberEvents(tx, tenantId)
    const tokens = await revokeAssertedTokens(tx, { ...asserted, now })
    const unlinked =
      event?.isPurge === true &&
      (await removeLink(tx, tenantId, issuerId, JSON.stringify([tenant, sub])))
    const record = withoutCaller({
      id: random.uuid(),
      tenantId,
      type: 'auth.identity_assertion.ended',
      occurredAt: now,
      resource: { type: 'trusted_issuer', id: issuerId },
      data: {
        sub,
        ...(tenant !== null && { tenant }),
        tokens,
        ...(event && { event: event.type, jti: event.jti, unlinked }),
      },
    })
    appendAudit(tx, [{ ...record, requestId: context.requestId ?? null }])
  })
}

function timeFault({ claims: { iat, exp } }: IssuerJws, nowSecs: number): string | undefined {
  if (!isTime(iat) || iat > nowSecs + SKEW_SECS) return 'iat is missing, or in the future'
  if (iat < nowSecs - LOGOUT_AGE_SECS_MAX - SKEW_SECS) return 'iat is too old'
  return exp === undefined || (isTime(exp) && exp > nowSecs - SKEW_SECS)
    ? undefined
    : 'exp has passed'
}
