/**
 * The first step: e-mail and password. A person nobody knows costs the same work as one with a wrong
 * password: the same look-up, one verification, one event.
 */
import type { Turn } from '../../runtime/kernel/actor.js'
import { CoordinationUnavailable } from '../../storage/coordination/port.js'
import { appendEvents } from '../../storage/outbox.js'
import { findSignIn, recordSignIn, rehashPassword, type SignInRow } from '../../storage/sign-ins.js'
import type { SignInFlowFound } from '../../storage/sign-in-flows.js'
import { type Doing, personEvent } from '../browser-sessions/events.js'
import { beginFlow, isOwnPath, nextStep, pathOf } from '../browser-sessions/flows.js'
import { flowPage, type LoginTools, onward, readProgress } from './flow.js'
import type {
  Busy,
  FlowUnknown,
  Locked,
  LoginPage,
  LoginShown,
  Onward,
  PasswordLogin,
  SignedIn,
  StartLogin,
  TenantNotFound,
} from './protocol.js'
import { openSession } from './session.js'

const UNKNOWN_FLOW = { tag: 'unknown_flow' } as const

export function passwordStep(tools: LoginTools) {
  const { database, clock, random, passwords, tenants, lockout, alwaysTwo } = tools

  return {
    async start(
      { flow, visitor, ...wanted }: StartLogin,
      turn: Turn,
    ): Promise<LoginPage | Onward | FlowUnknown | TenantNotFound> {
      const token = flow ?? (await begin(wanted, turn))
      if (token === null) return { tag: 'unknown_tenant' }
      const progress = await readProgress(tools, token, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      // Whoever owes a second factor may still come back and be somebody else.
      if (progress.step !== 'login' && progress.session?.pending !== true) return onward(progress)
      const { session } = progress
      const again = session !== undefined && !session.pending
      const email = progress.flow.loginHint ?? (again ? session.email : '')
      return { tag: 'page', ...flowPage(token, progress.flow), email, again }
    },

    async password(
      message: PasswordLogin,
      turn: Turn,
    ): Promise<
      SignedIn | (LoginShown & { tag: 'wrong' }) | (LoginShown & Locked) | FlowUnknown | Busy
    > {
      const { flow: token, password, visitor } = message
      const email = message.email.trim()
      const progress = await readProgress(tools, token, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      const { flow } = progress
      const shown = { ...flowPage(token, flow), email, again: false }
      try {
        const name = `login:${flow.tenantId}:${email.toLowerCase()}`
        const attempt = await lockout.attempt(name, visitor.address)
        if (attempt.tag === 'locked') return { ...shown, ...attempt }
        const found = await database.system((tx) => findSignIn(tx, flow.tenantId, email), turn)
        const phc = found?.passwordHash ?? null
        const verdict = await passwords.ask('verify', { phc, password }, turn)
        if (verdict.tag === 'busy') {
          await attempt.succeeded()
          return { tag: 'busy' }
        }
        if (verdict.tag === 'mismatch' || found === undefined) {
          const locked = await attempt.failed()
          await tellFailure(flow.tenantId, found?.sub ?? null, locked, visitor.address, turn)
          return { tag: 'wrong', ...shown }
        }
        await attempt.succeeded()
        if (verdict.needsRehash) await rehash(found.accountId, phc!, password, turn)
        return await open(flow, token, found, visitor, turn)
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return { tag: 'busy' }
        throw error
      }
    },
  }

  async function begin(
    { tenant: selector, returnTo, uiLocales }: Omit<StartLogin, 'flow' | 'visitor'>,
    turn: Turn,
  ): Promise<string | null> {
    const resolved = await tenants.ask('resolve', selector, turn)
    if (resolved.tag !== 'resolved' || resolved.tenant.status !== 'active') return null
    const { id: tenantId } = resolved.tenant
    const path = returnTo !== null && isOwnPath(returnTo) ? returnTo : '/auth/account'
    const flow = { returnTo: path, reason: { tag: 'account' }, uiLocales } as const
    return database.tenant(
      tenantId,
      (tx) =>
        beginFlow(
          tx,
          { tenantId, demand: { level: alwaysTwo ? 2 : 1 }, flow },
          random,
          clock.now(),
        ),
      turn,
    )
  }

  /** The password was right: a new session takes the place of whatever the browser had. */
  async function open(
    flow: SignInFlowFound,
    flowToken: string,
    found: SignInRow,
    visitor: PasswordLogin['visitor'],
    turn: Turn,
  ): Promise<SignedIn> {
    const now = clock.now()
    const { tenantId, tenantSettings } = flow
    const { accountId, tenantUserId, sub, hasFactor: pending } = found
    // The session that ends may be one of another tenant.
    const token = await database.system(async (tx) => {
      const opened = { tenantId, tenantSettings, accountId, pending }
      const session = await openSession(tx, tools, opened, visitor, now)
      const doing = { tenantId, sub, sessionId: session.id, requestId: turn.requestId }
      const { activated } = await recordSignIn(tx, tenantId, tenantUserId, now)
      const told: Doing[] = [
        pending
          ? { ...doing, type: 'auth.mfa.challenge', fields: { methods: ['totp', 'recovery_code'] } }
          : { ...doing, type: 'auth.login.success', fields: { amr: ['pwd'], acr: 'aal1' } },
      ]
      if (activated) told.unshift({ ...doing, type: 'tenant_user.activated' })
      await appendEvents(
        tx,
        told.map((one) => personEvent(random, one, now)),
      )
      return session.token
    }, turn)
    const progress = await readProgress(tools, flowToken, token, turn)
    const step = progress?.step ?? nextStep(flow, undefined, false, now)
    return { tag: 'signed_in', token, location: pathOf(step, flowToken, flow.returnTo) }
  }

  async function rehash(accountId: string, from: string, password: string, turn: Turn) {
    const hashed = await passwords.ask('hash', { password }, turn)
    // Busy workers have better to do; the next sign-in comes.
    if (hashed.tag !== 'hashed') return
    await database.system((tx) => rehashPassword(tx, accountId, from, hashed.phc), turn)
  }

  async function tellFailure(
    tenantId: string,
    sub: string | null,
    locked: boolean,
    address: string,
    turn: Turn,
  ): Promise<void> {
    const now = clock.now()
    const doing = { tenantId, sub, sessionId: null, requestId: turn.requestId }
    const told: Doing[] = [
      { ...doing, type: 'auth.login.failure', fields: { reason: 'password', ip: address } },
    ]
    if (locked) {
      const fields = { subject: 'password', ip: address }
      told.push({ ...doing, type: 'security.brute_force.detected', fields })
    }
    const events = told.map((one) => personEvent(random, one, now))
    await database.tenant(tenantId, (tx) => appendEvents(tx, events), turn)
  }
}
