/** The second step: a TOTP code or a recovery code, and the enrolment of a TOTP secret. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import type { BrowserSessionRow } from '../../../../storage/identity/browser-sessions.js'
import {
  confirmTotp,
  findTotpFactor,
  spendRecoveryCode,
  spendTotpStep,
} from '../../../../storage/identity/second-factors.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { PersonEvent } from '../../../platform/people/person-events.js'
import { amrWith, attempted, authTimeOf, signedIn, verified } from './attempt.js'
import {
  confirmsByMail,
  flowPage,
  methodsOf,
  offeredMethods,
  onward,
  type Progress,
  type SessionProgress,
  sessionAt,
} from '../flow/progress.js'
import type { SignInActorTools, SignInHandler } from '../needs.js'
import type {
  Enrolled,
  EnrolmentShown,
  FactorMethods,
  FactorShown,
  FlowStep,
  SignedIn,
} from '../protocol.js'
import { recoveryCodeSha256, renewRecoveryCodes } from './recovery-codes.js'
import { totpStepOf } from './totp.js'
import { digits, offeredSecret, sealedSecret, secretShown, unsealedSecret } from './totp-offer.js'

const factorShown = (
  { adaptive, passkeys }: Pick<SignInActorTools, 'adaptive' | 'passkeys'>,
  progress: Progress,
): FactorShown => {
  const methods: FactorMethods = confirmsByMail(progress, adaptive)
    ? { code: 'mail', passkey: false, deviceBound: false }
    : methodsOf(progress, passkeys)
  return { ...flowPage(progress.token, progress.flow), methods, passkeys }
}

export const showSecondFactor: SignInHandler<'showSecondFactor'> = async (
  tools,
  message,
  context,
) => {
  const progress = await sessionAt(tools, 'mfa', message, context)
  return 'tag' in progress ? progress : { tag: 'page', ...factorShown(tools, progress) }
}

export const giveSecondFactor: SignInHandler<'giveSecondFactor'> = async (
  tools,
  message,
  context,
) => {
  const progress = await sessionAt(tools, 'mfa', message, context)
  if ('tag' in progress) return progress
  const { session } = progress
  const { code, visitor } = message
  const shown = factorShown(tools, progress)
  if (shown.methods.code === 'mail') return confirm(tools, progress, shown, message, context)
  const spend = shown.methods.code === null ? null : await spending(tools, session, code, context)
  const amr = amrWith(session, ['otp'])
  return attempted(
    tools,
    progress,
    visitor,
    {
      shown,
      proof: { level: 2, amr, authTime: authTimeOf(session, tools.clock.now()) },
      async succeed(tx, raised, now) {
        if (spend === null || !(await spend.run(tx, now))) return null
        const newEvents: PersonEvent[] = [
          verified(session, { outcome: 'success', method: spend.method }, context),
        ]
        if (session.pending) newEvents.push(signedIn(session, amr, 2, context))
        return { newEvents, outcome: { ...raised } satisfies SignedIn }
      },
    },
    context,
  )
}

export const requestConfirmationMail: SignInHandler<'requestConfirmationMail'> = async (
  tools,
  message,
  context,
) => {
  const { adaptive } = tools
  const progress = await sessionAt(tools, 'mfa', message, context)
  if ('tag' in progress) return progress
  if (!confirmsByMail(progress, adaptive)) return onward(progress)
  const { flow, token } = progress
  const { visitor } = message
  const { accountId, email } = progress.session
  const order = { flow, accountId, email, token: visitor.token!, visitor }
  const sent = await adaptive.send(order, context)
  return sent.tag === 'locked'
    ? { ...factorShown(tools, progress), ...sent }
    : { tag: 'sent', location: `/auth/mfa?flow=${token}` }
}

export const showEnrolment: SignInHandler<'showEnrolment'> = async (tools, message, context) => {
  const progress = await sessionAt(tools, 'enroll', message, context)
  if ('tag' in progress) return progress
  const { shown } = await enrolmentOf(tools, progress, context)
  return { tag: 'page', ...shown }
}

export const enrolSecondFactor: SignInHandler<'enrolSecondFactor'> = async (
  tools,
  message,
  context,
) => {
  const { clock, random } = tools
  const progress = await sessionAt(tools, 'enroll', message, context)
  if ('tag' in progress) return progress
  const { session, flow, token } = progress
  const { code, visitor } = message
  const { secret, shown } = await enrolmentOf(tools, progress, context)
  const timeStep = totpStepOf(secret.bytes, digits(code), clock.nowSecs())
  const factor = timeStep === null ? null : await sealedSecret(tools, secret)
  const amr = amrWith(session, ['otp'])
  return attempted(
    tools,
    progress,
    visitor,
    {
      shown,
      proof: { level: 2, amr, authTime: authTimeOf(session, clock.now()) },
      async succeed(tx, raised, now) {
        if (timeStep === null || factor === null) return null
        const { accountId } = session
        if (!(await confirmTotp(tx, accountId, factor, timeStep, now))) return null
        const recoveryCodes = await renewRecoveryCodes(tx, random, accountId, now)
        const fields = { outcome: 'success', method: 'totp', enrolled: true }
        const { token: raisedToken, location } = raised
        const page = { ...flowPage(token, flow), token: raisedToken, recoveryCodes, location }
        const outcome: Enrolled = { ...page, tag: 'enrolled' }
        return { newEvents: [verified(session, fields, context)], outcome }
      },
    },
    context,
  )
}

/** A code by mail confirms the sign-in, which stays at its level. */
function confirm(
  tools: SignInActorTools,
  progress: SessionProgress,
  shown: FactorShown,
  { code, visitor }: FlowStep & { readonly code: string },
  context: MessageContext,
) {
  const { session } = progress
  const { accountId, level, authTime } = session
  const amr = [...new Set([...session.amr, 'otp'])]
  return attempted(
    tools,
    progress,
    visitor,
    {
      shown,
      proof: { level, amr, authTime },
      async succeed(tx, raised, now) {
        if (!(await tools.adaptive.spend(tx, accountId, visitor.token!, code, now))) return null
        const newEvents = [
          verified(session, { outcome: 'success', method: 'mail' }, context),
          signedIn(session, amr, level, context),
        ]
        return { newEvents, outcome: { ...raised } satisfies SignedIn }
      },
    },
    context,
  )
}

/** How a code is used up; null when the format is invalid. */
async function spending(
  { database, clock, sealer }: SignInActorTools,
  { accountId }: BrowserSessionRow,
  typed: string,
  context: MessageContext,
) {
  const factor = await database.system((tx) => findTotpFactor(tx, accountId), context)
  const code = digits(typed)
  if (/^[0-9]{6}$/.test(code)) {
    if (factor === undefined) return null
    const secret = await unsealedSecret(sealer, factor)
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

async function enrolmentOf(
  tools: SignInActorTools,
  progress: SessionProgress,
  context: MessageContext,
) {
  const secret = await offeredSecret(tools, progress.session, context)
  const page = flowPage(progress.token, progress.flow)
  const methods = offeredMethods(progress, tools.passkeys)
  const shown: EnrolmentShown = { ...page, methods, ...secretShown(page.tenant.name, secret) }
  return { secret, shown }
}
