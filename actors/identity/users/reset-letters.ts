/** The messages about a reset of an administrator (resets.ts). */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import type { TenantUserRow } from '../../../storage/identity/tenant-users.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import type { SealedMail } from '../../platform/mail/mail-queue.js'
import type { MessageContent } from '../../platform/mail/render.js'
import { sha256 } from '../../domain/secret-hashes.js'
import type { UsersNeeds } from './needs.js'
import { inTenant } from '../../platform/in-tenant.js'

const LINK_TOKEN_BYTES = 32
/** Expiry of a notice in the mail queue. */
const NOTICE_EXPIRY_MS = 3 * 86_400_000

/** What is reset. */
export type What = 'password' | 'factors'

/** Sealed before the transaction, which sends one of them. */
export type Letters = {
  readonly linkSha256: Uint8Array
  readonly expiresAt: Date
  /** With a link that sets a password. */
  readonly linked: SealedMail
  /** Without one. */
  readonly notice: SealedMail
  /** Nothing was changed. */
  readonly refused: SealedMail
}

/** The letters of a reset. Call before the transaction: sealing may call the key management. */
export async function sealLetters(
  { database, clock, random, mail, issuer, resetTtlSecs }: UsersNeeds,
  what: What,
  { tenantId, email, profile }: TenantUserRow,
  context: MessageContext,
): Promise<Letters> {
  const branding = await inTenant(database, tenantId, context, (tx) =>
    findTenantBranding(tx, tenantId),
  )
  if (branding === undefined) throw new Error('the tenant of a user was not found')
  const { name, color, locale } = brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
  const at = clock.now()
  const until = new Date(at.getTime() + resetTtlSecs * 1000)
  const token = random.token(LINK_TOKEN_BYTES)
  const link = `${issuer}/auth/password/reset/${token}`
  const header = { tenant: name, color, locale, languages: profile.locale ?? undefined }
  const seal = (content: MessageContent, expiresAt: Date) =>
    mail.seal({ tenantId, to: email, known: true, content, header, expiresAt })
  const noticeUntil = new Date(at.getTime() + NOTICE_EXPIRY_MS)
  const ofFactors = { kind: 'admin_factors_reset', at, until } as const
  const isPassword = what === 'password'
  const linked = isPassword
    ? seal({ kind: 'admin_password_reset', link, until }, until)
    : seal({ ...ofFactors, link }, until)
  return {
    linkSha256: sha256(token),
    expiresAt: until,
    linked: await linked,
    notice: await (isPassword ? linked : seal({ ...ofFactors, link: null }, noticeUntil)),
    refused: await seal({ kind: 'admin_reset_refused', at }, noticeUntil),
  }
}
