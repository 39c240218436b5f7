/** What a user ends on the account page: sessions and consents. */
import type { AccountHandler } from './needs.js'

export const revokeOtherOwnSessions: AccountHandler<'revokeOtherOwnSessions'> = (
  { browserSessions },
  { session: { tenantId, accountId, id: exceptId } },
  context,
) => browserSessions.revokeOthers({ tenantId, accountId, exceptId }, context)

export const revokeOwnSession: AccountHandler<'revokeOwnSession'> = async (
  { browserSessions },
  { session, sessionId },
  context,
) => {
  const { tenantId, accountId } = session
  const ended = await browserSessions.revokeOne({ tenantId, accountId, sessionId }, context)
  return ended.tag === 'revoked' ? { ...ended, own: sessionId === session.id } : ended
}

export const withdrawConsent: AccountHandler<'withdrawConsent'> = (
  { authorization },
  { session: { tenantId, sub: subject }, clientId },
  context,
) => authorization.withdrawConsent({ tenantId, subject, clientId }, context)
