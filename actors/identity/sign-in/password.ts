/**
 * The first step: email and password. An unknown user causes the same work as a wrong password: the same query, one
 * verification, one event.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { findSignIn, lockPassword, rehashPassword } from '../../../storage/identity/sign-ins.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { recordSignInFailure } from '../sessions/events.js'
import type { CaptchaGate } from '../abuse-protection/gate.js'
import {
  beginAccountFlow,
  flowPage,
  isForAnyone,
  isOtherUser,
  type SignInTools,
  offersIn,
  onward,
  progressIn,
  upstreamsOf,
} from './flow.js'
import type {
  FlowUnknown,
  LoginPage,
  SignInProtocol,
  StepRedirect,
  PasswordLogin,
  SignedIn,
  SignInOffers,
  StartLogin,
  TenantNotFound,
} from './protocol.js'
import { openSessionInFlow, type FirstFactorLogin } from './login-challenges.js'

export type PasswordTools = SignInTools & {
  readonly offers: SignInOffers
  readonly gate: CaptchaGate
}

export function passwordStep(tools: PasswordTools) {
  const { database, passwords, lockout, offers, gate } = tools

  return {
    async showSignIn(
      { flow, visitor, ...wanted }: StartLogin,
      context: MessageContext,
    ): Promise<LoginPage | StepRedirect | FlowUnknown | TenantNotFound> {
      const token = flow ?? (await beginAccountFlow(tools, wanted, context))
      if (token === null) return { tag: 'unknown_tenant' }
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      // A user with a pending second factor may return and sign in as another user.
      if (progress.step !== 'login' && progress.session?.pending !== true) return onward(progress)
      const { session } = progress
      const isKnown =
        session !== undefined &&
        !session.pending &&
        !isOtherUser(progress.flow, session) &&
        !isForAnyone(progress.flow)
      const email = progress.flow.loginHint ?? (isKnown ? session.email : '')
      // At another tenant this is not a re-authentication but a separate sign-in, and the page names the tenant.
      const again = isKnown && session.tenantId === progress.flow.tenantId
      const upstreams = await upstreamsOf(tools, progress.flow, context)
      return {
        tag: 'page',
        ...flowPage(token, progress.flow),
        email,
        again,
        offers: offersIn(offers, progress.flow),
        upstreams,
        captcha: null,
      }
    },

    async signIn(
      message: PasswordLogin,
      context: MessageContext,
    ): Promise<SignInProtocol['signIn']['reply']> {
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
        offers: offersIn(offers, flow),
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
        const everywhere = `login:${email.toLowerCase()}`
        const attempted = { name, everywhere, address: visitor.address, signal: context.signal }
        const judged = await lockout.attempt(attempted, async (attempt) => {
          for (let isFirst = true; ; isFirst = false) {
            const found = await database.system(
              (tx) => findSignIn(tx, flow.tenantId, email),
              context,
            )
            const phc = found?.passwordHash ?? null
            const share = { ...context, share: flow.tenantId }
            const verdict = await passwords.verify({ phc, password }, share)
            if (verdict.tag === 'busy') return { tag: 'busy' } as const
            if (verdict.tag === 'match' && found !== undefined) {
              // Without the slot of this attempt.
              const failures = (await lockout.used(name)) - 1
              const login = { flow, token, found, amr: ['pwd'], visitor, failures }
              const signedIn = await openUnlessReplaced(login, phc!, context)
              // The hash has changed, possibly a rehash of the same password.
              if (signedIn === null && isFirst) continue
              if (signedIn !== null) {
                await attempt.succeeded()
                if (verdict.needsRehash) await rehash(found.accountId, phc!, password, context)
                return signedIn
              }
            }
            const locked = await attempt.failed()
            const { tenantId } = flow
            const { address } = visitor
            await recordSignInFailure(
              tools,
              { tenantId, factor: 'password', sub: found?.sub ?? null, locked, address },
              context,
            )
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

  /** Null when the password was replaced while it was being verified. */
  async function openUnlessReplaced(
    login: FirstFactorLogin,
    phc: string,
    context: MessageContext,
  ): Promise<SignedIn | null> {
    const also = async (tx: Transaction) => {
      if (!(await lockPassword(tx, login.found.accountId, phc))) throw new PasswordReplaced()
    }
    try {
      return await openSessionInFlow(tools, { ...login, also }, context)
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
    const hashed = await passwords.hash({ password }, context)
    // The workers are busy. The next sign-in rehashes.
    if (hashed.tag !== 'hashed') return
    await database.system((tx) => rehashPassword(tx, accountId, from, hashed.phc), context)
  }
}

/** Rolls back a sign-in with a password that was replaced concurrently. */
class PasswordReplaced extends Error {
  override readonly name = 'PasswordReplaced'
}
