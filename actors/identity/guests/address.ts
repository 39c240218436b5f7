/** A guest proves an email address, and the account becomes an ordinary one. */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { lockAccountInSession } from '../../../storage/identity/accounts.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import {
  findCodeTarget,
  insertCodeTicket,
  spendCode,
} from '../../../storage/identity/ways/code-tickets.js'
import { claimAddress, isAddressTaken } from '../../../storage/identity/ways/guests.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { isEmail } from '../../domain/email.js'
import { brandingOf, type PageTenant } from '../../domain/tenants/branding.js'
import { newUserCode, readUserCode, showUserCode } from '../../domain/user-code.js'
import { proveMailbox } from '../accounts/mailbox-proof.js'
import type { OwnAccount } from '../accounts/protocol.js'
import { sha256 } from '../sessions/flows.js'
import type { GuestsTools } from './needs.js'
import type { GuestsProtocol } from './protocol.js'

const PURPOSE = 'address_proof'
const NOT_GUEST = { tag: 'not_guest' } as const
const BUSY = { tag: 'busy' } as const

type Reply<K extends keyof GuestsProtocol> = Promise<GuestsProtocol[K]['reply']>

/** A session of a guest has no address. */
const isGuest = ({ session }: OwnAccount) => session.email === '' && !session.confined

export function addressSteps(tools: GuestsTools) {
  const { database, clock, random, lockout, mail, mailQuota, anonymous } = tools

  return {
    async showNewEmail(own: OwnAccount, context: MessageContext): Reply<'showNewEmail'> {
      if (!isGuest(own)) return NOT_GUEST
      return { tag: 'page', tenant: await tenantOf(own, context), email: '' }
    },

    async requestEmailProof(
      { email: typed, languages, address, ...own }: GuestsProtocol['requestEmailProof']['message'],
      context: MessageContext,
    ): Reply<'requestEmailProof'> {
      if (!isGuest(own)) return NOT_GUEST
      const { session, token } = own
      const { tenantId, accountId } = session
      const email = typed.trim().toLowerCase()
      const tenant = await tenantOf(own, context)
      const shown = { tenant, email }
      if (!isEmail(email)) return { tag: 'invalid_email', ...shown }
      try {
        const quota = await mailQuota.ask(`${tenantId}:${email}`, address)
        if (quota.tag === 'locked') return { ...shown, ...quota }
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
      const now = clock.now()
      const expiresAt = new Date(now.getTime() + anonymous.code_ttl_secs * 1000)
      const code = newUserCode((count) => random.bytes(count))
      const sealed = await mail.seal({
        tenantId,
        to: email,
        known: true,
        content: { kind: 'confirmation_code', code: showUserCode(code), until: expiresAt },
        header: { tenant: tenant.name, color: tenant.color, locale: tenant.locale, languages },
        expiresAt,
      })
      await database.tenant(
        tenantId,
        async (tx) => {
          await insertCodeTicket(tx, {
            tenantId,
            id: random.uuid(),
            purpose: PURPOSE,
            accountId,
            target: email,
            codeSha256: codeSha256(token, code),
            placeSha256: sha256(token),
            attempts: anonymous.code_max_attempts,
            createdAt: now,
            expiresAt,
          })
          await mail.queue(tx, sealed)
        },
        context,
      )
      return { tag: 'sent', ...shown }
    },

    async proveOwnEmail(
      { code: typed, address, ...own }: GuestsProtocol['proveOwnEmail']['message'],
      context: MessageContext,
    ): Reply<'proveOwnEmail'> {
      if (!isGuest(own)) return NOT_GUEST
      const { session, token } = own
      const place = sha256(token)
      const email = await database.system((tx) => findCodeTarget(tx, PURPOSE, place), context)
      const shown = { tenant: await tenantOf(own, context), email: email ?? '' }
      const attempted = { name: `address:${session.accountId}`, address, signal: context.signal }
      try {
        const judged = await lockout.attempt(attempted, async (attempt) => {
          const code = readUserCode(typed)
          const outcome = code === null ? 'wrong' : await taken(own, code, address, context)
          await (outcome === 'wrong' ? attempt.failed() : attempt.succeeded())
          return outcome
        })
        if (judged.tag === 'locked') return { ...shown, ...judged }
        return judged.outcome === 'proved' ? { tag: 'proved' } : { tag: judged.outcome, ...shown }
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
    },
  }

  /** As `take`, when another account got the address concurrently as well. */
  async function taken(
    own: OwnAccount,
    code: string,
    address: string,
    context: MessageContext,
  ): Promise<'proved' | 'wrong' | 'taken'> {
    try {
      return await take(own, code, address, context)
    } catch (error) {
      if (isAddressTaken(error)) return 'taken'
      throw error
    }
  }

  /** Uses the code, gives the account its address and marks it as verified, in one transaction. */
  function take(
    { session, token }: OwnAccount,
    code: string,
    address: string,
    context: MessageContext,
  ): Promise<'proved' | 'wrong' | 'taken'> {
    const now = clock.now()
    const { tenantId, accountId, sub } = session
    return database.system(async (tx) => {
      if (!(await lockAccountInSession(tx, session))) return 'wrong'
      const spent = await spendCode(tx, PURPOSE, sha256(token), codeSha256(token, code), now)
      if (spent === null || spent.accountId !== accountId) return 'wrong'
      const claimed = await claimAddress(tx, accountId, spent.target, now)
      if (claimed === 'taken') return 'taken'
      if (claimed === 'not_guest') return 'wrong'
      const proof = { accountId, how: 'verification', inOwnSession: true, tenantId, sub } as const
      await proveMailbox(tx, tools, { ...proof, address }, context, now)
      return 'proved'
    }, context)
  }

  async function tenantOf(
    { session: { tenantId } }: OwnAccount,
    context: MessageContext,
  ): Promise<PageTenant> {
    const branding = await database.system((tx) => findTenantBranding(tx, tenantId), context)
    if (branding === undefined) throw new Error('the tenant of an open session was not found')
    return brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
  }
}

/** @param secret the session token, which is not stored. */
function codeSha256(secret: string, code: string): Uint8Array {
  return createHash('sha256').update(`svc-address-code-v1\n${secret}\n${code}`).digest()
}
