/** Who may be written to, and how often: a decision for every kind of letter. decisions.md 24, mail. */
import type { MailStanding } from '../../../storage/operations/mail-shares.js'
import type { Occasion } from './render.js'
import { isReserved, isUndeliverable } from './reserved-domains.js'

export type LetterRule = {
  /**
   * Whose share of the day it takes: that of every tenant, or of sandboxes alone, where people ask for
   * the letter themselves and have bounds of their own (`email.requests_per_name_max`).
   */
  readonly countsIn: 'every_tenant' | 'sandboxes'
  /** Counts in the share of the address, over all tenants. */
  readonly countsForAddress: boolean
  /** Beyond a share: the request is refused, or it is answered alike and the letter is not sent. */
  readonly beyond: 'refused' | 'dropped'
}

export const LETTER_RULES: Readonly<Record<Occasion['kind'], LetterRule>> = {
  invitation: { countsIn: 'every_tenant', countsForAddress: true, beyond: 'refused' },
  sign_in: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  password_reset: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  email_verification: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
  password_changed: { countsIn: 'sandboxes', countsForAddress: false, beyond: 'dropped' },
}

/** Where the letters of this deployment end up. */
export type MailDestination =
  /** A mail server that delivers. */
  | 'delivered'
  /** The log, which only the operator reads. */
  | 'logged'
  /** A mail server that keeps every letter and forwards none. */
  | 'caught'

/** Why a letter is not sent: a word of ours, as `outgoing_mail.error` says it. */
export type Unsendable = 'not_sendable' | 'sandbox_address'

/** Null: the tenant may write to the address. */
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
