/** Sign-in flows: what they hold, and which page comes next. Pure but for the two statements. */
import { createHash } from 'node:crypto'
import { invariant } from '../../../runtime/kernel/assert.js'
import type { Random } from '../../../runtime/kernel/random.js'
import type { BrowserSessionRow } from '../../../storage/identity/browser-sessions.js'
import { insertSignInFlow } from '../../../storage/identity/sign-in-flows.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { type AssuranceLevel, type SessionDemand, unmetDemand } from '../../domain/assurance.js'
import type { NewFlow } from './protocol.js'

/** Long enough to fetch a telephone and set it up. */
const FLOW_LIFETIME_MS = 60 * 60_000
const FLOW_TOKEN_BYTES = 32
/** A second factor is set up right after a password, not hours later (decisions.md 20). */
export const PASSWORD_FRESH_MS = 5 * 60_000

const OWN_PATH_LENGTH_MAX = 2_048
/** A sign-in at a provider. */
const BEGINS_ELSEWHERE = /^\/auth\/sso(?:\/|$)/i
/** One slash, then no second one and no backslash: browsers read both as another host. */
const OWN_PATH = /^\/(?:[!-.0-[\]-~][!-[\]-~]*)?$/

/**
 * True if the path is same-origin and ends a sign-in. A path that begins one at a provider would be reached from a
 * page of ours, and so without the question whether the person wants that.
 */
export function isOwnPath(path: string): boolean {
  if (path.length > OWN_PATH_LENGTH_MAX || !OWN_PATH.test(path)) return false
  // As a browser reads it: without dot segments, and with its letters unescaped.
  const { pathname } = new URL(path, 'http://localhost')
  const plain = pathname.replaceAll(/%[0-7][0-9a-f]/gi, (hex) => decodeURIComponent(hex))
  return !BEGINS_ELSEWHERE.test(plain)
}

/** What is kept of the secrets in cookies and addresses. */
export function sha256(token: string): Uint8Array {
  return createHash('sha256').update(token, 'utf8').digest()
}

export type FlowOrder = {
  readonly tenantId: string
  readonly demand: SessionDemand
  readonly flow: NewFlow
  readonly sub?: string | undefined
}

/** Writes a flow down. @returns its secret, for the address. */
export async function beginFlow(
  tx: Transaction,
  order: FlowOrder,
  random: Random,
  now: Date,
): Promise<string> {
  const { returnTo, reason, loginHint, uiLocales, formTargets = [] } = order.flow
  invariant(isOwnPath(returnTo), 'a flow returns to an own path')
  const token = random.token(FLOW_TOKEN_BYTES)
  await insertSignInFlow(tx, sha256(token), {
    ...storedDemand(order),
    returnTo,
    reason,
    loginHint: loginHint?.slice(0, 320) ?? null,
    uiLocales: uiLocales?.slice(0, 256) ?? null,
    formTargets,
    createdAt: now,
    expiresAt: new Date(now.getTime() + FLOW_LIFETIME_MS),
  })
  return token
}

/** What a flow demands, as it was stored. */
export type StoredDemand = {
  readonly tenantId: string
  readonly level: 1 | 2 | 3
  readonly maxAgeSecs: number | null
  readonly since: Date | null
  readonly sub: string | null
}

/** An age that is measured at a fixed moment is a moment itself. */
export function storedDemand(order: Omit<FlowOrder, 'flow'>): StoredDemand {
  const { level, maxAgeSecs, asOf, since = null } = order.demand
  const stored = { tenantId: order.tenantId, level, sub: order.sub ?? null }
  if (maxAgeSecs === undefined) return { ...stored, maxAgeSecs: null, since }
  if (asOf === undefined) return { ...stored, maxAgeSecs, since }
  const oldest = new Date(asOf.getTime() - maxAgeSecs * 1000)
  return { ...stored, maxAgeSecs: null, since: since === null || since < oldest ? oldest : since }
}

export type Step = 'login' | 'mfa' | 'enroll' | 'done'

/** Which page a browser needs next, given its session, pending ones included. */
export function nextStep(
  demand: StoredDemand & { readonly reason: unknown },
  session: BrowserSessionRow | undefined,
  reach: AssuranceLevel,
  now: Date,
): Step {
  if (session === undefined || session.tenantId !== demand.tenantId) return 'login'
  if (demand.sub !== null && demand.sub !== session.sub) return 'login'
  // What protects the account counts in every tenant.
  if (session.confined && isSensitive(demand.reason)) return 'login'
  const missing = unmetDemand(
    session,
    {
      level: demand.level,
      maxAgeSecs: demand.maxAgeSecs ?? undefined,
      since: demand.since ?? undefined,
    },
    now,
  )
  if (missing === 'stale') return 'login'
  if (session.pending) return 'mfa'
  if (missing === null) return 'done'
  // What a stronger factor is set up with is the strongest there is.
  if (reach >= demand.level || session.level < reach) return 'mfa'
  // A factor counts in every tenant: one tenant's provider does not suffice to set one up.
  if (session.confined) return 'login'
  const isFresh = now.getTime() - session.passwordAt.getTime() <= PASSWORD_FRESH_MS
  return isFresh ? 'enroll' : 'login'
}

const isSensitive = (reason: unknown) =>
  (reason as { readonly tag?: unknown } | null)?.tag === 'sensitive'

const PAGES = { login: '/auth/login', mfa: '/auth/mfa', enroll: '/auth/mfa/enroll' } as const

/** Where a step is taken. */
export function pathOf(step: Step, flow: string, returnTo: string): string {
  return step === 'done' ? returnTo : `${PAGES[step]}?flow=${flow}`
}
