/** A proved phone number as the first factor. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { findCodeTarget, spendCode } from '../../../../../storage/identity/ways/code-tickets.js'
import { findSignInByPhone, usePhone } from '../../../../../storage/identity/ways/phones.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { firstFactorPage, flowPage, progressIn } from '../../flow/progress.js'
import { orBusy } from '../../limits/lockout.js'
import { attemptFirstFactor, openSessionInFlow } from '../../first-factor.js'
import { textCodeSha256, readCode, readNumber } from './codes.js'
import type { PhoneHandler, PhoneTools } from './needs.js'
import { sendCode } from './send.js'

/** RFC 8176: a code sent by text message. */
const AMR = ['sms']
const ABSENT = { tag: 'absent' } as const
const PURPOSE = 'phone_sign_in'

export const showPhoneSignIn: PhoneHandler<'showPhoneSignIn'> = async (tools, message, context) => {
  const shown = await showTextCode(tools, message, context)
  return shown.tag === 'page' ? { ...shown, typed: '' } : shown
}

export const requestSignInText: PhoneHandler<'requestSignInText'> = async (
  tools,
  { flow: token, visitor, phoneNumber: typed, host, languages },
  context,
) => {
  const { database, quota, sms } = tools
  if (!sms.enabled) return ABSENT
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  const { flow } = progress
  const { tenantId, uiLocales } = flow
  const shown = { ...flowPage(token, flow), typed }
  const read = readNumber(typed, sms.allowed_prefixes)
  if ('tag' in read) return { ...shown, ...read }
  const { number } = read
  return orBusy(async () => {
    const verdict = await quota.ask(number, visitor.address)
    if (verdict.tag === 'locked') return { ...shown, ...verdict }
    // Accounts are global.
    const found = await database.system((tx) => findSignInByPhone(tx, tenantId, number), context)
    const accountId = found?.accountId ?? null
    const code = { tenantId, purpose: PURPOSE, accountId, number, secret: token } as const
    await sendCode(tools, { ...code, host, uiLocales, languages }, context)
    return { tag: 'sent', location: `/auth/login/phone/code?flow=${token}` }
  })
}

export const showTextCode: PhoneHandler<'showTextCode'> = async (tools, message, context) =>
  tools.sms.enabled ? firstFactorPage(tools, message, context) : ABSENT

export const signInWithTextCode: PhoneHandler<'signInWithTextCode'> = async (
  tools,
  { flow: token, code: typed, visitor },
  context,
) => {
  const { database, lockout, sms } = tools
  if (!sms.enabled) return ABSENT
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  const { flow } = progress
  const { tenantId } = flow
  const place = sha256(token)
  const target = await database.system((tx) => findCodeTarget(tx, PURPOSE, place), context)
  // Failures count per number, over all sign-ins, so that new codes give no new guesses.
  const name = `phone:${target ?? Buffer.from(place).toString('base64url')}`
  const judged = await attemptFirstFactor(
    tools,
    { tenantId, factor: 'sms', name, address: visitor.address },
    async () => {
      const code = readCode(typed)
      const person = code === null ? null : await spend(tools, tenantId, token, code, context)
      if (person === null) return { tag: 'wrong' }
      // Without the slot of this attempt.
      const failures = (await lockout.used(name)) - 1
      return { tag: 'found', found: { found: person, failures } }
    },
    context,
  )
  if (judged.tag === 'busy') return judged
  if (judged.tag !== 'found') return { ...flowPage(token, flow), ...judged }
  return openSessionInFlow(tools, { flow, token, amr: AMR, visitor, ...judged.found }, context)
}

/** Uses the code, if the number still belongs to the account that it was sent for. */
function spend(
  { database, clock }: PhoneTools,
  tenantId: string,
  token: string,
  code: string,
  context: MessageContext,
) {
  const now = clock.now()
  return database.system(async (tx) => {
    const spent = await spendCode(tx, PURPOSE, sha256(token), textCodeSha256(token, code), now)
    if (spent === null) return null
    const found = await findSignInByPhone(tx, tenantId, spent.target)
    if (found?.accountId !== spent.accountId) return null
    return (await usePhone(tx, found.accountId, spent.target, now)) ? found : null
  }, context)
}
