/**
 * Ends a subscription early, with its payments. Open payment pages are closed. For a payment that a
 * provider has not answered, the provider is asked for the outcome, which refuses a payment it has
 * not seen. Lock order for all code that needs several of these rows: an unpaid session with its
 * charge, the subscription, a charge that a provider was asked for.
 */
import { concludeChargesOf } from '../../../storage/commerce/charges.js'
import { closeCheckoutsOf } from '../../../storage/commerce/checkout-sessions.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  cancelSubscriptionRow,
  type SubscriptionRow,
} from '../../../storage/commerce/subscriptions.js'
import { chargeFailed } from './charges.js'
import type { ChargeDeps } from './events.js'

/** `failure_code` of a first payment that was never started. */
const CANCELED = 'subscription_canceled'

/**
 * @returns the events to emit, and the row. The row is undefined when the subscription has ended
 *   before.
 */
export async function endSubscription(
  tx: Transaction,
  deps: ChargeDeps,
  tenantId: string,
  id: string,
): Promise<{ readonly row: SubscriptionRow | undefined; readonly events: readonly NewEvent[] }> {
  const events: NewEvent[] = []
  for (const chargeId of await closeCheckoutsOf(tx, tenantId, id)) {
    const failed = await chargeFailed(tx, deps, { tenantId, chargeId, code: CANCELED })
    events.push(...(failed?.events ?? []))
  }
  const now = deps.clock.now()
  const row = await cancelSubscriptionRow(tx, tenantId, id, now)
  await concludeChargesOf(tx, tenantId, id, now)
  return { row, events }
}
