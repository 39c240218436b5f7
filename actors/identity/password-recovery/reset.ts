/** Forgot password: requesting and completing a reset. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { setAccountPassword } from '../../../storage/identity/accounts.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { CoordinationUnavailable } from '../../../storage/platform/coordination/port.js'
import { findTicket, useTicket, voidTickets } from '../../../storage/operations/mail-tickets.js'
import { removeFactors } from '../../../storage/identity/second-factors.js'
import { findSignIn } from '../../../storage/identity/sign-ins.js'
import { sha256 } from '../sessions/flows.js'
import { isEmail } from '../../domain/email.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { expiredLink, readExpiredLink } from '../sign-in/expired-link.js'
import { beginAccountFlow, flowPage, progressIn } from '../sign-in/flow.js'
import { sendWithTicket } from '../../platform/mail/with-ticket.js'
import { choosePassword } from './choose-password.js'
import { revokeForPassword } from './revocation.js'
import { dropUnproved, proveMailbox } from '../accounts/mailbox-proof.js'
import { ABSENT, BUSY, type PasswordRecoveryTools, LINK_TOKEN_BYTES } from './needs.js'
import type { PasswordRecoveryProtocol, ForgotShown } from './protocol.js'
import { personAuditRecord } from './records.js'

/** Expiry of the "password changed" notice in the mail queue. */
const NOTICE_EXPIRY_MS = 3 * 86_400_000

type Message<K extends keyof PasswordRecoveryProtocol> = PasswordRecoveryProtocol[K]['message']
type Outcome<K extends keyof PasswordRecoveryProtocol> = Promise<
  PasswordRecoveryProtocol[K]['reply']
>

async function showForgottenPassword(
  tools: PasswordRecoveryTools,
  { flow: named, visitor, ...wanted }: Message<'showForgottenPassword'>,
  context: MessageContext,
): Outcome<'showForgottenPassword'> {
  if (!tools.selfService.enabled) return ABSENT
  const flow = named || (await beginForgotFlow(tools, wanted, context)) || ''
  const progress = await progressIn(tools, flow, visitor.token, context)
  if ('tag' in progress) return progress
  const email = progress.flow.loginHint ?? ''
  const captcha = tools.gate.widget()
  return { tag: 'page', ...flowPage(flow, progress.flow), email, captcha }
}

/** Null if neither the request nor its host names a tenant: the sign-in page asks. */
async function beginForgotFlow(
  tools: PasswordRecoveryTools,
  wanted: Omit<Message<'showForgottenPassword'>, 'flow' | 'visitor'>,
  context: MessageContext,
): Promise<string | null> {
  const resolved = await tools.tenants.resolve(wanted.tenant, context)
  const isNamed = resolved.tag === 'resolved' && resolved.by !== 'control_plane'
  return isNamed ? beginAccountFlow(tools, wanted, context) : null
}

