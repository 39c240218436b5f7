/**
 * Renews a subscription: the charge of the next period is inserted (one row per period), the
 * provider is called under its id, and the answer is stored. After a crash the next worker that
 * claims the subscription continues with the same charge.
 */
import { type ChargeRow, findPeriodCharge } from '../../../../storage/commerce/charges.js'
import { roomInBooks } from '../../../../storage/commerce/ledger.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  lockSubscription,
  type SubscriptionRow,
} from '../../../../storage/commerce/subscriptions.js'
import { openCharge } from '../charges.js'
import { askProvider, providerNamed, recordAnswer } from '../charge-processing.js'
import { endSubscription } from '../subscription-end.js'
import { INVOICED_PROVIDER, openInvoice, periodCharge } from './invoice.js'
import { inBackground, type RoundNeeds } from './needs.js'

export async function renew(needs: RoundNeeds, subscription: SubscriptionRow): Promise<void> {
  const { tenantId, id, mandate } = subscription
  const options = inBackground(needs)
  const charge = await needs.database.tenant(
    tenantId,
    (tx) => chargePeriod(tx, needs, tenantId, id),
    options,
  )
  if (charge === undefined || charge.status !== 'pending') return
  if (mandate === null) throw new Error('a subscription that renews has no mandate')
  const provider = providerNamed(needs, charge.rail)
  const { id: chargeId, amountMinor, currency } = charge
  const by = { tag: 'mandate', mandate } as const
  const order = { tenantId, chargeId, amountMinor, currency, by }
  const answer = await askProvider(needs.signal, (signal) => provider.take(order, signal))
  await recordAnswer(needs, charge, provider, answer, options)
}

/**
 * Inserts the charge of the next period, unless the subscription ends, has to wait, or gets an
 * invoice.
 */
async function chargePeriod(
  tx: Transaction,
  needs: RoundNeeds,
  tenantId: string,
  id: string,
): Promise<ChargeRow | undefined> {
  // A concurrent cancellation waits for this lock, and then finds the charge.
  const now = await lockSubscription(tx, tenantId, id)
  if (now === undefined || (now.status !== 'active' && now.status !== 'past_due')) return undefined
  if (now.cancelAtPeriodEnd) {
    const { events } = await endSubscription(tx, needs, tenantId, id)
    appendEvents(tx, events)
    return undefined
  }
  const { rail, currency, amountMinor } = now
  if (rail === INVOICED_PROVIDER) {
    await openInvoice(tx, needs, now)
    return undefined
  }
  const { name } = providerNamed(needs, rail)
  if (!(await roomInBooks(tx, tenantId, currency, name, amountMinor))) {
    const context = { tenantId, subscriptionId: id, rail, currency }
    needs.log.error(context, 'renewals: ledger of a payment provider is full, renewal waits')
    return undefined
  }
  const charge = periodCharge(needs, now)
  const opened = await openCharge(tx, needs, charge)
  if (opened === undefined) return findPeriodCharge(tx, tenantId, id, charge.subscriptionPeriod)
  appendEvents(tx, opened.events)
  return opened.row
}
