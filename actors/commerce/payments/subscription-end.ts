/**
 * The end of a subscription before its time. Its payments end with it: a page that nobody paid yet is
 * closed, and a rail that was asked and has not answered is asked what became of it, which refuses for
 * good what it never saw. Whoever locks more than one of these rows takes them in this order: a page that
 * nobody pays yet with its charge, the subscription, a charge that a rail was asked for.
 */
import { concludeChargesOf } from '../../../storage/commerce/charges.js'
import { closeCheckoutsOf } from '../../../storage/commerce/checkout-sessions.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  cancelSubscription,
  type SubscriptionRow,
} from '../../../storage/commerce/subscriptions.js'
import { chargeFailed } from './charges.js'
import type { ChargeMeans } from './events.js'

/** `failure_code` of a first payment that nobody had begun. */
const CANCELED = 'subscription_canceled'

/** @returns what is to be told, and the row; undefined for the row where it had ended before. */
export async function endSubscription(
  tx: Transaction,
  means: ChargeMeans,
  tenantId: string,
  id: string,
  requestId?: string,
): Promise<{ readonly row: SubscriptionRow | undefined; readonly events: readonly NewEvent[] }> {
  const events: NewEvent[] = []
  for (const chargeId of await closeCheckoutsOf(tx, tenantId, id)) {
    const failed = await chargeFailed(tx, means, { tenantId, chargeId, code: CANCELED }, requestId)
    events.push(...(failed?.events ?? []))
  }
  const now = means.clock.now()
  const row = await cancelSubscription(tx, tenantId, id, now)
  await concludeChargesOf(tx, tenantId, id, now)
  return { row, events }
}
