/** Forgot password: requesting and completing a reset. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import { useTicket } from '../../../../storage/identity/ways/mail-tickets.js'
import { removeFactors } from '../../../../storage/identity/second-factors.js'
import { findSignIn } from '../../../../storage/identity/sign-ins.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { soughtEmail } from '../../../domain/email.js'
import { expiredLink, linkPage, readLink } from '../expired-link.js'
import { answered, orFirst } from '../repeated-form.js'
import { knownBrowserName, rememberVisit } from '../second-factors/risk.js'
import { beginAccountFlow, flowPage, progressIn } from '../flow/progress.js'
import { sendWithTicket } from '../../../platform/mail/with-ticket.js'
import { choosePassword, replacedNotice } from './choose-password.js'
import { formFault } from './form-fault.js'
import { replacePassword } from '../../../platform/people/password-revocation.js'
import { dropUnproved, proveMailbox } from '../../../platform/people/mailbox-proof.js'
import {
  ABSENT,
  LINK_TOKEN_BYTES,
  type PasswordRecoveryHandler,
  type PasswordRecoveryTools,
} from './needs.js'
import type { ForgotShown, PasswordRecoveryProtocol } from './protocol.js'
import { personAuditRecord } from '../../../platform/people/person-events.js'
import { inTenant } from '../../../platform/in-tenant.js'

const PURPOSE = 'password_reset'

export const showForgottenPassword: PasswordRecoveryHandler<'showForgottenPassword'> = async (
  tools,
  { flow: named, visitor, ...wanted },
  context,
) => {
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
  wanted: Omit<PasswordRecoveryProtocol['showForgottenPassword']['message'], 'flow' | 'visitor'>,
  context: MessageContext,
): Promise<string | null> {
  const resolved = await tools.tenants.resolve(wanted.tenant, context)
  const isNamed = resolved.tag === 'resolved' && resolved.by !== 'control_plane'
  return isNamed ? beginAccountFlow(tools, wanted, context) : null
}

// Takes the same time and returns the same response whether or not the address has an account.
export const requestPasswordReset: PasswordRecoveryHandler<'requestPasswordReset'> = async (
  tools,
  message,
  context,
) => {
  const { database, clock, random, mail, selfService, issuer, gate } = tools
  if (!selfService.enabled) return ABSENT
  const { flow: flowToken, visitor, languages } = message
  const progress = await progressIn(tools, flowToken, visitor.token, context)
  if ('tag' in progress) return progress
  const { flow } = progress
  const { tenantId, uiLocales } = flow
  const typed = message.email.trim()
  const email = soughtEmail(typed)
  const page = flowPage(flowToken, flow)
  const shown: ForgotShown = { ...page, email: typed, captcha: gate.widget() }
  if (email === undefined) return { tag: 'invalid_email', ...shown }
  const own = () => knownBrowserName(tools, tenantId, email, visitor, context)
  const fault = await formFault(tools, shown, message, `${tenantId}:${email.toLowerCase()}`, own)
  if (fault !== undefined) return fault
  const found = await database.system((tx) => findSignIn(tx, tenantId, email), context)
  const now = clock.now()
  const expiresAt = new Date(now.getTime() + selfService.reset_ttl_secs * 1000)
  const token = random.token(LINK_TOKEN_BYTES)
  const { name: tenant, color, locale } = shown.tenant
  const sealedMail = await mail.seal({
    tenantId,
    to: found?.email ?? email,
    known: found !== undefined,
    content: { kind: PURPOSE, link: `${issuer}/auth/password/reset/${token}`, until: expiresAt },
    header: { tenant, color, locale, uiLocales, languages },
    expiresAt,
  })
  const ticket = {
    tenantId,
    purpose: PURPOSE,
    accountId: found?.accountId ?? null,
    email,
    linkSha256: sha256(token),
    createdAt: now,
    expiresAt,
  } as const
  await inTenant(database, tenantId, context, (tx) => sendWithTicket(tx, tools, ticket, sealedMail))
  return { tag: 'requested', ...flowPage(flowToken, flow) }
}

export const showPasswordReset: PasswordRecoveryHandler<'showPasswordReset'> = (
  tools,
  { token },
  context,
) => linkPage(tools, PURPOSE, token, context)

export const resetPassword: PasswordRecoveryHandler<'resetPassword'> = async (
  tools,
  message,
  context,
) => {
  const outcome = await resetOnce(tools, message, context)
  return orFirst(tools, message, outcome, context)
}

const resetOnce: PasswordRecoveryHandler<'resetPassword'> = async (tools, message, context) => {
  const { token, password, languages, visitor } = message
  const { database, clock, passwords } = tools
  const { address } = visitor
  const link = await readLink(tools, PURPOSE, token, context)
  if (link.tag === 'gone') return link
  const { tenant, ticket } = link
  const { tenantId, email } = ticket
  const chosen = await choosePassword(passwords, password, email, context)
  if (chosen.tag === 'busy') return chosen
  if (chosen.tag !== 'hashed') return { ...chosen, tenant, email }
  const { phc } = chosen
  const now = clock.now()
  const notice = await replacedNotice(tools, tenant, email, languages, now)
  const hash = sha256(token)
  // The account is global: its sessions end in every tenant.
  return database.system(async (tx) => {
    const used = await useTicket(tx, PURPOSE, hash, now)
    if (used === undefined) return expiredLink(tx, PURPOSE, hash)
    const person = await findSignIn(tx, tenantId, used.email)
    if (person?.accountId !== used.accountId) return { tag: 'gone', tenant }
    const { accountId, sub } = person
    const where = { tenantId, sub, address }
    let removed: Awaited<ReturnType<typeof removeFactors>> | undefined
    if (used.isRecovery) {
      // A link of the command line did not go to the mailbox, so it proves nothing about it.
      removed = await removeFactors(tx, accountId, { phones: true })
      // Anybody can create an account for an address: nothing of an unverified one stays.
      await dropUnproved(tx, tools, { accountId, address }, now, context)
    } else {
      // Before the new password: if this is the first proof of the mailbox, the old factors are dropped too.
      const proof = { accountId, how: 'reset', inOwnSession: false, ...where } as const
      await proveMailbox(tx, tools, proof, now, context)
    }
    const ended = { accountId, exceptId: null, reason: 'password_reset', address } as const
    await replacePassword(tx, tools, { ...ended, phc, notice }, now, context)
    // Guesses of others do not lock this browser out.
    await rememberVisit(tx, accountId, visitor, now)
    const done = { ...where, requestId: context.requestId }
    const type = 'account.password.reset'
    appendAudit(tx, [personAuditRecord(tools.random, { ...done, type }, now)])
    if (removed !== undefined) {
      const data = Object.fromEntries(
        Object.entries(removed).map(([factor, count]) => [`${factor}_removed`, String(count)]),
      )
      const recovered = { ...done, type: 'admin.account.recovered', data } as const
      appendAudit(tx, [personAuditRecord(tools.random, recovered, now)])
    }
    return answered(tx, tools, message, tenantId, { tag: 'done', tenant })
  }, context)
}
