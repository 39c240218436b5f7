/** Email verification of a signed-in user. */
import { findBrowserSession } from '../../../../storage/identity/browser-sessions.js'
import { findTicket, useTicket } from '../../../../storage/identity/ways/mail-tickets.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { findTenantUserOfAccountSub } from '../../../../storage/identity/tenant-users.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { sendWithTicket } from '../../../platform/mail/with-ticket.js'
import { proveMailbox } from '../../../platform/people/mailbox-proof.js'
import { isSameHash, sha256 } from '../../../domain/secret-hashes.js'
import { expiredLink, linkPage } from '../expired-link.js'
import { orBusy } from '../limits/lockout.js'
import { tenantOfSession } from '../account/own-account.js'
import { addressAt, tenantHostOf } from '../tenant-host.js'
import { ABSENT, LINK_TOKEN_BYTES, type PasswordRecoveryHandler } from './needs.js'
import { inTenant } from '../../../platform/in-tenant.js'

const VERIFICATION_MS = 86_400_000
const PURPOSE = 'email_verification'

export const requestEmailVerification: PasswordRecoveryHandler<'requestEmailVerification'> = async (
  tools,
  { session, visitor, languages, browserId, host },
  context,
) => {
  const { database, clock, random, mail, quota, selfService, issuer, tenants } = tools
  if (!selfService.enabled || session.confined || session.email === '') return ABSENT
  if (session.emailVerified) return { tag: 'verified' }
  const { tenantId, accountId, email } = session
  const name = `${tenantId}:${email.toLowerCase()}`
  const allowed = await orBusy(() => quota.ask(name, visitor.address))
  if (allowed.tag !== 'open') return allowed
  const tenant = await tenantOfSession(database, session, context)
  const now = clock.now()
  const expiresAt = new Date(now.getTime() + VERIFICATION_MS)
  const token = random.token(LINK_TOKEN_BYTES)
  // The host where the user is signed in. Cookies of another host do not reach it.
  const origin = addressAt(issuer, await tenantHostOf(tenants, tenantId, host, context))
  const sealedMail = await mail.seal({
    tenantId,
    to: email,
    known: true,
    content: { kind: PURPOSE, link: `${origin}/auth/email/${token}`, until: expiresAt },
    header: { tenant: tenant.name, color: tenant.color, locale: tenant.locale, languages },
    expiresAt,
  })
  const ticket = {
    tenantId,
    purpose: PURPOSE,
    accountId,
    email,
    linkSha256: sha256(token),
    browserSha256: sha256(browserId),
    createdAt: now,
    expiresAt,
  } as const
  await inTenant(database, tenantId, context, (tx) => sendWithTicket(tx, tools, ticket, sealedMail))
  return { tag: 'requested', tenant }
}

export const showEmailVerification: PasswordRecoveryHandler<'showEmailVerification'> = (
  tools,
  { token },
  context,
) => linkPage(tools, PURPOSE, token, context)

// Accepted only in the browser that requested the mail, signed in to this account. Otherwise an attacker could create
// the account, request the mail, and keep the sign-in methods they set.
export const verifyEmail: PasswordRecoveryHandler<'verifyEmail'> = async (
  tools,
  { token, browserId, visitor },
  context,
) => {
  const now = tools.clock.now()
  const hash = sha256(token)
  return tools.database.system(async (tx) => {
    const ticket = await findTicket(tx, PURPOSE, hash, now)
    if (ticket === undefined) return expiredLink(tx, PURPOSE, hash)
    const { tenantId, tenantName, tenantSettings, email, accountId } = ticket
    const tenant = brandingOf(tenantId, tenantName, tenantSettings)
    const isHere = isSameHash(ticket.browserSha256, sha256(browserId))
    if (!isHere || !(await isSignedIn(tx, visitor.token, accountId, now)))
      return { tag: 'other_browser', tenant }
    const used = await useTicket(tx, PURPOSE, hash, now)
    if (used === undefined) return expiredLink(tx, PURPOSE, hash)
    const sub = (await findTenantUserOfAccountSub(tx, tenantId, accountId)) ?? null
    const { address } = visitor
    const proof = { accountId, how: 'verification', inOwnSession: true, tenantId, sub } as const
    await proveMailbox(tx, tools, { ...proof, address }, now, context)
    return { tag: 'done', tenant, email }
  }, context)
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
