/** The phone number on the account page: prove it, remove it. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../storage/identity/accounts.js'
import { findCodeTarget, spendCode } from '../../../storage/identity/ways/code-tickets.js'
import { insertPhone, removePhone } from '../../../storage/identity/ways/phones.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import type { OwnAccount } from '../accounts/protocol.js'
import { personAuditRecord } from '../password-recovery/records.js'
import { sha256 } from '../sessions/flows.js'
import { signInFirst, tenantOfSession } from '../sign-in/own-account.js'
import { codeSha256, readCode, readNumber } from './codes.js'
import type { PhoneTools } from './needs.js'
import type { PhoneProtocol } from './protocol.js'
import { sendCode } from './send.js'

const PATH = '/auth/account/phone'
const PURPOSE = 'phone_proof'
const BUSY = { tag: 'busy' } as const

type Reply<K extends keyof PhoneProtocol> = Promise<PhoneProtocol[K]['reply']>

export function ownPhone(tools: PhoneTools) {
  const { database, clock, random, lockout, quota, sms } = tools

  return {
    async showOwnPhone(own: OwnAccount, context: MessageContext): Reply<'showOwnPhone'> {
      const first = await signInFirst(tools, own, PATH, context)
      if (first !== null) return first
      return {
        tag: 'page',
        tenant: await tenantOfSession(database, own.session, context),
        typed: '',
      }
    },

    async requestPhoneProof(
      {
        phoneNumber: typed,
        host,
        languages,
        address,
        ...own
      }: PhoneProtocol['requestPhoneProof']['message'],
      context: MessageContext,
    ): Reply<'requestPhoneProof'> {
      const first = await signInFirst(tools, own, PATH, context)
      if (first !== null) return first
      const { session, token: secret } = own
      const { tenantId, accountId } = session
      const shown = { tenant: await tenantOfSession(database, session, context), typed }
      const read = readNumber(typed, sms.allowed_prefixes)
      if ('tag' in read) return { ...shown, ...read }
      const { number } = read
      try {
        const verdict = await quota.ask(number, address, accountId)
        if (verdict.tag === 'locked') return { ...shown, ...verdict }
        const code = { tenantId, purpose: PURPOSE, accountId, number, secret } as const
        await sendCode(tools, { ...code, host, languages }, context)
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
      return { tag: 'sent', ...shown, typed: number }
    },

    async proveOwnPhone(
      { code: typed, address, ...own }: PhoneProtocol['proveOwnPhone']['message'],
      context: MessageContext,
    ): Reply<'proveOwnPhone'> {
      const first = await signInFirst(tools, own, PATH, context)
      if (first !== null) return first
      const { session, token } = own
      const place = sha256(token)
      const number = await database.system((tx) => findCodeTarget(tx, PURPOSE, place), context)
      const tenant = await tenantOfSession(database, session, context)
      const shown = { tenant, typed: number ?? '' }
      const name = `phone:${number ?? Buffer.from(place).toString('base64url')}`
      const attempted = { name, address, signal: context.signal }
      try {
        const judged = await lockout.attempt(attempted, async (attempt) => {
          const code = readCode(typed)
          const isProved = code !== null && (await take(own, code, address, context))
          await (isProved ? attempt.succeeded() : attempt.failed())
          return isProved
        })
        if (judged.tag === 'locked') return { ...shown, ...judged }
        return judged.outcome ? { tag: 'proved' } : { tag: 'wrong', ...shown }
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
    },

    async removeOwnPhone(
      { address, ...own }: PhoneProtocol['removeOwnPhone']['message'],
      context: MessageContext,
    ): Reply<'removeOwnPhone'> {
      const first = await signInFirst(tools, own, '/auth/account', context)
      if (first !== null) return first
      const { tenantId, accountId, sub } = own.session
      return database.system(async (tx) => {
        const removed = await removePhone(tx, accountId)
        if (removed === 'unknown') return { tag: 'unknown_phone' }
        if (removed === 'last') return { tag: 'last_way_in' }
        const { requestId } = context
        const done = { tenantId, type: 'account.phone.removed', sub, address, requestId } as const
        appendAudit(tx, [personAuditRecord(random, done, clock.now())])
        return { tag: 'removed' }
      }, context)
    },
  }

  /** Uses the code and sets the number, in one transaction. */
  function take(
    { session, token }: OwnAccount,
    code: string,
    address: string,
    context: MessageContext,
  ): Promise<boolean> {
    const now = clock.now()
    const { tenantId, accountId, sub } = session
    return database.system(async (tx) => {
      if (!(await lockAccountInSession(tx, session))) return false
      const spent = await spendCode(tx, PURPOSE, sha256(token), codeSha256(token, code), now)
      if (spent === null || spent.accountId !== accountId) return false
      const loser = await insertPhone(tx, accountId, spent.target, now)
      const { requestId } = context
      const data = { moved: String(loser !== null) }
      const type = 'account.phone.verified'
      const done = { tenantId, type, sub, address, requestId, data } as const
      appendAudit(tx, [personAuditRecord(random, done, now)])
      return true
    }, context)
  }
}
