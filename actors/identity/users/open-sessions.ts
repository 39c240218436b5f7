/** The browser sessions of a tenant user, as administrators see and end them. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  endBrowserSession,
  listBrowserSessions,
} from '../../../storage/identity/browser-sessions.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { acrOf } from '../../domain/assurance.js'
import { audited } from '../../domain/audit.js'
import { isUuid } from '../../domain/ids.js'
import { personEvent } from '../sessions/events.js'
import { forgetTokensOf } from './ending.js'
import { findUser, isAbove } from './finding.js'
import type { UsersNeeds } from './needs.js'
import type { EndUserSession, OneUser, UsersProtocol } from './protocol.js'

const UNKNOWN_USER = { tag: 'unknown_user' } as const
const UNKNOWN_SESSION = { tag: 'unknown_session' } as const

export function openSessions(needs: UsersNeeds) {
  const { database, clock, random } = needs

  return {
    // The list reads accounts, so both transactions cross tenants. The user is of the tenant of the caller.
    listTenantUserSessions: (
      message: OneUser,
      { signal }: MessageContext,
    ): Promise<UsersProtocol['listTenantUserSessions']['reply']> =>
      database.system(
        async (tx) => {
          const user = await findUser(tx, message)
          if (user === undefined) return UNKNOWN_USER
          const rows = await listBrowserSessions(tx, user.tenantId, user.accountId, clock.now())
          return {
            tag: 'sessions',
            sessions: rows.map(({ level, ...seen }) => ({ ...seen, acr: acrOf(level) })),
          }
        },
        { signal },
      ),

    revokeTenantUserSession: (
      message: EndUserSession,
      { signal, requestId }: MessageContext,
    ): Promise<UsersProtocol['revokeTenantUserSession']['reply']> =>
      database.system(
        async (tx) => {
          const { caller, sessionId } = message
          const user = await findUser(tx, message)
          if (user === undefined) return UNKNOWN_USER
          if (isAbove(user, caller)) return { tag: 'owner_above_caller' }
          if (!isUuid(sessionId)) return UNKNOWN_SESSION
          const { tenantId, sub } = user
          const now = clock.now()
          const open = await listBrowserSessions(tx, tenantId, user.accountId, now)
          if (!open.some(({ id }) => id === sessionId)) return UNKNOWN_SESSION
          const ended = await endBrowserSession(tx, tenantId, sessionId, 'revoked', now)
          if (ended === undefined) return UNKNOWN_SESSION
          forgetTokensOf(tx, needs, sub)
          const fields = { reason: 'revoked' }
          appendEvents(tx, [
            personEvent(
              random,
              { tenantId, type: 'auth.logout', sub, sessionId, requestId, fields },
              now,
            ),
          ])
          appendAudit(tx, [
            audited(caller, {
              id: random.uuid(),
              tenantId,
              type: 'admin.user.session_revoked',
              occurredAt: now,
              resource: { type: 'tenant_user', id: user.id },
              requestId,
              data: { session_id: sessionId },
            }),
          ])
          return { tag: 'session_ended' }
        },
        { signal },
      ),
  }
}
