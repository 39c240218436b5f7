/**
 * Sign-in by mail: a code for the page that requested it, a link to confirm in the browser that requested it, or both
 * in one message. An unknown address causes the same work and the same response: the rows are written, the message is
 * not sent.
 */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  findTicket,
  type TicketFound,
  tryCode,
  useTicket,
} from '../../../../storage/identity/ways/mail-tickets.js'
import { findSignIn, type SignInRow } from '../../../../storage/identity/sign-ins.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { codeSha256, isSameHash, sha256 } from '../../../domain/secret-hashes.js'
import { proveMailbox } from '../../../platform/people/mailbox-proof.js'
import { type Email, soughtEmail } from '../../../domain/email.js'
import { newUserCode, readUserCode, showUserCode } from '../../../domain/user-code.js'
import { sendWithTicket } from '../../../platform/mail/with-ticket.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { expiredLink, readExpiredLink, readLink } from '../expired-link.js'
import { knownBrowserName } from '../second-factors/risk.js'
import {
  firstFactorPage,
  flowPage,
  type Progress,
  progressIn,
  readProgress,
} from '../flow/progress.js'
import { orBusy } from '../limits/lockout.js'
import { attemptFirstFactor, openSessionInFlow } from '../first-factor.js'
import type { SignInActorTools, SignInHandler } from '../needs.js'
import { addressAt, tenantHostOf } from '../tenant-host.js'
import type { MailShown, RequestMail, Visitor } from '../protocol.js'
import { loginShown } from './ways-in.js'
import { inTenant } from '../../../platform/in-tenant.js'

const LINK_TOKEN_BYTES = 32
const CODE = 'svc-mail-code-v1'
/** RFC 8176 has no value for mail, so use the one for one-time passwords. */
const AMR = ['otp']
const ABSENT = { tag: 'absent' } as const

export const requestSignInMail: SignInHandler<'requestSignInMail'> = async (
  tools,
  message,
  context,
) => {
  const { offers, mailQuota, database } = tools
  if (!offers.code && !offers.link) return ABSENT
  const { flow: token, visitor } = message
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  const { tenantId } = progress.flow
  const typed = message.email.trim()
  const email = soughtEmail(typed)
  const shown = await loginShown(tools, progress, typed, context)
  if (email === undefined) return { tag: 'invalid_email', ...shown }
  const name = `${tenantId}:${email.toLowerCase()}`
  const own = () => knownBrowserName(tools, tenantId, email, visitor, context)
  const quota = await orBusy(() => mailQuota.ask(name, visitor.address, own))
  if (quota.tag === 'busy') return quota
  if (quota.tag === 'locked') return { ...shown, ...quota }
  const found = await database.system((tx) => findSignIn(tx, tenantId, email), context)
  await sendMail(tools, { ...message, email }, progress, found, context)
  return { tag: 'sent', location: `/auth/login/mail?flow=${token}` }
}

/** Without an account, the same work is done and no message is sent. */
async function sendMail(
  tools: SignInActorTools,
  { flow: token, email, host, browserId, languages }: RequestMail & { readonly email: Email },
  { flow }: Progress,
  found: SignInRow | undefined,
  context: MessageContext,
): Promise<void> {
  const { database, clock, random, mail, offers, issuer, tenants, emailOtp, magicLink } = tools
  const { tenantId, uiLocales } = flow
  const ttlSecs = Math.min(
    emailOtp.enabled ? emailOtp.ttl_secs : Infinity,
    magicLink.enabled ? magicLink.ttl_secs : Infinity,
  )
  const now = clock.now()
  const expiresAt = new Date(now.getTime() + ttlSecs * 1000)
  const code = offers.code ? newUserCode((count) => random.bytes(count)) : null
  const linkToken = offers.link ? random.token(LINK_TOKEN_BYTES) : null
  const address = addressAt(issuer, await tenantHostOf(tenants, tenantId, host, context))
  const { name, color, locale } = brandingOf(tenantId, flow.tenantName, flow.tenantSettings)
  const sealedMail = await mail.seal({
    tenantId,
    to: found?.email ?? email,
    known: found !== undefined,
    content: {
      kind: 'sign_in',
      code: code === null ? null : showUserCode(code),
      link: linkToken === null ? null : `${address}/auth/magic/${linkToken}?flow=${token}`,
      until: expiresAt,
    },
    header: { tenant: name, color, locale, uiLocales, languages },
    expiresAt,
  })
  const ticket = {
    tenantId,
    purpose: 'sign_in',
    accountId: found?.accountId ?? null,
    email,
    linkSha256: linkToken === null ? null : sha256(linkToken),
    codeSha256: code === null ? null : codeSha256(CODE, token, code),
    flowSha256: sha256(token),
    browserSha256: sha256(browserId),
    attempts: emailOtp.max_attempts,
    createdAt: now,
    expiresAt,
  } as const
  await inTenant(database, tenantId, context, (tx) => sendWithTicket(tx, tools, ticket, sealedMail))
}

