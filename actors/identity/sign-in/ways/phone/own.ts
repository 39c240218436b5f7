/** The phone number on the account page: prove it, remove it. */
import type { MessageContext } from '../../../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../../../storage/identity/accounts.js'
import { findCodeTarget, spendCode } from '../../../../../storage/identity/ways/code-tickets.js'
import { insertPhone, removePhone } from '../../../../../storage/identity/ways/phones.js'
import type { OwnAccount } from '../../account/protocol.js'
import { sha256 } from '../../../../domain/secret-hashes.js'
import { orBusy } from '../../limits/lockout.js'
import { auditOwn, signInFirst, tenantOfSession } from '../../account/own-account.js'
import { textCodeSha256, readCode, readNumber } from './codes.js'
import type { PhoneHandler, PhoneTools } from './needs.js'
import { sendCode } from './send.js'

const PATH = '/auth/account/phone'
const PURPOSE = 'phone_proof'

export const showOwnPhone: PhoneHandler<'showOwnPhone'> = async (tools, own, context) => {
  const first = await signInFirst(tools, own, PATH, context)
  if (first !== null) return first
  const tenant = await tenantOfSession(tools.database, own.session, context)
  return { tag: 'page', tenant, typed: '' }
}

export const requestPhoneProof: PhoneHandler<'requestPhoneProof'> = async (
  tools,
  { phoneNumber: typed, host, languages, address, ...own },
  context,
) => {
  const first = await signInFirst(tools, own, PATH, context)
  if (first !== null) return first
  const { session, token: secret } = own
  const { tenantId, accountId } = session
  const shown = { tenant: await tenantOfSession(tools.database, session, context), typed }
  const read = readNumber(typed, tools.sms.allowed_prefixes)
  if ('tag' in read) return { ...shown, ...read }
  const { number } = read
  return orBusy(async () => {
    const verdict = await tools.quota.ask(number, address, accountId)
    if (verdict.tag === 'locked') return { ...shown, ...verdict }
    const code = { tenantId, purpose: PURPOSE, accountId, number, secret } as const
    await sendCode(tools, { ...code, host, languages }, context)
    return { tag: 'sent', ...shown, typed: number }
  })
}

export const proveOwnPhone: PhoneHandler<'proveOwnPhone'> = async (
  tools,
  { code: typed, address, ...own },
  context,
) => {
  const first = await signInFirst(tools, own, PATH, context)
  if (first !== null) return first
  const { database, lockout } = tools
  const place = sha256(own.token)
  const number = await database.system((tx) => findCodeTarget(tx, PURPOSE, place), context)
  const tenant = await tenantOfSession(database, own.session, context)
  const name = `phone:${number ?? Buffer.from(place).toString('base64url')}`
  const judged = await orBusy(() =>
    lockout.attempt({ name, address, signal: context.signal }, async (attempt) => {
      const code = readCode(typed)
      const isProved = code !== null && (await take(tools, own, code, address, context))
      await (isProved ? attempt.succeeded() : attempt.failed())
      return isProved
    }),
  )
  if (judged.tag === 'busy') return judged
  const shown = { tenant, typed: number ?? '' }
  if (judged.tag === 'locked') return { ...shown, ...judged }
  return judged.outcome ? { tag: 'proved' } : { tag: 'wrong', ...shown }
}

export const removeOwnPhone: PhoneHandler<'removeOwnPhone'> = async (
  tools,
  { address, ...own },
  context,
) => {
  const first = await signInFirst(tools, own, '/auth/account', context)
  if (first !== null) return first
  const { session } = own
  return tools.database.system(async (tx) => {
    const removed = await removePhone(tx, session.accountId)
    if (removed === 'unknown') return { tag: 'unknown_phone' }
    if (removed === 'last') return { tag: 'last_way_in' }
    const done = { type: 'account.phone.removed', address } as const
    auditOwn(tx, tools, session, context, done)
    return { tag: 'removed' }
  }, context)
}

/** Uses the code and sets the number, in one transaction. */
function take(
  tools: PhoneTools,
  { session, token }: OwnAccount,
  code: string,
  address: string,
  context: MessageContext,
): Promise<boolean> {
  const now = tools.clock.now()
  const { accountId } = session
  return tools.database.system(async (tx) => {
    if (!(await lockAccountInSession(tx, session))) return false
    const spent = await spendCode(tx, PURPOSE, sha256(token), textCodeSha256(token, code), now)
    if (spent === null || spent.accountId !== accountId) return false
    const loser = await insertPhone(tx, accountId, spent.target, now)
    const data = { moved: String(loser !== null) }
    const done = { type: 'account.phone.verified', address, data } as const
    auditOwn(tx, tools, session, context, done)
    return true
  }, context)
}
