/**
 * The mail queue. A message is sealed first and then queued in the transaction of the change it is about, so both are
 * committed or neither. A message to an unknown address, or to one the tenant may not send mail to, causes the same
 * work and is never sent.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ShareCounts } from '../../../runtime/kernel/fairness/fair-share.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  findMailStanding,
  takeAddressShare,
  takeTenantShare,
} from '../../../storage/operations/mail-shares.js'
import { insertMail, mailContext, type NewMail } from '../../../storage/operations/outgoing-mail.js'
import type { Sealer } from '../../../storage/platform/sealing/sealer.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { domainOfEmail, type Email } from '../../domain/email.js'
import type { I18nSettings } from '../../domain/i18n/settings.js'
import { renderMessage, type MessageHeader, type MessageContent } from './render.js'
import {
  judgeAddress,
  MESSAGE_RULES,
  type MailDestination,
  type Unsendable,
} from './message-rules.js'

type MailBounds = {
  /** `email.queue_max_per_tenant`. */
  readonly queuedMax: number
  /** `email.per_tenant_per_day_max`. */
  readonly perTenantMax: number
  /** `email.per_sandbox_per_day_max`. */
  readonly perSandboxMax: number
  /** `email.per_address_per_day_max`, for invitations. */
  readonly perAddressMax: number
  /** `email.per_address_gap_secs`, between two invitations. */
  readonly perAddressGapSecs: number
}

type MailQueueNeeds = {
  readonly database: Pick<Database, 'system'>
  readonly sealer: Sealer
  readonly random: Random
  readonly clock: Clock
  readonly bounds: MailBounds
  readonly destination: MailDestination
  readonly shares: ShareCounts
  /** `[i18n]`. */
  readonly i18n: I18nSettings
}

type MailDraft = {
  /** The tenant invites this address as its owner. A sandbox may do that too. */
  readonly invitesOwner?: boolean | undefined
  readonly tenantId: string
  readonly to: Email
  /** False: no account has this address. The work is the same. */
  readonly known: boolean
  readonly content: MessageContent
  readonly header: MessageHeader
  readonly expiresAt: Date
}

export type SealedMail = NewMail & {
  readonly kind: MessageContent['kind']
  readonly to: Email
  /** Why the tenant may not send mail to the address; null: it may. */
  readonly refusal: Unsendable | null
  /** Daily limit of the tenant; null: this kind is not limited per tenant. */
  readonly tenantMax: number | null
}

export interface MailQueue {
  /** Call before the transaction: sealing may call the key management. */
  seal(draft: MailDraft): Promise<SealedMail>
  /**
   * Queues the message. Invitations need a transaction that crosses tenants.
   * @returns whether the message will be sent.
   * @throws {MailShareUsed} if a limit is reached and the kind is refused then: let it roll back the transaction.
   */
  queue(tx: Transaction, mail: SealedMail): Promise<boolean>
}

/** The mail limit of the tenant or the address is reached. */
export class MailShareUsed extends Error {
  override readonly name = 'MailShareUsed'
  readonly retryAfterSecs: number

  constructor(retryAfterSecs: number) {
    super('mail limit reached')
    this.retryAfterSecs = retryAfterSecs
  }
}

export function openMailQueue({
  database,
  sealer,
  random,
  clock,
  bounds,
  destination,
  shares,
  i18n,
}: MailQueueNeeds): MailQueue {
  const { perAddressMax: perDayMax, perAddressGapSecs: gapSecs } = bounds

  /** Counts a message. @returns the seconds to wait when a limit is reached, else null. */
  async function take(tx: Transaction, mail: SealedMail): Promise<number | null> {
    const { kind, tenantId, to, tenantMax } = mail
    if (MESSAGE_RULES[kind].countsForAddress) {
      const waitSecs = await takeAddressShare(tx, to, { perDayMax, gapSecs })
      if (waitSecs !== null) {
        shares.count('mail_per_address')
        return waitSecs
      }
    }
    const waitSecs = tenantMax === null ? null : await takeTenantShare(tx, tenantId, tenantMax)
    if (waitSecs !== null) shares.count('mail_per_tenant')
    return waitSecs
  }

  return {
    async seal({ tenantId, to, known, content, header, expiresAt, invitesOwner = false }) {
      const id = random.uuid()
      const { kind } = content
      const permission = await database.system((tx) =>
        findMailStanding(tx, tenantId, to, domainOfEmail(to)),
      )
      const reason = judgeAddress(to, permission, destination)
      const refusal = invitesOwner && reason === 'sandbox_address' ? null : reason
      const isSandbox = permission?.environment === 'sandbox'
      const counted = isSandbox || MESSAGE_RULES[kind].countsIn === 'every_tenant'
      const message = renderMessage(to, content, header, i18n)
      const bytes = new TextEncoder().encode(JSON.stringify(message))
      const letterSealed = await sealer.seal(tenantId, mailContext(id), bytes)
      if (refusal === 'sandbox_address' && known) shares.count('mail_sandbox_address')
      return {
        tenantId,
        id,
        kind,
        to,
        letterSealed,
        sendable: known && refusal === null,
        refusal,
        tenantMax: counted ? (isSandbox ? bounds.perSandboxMax : bounds.perTenantMax) : null,
        createdAt: clock.now(),
        expiresAt,
      }
    },
    async queue(tx, mail) {
      const { refusal } = mail
      const waitSecs = mail.sendable ? await take(tx, mail) : null
      if (waitSecs === null) {
        return insertMail(tx, mail, bounds.queuedMax, refusal ?? 'not_sendable')
      }
      if (MESSAGE_RULES[mail.kind].beyond === 'refused') throw new MailShareUsed(waitSecs)
      return insertMail(tx, { ...mail, sendable: false }, bounds.queuedMax, 'share_used')
    },
  }
}
