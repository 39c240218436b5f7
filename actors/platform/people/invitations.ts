/** The invitation message: sealed before the transaction that creates the user. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Email } from '../../domain/email.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { sha256 } from '../../domain/secret-hashes.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { type MailQueue, MailShareUsed, type SealedMail } from '../mail/mail-queue.js'
import { sendWithTicket } from '../mail/with-ticket.js'
import { inTenant } from '../in-tenant.js'
import type { WriteNeeds } from '../write-needs.js'

const LINK_TOKEN_BYTES = 32

export type PreparedInvitation = {
  readonly tokenSha256: Uint8Array
  readonly sealedMail: SealedMail
  readonly expiresAt: Date
}

/** The outcome when a mail share is used up. @throws any other error. */
export function mailThrottled(error: unknown): {
  readonly tag: 'mail_throttled'
  readonly retryAfterSecs: number
} {
  if (!(error instanceof MailShareUsed)) throw error
  return { tag: 'mail_throttled', retryAfterSecs: error.retryAfterSecs }
}

export type InvitationNeeds = WriteNeeds & {
  readonly mail: MailQueue
  /** Settings of `[invitations]`. */
  readonly invitations: { readonly enabled: boolean; readonly ttl_secs: number }
  /** `oidc.issuer_url`. */
  readonly issuer: string
}

export function invitationMessages(needs: InvitationNeeds) {
  const { database, clock, random, mail, invitations, issuer } = needs
  return {
    /**
     * Null when invitations are not sent by mail. `locale` is the claim of the invited user (BCP 47). It chooses the
     * language of the message, because no browser requests one.
     */
    async prepare(
      tenantId: string,
      {
        email,
        locale: claimed,
      }: { readonly email: Email; readonly locale: string | null | undefined },
      context: MessageContext,
    ): Promise<PreparedInvitation | null> {
      if (!invitations.enabled) return null
      const branding = await inTenant(database, tenantId, context, (tx) =>
        findTenantBranding(tx, tenantId),
      )
      if (branding === undefined) return null
      const shown = brandingOf(tenantId, branding.tenantName, branding.tenantSettings)
      const { name: tenant, color, locale } = shown
      const token = random.token(LINK_TOKEN_BYTES)
      const expiresAt = new Date(clock.now().getTime() + invitations.ttl_secs * 1000)
      const link = `${issuer}/auth/invitations/${token}`
      const sealedMail = await mail.seal({
        tenantId,
        to: email,
        known: true,
        content: { kind: 'invitation', link, until: expiresAt },
        header: { tenant, color, locale, languages: claimed ?? undefined },
        expiresAt,
      })
      return { tokenSha256: sha256(token), sealedMail, expiresAt }
    },

    /** Queues the message in the transaction of the invited user. */
    async send(
      tx: Transaction,
      { sealedMail, tokenSha256, expiresAt }: PreparedInvitation,
      user: { readonly tenantId: string; readonly accountId: string; readonly email: Email },
    ): Promise<void> {
      const { tenantId, accountId, email } = user
      const ticket = {
        tenantId,
        purpose: 'invitation',
        accountId,
        email,
        linkSha256: tokenSha256,
        createdAt: clock.now(),
        expiresAt,
      } as const
      await sendWithTicket(tx, { random, mail }, ticket, sealedMail)
    },
  }
}
