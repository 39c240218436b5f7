/** One attempt at a second factor: counted, and the session raised on success. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  type BrowserSessionRow,
  raiseBrowserSession,
} from '../../../../storage/identity/browser-sessions.js'
import { CoordinationUnavailable } from '../../../../storage/platform/coordination/port.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { type PersonEvent, personEvent } from '../../../platform/people/person-events.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { arrivalOf, PASSWORD_FRESH_MS } from '../flow/flows.js'
import type { EventFields } from '../../../domain/events.js'
import { acrOf } from '../../../domain/assurance.js'
import type { SessionProgress, SignInTools } from '../flow/progress.js'
import type { FlowStep, SignedIn } from '../protocol.js'
import { SESSION_TOKEN_BYTES } from '../sessions/open-session.js'
import { inTenant } from '../../../platform/in-tenant.js'

const BUSY = { tag: 'busy' } as const

/** What a factor proves. */
type Proof = {
  readonly level: 1 | 2 | 3
  /** RFC 8176. */
  readonly amr: readonly string[]
  readonly authTime: Date
}

/** The session ended or was raised by another request. The transaction is rolled back. */
class SessionGone extends Error {
  override readonly name = 'SessionGone'
}

/**
 * One counted attempt. On success the proof is used up and the session raised under a new cookie, in one transaction. A
 * proof that was used before or concurrently counts as wrong.
 */
export async function attempted<Shown extends object, Success extends object>(
  {
    database,
    clock,
    random,
    lockout,
    adaptive,
  }: Pick<SignInTools, 'database' | 'clock' | 'random' | 'lockout' | 'adaptive'>,
  { flow, token, session }: SessionProgress,
  visitor: FlowStep['visitor'],
  work: {
    readonly shown: Shown
    readonly proof: Proof
    readonly succeed: (
      tx: Transaction,
      raised: SignedIn,
      now: Date,
    ) => Promise<{ readonly newEvents: readonly PersonEvent[]; readonly outcome: Success } | null>
  },
  context: MessageContext,
): Promise<
  | Success
  | (Shown & { tag: 'wrong' })
  | (Shown & { tag: 'locked'; retryAfterSecs: number })
  | typeof BUSY
> {
  const { shown } = work
  const now = clock.now()
  try {
    const name = `mfa:${session.accountId}`
    const attempted = { name, address: visitor.address, signal: context.signal }
    const judged = await lockout.attempt(attempted, async (attempt) => {
      const newToken = random.token(SESSION_TOKEN_BYTES)
      const location = arrivalOf(token, flow.returnTo, visitor)
      const raised: SignedIn = { tag: 'signed_in', token: newToken, location }
      // Factors belong to the global account.
      const done = await database.system(async (tx) => {
        const success = await work.succeed(tx, raised, now)
        if (success === null) return null
        const isRaised = await raiseBrowserSession(tx, {
          tenantId: session.tenantId,
          id: session.id,
          tokenSha256: sha256(visitor.token!),
          newTokenSha256: sha256(newToken),
          ...work.proof,
        })
        if (!isRaised) throw new SessionGone()
        await adaptive.remember(tx, session.accountId, visitor, now)
        const events = success.newEvents.map((event) => personEvent(random, event, now))
        appendEvents(tx, events)
        return success.outcome
      }, context)
      if (done !== null) {
        await attempt.succeeded()
        return done
      }
      const locked = await attempt.failed()
      const newEvents = [verified(session, { outcome: 'failure' }, context)]
      if (locked) {
        const fields = { subject: 'second_factor', ip: visitor.address }
        newEvents.push({
          ...eventBase(session, context),
          type: 'security.brute_force.detected',
          fields,
        })
      }
      const events = newEvents.map((event) => personEvent(random, event, now))
      await inTenant(database, session.tenantId, context, (tx) => appendEvents(tx, events))
      return null
    })
    if (judged.tag === 'locked') return { ...shown, ...judged }
    return judged.outcome ?? { ...shown, tag: 'wrong' }
  } catch (error) {
    if (error instanceof SessionGone) return { ...shown, tag: 'wrong' }
    if (error instanceof CoordinationUnavailable) return BUSY
    throw error
  }
}

/**
 * A second factor soon after the password completes one authentication, so its time is now. Later it raises the level
 * but keeps `auth_time`, because the password is older.
 */
export function authTimeOf({ authTime, passwordAt }: BrowserSessionRow, now: Date): Date {
  return now.getTime() - passwordAt.getTime() <= PASSWORD_FRESH_MS * 2 ? now : authTime
}

export function eventBase({ tenantId, sub, id }: BrowserSessionRow, { requestId }: MessageContext) {
  return { tenantId, sub, sessionId: id, requestId }
}

export function verified(
  session: BrowserSessionRow,
  fields: EventFields<'auth.mfa.verify'>,
  context: MessageContext,
): PersonEvent {
  return { ...eventBase(session, context), type: 'auth.mfa.verify', fields }
}

export function signedIn(
  session: BrowserSessionRow,
  amr: readonly string[],
  level: 1 | 2 | 3,
  context: MessageContext,
): PersonEvent {
  return {
    ...eventBase(session, context),
    type: 'auth.login.success',
    fields: { amr, acr: acrOf(level) },
  }
}

/** Adds the methods of another factor to a session's methods, with `mfa`. */
export function amrWith({ amr }: Pick<BrowserSessionRow, 'amr'>, methods: readonly string[]) {
  return [...new Set([...amr.filter((method) => method !== 'mfa'), ...methods, 'mfa'])]
}
