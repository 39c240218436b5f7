/** Opens a new session in place of the browser's old one (prevents session fixation, ASVS 7.2.4). */
import {
  insertBrowserSession,
  replaceBrowserSession,
} from '../../../../storage/identity/browser-sessions.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { rememberVisit } from '../second-factors/risk.js'
import { personEvent } from '../../../platform/people/person-events.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { lifetimesOf } from '../../../domain/tenants/branding.js'
import type { SignInNeeds } from '../flow/progress.js'
import type { Visitor } from '../protocol.js'

export const SESSION_TOKEN_BYTES = 32

type OpenSession = {
  readonly tenantId: string
  readonly tenantSettings: Readonly<Record<string, unknown>>
  readonly accountId: string
  /** A second factor is pending. */
  readonly pending: boolean
  /** Default: 1. */
  readonly level?: 1 | 2 | 3 | undefined
  /** RFC 8176. */
  readonly amr: readonly string[]
  /** The evidence of a federated sign-in. Default: one factor, now. */
  readonly elsewhere?: Elsewhere | undefined
  /** Keeps the browser's session of another tenant, because the user was not asked. Default: it ends. */
  readonly leavesOtherTenants?: boolean | undefined
}

type Elsewhere = {
  readonly provider: string
  readonly upstreamSubject: string
  readonly upstreamSid: string | null
  readonly level: 1 | 2
  readonly authTime: Date
  /** Opened by a tenant's own provider: valid for that tenant only. */
  readonly confined: boolean
}

const HERE = { confined: false, provider: null, upstreamSubject: null, upstreamSid: null }

/**
 * Opens a session after a sign-in, and remembers its browser unless a second factor is pending or the session is
 * confined. The transaction crosses tenants, because the old session may belong to another.
 */
export async function openSession(
  tx: Transaction,
  { random, cookies }: Pick<SignInNeeds, 'random' | 'cookies'>,
  newSession: OpenSession,
  visitor: Visitor,
  now: Date,
): Promise<{ readonly id: string; readonly token: string }> {
  const { tenantId, tenantSettings, accountId, pending, level = 1, amr, elsewhere } = newSession
  const { leavesOtherTenants = false } = newSession
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
    ...(elsewhere ?? { ...HERE, level, authTime: now }),
    createdAt: now,
    idleSecs,
    userAgent: visitor.userAgent,
    address: visitor.address,
    expiresAt: new Date(now.getTime() + absoluteSecs * 1000),
  })
  // A confined session may be open in a browser that the person has never used.
  const isOwn = elsewhere?.confined !== true
  if (!pending && isOwn) await rememberVisit(tx, accountId, visitor, now)
  return { id, token }
}

/** Opens the session of a person who has just chosen a password, and appends its event. @returns the new token. */
export async function openFirstSession(
  tx: Transaction,
  tools: Pick<SignInNeeds, 'random' | 'cookies'>,
  person: Pick<OpenSession, 'tenantId' | 'tenantSettings' | 'accountId'> & {
    readonly sub: string
    readonly visitor: Visitor
  },
  now: Date,
  { requestId }: MessageContext,
): Promise<string> {
  const { sub, visitor, ...account } = person
  const amr = ['pwd']
  const session = await openSession(tx, tools, { ...account, pending: false, amr }, visitor, now)
  const { tenantId } = account
  const base = { tenantId, sub, sessionId: session.id, requestId }
  const event = { ...base, type: 'auth.login.success', fields: { amr, acr: 'aal1' } } as const
  appendEvents(tx, [personEvent(tools.random, event, now)])
  return session.token
}
