/** The second step: a TOTP code or a recovery code, and the enrolment of a TOTP secret. */
import type { Turn } from '../../runtime/kernel/actor.js'
import type { BrowserSessionRow } from '../../storage/browser-sessions.js'
import { SYSTEM_TENANT_ID } from '../../storage/seal.js'
import {
  confirmTotp,
  findOfferedTotp,
  findTotpFactor,
  offerTotp,
  replaceRecoveryCodes,
  spendRecoveryCode,
  spendTotpStep,
  type TotpFactorRow,
  totpSecretContext,
} from '../../storage/second-factors.js'
import type { Transaction } from '../../storage/sql.js'
import type { Doing } from '../browser-sessions/events.js'
import { amrWith, attempted, authTimeOf, signedIn, verified } from './attempt.js'
import {
  flowPage,
  type LoginTools,
  methodsOf,
  offeredMethods,
  onward,
  type Progress,
  readProgress,
} from './flow.js'
import type {
  Enrolled,
  EnrolmentPage,
  EnrolmentShown,
  FactorPage,
  FactorShown,
  FlowStep,
  FlowUnknown,
  LoginProtocol,
  Onward,
  SignedIn,
} from './protocol.js'
import { newRecoveryCodes, recoveryCodeSha256 } from './recovery-codes.js'
import { base32, otpauthUri, TOTP_SECRET_BYTES, totpStepOf } from './totp.js'

/** How long an offered secret stays the same when the page is opened again. */
const OFFER_MS = 15 * 60_000
const UNKNOWN_FLOW = { tag: 'unknown_flow' } as const

type Coded = FlowStep & { readonly code: string }
type Outcome<K extends 'secondFactor' | 'enrol'> = LoginProtocol[K]['reply']

export function secondFactorStep(tools: LoginTools) {
  const { database, clock, random, sealer, passkeys } = tools

  return {
    async challenge(
      { flow, visitor }: FlowStep,
      turn: Turn,
    ): Promise<FactorPage | Onward | FlowUnknown> {
      const progress = await readProgress(tools, flow, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      if (progress.step !== 'mfa') return onward(progress)
      return {
        tag: 'page',
        ...flowPage(flow, progress.flow),
        methods: methodsOf(progress, passkeys),
      }
    },

    async secondFactor(
      { flow: token, code, visitor }: Coded,
      turn: Turn,
    ): Promise<Outcome<'secondFactor'>> {
      const progress = await readProgress(tools, token, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      const { step, session, flow } = progress
      if (step !== 'mfa' || session === undefined) return onward(progress)
      const methods = methodsOf(progress, passkeys)
      const shown: FactorShown = { ...flowPage(token, flow), methods }
      const { accountId } = session
      const factor = await database.system((tx) => findTotpFactor(tx, accountId), turn)
      const spend = methods.code !== null ? await spending(session, factor, code) : null
      const amr = amrWith(session, ['otp'])
      return attempted(tools, progress, session, visitor, turn, {
        shown,
        proof: { level: 2, amr, authTime: authTimeOf(session, clock.now()) },
        async succeed(tx, raised, now) {
          if (spend === null || !(await spend.run(tx, now))) return null
          const told: Doing[] = [
            verified(session, turn, { outcome: 'success', method: spend.method }),
          ]
          if (session.pending) told.push(signedIn(session, turn, amr, 2))
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
      return { tag: 'page', ...enrolmentShown(flow, progress, secret, passkeys) }
    },

    async enrol({ flow: token, code, visitor }: Coded, turn: Turn): Promise<Outcome<'enrol'>> {
      const progress = await readProgress(tools, token, visitor.token, turn)
      if (progress === undefined) return UNKNOWN_FLOW
      const { step, session, flow } = progress
      if (step !== 'enroll' || session === undefined) return onward(progress)
      const secret = await offeredSecret(session, turn)
      const shown: EnrolmentShown = enrolmentShown(token, progress, secret, passkeys)
      const timeStep = totpStepOf(secret.bytes, digits(code), clock.nowSecs())
      return attempted(tools, progress, session, visitor, turn, {
        shown,
        proof: {
          level: 2,
          amr: amrWith(session, ['otp']),
          authTime: authTimeOf(session, clock.now()),
        },
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

  /** How a code is used up; null when it is none. */
  async function spending(
    { accountId }: BrowserSessionRow,
    factor: TotpFactorRow | undefined,
    typed: string,
  ) {
    const code = digits(typed)
    if (/^[0-9]{6}$/.test(code)) {
      if (factor === undefined) return null
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
    const secretSealed = await sealer.seal(SYSTEM_TENANT_ID, totpSecretContext(id), fresh)
    const counts = await database.system(
      (tx) => offerTotp(tx, accountId, { id, secretSealed, createdAt: now }, since),
      turn,
    )
    if (counts === undefined) throw new Error('a secret that was just offered is gone')
    return { id: counts.id, bytes: counts.id === id ? fresh : await opened(counts), email }
  }

  function opened({ id, secretSealed }: TotpFactorRow): Promise<Uint8Array> {
    return sealer.open(SYSTEM_TENANT_ID, totpSecretContext(id), secretSealed)
  }
}

type OfferedSecret = { readonly id: string; readonly bytes: Uint8Array; readonly email: string }

/** People type codes with spaces, as apps show them. */
const digits = (typed: string) => typed.replaceAll(/[\s-]/g, '')

function enrolmentShown(
  token: string,
  progress: Progress,
  secret: OfferedSecret,
  passkeys: boolean,
): EnrolmentShown {
  const page = flowPage(token, progress.flow)
  const methods = offeredMethods(progress, passkeys)
  const text = base32(secret.bytes)
  return {
    ...page,
    methods,
    secret: text,
    otpauthUri: otpauthUri(page.tenant.name, secret.email, text),
  }
}
