/** A new session takes the place of whatever the browser had (session fixation: ASVS 7.2.4). */
import {
  insertBrowserSession,
  replaceBrowserSession,
} from '../../../storage/identity/browser-sessions.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { sha256 } from '../sessions/flows.js'
import { lifetimesOf } from '../../domain/tenants/branding.js'
import type { LoginTools } from './flow.js'
import type { Visitor } from './protocol.js'

export const SESSION_TOKEN_BYTES = 32

export type OpenSession = {
  readonly tenantId: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
  readonly accountId: string
  /** A second factor is owed. */
  readonly pending: boolean
  /** Default: 1. */
  readonly level?: 1 | 2 | 3 | undefined
  /** RFC 8176. */
  readonly amr: readonly string[]
  /** What another provider showed. Default: one factor, now. */
  readonly elsewhere?: Elsewhere | undefined
  /** A session of another tenant that the browser has stays open: the person was not asked. Default: it ends. */
  readonly leavesOtherTenants?: boolean | undefined
}

export type Elsewhere = {
  readonly provider: string
  readonly level: 1 | 2
  readonly authTime: Date
  /** Of a tenant's own provider, for an account with other keys: good for that tenant alone. */
  readonly confined: boolean
}

/** Opens a session right after a sign-in. The transaction crosses tenants: the old session may lie elsewhere. */
export async function openSession(
  tx: Transaction,
  { random, cookies }: Pick<LoginTools, 'random' | 'cookies'>,
  opened: OpenSession,
  visitor: Visitor,
  now: Date,
): Promise<{ readonly id: string; readonly token: string }> {
  const { tenantId, tenantSettings, accountId, pending, level = 1, amr, elsewhere } = opened
  const { leavesOtherTenants = false } = opened
  const { idleSecs, absoluteSecs } = lifetimesOf(tenantSettings, cookies)
  const token = random.token(SESSION_TOKEN_BYTES)
  const id = random.uuid()
  if (visitor.token !== null) {
    const by = { tenantId, id, accountId, leavesOtherTenants }
    await replaceBrowserSession(tx, sha256(visitor.token), by, now)
  }
  await insertBrowserSession(tx, {
    tenantId,
    id,
    accountId,
    tokenSha256: sha256(token),
    pending,
    amr,
    ...(elsewhere ?? { level, authTime: now, confined: false, provider: null }),
    createdAt: now,
    idleSecs,
    userAgent: visitor.userAgent,
    address: visitor.address,
    expiresAt: new Date(now.getTime() + absoluteSecs * 1000),
  })
  return { id, token }
}
