/** Sign-in flows: their state, and which page comes next. Pure except for two SQL statements. */
import { invariant } from '../../../../runtime/kernel/assert.js'
import type { Random } from '../../../../runtime/kernel/random.js'
import type { BrowserSessionRow } from '../../../../storage/identity/browser-sessions.js'
import { insertSignInFlow } from '../../../../storage/identity/sign-in-flows.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { type AssuranceLevel, type SessionDemand, unmetDemand } from '../../../domain/assurance.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import type { Visitor } from '../protocol.js'
import type { NewFlow } from '../sessions/protocol.js'

/** Long enough to fetch a phone and set it up. */
const FLOW_LIFETIME_MS = 60 * 60_000
const FLOW_TOKEN_BYTES = 32
/** A second factor may be enrolled only within this time after the password. */
export const PASSWORD_FRESH_MS = 5 * 60_000

const OWN_PATH_LENGTH_MAX = 2_048
/** Paths that start a federated sign-in. */
const BEGINS_ELSEWHERE = /^\/auth\/sso(?:\/|$)/i
/** One slash, then neither a slash nor a backslash: browsers read both as another host. */
const OWN_PATH = /^\/(?:[!-.0-[\]-~][!-[\]-~]*)?$/

/**
 * True if the path is same-origin and does not start another sign-in. A path that starts a federated sign-in would be
 * reached from one of our pages, and so skip its confirmation page (login CSRF).
 */
export function isOwnPath(path: string): boolean {
  if (path.length > OWN_PATH_LENGTH_MAX || !OWN_PATH.test(path)) return false
  // Normalized as browsers do: dot segments removed, percent-encoded letters decoded.
  const { pathname } = new URL(path, 'http://localhost')
  const plain = pathname.replaceAll(/%[0-7][0-9a-f]/gi, (hex) => decodeURIComponent(hex))
  return !BEGINS_ELSEWHERE.test(plain)
}

type FlowOrder = {
  readonly tenantId: string
  readonly demand: SessionDemand
  readonly flow: NewFlow
  readonly sub?: string | undefined
}

/** Stores a flow. @returns its token, for the URL. */
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

/** The demand of a flow, as stored. */
export type StoredDemand = {
  readonly tenantId: string
  readonly level: 1 | 2 | 3
  readonly maxAgeSecs: number | null
  readonly since: Date | null
  readonly sub: string | null
}

/** A maximum age, taken at a fixed moment, becomes an absolute time. */
export function storedDemand(order: Omit<FlowOrder, 'flow'>): StoredDemand {
  const { level, maxAgeSecs, asOf, since = null } = order.demand
  const stored = { tenantId: order.tenantId, level, sub: order.sub ?? null }
  if (maxAgeSecs === undefined) return { ...stored, maxAgeSecs: null, since }
  if (asOf === undefined) return { ...stored, maxAgeSecs, since }
  const oldest = new Date(asOf.getTime() - maxAgeSecs * 1000)
  return { ...stored, maxAgeSecs: null, since: since === null || since < oldest ? oldest : since }
}

export type Step = 'login' | 'mfa' | 'enroll' | 'done'

/** The next page for a browser with this session, which may still be pending a second factor. */
export function nextStep(
  demand: StoredDemand & { readonly reason: unknown },
  session: BrowserSessionRow | undefined,
  reach: AssuranceLevel,
  now: Date,
): Step {
  if (session === undefined || session.tenantId !== demand.tenantId) return 'login'
  if (demand.sub !== null && demand.sub !== session.sub) return 'login'
  // Sign-in methods of the account affect every tenant.
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
  // A stronger factor is set up with the strongest factor the account has.
  if (reach >= demand.level || session.level < reach) return 'mfa'
  // Factors affect every tenant, so a sign-in by one tenant's provider is not enough to enrol one.
  if (session.confined) return 'login'
  const isFresh = now.getTime() - session.passwordAt.getTime() <= PASSWORD_FRESH_MS
  return isFresh ? 'enroll' : 'login'
}

const isSensitive = (reason: unknown) =>
  (reason as { readonly tag?: unknown } | null)?.tag === 'sensitive'

const PAGES = { login: '/auth/login', mfa: '/auth/mfa', enroll: '/auth/mfa/enroll' } as const

/** The page between a sign-in and its destination, on which the browser syncs its passkeys. */
export const PASSKEY_SYNC_PAGE = '/auth/passkeys/sync'

/** Where a complete sign-in leads. */
export const arrivalOf = (flow: string, returnTo: string, { syncsPasskeys = false }: Visitor) =>
  syncsPasskeys ? `${PASSKEY_SYNC_PAGE}?flow=${flow}` : returnTo

/** The path of a step. */
export function pathOf(step: Step, flow: string, returnTo: string): string {
  return step === 'done' ? returnTo : `${PAGES[step]}?flow=${flow}`
}