export const showSignInMail: SignInHandler<'showSignInMail'> = async (tools, message, context) => {
  const { offers } = tools
  if (!offers.code && !offers.link) return ABSENT
  const shown = await firstFactorPage(tools, message, context)
  return shown.tag === 'page' ? { ...shown, offers } : shown
}

export const signInWithMailCode: SignInHandler<'signInWithMailCode'> = async (
  tools,
  { flow: token, code: typed, visitor },
  context,
) => {
  const { offers, database, clock } = tools
  if (!offers.code) return ABSENT
  const progress = await progressIn(tools, token, visitor.token, context)
  if ('tag' in progress) return progress
  const { flow } = progress
  const { tenantId } = flow
  const shown: MailShown = { ...flowPage(token, flow), offers }
  const name = `mail-code:${Buffer.from(sha256(token)).toString('base64url')}`
  const attempt = { tenantId, factor: 'email_otp', name, address: visitor.address } as const
  const judged = await attemptFirstFactor(
    tools,
    attempt,
    async () => {
      const code = readUserCode(typed)
      if (code === null) return { tag: 'wrong' }
      const found = await database.system(
        (tx) => spend(tx, tenantId, token, code, clock.now()),
        context,
      )
      return found === undefined ? { tag: 'wrong' } : { tag: 'found', found }
    },
    context,
  )
  if (judged.tag === 'busy') return judged
  if (judged.tag !== 'found') return { ...shown, ...judged }
  return openWithMailbox(tools, progress, { found: judged.found, how: 'code', visitor }, context)
}

export const showMagicLink: SignInHandler<'showMagicLink'> = async (
  tools,
  { token, flow },
  context,
) => {
  const link = await readLink(tools, 'sign_in', token, context)
  if (link.tag === 'gone') return link
  const { ticket, tenant } = link
  return isOfFlow(ticket, flow) ? { tag: 'page', tenant, flow } : { tag: 'gone', tenant }
}

export const signInWithMagicLink: SignInHandler<'signInWithMagicLink'> = async (
  tools,
  { token, flow: flowToken, browserId, visitor },
  context,
) => {
  const { database, clock } = tools
  const now = clock.now()
  const hash = sha256(token)
  const progress = await readProgress(tools, flowToken, visitor.token, context)
  if (progress === undefined) return readExpiredLink(database, 'sign_in', hash, context)
  // The tenant of a link is read from its row.
  const used = await database.system(async (tx) => {
    const ticket = await findTicket(tx, 'sign_in', hash, now)
    if (ticket === undefined || !isOfFlow(ticket, flowToken))
      return expiredLink(tx, 'sign_in', hash)
    const { tenantId, tenantName, tenantSettings } = ticket
    const tenant = brandingOf(tenantId, tenantName, tenantSettings)
    if (!isSameHash(ticket.browserSha256, sha256(browserId)))
      return { tag: 'other_browser', tenant } as const
    const isUsed = (await useTicket(tx, 'sign_in', hash, now)) !== undefined
    const found = isUsed ? await findSignIn(tx, tenantId, ticket.email) : undefined
    return found === undefined
      ? ({ tag: 'gone', tenant } as const)
      : ({ tag: 'found', found } as const)
  }, context)
  if (used.tag !== 'found') return used
  return openWithMailbox(tools, progress, { found: used.found, how: 'link', visitor }, context)
}

/** Opens the session, and proves the mailbox in the same transaction. */
function openWithMailbox(
  tools: SignInActorTools,
  { session, flow, token }: Progress,
  proved: { readonly found: SignInRow; readonly how: 'code' | 'link'; readonly visitor: Visitor },
  context: MessageContext,
) {
  const { found, how, visitor } = proved
  const { accountId, sub } = found
  const inOwnSession = session?.accountId === accountId && !session.pending && !session.confined
  const { address } = visitor
  const proof = { accountId, how, inOwnSession, tenantId: flow.tenantId, sub, address } as const
  const proves = (tx: Transaction, now: Date) => proveMailbox(tx, tools, proof, now, context)
  return openSessionInFlow(tools, { flow, token, found, amr: AMR, visitor, proves }, context)
}

/** Uses up a code. Returns its account if the account may still sign in. */
async function spend(
  tx: Transaction,
  tenantId: string,
  flow: string,
  code: string,
  now: Date,
): Promise<SignInRow | undefined> {
  const spent = await tryCode(tx, sha256(flow), codeSha256(CODE, flow, code), now)
  if (spent === undefined || spent === 'wrong') return undefined
  const found = await findSignIn(tx, tenantId, spent.email)
  return found?.accountId === spent.accountId ? found : undefined
}

const isOfFlow = ({ flowSha256 }: TicketFound, flow: string) => isSameHash(flowSha256, sha256(flow))
