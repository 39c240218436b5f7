/** The receiver of security events (RFC 8935): ends what a provider says must end. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { endDelegations } from '../../../../../storage/agents/delegations.js'
import { endHumanSessions } from '../../../../../storage/identity/tenant-users.js'
import {
  endUpstreamSessions,
  linkedUsers,
  purgeIdentity,
} from '../../../../../storage/identity/upstream-identities.js'
import { appendAudit } from '../../../../../storage/operations/audit.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../../storage/platform/sql.js'
import { withoutCaller } from '../../../../domain/audit.js'
import { delegationsRevoked } from '../../../../domain/revocation.js'
import {
  EVENT_MEMORY_SECS,
  EVENT_SKEW_SECS,
  type SecurityEvent,
} from '../../../../platform/jose/security-event-claims.js'
import { receivedOnce } from '../../../../platform/received-once.js'
import type { FederatedLoginHandler, FederatedLoginTools } from './needs.js'
import type { Provider } from './providers.js'
import { loggedOut } from './upstream-logout.js'

const REASON = 'provider_event'

export const receiveSecurityEvent: FederatedLoginHandler<'receiveSecurityEvent'> = async (
  needs,
  { provider: id, token },
  context,
) => {
  const provider = await needs.providers.named(id, context)
  if (provider === undefined)
    return needs.trustedIssuers.receiveIssuerEvent({ issuerId: id, token }, context)
  const read = await needs.client.securityEvent(provider, token)
  if (read.tag === 'fault') return { tag: 'unavailable' }
  if (read.tag === 'refused') return read
  const { event } = read
  if (event.effect === null) return { tag: 'received' }
  const key = `upstream-event:${id} ${provider.issuer} ${event.tokenId}`
  return receivedOnce(needs.coordination, key, EVENT_MEMORY_SECS, () =>
    needs.database.system((tx) => end(tx, needs, provider, event, context), context),
  )
}

async function end(
  tx: Transaction,
  { random, clock }: FederatedLoginTools,
  { id, tenantId, issuer }: Provider,
  { tokenId, type, effect, subject, sid, untilSecs }: SecurityEvent,
  { requestId }: MessageContext,
): Promise<void> {
  const now = clock.now()
  const until = new Date((untilSecs + 1 + EVENT_SKEW_SECS) * 1000)
  const which = { provider: id, tenantId, issuer, subject, sid }
  const ended = await endUpstreamSessions(tx, which, { reason: REASON, until }, now)
  appendEvents(tx, loggedOut(random, ended, REASON, requestId, now))
  const identity =
    subject === null || effect === 'sessions' ? undefined : { provider: id, issuer, subject }
  const people = identity === undefined ? [] : await linkedUsers(tx, identity, tenantId)
  // A provider of the deployment decides about what it opened, and not about the rest.
  for (const person of tenantId === null ? [] : people) {
    await endHumanSessions(tx, person, REASON, now)
    const whose = { tenantId: person.tenantId, subject: person.sub }
    const revoked = await endDelegations(tx, whose, REASON, now)
    const by = { actor: { type: 'sso_provider', id }, requestId }
    appendEvents(tx, delegationsRevoked(random, revoked, by))
  }
  const unlinked =
    identity !== undefined && effect === 'purge' && (await purgeIdentity(tx, identity))
  const affected = new Map([...ended, ...people].map((one) => [`${one.tenantId} ${one.sub}`, one]))
  const data = { event: type, issuer, jti: tokenId, provider: id, unlinked }
  appendAudit(
    tx,
    [...affected.values()].map((one) => ({
      ...withoutCaller({
        id: random.uuid(),
        tenantId: one.tenantId,
        type: 'security_event.received',
        occurredAt: now,
        resource: { type: 'human', id: one.sub },
        data,
      }),
      requestId: requestId ?? null,
    })),
  )
}