export function resetSteps(tools: PasswordRecoveryTools) {
  const { database, clock, random, passwords, mail, quota, selfService, issuer, gate } = tools
  const linkTo = (token: string) => `${issuer}/auth/password/reset/${token}`

  return {
    showForgottenPassword: (message: Message<'showForgottenPassword'>, context: MessageContext) =>
      showForgottenPassword(tools, message, context),

    // Takes the same time and returns the same response whether or not the address has an account.
    async requestPasswordReset(
      message: Message<'requestPasswordReset'>,
      context: MessageContext,
    ): Outcome<'requestPasswordReset'> {
      if (!selfService.enabled) return ABSENT
      const { flow: flowToken, visitor, languages } = message
      const progress = await progressIn(tools, flowToken, visitor.token, context)
      if ('tag' in progress) return progress
      const { flow } = progress
      const { tenantId } = flow
      const email = message.email.trim()
      const shown: ForgotShown = { ...flowPage(flowToken, flow), email, captcha: gate.widget() }
      if (!isEmail(email)) return { tag: 'invalid_email', ...shown }
      try {
        const judged = await gate.judge(message.captcha, visitor.address)
        if (judged.tag === 'captcha') return { ...shown, tag: 'captcha' }
        if (judged.tag === 'unavailable') return { tag: 'captcha_unavailable' }
        if (judged.tag === 'throttled') return { ...judged, tag: 'captcha_throttled' }
        const allowed = await quota.ask(`${tenantId}:${email.toLowerCase()}`, visitor.address)
        if (allowed.tag === 'locked') return { ...shown, ...allowed }
      } catch (error) {
        if (error instanceof CoordinationUnavailable) return BUSY
        throw error
      }
      const found = await database.system((tx) => findSignIn(tx, tenantId, email), context)
      const now = clock.now()
      const expiresAt = new Date(now.getTime() + selfService.reset_ttl_secs * 1000)
      const token = random.token(LINK_TOKEN_BYTES)
      const { name: tenant, color, locale } = shown.tenant
      const sealedMail = await mail.seal({
        tenantId,
        to: found?.email ?? email,
        known: found !== undefined,
        content: { kind: 'password_reset', link: linkTo(token), until: expiresAt },
        header: { tenant, color, locale, uiLocales: flow.uiLocales, languages },
        expiresAt,
      })
      const ticket = {
        tenantId,
        purpose: 'password_reset',
        accountId: found?.accountId ?? null,
        email,
        linkSha256: sha256(token),
        createdAt: now,
        expiresAt,
      } as const
      await database.tenant(
        tenantId,
        (tx) => sendWithTicket(tx, tools, ticket, sealedMail),
        context,
      )
      return { tag: 'requested', ...flowPage(flowToken, flow) }
    },

    async showPasswordReset(
      { token }: Message<'showPasswordReset'>,
      context: MessageContext,
    ): Outcome<'showPasswordReset'> {
      const hash = sha256(token)
      // The tenant of the link is read from its row.
      const ticket = await database.system(
        (tx) => findTicket(tx, 'password_reset', hash, clock.now()),
        context,
      )
      if (ticket === undefined) return readExpiredLink(database, 'password_reset', hash, context)
      const { tenantId, tenantName, tenantSettings, email } = ticket
      return { tag: 'page', tenant: brandingOf(tenantId, tenantName, tenantSettings), email }
    },

    async resetPassword(
      message: Message<'resetPassword'>,
      context: MessageContext,
    ): Outcome<'resetPassword'> {
      const hash = sha256(message.token)
      const known = await database.system(
        (tx) => findTicket(tx, 'password_reset', hash, clock.now()),
        context,
      )
      if (known === undefined) return readExpiredLink(database, 'password_reset', hash, context)
      const { tenantId, tenantName, tenantSettings, email } = known
      const tenant = brandingOf(tenantId, tenantName, tenantSettings)
      const chosen = await choosePassword(passwords, message.password, email, context)
      if (chosen.tag === 'busy') return chosen
      if (chosen.tag !== 'hashed') return { ...chosen, tenant, email }
      const now = clock.now()
      const sealedMail = await mail.seal({
        tenantId,
        to: email,
        known: true,
        content: { kind: 'password_changed', at: now },
        header: {
          tenant: tenant.name,
          color: tenant.color,
          locale: tenant.locale,
          languages: message.languages,
        },
        expiresAt: new Date(now.getTime() + NOTICE_EXPIRY_MS),
      })
      // The account is global: its sessions end in every tenant.
      return database.system(async (tx) => {
        const used = await useTicket(tx, 'password_reset', hash, now)
        if (used === undefined) return expiredLink(tx, 'password_reset', hash)
        const person = await findSignIn(tx, tenantId, used.email)
        if (person?.accountId !== used.accountId) return { tag: 'gone', tenant } as const
        const { accountId, sub } = person
        const { address } = message.visitor
        // Before the new password: if this is the first proof of the mailbox, the old factors are dropped too.
        const proof = {
          accountId,
          how: 'reset',
          inOwnSession: false,
          tenantId,
          sub,
          address,
        } as const
        // A link of the command line did not go to the mailbox, so it proves nothing about it.
        if (!used.isRecovery) await proveMailbox(tx, tools, proof, context, now)
        const removed = used.isRecovery
          ? await removeFactors(tx, accountId, { phones: true })
          : undefined
        // Anybody can create an account for an address: nothing of an unverified one stays.
        if (used.isRecovery) await dropUnproved(tx, tools, { accountId, address }, context, now)
        await setAccountPassword(tx, accountId, chosen.phc, now)
        await voidTickets(tx, accountId, null, 'password_reset', now)
        await voidTickets(tx, accountId, null, 'sign_in', now)
        const { requestId } = context
        const ended = { accountId, exceptId: null, reason: 'password_reset', address } as const
        await revokeForPassword(tx, tools, ended, context, now)
        await mail.queue(tx, sealedMail)
        const type = 'account.password.reset'
        const done = { tenantId, sub, address, requestId }
        appendAudit(tx, [personAuditRecord(random, { ...done, type }, now)])
        if (removed !== undefined) {
          const data = Object.fromEntries(
            Object.entries(removed).map(([factor, count]) => [`${factor}_removed`, String(count)]),
          )
          const recovered = { ...done, type: 'admin.account.recovered', data } as const
          appendAudit(tx, [personAuditRecord(random, recovered, now)])
        }
        return { tag: 'done', tenant } as const
      }, context)
    },
  }
}
