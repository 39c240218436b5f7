/** The invitation message: sealed before the transaction that creates the user. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import type { Email } from '../../domain/email.js'
import { findTenantBranding } from '../../../storage/identity/sign-in-flows.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { sha256 } from '../sessions/flows.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { MailShareUsed, type SealedMail } from '../../platform/mail/mail-queue.js'
import { sendWithTicket } from '../../platform/mail/with-ticket.js'
import type { UsersNeeds } from './needs.js'
import type { MailThrottled } from './protocol.js'

const LINK_TOKEN_BYTES = 32

export type PreparedInvitation = {
  readonly tokenSha256: Uint8Array
  readonly sealedMail: SealedMail
  readonly expiresAt: Date
}

/** The outcome when a mail share is used up. @throws any other error. */
export function mailThrottled(error: unknown): MailThrottled {
  if (!(error instanceof MailShareUsed)) throw error
  return { tag: 'mail_throttled', retryAfterSecs: error.retryAfterSecs }
}

type Tools = Pick<UsersNeeds, 'database' | 'clock' | 'random' | 'mail' | 'invitations' | 'issuer'>

export function invitationMessages(tools: Tools) {
  const { database, clock, random, mail, invitations, issuer } = tools
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
      const branding = await database.tenant(
        tenantId,
        (tx) => findTenantBranding(tx, tenantId),
        context,
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
