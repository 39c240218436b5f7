/**
 * The browser sessions of a tenant user, as administrators see and end them. The list reads accounts, so both
 * transactions cross tenants. The user is of the tenant of the caller.
 */
import {
  endBrowserSession,
  listBrowserSessions,
} from '../../../storage/identity/browser-sessions.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { acrOf } from '../../domain/assurance.js'
import { isUuid } from '../../domain/ids.js'
import { recordAudit } from '../../platform/record-audit.js'
import { personEvent } from '../../platform/people/person-events.js'
import { findUser, isAbove } from './finding.js'
import type { Handling } from './needs.js'

const UNKNOWN_USER = { tag: 'unknown_user' } as const
const UNKNOWN_SESSION = { tag: 'unknown_session' } as const

export const listTenantUserSessions: Handling<'listTenantUserSessions'> = (
  { database, clock },
  message,
  context,
) =>
  database.system(async (tx) => {
    const user = await findUser(tx, message)
    if (user === undefined) return UNKNOWN_USER
    const rows = await listBrowserSessions(tx, user.tenantId, user.accountId, clock.now())
    const sessions = rows.map(({ level, ...seen }) => ({ ...seen, acr: acrOf(level) }))
    return { tag: 'sessions', sessions }
  }, context)

export const revokeTenantUserSession: Handling<'revokeTenantUserSession'> = (
  needs,
  message,
  context,
) =>
  needs.database.system(async (tx) => {
    const { caller, sessionId } = message
    const user = await findUser(tx, message)
    if (user === undefined) return UNKNOWN_USER
    if (isAbove(user, caller)) return { tag: 'owner_above_caller' }
    if (!isUuid(sessionId)) return UNKNOWN_SESSION
    const { tenantId, sub } = user
    const now = needs.clock.now()
    const open = await listBrowserSessions(tx, tenantId, user.accountId, now)
    if (!open.some(({ id }) => id === sessionId)) return UNKNOWN_SESSION
    const ended = await endBrowserSession(tx, tenantId, sessionId, 'revoked', now)
    if (ended === undefined) return UNKNOWN_SESSION
    tx.forget([sub])
    const { requestId } = context
    const fields = { reason: 'revoked' }
    const logout = { tenantId, type: 'auth.logout', sub, sessionId, requestId, fields } as const
    appendEvents(tx, [personEvent(needs.random, logout, now)])
    recordAudit(tx, needs, caller, context, {
      type: 'admin.user.session_revoked',
      resource: { type: 'tenant_user', id: user.id },
      data: { session_id: sessionId },
    })
    return { tag: 'session_ended' }
  }, context)
