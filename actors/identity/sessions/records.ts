/** A session as other actors see it. */
import { highestRole } from '../../domain/scopes.js'
import type {
  BrowserSessionRow,
  BrowserSessionSeen,
} from '../../../storage/identity/browser-sessions.js'
import { acrOf } from '../../domain/assurance.js'
import type { BrowserSession, SessionSeen } from './protocol.js'

export function sessionRecord(row: BrowserSessionRow): BrowserSession {
  return {
    id: row.id,
    tenantId: row.tenantId,
    organizationId: row.organizationId,
    accountId: row.accountId,
    tenantUserId: row.tenantUserId,
    sub: row.sub,
    email: row.email,
    emailVerified: row.emailVerified,
    displayName: row.displayName,
    roles: row.roles,
    role: highestRole(row.roles),
    confined: row.confined,
    level: row.level,
    acr: acrOf(row.level),
    amr: row.amr,
    authTime: row.authTime,
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
  }
}

export function seenRecord(row: BrowserSessionSeen): SessionSeen {
  const { level, ...seen } = row
  return { ...seen, acr: acrOf(level) }
}
