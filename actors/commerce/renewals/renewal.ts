/**
 * Renews a subscription: the charge of the next period is inserted (one row per period), the
 * provider is called under its id, and the answer is stored. After a crash the next worker that
 * claims the subscription continues with the same charge.
 */
import type { Lifecycle } from '../../../runtime/kernel/actor.js'
import { type ChargeRow, findPeriodCharge } from '../../../storage/commerce/charges.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import { lockSubscription, type SubscriptionRow } from '../../../storage/commerce/subscriptions.js'
import { openCharge } from '../payments/charges.js'
import { chargeProcessing } from '../payments/charge-processing.js'
import { endSubscription } from '../payments/subscription-end.js'
import { INVOICED_PROVIDER, openInvoice } from './invoice.js'
import type { RenewalNeeds } from './needs.js'

export function renewal(needs: RenewalNeeds, lifecycle: Pick<Lifecycle, 'signal' | 'log'>) {
  const { database, clock, random } = needs
  const processing = chargeProcessing(needs)
  const deps = { clock, random }
  const options = { pool: 'background', signal: lifecycle.signal } as const

  /**
   * Inserts the charge of the next period, unless the subscription ends, has to wait, or gets an
   * invoice.
   */
  function charged({ tenantId, id }: SubscriptionRow): Promise<ChargeRow | undefined> {
    return database.tenant(
      tenantId,
      async (tx) => {
        // A concurrent cancellation waits for this lock, and then finds the charge.
        const now = await lockSubscription(tx, tenantId, id)
        if (now === undefined || (now.status !== 'active' && now.status !== 'past_due')) return
        if (now.cancelAtPeriodEnd) {
          const { events } = await endSubscription(tx, deps, tenantId, id)
          appendEvents(tx, events)
          return
        }
        if (now.rail === INVOICED_PROVIDER) {
          await openInvoice(tx, needs, now)
          return
        }
        if (!(await processing.canBook(tx, now, processing.providerNamed(now.rail)))) {
          const { rail, currency } = now
          const context = { tenantId, subscriptionId: id, rail, currency }
          lifecycle.log.error(
            context,
            'renewals: ledger of a payment provider is full, renewal waits',
          )
          return
        }
        const period = now.period + 1
        const opened = await openCharge(tx, deps, {
          id: random.uuid(),
          tenantId,
          rail: now.rail,
          amountMinor: now.amountMinor,
          currency: now.currency,
          metadata: now.metadata,
          productId: now.productId,
          priceId: now.priceId,
          quantity: 1,
          customerEmail: now.customerEmail,
          buyerCountry: now.buyerCountry,
          buyerRegion: now.buyerRegion,
          subscriptionId: id,
          subscriptionPeriod: period,
          createdAt: clock.now(),
          // The subscription stays due until the charge is answered.
          dueAt: null,
        })
        if (opened === undefined) return findPeriodCharge(tx, tenantId, id, period)
        appendEvents(tx, opened.events)
        return opened.row
      },
      options,
    )
  }

  return async (subscription: SubscriptionRow): Promise<void> => {
    const { tenantId, mandate } = subscription
    const charge = await charged(subscription)
    if (charge === undefined || charge.status !== 'pending') return
    if (mandate === null) throw new Error('a subscription that renews has no mandate')
    const provider = processing.providerNamed(charge.rail)
    const { id: chargeId, amountMinor, currency } = charge
    const order = {
      tenantId,
      chargeId,
      amountMinor,
      currency,
      by: { tag: 'mandate', mandate },
    } as const
    const answer = await processing.ask(lifecycle.signal, (signal) => provider.take(order, signal))
    await processing.record(charge, provider, answer, options)
  }
}
