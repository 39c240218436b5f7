/** The second step: a TOTP code or a recovery code, and the enrolment of a TOTP secret. */
import type { Turn } from '../../runtime/kernel/actor.js'
import { type BrowserSessionRow, raiseBrowserSession } from '../../storage/browser-sessions.js'
import { CoordinationUnavailable } from '../../storage/coordination/port.js'
import { appendEvents } from '../../storage/outbox.js'
import { SYSTEM_TENANT_ID } from '../../storage/seal.js'
import {
  confirmTotp,
  findOfferedTotp,
  offerTotp,
  replaceRecoveryCodes,
  spendRecoveryCode,
  spendTotpStep,
  type TotpFactorRow,
} from '../../storage/second-factors.js'
import type { Transaction } from '../../storage/sql.js'
import { type Doing, personEvent } from '../browser-sessions/events.js'
import { PASSWORD_FRESH_MS, pathOf, sha256 } from '../browser-sessions/flows.js'
import { flowPage, type LoginTools, onward, type Progress, readProgress } from './flow.js'
import type {
  Enrolled,
  EnrolmentPage,
  EnrolmentShown,
  FactorPage,
  FlowPage,
  FlowStep,
  FlowUnknown,
  LoginProtocol,
  Onward,
  SignedIn,
} from './protocol.js'
import { newRecoveryCodes, recoveryCodeSha256 } from './recovery-codes.js'
import { SESSION_TOKEN_BYTES } from './session.js'
import { base32, otpauthUri, TOTP_SECRET_BYTES, totpStepOf } from './totp.js'

/** How long an offered secret stays the same when the page is opened again. */
const OFFER_MS = 15 * 60_000
const UNKNOWN_FLOW = { tag: 'unknown_flow' } as const
const BUSY = { tag: 'busy' } as const

type Coded = FlowStep & { readonly code: string }
type Outcome<K extends 'secondFactor' | 'enrol'> = LoginProtocol[K]['reply']

