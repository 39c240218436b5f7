/** The second step: a TOTP code or a recovery code, and the enrolment of a TOTP secret. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { BrowserSessionRow } from '../../../storage/identity/browser-sessions.js'
import {
  confirmTotp,
  findTotpFactor,
  replaceRecoveryCodes,
  spendRecoveryCode,
  spendTotpStep,
  type TotpFactorRow,
} from '../../../storage/identity/second-factors.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { PersonEvent } from '../sessions/events.js'
import { amrWith, attempted, authTimeOf, signedIn, verified } from './login-attempt.js'
import {
  confirmsByMail,
  flowPage,
  type SignInTools,
  methodsOf,
  offeredMethods,
  onward,
  type Progress,
  progressIn,
} from './flow.js'
import type {
  Enrolled,
  EnrolmentPage,
  EnrolmentShown,
  FactorMethods,
  FactorPage,
  FactorShown,
  FlowStep,
  FlowUnknown,
  SignInProtocol,
  StepRedirect,
  SignedIn,
} from './protocol.js'
import { newRecoveryCodes, recoveryCodeSha256 } from './recovery-codes.js'
import { totpStepOf } from './totp.js'
import { digits, type OfferedSecret, secretShown, totpOffers } from './totp-offer.js'

type Coded = FlowStep & { readonly code: string }
type Outcome<K extends 'giveSecondFactor' | 'enrolSecondFactor'> = SignInProtocol[K]['reply']

export function secondFactorStep(tools: SignInTools) {
  const { database, clock, random, passkeys, adaptive } = tools
  const methodsFor = (progress: Progress): FactorMethods =>
    confirmsByMail(progress, adaptive)
      ? { code: 'mail', passkey: false, deviceBound: false }
      : methodsOf(progress, passkeys)
  const { offered, sealed, unsealed } = totpOffers(tools)

  return {
    async showSecondFactor(
      { flow, visitor }: FlowStep,
      context: MessageContext,
    ): Promise<FactorPage | StepRedirect | FlowUnknown> {
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      if (progress.step !== 'mfa') return onward(progress)
      return {
        tag: 'page',
        ...flowPage(flow, progress.flow),
        methods: methodsFor(progress),
      }
    },

    async giveSecondFactor(
      { flow: token, code, visitor }: Coded,
      context: MessageContext,
    ): Promise<Outcome<'giveSecondFactor'>> {
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { step, session, flow } = progress
      if (step !== 'mfa' || session === undefined) return onward(progress)
      const methods = methodsFor(progress)
      const shown: FactorShown = { ...flowPage(token, flow), methods }
      if (methods.code === 'mail') return confirm(progress, session, shown, code, visitor, context)
      const { accountId } = session
      const factor = await database.system((tx) => findTotpFactor(tx, accountId), context)
      const spend = methods.code !== null ? await spending(session, factor, code) : null
      const amr = amrWith(session, ['otp'])
      return attempted(tools, progress, session, visitor, context, {
        shown,
        proof: { level: 2, amr, authTime: authTimeOf(session, clock.now()) },
        async succeed(tx, raised, now) {
          if (spend === null || !(await spend.run(tx, now))) return null
          const newEvents: PersonEvent[] = [
            verified(session, context, { outcome: 'success', method: spend.method }),
          ]
          if (session.pending) newEvents.push(signedIn(session, context, amr, 2))
          return { newEvents, outcome: { ...raised } satisfies SignedIn }
        },
      })
    },

    async requestConfirmationMail(
      { flow: token, visitor }: FlowStep,
      context: MessageContext,
    ): Promise<SignInProtocol['requestConfirmationMail']['reply']> {
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { step, session, flow } = progress
      if (step !== 'mfa' || session === undefined || !confirmsByMail(progress, adaptive))
        return onward(progress)
      const { accountId, email } = session
      const order = { flow, accountId, email, token: visitor.token!, visitor }
      const sent = await adaptive.send(order, context)
      if (sent.tag === 'locked')
        return { ...flowPage(token, flow), methods: methodsFor(progress), ...sent }
      return { tag: 'sent', location: `/auth/mfa?flow=${token}` }
    },

    async showEnrolment(
      { flow, visitor }: FlowStep,
      context: MessageContext,
    ): Promise<EnrolmentPage | StepRedirect | FlowUnknown> {
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      if (progress.step !== 'enroll') return onward(progress)
      const secret = await offered(progress.session!, context)
      return { tag: 'page', ...enrolmentShown(flow, progress, secret, passkeys) }
    },

    async enrolSecondFactor(
      { flow: token, code, visitor }: Coded,
      context: MessageContext,
    ): Promise<Outcome<'enrolSecondFactor'>> {
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { step, session, flow } = progress
      if (step !== 'enroll' || session === undefined) return onward(progress)
      const secret = await offered(session, context)
      const shown: EnrolmentShown = enrolmentShown(token, progress, secret, passkeys)
      const timeStep = totpStepOf(secret.bytes, digits(code), clock.nowSecs())
      const factor = timeStep === null ? null : await sealed(secret)
      return attempted(tools, progress, session, visitor, context, {
        shown,
        proof: {
          level: 2,
          amr: amrWith(session, ['otp']),
          authTime: authTimeOf(session, clock.now()),
        },
        async succeed(tx, raised, now) {
          if (timeStep === null || factor === null) return null
          const { accountId } = session
          if (!(await confirmTotp(tx, accountId, factor, timeStep, now))) return null
          const recoveryCodes = newRecoveryCodes(random)
          const hashes = recoveryCodes.map((code) => recoveryCodeSha256(accountId, code)!)
          await replaceRecoveryCodes(tx, accountId, hashes, now)
          const fields = { outcome: 'success', method: 'totp', enrolled: true }
          const outcome: Enrolled = {
            ...flowPage(token, flow),
            tag: 'enrolled',
            token: raised.token,
            recoveryCodes,
            location: raised.location,
          }
          return { newEvents: [verified(session, context, fields)], outcome }
        },
      })
    },
  }

  /** A code by mail confirms the sign-in, which stays at its level. */
  function confirm(
    progress: Progress,
    session: BrowserSessionRow,
    shown: FactorShown,
    typed: string,
    visitor: FlowStep['visitor'],
    context: MessageContext,
  ): Promise<Outcome<'giveSecondFactor'>> {
    const { accountId, level, authTime } = session
    const amr = [...new Set([...session.amr, 'otp'])]
    return attempted(tools, progress, session, visitor, context, {
      shown,
      proof: { level, amr, authTime },
      async succeed(tx, raised, now) {
        if (!(await adaptive.spend(tx, accountId, visitor.token!, typed, now))) return null
        const newEvents = [
          verified(session, context, { outcome: 'success', method: 'mail' }),
          signedIn(session, context, amr, level),
        ]
        return { newEvents, outcome: { ...raised } satisfies SignedIn }
      },
    })
  }

  /** How a code is used up; null when the format is invalid. */
  async function spending(
    { accountId }: BrowserSessionRow,
    factor: TotpFactorRow | undefined,
    typed: string,
  ) {
    const code = digits(typed)
    if (/^[0-9]{6}$/.test(code)) {
      if (factor === undefined) return null
      const secret = await unsealed(factor)
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
}

function enrolmentShown(
  token: string,
  progress: Progress,
  secret: OfferedSecret,
  passkeys: boolean,
): EnrolmentShown {
  const page = flowPage(token, progress.flow)
  const methods = offeredMethods(progress, passkeys)
  return { ...page, methods, ...secretShown(page.tenant.name, secret) }
}
