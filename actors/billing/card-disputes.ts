/**
 * Disputes at the card provider. Its webhooks come in any order and more than once, so each makes us look
 * the dispute up and bring ours to the same state.
 */
import type { Life } from '../../runtime/kernel/actor.js'
import { type CardEventRow, cardPaymentOf, finishCardEvent } from '../../storage/card-payments.js'
import { findCharge, lockCharge } from '../../storage/charges.js'
import { findDisputeOf } from '../../storage/disputes.js'
import { appendEvents, type NewEvent } from '../../storage/outbox.js'
import type { Transaction } from '../../storage/sql.js'
import { CARD_RAIL } from '../commerce/card-rail.js'
import { railDesk } from '../commerce/desk.js'
import { closeDispute, openDispute } from '../commerce/disputes.js'
import type { ProviderDispute } from '../commerce/rail.js'
import type { BillingNeeds } from './needs.js'

type Disputed = { readonly tenantId: string; readonly chargeId: string }

export function cardDisputes(needs: BillingNeeds, life: Pick<Life, 'signal' | 'log'>) {
  const { database, clock, random, rails } = needs
  const desk = railDesk(needs)
  const means = { clock, random }
  const options = { pool: 'background', signal: life.signal } as const

  async function follow(
    tx: Transaction,
    { tenantId, chargeId }: Disputed,
    seen: ProviderDispute,
  ): Promise<readonly NewEvent[]> {
    // The charge first, then its settlement: the order of everybody who needs both.
    await lockCharge(tx, tenantId, chargeId)
    const charge = await findCharge(tx, tenantId, chargeId)
    // Paid at the provider and not written down here yet: looked at again when the lease ends.
    if (charge === undefined || charge.status === 'pending') {
      throw new Error('a dispute came before its payment')
    }
    if (charge.status === 'failed') throw new Error('a charge is disputed that was not paid')
    const amountMinor =
      seen.currency === charge.currency ? (seen.amountMinor ?? undefined) : undefined
    const opened = await openDispute(tx, means, charge, seen.reason, { amountMinor })
    const events = opened?.events ?? []
    if (seen.status === 'open') return events
    const dispute = opened?.row ?? (await findDisputeOf(tx, tenantId, chargeId))
    if (dispute === undefined) throw new Error('a dispute was opened and is not there')
    const closed = await closeDispute(tx, means, {
      tenantId,
      id: dispute.id,
      outcome: seen.status,
    })
    return [...events, ...(closed?.events ?? [])]
  }

  return async ({ id, objectId }: CardEventRow): Promise<void> => {
    const provider = rails.get(CARD_RAIL)?.provider
    if (provider === undefined) throw new Error('there is no card provider')
    const seen = await provider.dispute(objectId, desk.limit(life.signal))
    // Crosses tenants: the provider names none.
    const payment =
      seen && (await database.system((tx) => cardPaymentOf(tx, seen.paymentId), options))
    if (seen === undefined || payment === undefined) {
      life.log.warn({ eventId: id }, 'a webhook is about a dispute over no payment of ours')
      await database.system((tx) => finishCardEvent(tx, id), options)
      return
    }
    await database.tenant(
      payment.tenantId,
      async (tx) => {
        const events = await follow(tx, payment, seen)
        await finishCardEvent(tx, id)
        appendEvents(tx, events)
      },
      options,
    )
  }
}
