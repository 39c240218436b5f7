/** Which addresses may get mail, and how often, for every kind of message. */
import type { MailStanding } from '../../../storage/operations/mail-shares.js'
import type { MessageContent } from './render.js'
import { isReserved, isUndeliverable } from './reserved-domains.js'

type MessageRule = {
  /**
   * Which tenants' daily limits count this kind: all, or only sandboxes. Users request the other kinds themselves, with
   * their own limits (`email.requests_per_name_max`).
   */
  readonly countsIn: 'every_tenant' | 'sandboxes'
  /** Also counts in the daily limit of the address, over all tenants. */
  readonly countsForAddress: boolean
  /** Beyond a limit: `refused` fails the request, `dropped` returns the normal response and sends nothing. */
  readonly beyond: 'refused' | 'dropped'
}

export const MESSAGE_RULES: Readonly<Record<MessageContent['kind'], MessageRule>> = {
  invitation: { countsIn: 'every_tenant', countsForAddress: true, beyond: 'refused' },
  // An administrator causes these three. A reset without its message would lock the person out, or go unnoticed.
  admin_password_reset: { countsIn: 'every_tenant', countsForAddress: false, beyond: 'refused' },
  admin_factors_reset: { countsIn: 'every_tenant', countsForAddress: false, beyond: 'refused' },
  admin_reset_refused: { countsIn: 'every_tenant', countsForAddress: false, beyond: 'dropped' },
  sign_in: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  password_reset: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  email_verification: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  sign_up: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  sign_up_known: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  confirmation_code: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  account_recovery: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  // An agent causes it.
  call_approval: { countsIn: 'every_tenant', countsForAddress: false, beyond: 'dropped' },
  password_changed: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
}

/** What happens to the mail of this deployment. */
export type MailDestination =
  /** A mail server that delivers. */
  | 'delivered'
  /** Written to the log, which only the operator reads. */
  | 'logged'
  /** A mail server that keeps every message and forwards none (for tests). */
  | 'caught'

/** Why a message is not sent, as stored in `outgoing_mail.error`. */
export type Unsendable = 'not_sendable' | 'sandbox_address'

/** Null: the tenant may send mail to the address. */
export function judgeAddress(
  to: string,
  standing: MailStanding | undefined,
  destination: MailDestination,
): Unsendable | null {
  if (standing === undefined || isUndeliverable(to)) return 'not_sendable'
  if (isReserved(to)) return destination === 'delivered' ? 'not_sendable' : null
  if (standing.environment !== 'sandbox' || destination === 'caught') return null
  return standing.domainVerified || standing.isOwner ? null : 'sandbox_address'
}
