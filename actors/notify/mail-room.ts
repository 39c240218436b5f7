/**
 * Where mail is written. A letter is sealed first and queued in the transaction of the change it
 * tells of: either both are there or neither. What is written to nobody, or to a reserved domain,
 * costs the same work and is never sent.
 */
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Random } from '../../runtime/kernel/random.js'
import { insertMail, mailContext, type NewMail } from '../../storage/outgoing-mail.js'
import type { Sealer } from '../../storage/sealer.js'
import type { Transaction } from '../../storage/sql.js'
import { compose, type Letterhead, type Occasion } from './compose.js'
import { isReservedDomain } from './reserved.js'

export type MailRoomNeeds = {
  readonly sealer: Sealer
  readonly random: Random
  readonly clock: Clock
  /** `email.queue_max_per_tenant`. */
  readonly queuedMax: number
}

export type Writing = {
  readonly tenantId: string
  readonly to: string
  /** False: nobody has this address. The work is the same. */
  readonly known: boolean
  readonly occasion: Occasion
  readonly head: Letterhead
  readonly expiresAt: Date
}

export type SealedMail = NewMail

export interface MailRoom {
  /** Before the transaction: sealing may ask the key management. */
  seal(writing: Writing): Promise<SealedMail>
  /** @returns whether it waits to be sent. */
  queue(tx: Transaction, mail: SealedMail): Promise<boolean>
}

export function openMailRoom({ sealer, random, clock, queuedMax }: MailRoomNeeds): MailRoom {
  return {
    async seal({ tenantId, to, known, occasion, head, expiresAt }) {
      const id = random.uuid()
      const letter = compose(to, occasion, head)
      const bytes = new TextEncoder().encode(JSON.stringify(letter))
      const letterSealed = await sealer.seal(tenantId, mailContext(id), bytes)
      const sendable = known && !isReservedDomain(to)
      const { kind } = occasion
      return { tenantId, id, kind, letterSealed, sendable, createdAt: clock.now(), expiresAt }
    },
    queue: (tx, mail) => insertMail(tx, mail, queuedMax),
  }
}
