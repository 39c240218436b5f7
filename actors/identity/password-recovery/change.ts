/** Password change and email verification of a signed-in user. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  findAccountPassword,
  lockAccountInSession,
  setAccountPassword,
} from '../../../storage/identity/accounts.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import {
  findBrowserSession,
  renewBrowserSession,
} from '../../../storage/identity/browser-sessions.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { findTicket, useTicket, voidTickets } from '../../../storage/operations/mail-tickets.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { findTenantUserOfAccountSub } from '../../../storage/identity/tenant-users.js'
import type { BrowserSession } from '../sessions/protocol.js'
import { sha256 } from '../sessions/flows.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { expiredLink, readExpiredLink } from '../sign-in/expired-link.js'
import { leaveConfined } from '../sign-in/own-account.js'
import { addressAt, tenantHostOf } from '../sign-in/tenant-host.js'
import type { PageTenant } from '../../domain/tenants/branding.js'
import { sendWithTicket } from '../../platform/mail/with-ticket.js'
import { SESSION_TOKEN_BYTES } from '../sign-in/session.js'
import { choosePassword } from './choose-password.js'
import { revokeForPassword } from './revocation.js'
import { proveMailbox } from '../accounts/mailbox-proof.js'
import { ABSENT, BUSY, type PasswordRecoveryTools, LINK_TOKEN_BYTES } from './needs.js'
import type { ChangeShown, PasswordRecoveryProtocol } from './protocol.js'
import { personAuditRecord } from './records.js'

const NOTICE_EXPIRY_MS = 3 * 86_400_000
const CHANGE_PATH = '/auth/account/password'
const VERIFICATION_MS = 86_400_000

type Message<K extends keyof PasswordRecoveryProtocol> = PasswordRecoveryProtocol[K]['message']
type Outcome<K extends keyof PasswordRecoveryProtocol> = Promise<
  PasswordRecoveryProtocol[K]['reply']
>

export function changeSteps(tools: PasswordRecoveryTools) {
  const { database, clock, random, passwords, mail, quota, lockout, selfService, issuer } = tools
  const { tenants } = tools

  async function brandingFor(tenantId: string, context: MessageContext): Promise<PageTenant> {
    const branding = await database.tenant(
      tenantId,
      (tx) => findTenantBranding(tx, tenantId),
      context,
    )
    if (branding === undefined) throw new Error('the tenant of an open session was not found')
    return brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
  }

  const shownOf = async (
    session: BrowserSession,
    context: MessageContext,
  ): Promise<ChangeShown> => ({
    tenant: await brandingFor(session.tenantId, context),
    email: session.email,
  })

  return {
    async showPasswordChange(
      own: Message<'showPasswordChange'>,
      context: MessageContext,
    ): Outcome<'showPasswordChange'> {
      const first = await leaveConfined(tools, own, CHANGE_PATH, context)
      return first ?? { tag: 'page', ...(await shownOf(own.session, context)) }
    },

    async changePassword(
      message: Message<'changePassword'>,
      context: MessageContext,
    ): Outcome<'changePassword'> {
      const { session, current, password, visitor, languages } = message
      const { tenantId, accountId, email, sub } = session
      const own = { session, token: visitor.token ?? '' }
      const first = await leaveConfined(tools, own, CHANGE_PATH, context)
      if (first !== null) return first
      const shown = await shownOf(session, context)
      try {
        const name = `password:${accountId}`
        const attempted = { name, address: visitor.address, signal: context.signal }
        const judged = await lockout.attempt(attempted, async (attempt) => {
          // Accounts are global.
          const phc = await database.system((tx) => findAccountPassword(tx, accountId), context)
          const verdict = await passwords.verify({ phc, password: current }, context)
          if (verdict.tag === 'mismatch') await attempt.failed()
          if (verdict.tag === 'match') await attempt.succeeded()
          return verdict.tag
        })
        if (judged.tag === 'locked') return { ...shown, ...judged }
        if (judged.outcome === 'mismatch') return { tag: 'wrong', ...shown }
        if (judged.outcome === 'busy') return BUSY
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
      const chosen = await choosePassword(passwords, password, email, context)
      if (chosen.tag === 'busy') return chosen
      if (chosen.tag !== 'hashed') return { ...chosen, ...shown }
      const now = clock.now()
      const token = random.token(SESSION_TOKEN_BYTES)
      const { name, color, locale } = shown.tenant
      const sealedMail = await mail.seal({
        tenantId,
        to: email,
        known: true,
        content: { kind: 'password_changed', at: now },
        header: { tenant: name, color, locale, languages },
        expiresAt: new Date(now.getTime() + NOTICE_EXPIRY_MS),
      })
      const done = await database.system(async (tx) => {
        const renewal = {
          tenantId,
          id: session.id,
          tokenSha256: sha256(visitor.token ?? ''),
          newTokenSha256: sha256(token),
          newId: random.uuid(),
        }
        if (!(await lockAccountInSession(tx, session))) return false
        if (!(await renewBrowserSession(tx, renewal, now))) return false
        await setAccountPassword(tx, accountId, chosen.phc, now)
        const ended = { accountId, exceptId: renewal.newId, reason: 'password_changed' } as const
        await revokeForPassword(tx, tools, { ...ended, address: visitor.address }, context, now)
        await voidTickets(tx, accountId, null, 'password_reset', now)
        await voidTickets(tx, accountId, null, 'sign_in', now)
        await mail.queue(tx, sealedMail)
        const { address } = visitor
        const type = 'account.password.changed'
        const done = { tenantId, type, sub, address, requestId: context.requestId } as const
        appendAudit(tx, [personAuditRecord(random, done, now)])
        return true
      }, context)
      return done ? { tag: 'changed', token } : { tag: 'wrong', ...shown }
    },

    async requestEmailVerification(
      { session, visitor, languages, browserId, host }: Message<'requestEmailVerification'>,
      context: MessageContext,
    ): Outcome<'requestEmailVerification'> {
      if (!selfService.enabled || session.confined || session.email === '') return ABSENT
      if (session.emailVerified) return { tag: 'verified' }
      const { tenantId, accountId, email } = session
      try {
        const allowed = await quota.ask(`${tenantId}:${email.toLowerCase()}`, visitor.address)
        if (allowed.tag === 'locked') return allowed
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
      const tenant = await brandingFor(tenantId, context)
      const now = clock.now()
      const expiresAt = new Date(now.getTime() + VERIFICATION_MS)
      const token = random.token(LINK_TOKEN_BYTES)
      // The host where the user is signed in. Cookies of another host do not reach it.
      const origin = addressAt(issuer, await tenantHostOf(tenants, tenantId, host, context))
      const sealedMail = await mail.seal({
        tenantId,
        to: email,
        known: true,
        content: {
          kind: 'email_verification',
          link: `${origin}/auth/email/${token}`,
          until: expiresAt,
        },
        header: { tenant: tenant.name, color: tenant.color, locale: tenant.locale, languages },
        expiresAt,
      })
      const ticket = {
        tenantId,
        purpose: 'email_verification',
        accountId,
        email,
        linkSha256: sha256(token),
        browserSha256: sha256(browserId),
        createdAt: now,
        expiresAt,
      } as const
      await database.tenant(
        tenantId,
        (tx) => sendWithTicket(tx, tools, ticket, sealedMail),
        context,
      )
      return { tag: 'requested', tenant }
    },

    async showEmailVerification(
      { token }: Message<'showEmailVerification'>,
      context: MessageContext,
    ) {
      const hash = sha256(token)
      const ticket = await database.system(
        (tx) => findTicket(tx, 'email_verification', hash, clock.now()),
        context,
      )
      if (ticket === undefined)
        return readExpiredLink(database, 'email_verification', hash, context)
      const { tenantId, tenantName, tenantSettings, email } = ticket
      const tenant = brandingOf(tenantId, tenantName, tenantSettings)
      return { tag: 'page', tenant, email } as const
    },

    // Accepted only in the browser that requested the mail, signed in to this account. Otherwise an attacker could
    // create the account, request the mail, and keep the sign-in methods they set.
    async verifyEmail(
      { token, browserId, visitor }: Message<'verifyEmail'>,
      context: MessageContext,
    ): Outcome<'verifyEmail'> {
      const now = clock.now()
      const hash = sha256(token)
      return database.system(async (tx) => {
        const ticket = await findTicket(tx, 'email_verification', hash, now)
        if (ticket === undefined) return expiredLink(tx, 'email_verification', hash)
        const { tenantId, tenantName, tenantSettings, email, accountId } = ticket
        const tenant = brandingOf(tenantId, tenantName, tenantSettings)
        const isHere =
          ticket.browserSha256 !== null &&
          Buffer.compare(ticket.browserSha256, sha256(browserId)) === 0
        if (!isHere || !(await isSignedIn(tx, visitor.token, accountId, now)))
          return { tag: 'other_browser', tenant } as const
        const used = await useTicket(tx, 'email_verification', hash, now)
        if (used === undefined) return expiredLink(tx, 'email_verification', hash)
        const sub = (await findTenantUserOfAccountSub(tx, tenantId, accountId)) ?? null
        const { address } = visitor
        const proof = { accountId, how: 'verification', inOwnSession: true, tenantId, sub } as const
        await proveMailbox(tx, tools, { ...proof, address }, context, now)
        return { tag: 'done', tenant, email } as const
      }, context)
    },
  }
}

/** A confined session does not count: the tenant's provider opened it, perhaps without the person. */
async function isSignedIn(
  tx: Transaction,
  token: string | null,
  accountId: string,
  now: Date,
): Promise<boolean> {
  if (token === null) return false
  const session = await findBrowserSession(tx, sha256(token), now)
  return session?.accountId === accountId && !session.pending && !session.confined
}
