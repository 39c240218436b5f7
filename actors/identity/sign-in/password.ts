/**
 * The first step: e-mail and password. A person nobody knows costs the same work as one with a wrong
 * password: the same look-up, one verification, one event.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { findSignIn, holdPassword, rehashPassword } from '../../../storage/identity/sign-ins.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { type Doing, personEvent } from '../sessions/events.js'
import { beginFlow, isOwnPath } from '../sessions/flows.js'
import type { CaptchaGate } from '../abuse-protection/gate.js'
import { flowPage, isOther, type LoginTools, onward, progressIn, upstreamsOf } from './flow.js'
import type {
  FlowUnknown,
  LoginPage,
  LoginProtocol,
  Onward,
  PasswordLogin,
  SignedIn,
  SignInOffers,
  StartLogin,
  TenantNotFound,
} from './protocol.js'
import { openAlong, type Opening } from './login-challenges.js'

export type PasswordTools = LoginTools & {
  readonly offers: SignInOffers
  readonly gate: CaptchaGate
}

export function passwordStep(tools: PasswordTools) {
  const { database, clock, random, passwords, tenants, lockout, alwaysTwo, offers, gate } = tools

  return {
    async start(
      { flow, visitor, ...wanted }: StartLogin,
      context: MessageContext,
    ): Promise<LoginPage | Onward | FlowUnknown | TenantNotFound> {
      const token = flow ?? (await begin(wanted, context))
      if (token === null) return { tag: 'unknown_tenant' }
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      // Whoever owes a second factor may still come back and be somebody else.
      if (progress.step !== 'login' && progress.session?.pending !== true) return onward(progress)
      const { session } = progress
      const isKnown = session !== undefined && !session.pending && !isOther(progress.flow, session)
      const email = progress.flow.loginHint ?? (isKnown ? session.email : '')
      // At another tenant nothing is confirmed: it is a sign-in of its own, and the page names the tenant.
      const again = isKnown && session.tenantId === progress.flow.tenantId
      const upstreams = await upstreamsOf(tools, progress.flow, context)
      return {
        tag: 'page',
        ...flowPage(token, progress.flow),
        email,
        again,
        offers,
        upstreams,
        captcha: null,
      }
    },

    async password(
      message: PasswordLogin,
      context: MessageContext,
    ): Promise<LoginProtocol['password']['reply']> {
      const { flow: token, password, captcha, visitor } = message
      const email = message.email.trim()
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { flow } = progress
      const upstreams = await upstreamsOf(tools, flow, context)
      const shown = {
        ...flowPage(token, flow),
        email,
        again: false,
        offers,
        upstreams,
        captcha: null,
      }
      try {
        const name = `login:${flow.tenantId}:${email.toLowerCase()}`
        if (await gate.isDue(await lockout.used(name), visitor.address)) {
          const judged = await gate.judge(captcha, visitor.address)
          if (judged.tag === 'captcha') return { ...shown, tag: 'captcha', captcha: gate.widget() }
          if (judged.tag === 'unavailable') return { tag: 'captcha_unavailable' }
          if (judged.tag === 'throttled') return { ...judged, tag: 'captcha_throttled' }
        }
        const attempted = { name, address: visitor.address, signal: context.signal }
        const judged = await lockout.attempt(attempted, async (attempt) => {
          for (let isFirst = true; ; isFirst = false) {
            const found = await database.system(
              (tx) => findSignIn(tx, flow.tenantId, email),
              context,
            )
            const phc = found?.passwordHash ?? null
            const share = { ...context, share: flow.tenantId }
            const verdict = await passwords.ask('verify', { phc, password }, share)
            if (verdict.tag === 'busy') return { tag: 'busy' } as const
            if (verdict.tag === 'match' && found !== undefined) {
              const opening = { flow, token, found, amr: ['pwd'], visitor }
              const opened = await openStill(opening, phc!, context)
              // Another hash by now: of the same password, perhaps.
              if (opened === null && isFirst) continue
              if (opened !== null) {
                await attempt.succeeded()
                if (verdict.needsRehash) await rehash(found.accountId, phc!, password, context)
                return opened
              }
            }
            const locked = await attempt.failed()
            await tellFailure(flow.tenantId, found?.sub ?? null, locked, visitor.address, context)
            return { tag: 'wrong' } as const
          }
        })
        if (judged.tag === 'locked') return { ...shown, ...judged }
        if (judged.outcome.tag !== 'wrong') return judged.outcome
        await gate.failed(visitor.address)
        const isDue = await gate.isDue(await lockout.used(name), visitor.address)
        return { tag: 'wrong', ...shown, captcha: isDue ? gate.widget() : null }
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return { tag: 'busy' }
        throw error
      }
    },
  }

  async function begin(
    { tenant: selector, returnTo, uiLocales }: Omit<StartLogin, 'flow' | 'visitor'>,
    context: MessageContext,
  ): Promise<string | null> {
    const resolved = await tenants.ask('resolve', selector, context)
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
      context,
    )
  }

  /** Null when the password was replaced while it was judged: it opens nothing any more. */
  async function openStill(
    opening: Opening,
    phc: string,
    context: MessageContext,
  ): Promise<SignedIn | null> {
    const also = async (tx: Transaction) => {
      if (!(await holdPassword(tx, opening.found.accountId, phc))) throw new PasswordReplaced()
    }
    try {
      return await openAlong(tools, { ...opening, also }, context)
    } catch (error) {
      if (error instanceof PasswordReplaced) return null
      throw error
    }
  }

  async function rehash(
    accountId: string,
    from: string,
    password: string,
    context: MessageContext,
  ) {
    const hashed = await passwords.ask('hash', { password }, context)
    // Busy workers have better to do; the next sign-in comes.
    if (hashed.tag !== 'hashed') return
    await database.system((tx) => rehashPassword(tx, accountId, from, hashed.phc), context)
  }

  async function tellFailure(
    tenantId: string,
    sub: string | null,
    locked: boolean,
    address: string,
    context: MessageContext,
  ): Promise<void> {
    const now = clock.now()
    const doing = { tenantId, sub, sessionId: null, requestId: context.requestId }
    const told: Doing[] = [
      { ...doing, type: 'auth.login.failure', fields: { reason: 'password', ip: address } },
    ]
    if (locked) {
      const fields = { subject: 'password', ip: address }
      told.push({ ...doing, type: 'security.brute_force.detected', fields })
    }
    const events = told.map((one) => personEvent(random, one, now))
    await database.tenant(tenantId, (tx) => appendEvents(tx, events), context)
  }
}

/** Thrown to take back what a password opened that was replaced meanwhile. */
class PasswordReplaced extends Error {
  override readonly name = 'PasswordReplaced'
}