export function secondFactorStep(tools: LoginTools) {
  const { database, clock, random, sealer, lockout } = tools

  return {
    async challenge(
      { flow, visitor }: FlowStep,
      turn: Turn,
    ): Promise<FactorPage | Onward | FlowUnknown> {
      const progress = await readProgress(tools, flow, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      if (progress.step !== 'mfa') return onward(progress)
      return { tag: 'page', ...flowPage(flow, progress.flow) }
    },

    async secondFactor(
      { flow: token, code, visitor }: Coded,
      turn: Turn,
    ): Promise<Outcome<'secondFactor'>> {
      const progress = await readProgress(tools, token, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      const { step, session, factor, flow } = progress
      if (step !== 'mfa' || session === undefined || factor === undefined) return onward(progress)
      const shown: FlowPage = flowPage(token, flow)
      const spend = await spending(session, factor, code)
      return attempted(progress, session, visitor, turn, {
        shown,
        async succeed(tx, raised, now) {
          if (spend === null || !(await spend.run(tx, now))) return null
          const told: Doing[] = [
            verified(session, turn, { outcome: 'success', method: spend.method }),
          ]
          if (session.pending) told.push(signedIn(session, turn))
          return { told, outcome: { ...raised } satisfies SignedIn }
        },
      })
    },

    async enrolment(
      { flow, visitor }: FlowStep,
      turn: Turn,
    ): Promise<EnrolmentPage | Onward | FlowUnknown> {
      const progress = await readProgress(tools, flow, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      if (progress.step !== 'enroll') return onward(progress)
      const secret = await offeredSecret(progress.session!, turn)
      return { tag: 'page', ...enrolmentShown(flow, progress, secret) }
    },

    async enrol({ flow: token, code, visitor }: Coded, turn: Turn): Promise<Outcome<'enrol'>> {
      const progress = await readProgress(tools, token, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      const { step, session, flow } = progress
      if (step !== 'enroll' || session === undefined) return onward(progress)
      const secret = await offeredSecret(session, turn)
      const shown: EnrolmentShown = enrolmentShown(token, progress, secret)
      const timeStep = totpStepOf(secret.bytes, digits(code), clock.nowSecs())
      return attempted(progress, session, visitor, turn, {
        shown,
        async succeed(tx, raised, now) {
          if (timeStep === null) return null
          const { accountId } = session
          if (!(await confirmTotp(tx, accountId, secret.id, timeStep, now))) return null
          const recoveryCodes = newRecoveryCodes(random)
          const hashes = recoveryCodes.map((one) => recoveryCodeSha256(accountId, one)!)
          await replaceRecoveryCodes(tx, accountId, hashes, now)
          const fields = { outcome: 'success', method: 'totp', enrolled: true }
          const outcome: Enrolled = {
            ...flowPage(token, flow),
            tag: 'enrolled',
            token: raised.token,
            recoveryCodes,
            location: raised.location,
          }
          return { told: [verified(session, turn, fields)], outcome }
        },
      })
    },
  }

  /**
   * One counted attempt. When the code is spent the session is raised under a new cookie, all in one
   * transaction; a code that was spent before, or by somebody else meanwhile, is a wrong one.
   */
  async function attempted<Shown extends object, Success extends object>(
    progress: Progress,
    session: BrowserSessionRow,
    visitor: FlowStep['visitor'],
    turn: Turn,
    work: {
      readonly shown: Shown
      readonly succeed: (
        tx: Transaction,
        raised: SignedIn,
        now: Date,
      ) => Promise<{ readonly told: readonly Doing[]; readonly outcome: Success } | null>
    },
  ): Promise<
    | Success
    | (Shown & { tag: 'wrong' })
    | (Shown & { tag: 'locked'; retryAfterSecs: number })
    | typeof BUSY
  > {
    const { flow, token } = progress
    const { shown } = work
    const now = clock.now()
    try {
      const attempt = await lockout.attempt(`mfa:${session.accountId}`, visitor.address)
      if (attempt.tag === 'locked') return { ...shown, ...attempt }
      const newToken = random.token(SESSION_TOKEN_BYTES)
      const location = pathOf('done', token, flow.returnTo)
      const raised: SignedIn = { tag: 'signed_in', token: newToken, location }
      // Factors belong to the account, which belongs to no tenant.
      const done = await database.system(async (tx) => {
        const success = await work.succeed(tx, raised, now)
        if (success === null) return null
        const isRaised = await raiseBrowserSession(tx, {
          tenantId: session.tenantId,
          id: session.id,
          tokenSha256: sha256(visitor.token!),
          newTokenSha256: sha256(newToken),
          amr: raisedAmr(session.amr),
          authTime: authTimeOf(session, now),
        })
        if (!isRaised) throw new SessionGone()
        const events = success.told.map((one) => personEvent(random, one, now))
        await appendEvents(tx, events)
        return success.outcome
      }, turn)
      if (done !== null) {
        await attempt.succeeded()
        return done
      }
      const locked = await attempt.failed()
      const told = [verified(session, turn, { outcome: 'failure' })]
      if (locked) {
        const fields = { subject: 'second_factor', ip: visitor.address }
        told.push({ ...doingOf(session, turn), type: 'security.brute_force.detected', fields })
      }
      const events = told.map((one) => personEvent(random, one, now))
      await database.tenant(session.tenantId, (tx) => appendEvents(tx, events), turn)
      return { ...shown, tag: 'wrong' }
    } catch (error) {
      if (error instanceof SessionGone) return { ...shown, tag: 'wrong' }
      if (error instanceof CoordinationUnavailable) return BUSY
      throw error
    }
  }

  /** How a code is used up; null when it is none. */
  async function spending({ accountId }: BrowserSessionRow, factor: TotpFactorRow, typed: string) {
    const code = digits(typed)
    if (/^[0-9]{6}$/.test(code)) {
      const secret = await opened(factor)
      const step = totpStepOf(secret, code, clock.nowSecs())
      secret.fill(0)
      if (step === null) return null
      const run = (tx: Transaction, now: Date) => spendTotpStep(tx, accountId, factor.id, step, now)
      return { method: 'totp', run }
    }
    const hash = recoveryCodeSha256(accountId, typed)
    if (hash === null) return null
    const run = (tx: Transaction, now: Date) => spendRecoveryCode(tx, accountId, hash, now)
    return { method: 'recovery_code', run }
  }

  /** The secret that is on offer to an account: the one offered lately, or a new one. */
  async function offeredSecret(session: BrowserSessionRow, turn: Turn): Promise<OfferedSecret> {
    const { accountId, email } = session
    const now = clock.now()
    const since = new Date(now.getTime() - OFFER_MS)
    const offered = await database.system((tx) => findOfferedTotp(tx, accountId, since), turn)
    if (offered !== undefined) return { id: offered.id, bytes: await opened(offered), email }
    const id = random.uuid()
    const fresh = random.bytes(TOTP_SECRET_BYTES)
    const secretSealed = await sealer.seal(SYSTEM_TENANT_ID, contextOf(id), fresh)
    const counts = await database.system(
      (tx) => offerTotp(tx, accountId, { id, secretSealed, createdAt: now }, since),
      turn,
    )
    if (counts === undefined) throw new Error('a secret that was just offered is gone')
    return { id: counts.id, bytes: counts.id === id ? fresh : await opened(counts), email }
  }

  function opened({ id, secretSealed }: TotpFactorRow): Promise<Uint8Array> {
    return sealer.open(SYSTEM_TENANT_ID, contextOf(id), secretSealed)
  }
}

/** The session ended or was raised by another request: what was spent is taken back. */
class SessionGone extends Error {
  override readonly name = 'SessionGone'
}

type OfferedSecret = { readonly id: string; readonly bytes: Uint8Array; readonly email: string }

const contextOf = (id: string) => `totp_factor:${id}:secret`

/** People type codes with spaces, as apps show them. */
const digits = (typed: string) => typed.replaceAll(/[\s-]/g, '')

function enrolmentShown(token: string, { flow }: Progress, secret: OfferedSecret): EnrolmentShown {
  const page = flowPage(token, flow)
  const text = base32(secret.bytes)
  return { ...page, secret: text, otpauthUri: otpauthUri(page.tenant.name, secret.email, text) }
}

/**
 * A second factor soon after the password completes one authentication, whose time is then now. Later
 * it raises the level and leaves the time: the password is as old as it is.
 */
function authTimeOf({ authTime, passwordAt }: BrowserSessionRow, now: Date): Date {
  return now.getTime() - passwordAt.getTime() <= PASSWORD_FRESH_MS * 2 ? now : authTime
}

/** RFC 8176: what came first, the code, and that there were two. */
const raisedAmr = (amr: readonly string[]) => [...new Set([...amr, 'otp', 'mfa'])]

function doingOf({ tenantId, sub, id }: BrowserSessionRow, { requestId }: Turn) {
  return { tenantId, sub, sessionId: id, requestId }
}

function verified(
  session: BrowserSessionRow,
  turn: Turn,
  fields: Readonly<Record<string, unknown>>,
): Doing {
  return { ...doingOf(session, turn), type: 'auth.mfa.verify', fields }
}

function signedIn(session: BrowserSessionRow, turn: Turn): Doing {
  return {
    ...doingOf(session, turn),
    type: 'auth.login.success',
    fields: { amr: raisedAmr(session.amr), acr: 'aal2' },
  }
}
