/**
 * The first step: email and password. An unknown user causes the same work as a wrong password: the same query, one
 * verification, one event.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { soughtEmail } from '../../../domain/email.js'
import { findSignIn, holdPassword, rehashPassword } from '../../../../storage/identity/sign-ins.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { beginAccountFlow, isForAnyone, isOtherUser } from '../flow/progress.js'
import { needsFirstFactor, onward, type Progress, progressIn } from '../flow/progress.js'
import { orBusy } from '../limits/lockout.js'
import { browserName, knownBrowserName } from '../second-factors/risk.js'
import {
  attemptFirstFactor,
  type FirstFactorLogin,
  type JudgedFactor,
  openSessionInFlow,
} from '../first-factor.js'
import type { SignInActorTools, SignInHandler } from '../needs.js'
import type { LoginShown, PasswordLogin, SignedIn } from '../protocol.js'
import { loginShown } from './ways-in.js'

export const showSignIn: SignInHandler<'showSignIn'> = async (
  tools,
  { flow: wanted, visitor, ...order },
  context,
) => {
  const token = wanted ?? (await beginAccountFlow(tools, order, context))
  if (token === null) return { tag: 'unknown_tenant' }
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  // A user with a pending second factor may return and sign in as another user.
  if (!needsFirstFactor(progress)) return onward(progress)
  const { session, flow } = progress
  const isKnown =
    session !== undefined && !session.pending && !isOtherUser(flow, session) && !isForAnyone(flow)
  const shown = await loginShown(
    tools,
    progress,
    flow.loginHint ?? (isKnown ? session.email : ''),
    context,
  )
  // At another tenant this is not a re-authentication but a separate sign-in, and the page names the tenant.
  return { tag: 'page', ...shown, again: isKnown && session.tenantId === flow.tenantId }
}

export const signIn: SignInHandler<'signIn'> = async (tools, message, context) => {
  const progress = await progressIn(tools, message.flow, message.visitor.token, context)
  if ('tag' in progress) return progress
  const shown = await loginShown(tools, progress, message.email.trim(), context)
  return orBusy(() => attemptPassword(tools, message, progress, shown, context))
}

/** @throws CoordinationUnavailable */
async function attemptPassword(
  tools: SignInActorTools,
  { password, captcha, visitor }: PasswordLogin,
  progress: Progress,
  shown: LoginShown,
  context: MessageContext,
): ReturnType<SignInHandler<'signIn'>> {
  const { lockout, gate } = tools
  const { tenantId } = progress.flow
  const { address } = visitor
  const email = soughtEmail(shown.email)
  const key = (email ?? shown.email).toLowerCase()
  const everywhere = `login:${key}`
  const name = `login:${tenantId}:${key}`
  if (await gate.isDue(await lockout.used(name), address)) {
    const judged = await gate.judge(captcha, address)
    if (judged.tag === 'captcha') return { ...shown, ...judged, captcha: gate.widget() }
    if (judged.tag !== 'open') return judged
  }
  const tried = (counted: string, all?: string) =>
    attemptFirstFactor(
      tools,
      { tenantId, factor: 'password', name: counted, everywhere: all, address },
      () => {
        const typed = { password, name: counted, email: shown.email, visitor }
        return judgePassword(tools, typed, progress, context)
      },
      context,
    )
  let judged = await tried(name, everywhere)
  if (judged.tag === 'wrong') await lockout.failed(`login:${browserName(key, visitor)}`)
  if (judged.tag === 'locked' && email !== undefined) {
    // Strangers cannot lock a browser of the person.
    const own = await knownBrowserName(tools, tenantId, email, visitor, context)
    if (own !== null) judged = await tried(`login:${own}`)
  }
  if (judged.tag === 'busy') return judged
  if (judged.tag === 'locked') return { ...shown, ...judged }
  if (judged.tag === 'wrong') {
    await gate.failed(address)
    const isDue = await gate.isDue(await lockout.used(name), address)
    return { tag: 'wrong', ...shown, captcha: isDue ? gate.widget() : null }
  }
  const { signedIn, rehash } = judged.found
  await rehash?.()
  return signedIn
}

type OpenedByPassword = {
  readonly signedIn: SignedIn
  /** Stores the password under the settings of now. */
  readonly rehash: (() => Promise<void>) | undefined
}

async function judgePassword(
  tools: SignInActorTools,
  typed: Pick<PasswordLogin, 'password' | 'email' | 'visitor'> & { readonly name: string },
  { flow, token }: Progress,
  context: MessageContext,
): Promise<JudgedFactor<OpenedByPassword>> {
  const { database, passwords, lockout } = tools
  const { password, visitor, name } = typed
  const email = soughtEmail(typed.email)
  for (let isFirst = true; ; isFirst = false) {
    const found =
      email && (await database.system((tx) => findSignIn(tx, flow.tenantId, email), context))
    const phc = found?.passwordHash ?? null
    const share = { ...context, share: flow.tenantId }
    const verdict = await passwords.verify({ phc, password }, share)
    if (verdict.tag === 'busy') return { tag: 'busy' }
    if (verdict.tag === 'match' && found !== undefined) {
      // Without the slot of this attempt.
      const failures = (await lockout.used(name)) - 1
      const login = { flow, token, found, amr: ['pwd'], visitor, failures }
      const signedIn = await openUnlessReplaced(tools, login, phc!, context)
      // The hash has changed, possibly a rehash of the same password.
      if (signedIn === null && isFirst) continue
      if (signedIn !== null) {
        const rehash = verdict.needsRehash
          ? () => rehashed(tools, found.accountId, phc!, password, context)
          : undefined
        return { tag: 'found', found: { signedIn, rehash } }
      }
    }
    return { tag: 'wrong', sub: found?.sub }
  }
}

/** Null when the password was replaced while it was being verified. */
async function openUnlessReplaced(
  tools: SignInActorTools,
  login: FirstFactorLogin,
  phc: string,
  context: MessageContext,
): Promise<SignedIn | null> {
  const also = async (tx: Transaction) => {
    if (!(await holdPassword(tx, login.found.accountId, phc))) throw new PasswordReplaced()
  }
  try {
    return await openSessionInFlow(tools, { ...login, also }, context)
  } catch (error) {
    if (error instanceof PasswordReplaced) return null
    throw error
  }
}

async function rehashed(
  { database, passwords }: SignInActorTools,
  accountId: string,
  from: string,
  password: string,
  context: MessageContext,
): Promise<void> {
  const hashed = await passwords.hash({ password }, context)
  // The workers are busy. The next sign-in rehashes.
  if (hashed.tag !== 'hashed') return
  await database.system((tx) => rehashPassword(tx, accountId, from, hashed.phc), context)
}

/** Rolls back a sign-in with a password that was replaced concurrently. */
class PasswordReplaced extends Error {
  override readonly name = 'PasswordReplaced'
}
