/** A proved phone number as the first factor. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { findCodeTarget, spendCode } from '../../../storage/identity/ways/code-tickets.js'
import { findSignInByPhone, usePhone } from '../../../storage/identity/ways/phones.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { recordSignInFailure } from '../sessions/events.js'
import { sha256 } from '../sessions/flows.js'
import { flowPage, onward, type Progress, progressIn } from '../sign-in/flow.js'
import { openSessionInFlow } from '../sign-in/login-challenges.js'
import type { FlowStep } from '../sign-in/protocol.js'
import { codeSha256, readCode, readNumber } from './codes.js'
import type { PhoneTools } from './needs.js'
import type { PhoneProtocol } from './protocol.js'
import { sendCode } from './send.js'

/** RFC 8176: a code sent by text message. */
const AMR = ['sms']
const ABSENT = { tag: 'absent' } as const
const BUSY = { tag: 'busy' } as const
const PURPOSE = 'phone_sign_in'

type Reply<K extends keyof PhoneProtocol> = Promise<PhoneProtocol[K]['reply']>

export function phoneSignIn(tools: PhoneTools) {
  const { database, clock, lockout, quota, sms } = tools
  const needsLogin = ({ step, session }: Progress) => step === 'login' || session?.pending === true

  return {
    async showPhoneSignIn(
      { flow, visitor }: FlowStep,
      context: MessageContext,
    ): Reply<'showPhoneSignIn'> {
      if (!sms.enabled) return ABSENT
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      if (!needsLogin(progress)) return onward(progress)
      return { tag: 'page', ...flowPage(flow, progress.flow), typed: '' }
    },

    async requestSignInText(
      message: PhoneProtocol['requestSignInText']['message'],
      context: MessageContext,
    ): Reply<'requestSignInText'> {
      if (!sms.enabled) return ABSENT
      const { flow: token, visitor, phoneNumber: typed, host, languages } = message
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { flow } = progress
      const { tenantId, uiLocales } = flow
      const shown = { ...flowPage(token, flow), typed }
      const read = readNumber(typed, sms.allowed_prefixes)
      if ('tag' in read) return { ...shown, ...read }
      const { number } = read
      try {
        const verdict = await quota.ask(number, visitor.address)
        if (verdict.tag === 'locked') return { ...shown, ...verdict }
        // Accounts are global.
        const found = await database.system(
          (tx) => findSignInByPhone(tx, tenantId, number),
          context,
        )
        const accountId = found?.accountId ?? null
        const code = { tenantId, purpose: PURPOSE, accountId, number, secret: token } as const
        await sendCode(tools, { ...code, host, uiLocales, languages }, context)
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
      return { tag: 'sent', location: `/auth/login/phone/code?flow=${token}` }
    },

    async showTextCode(
      { flow, visitor }: FlowStep,
      context: MessageContext,
    ): Reply<'showTextCode'> {
      if (!sms.enabled) return ABSENT
      const progress = await progressIn(tools, flow, visitor.token, context)
      if ('tag' in progress) return progress
      if (!needsLogin(progress)) return onward(progress)
      return { tag: 'page', ...flowPage(flow, progress.flow) }
    },

    async signInWithTextCode(
      { flow: token, code: typed, visitor }: PhoneProtocol['signInWithTextCode']['message'],
      context: MessageContext,
    ): Reply<'signInWithTextCode'> {
      if (!sms.enabled) return ABSENT
      const progress = await progressIn(tools, token, visitor.token, context)
      if ('tag' in progress) return progress
      const { flow } = progress
      const { tenantId } = flow
      const shown = flowPage(token, flow)
      const place = sha256(token)
      const target = await database.system((tx) => findCodeTarget(tx, PURPOSE, place), context)
      // Failures count per number, over all sign-ins, so that new codes give no new guesses.
      const name = `phone:${target ?? Buffer.from(place).toString('base64url')}`
      const attempted = { name, address: visitor.address, signal: context.signal }
      try {
        const judged = await lockout.attempt(attempted, async (attempt) => {
          const code = readCode(typed)
          const found = code === null ? null : await spend(tenantId, token, code, context)
          if (found !== null) {
            // Without the slot of this attempt.
            const failures = (await lockout.used(name)) - 1
            await attempt.succeeded()
            return { found, failures }
          }
          const locked = await attempt.failed()
          const { address } = visitor
          await recordSignInFailure(
            tools,
            { tenantId, factor: 'sms', sub: null, locked, address },
            context,
          )
          return null
        })
        if (judged.tag === 'locked') return { ...shown, ...judged }
        if (judged.outcome === null) return { tag: 'wrong', ...shown }
        const login = { flow, token, amr: AMR, visitor, ...judged.outcome }
        return await openSessionInFlow(tools, login, context)
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
    },
  }

  /** Uses the code, if the number still belongs to the account that it was sent for. */
  function spend(tenantId: string, token: string, code: string, context: MessageContext) {
    const now = clock.now()
    return database.system(async (tx) => {
      const spent = await spendCode(tx, PURPOSE, sha256(token), codeSha256(token, code), now)
      if (spent === null) return null
      const found = await findSignInByPhone(tx, tenantId, spent.target)
      if (found?.accountId !== spent.accountId) return null
      return (await usePhone(tx, found.accountId, spent.target, now)) ? found : null
    }, context)
  }
}
