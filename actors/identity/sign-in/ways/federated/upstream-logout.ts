/** The logout endpoint for providers: ends the sessions that they opened, with everything that ends with these. */
import type { Random } from '../../../../../runtime/kernel/random.js'
import { endUpstreamSessions } from '../../../../../storage/identity/upstream-identities.js'
import { appendEvents } from '../../../../../storage/platform/outbox.js'
import { personEvent } from '../../../../platform/people/person-events.js'
import { LOGOUT_MEMORY_SECS } from './logout-token.js'
import type { FederatedLoginHandler } from './needs.js'

const REASON = 'provider_logout'

/** The events of sessions that a provider ended. The end of one that was replaced before is no sign-out. */
export const loggedOut = (
  random: Random,
  ended: Awaited<ReturnType<typeof endUpstreamSessions>>,
  reason: string,
  requestId: string | undefined,
  now: Date,
) =>
  ended
    .filter(({ isReplaced }) => !isReplaced)
    .map(({ tenantId, id: sessionId, sub }) => {
      const type = { type: 'auth.logout', fields: { reason } } as const
      return personEvent(random, { tenantId, sub, sessionId, requestId, ...type }, now)
    })

export const receiveLogout: FederatedLoginHandler<'receiveLogout'> = async (
  { providers, trustedIssuers, client, coordination, database, random, clock },
  { provider: id, token },
  context,
) => {
  const provider = await providers.named(id, context)
  if (provider === undefined)
    return trustedIssuers.endAssertedTokens({ issuerId: id, token }, context)
  const read = await client.logout(provider, token)
  if (read.tag !== 'logout') return { tag: 'refused', detail: read.detail }
  const { tokenId, ...named } = read.logout
  const key = `upstream-logout:${id} ${named.issuer} ${tokenId}`
  const forget = await coordination.lock(key, LOGOUT_MEMORY_SECS)
  if (forget === undefined) return { tag: 'refused', detail: 'jti was used before' }
  try {
    const now = clock.now()
    const { requestId } = context
    await database.system(async (tx) => {
      const which = { ...named, provider: id, tenantId: provider.tenantId }
      const ended = await endUpstreamSessions(tx, which, { reason: REASON, until: now }, now)
      appendEvents(tx, loggedOut(random, ended, REASON, requestId, now))
    }, context)
    return { tag: 'logged_out' }
  } catch (error) {
    // The provider may send the token again.
    await forget()
    throw error
  }
}
