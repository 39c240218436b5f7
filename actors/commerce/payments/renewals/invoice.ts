/**
 * Renewals by invoice, for providers without mandates: the buyer signs each x402 payment. The
 * charge of the next period is created with a payment page. The event of the charge contains the
 * page's URL, and the merchant sends it to the buyer. An expired invoice is followed by another
 * one, on the schedule of refused renewals, and then the subscription ends.
 */
import { findPeriodCharge } from '../../../../storage/commerce/charges.js'
import { appendEvents } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  cancelSubscriptionRow,
  fallBehind,
  lockSubscription,
  parkSubscription,
  type SubscriptionRow,
} from '../../../../storage/commerce/subscriptions.js'
import { findTenantWithSettings } from '../../../../storage/identity/tenants.js'
import { openSession, sessionToken } from '../checkout/session.js'
import { openCharge } from '../charges.js'
import { DUNNING_MS } from '../outcome.js'
import { offersOf } from '../x402/offers.js'
import { payeesOf } from '../x402/payees.js'
import { sessionPath } from '../x402/sales.js'
import type { RenewalNeeds } from './needs.js'

/** The provider whose payments the buyer signs one by one. */
export const INVOICED_PROVIDER = 'x402'
/** The end of an invoice makes its subscription due. This delay covers failures of that step. */
const RECHECK_MS = 3_600_000

/**
 * Opens the invoice of the next period unless one is open.
 * @param subscription locked by this transaction.
 */
export async function openInvoice(
  tx: Transaction,
  needs: Pick<RenewalNeeds, 'clock' | 'random' | 'x402' | 'baseUrl'>,
  subscription: SubscriptionRow,
): Promise<void> {
  const { random, x402, baseUrl } = needs
  const { tenantId, id: subscriptionId, attempts, amountMinor, currency } = subscription
  const charge = periodCharge(needs, subscription)
  const { id: chargeId, createdAt: now, subscriptionPeriod: period } = charge
  const lastsMs = DUNNING_MS[attempts] ?? DUNNING_MS.at(-1)!
  const expiresAt = new Date(now.getTime() + lastsMs)
  await parkSubscription(tx, tenantId, subscriptionId, new Date(expiresAt.getTime() + RECHECK_MS))
  if ((await findPeriodCharge(tx, tenantId, subscriptionId, period)) !== undefined) return
  const token = sessionToken(random)
  const sessionId = random.uuid()
  const transition = await openCharge(
    tx,
    needs,
    { ...charge, checkoutSessionId: sessionId },
    {
      invoice_url: `${baseUrl}/pay/${token}`,
      invoice_expires_at: expiresAt.toISOString(),
      x402_url: baseUrl + sessionPath(sessionId),
    },
  )
  if (transition === undefined) return
  const tenant = x402 === null ? undefined : await findTenantWithSettings(tx, tenantId)
  const offers =
    x402 === null || tenant === undefined
      ? []
      : offersOf(null, { amountMinor, currency }, payeesOf(tenant), x402)
  const urls = { successUrl: null, cancelUrl: null }
  const session = { tenantId, id: sessionId, chargeId, ...urls, expiresAt, createdAt: now }
  await openSession(tx, needs, { ...session, token }, offers)
  appendEvents(tx, transition.events)
}

/** The charge of the next period of a subscription. */
export function periodCharge(
  { clock, random }: Pick<RenewalNeeds, 'clock' | 'random'>,
  subscription: SubscriptionRow,
) {
  const { tenantId, rail, amountMinor, currency, metadata, productId, priceId } = subscription
  const { customerEmail, buyerCountry, buyerRegion } = subscription
  return {
    id: random.uuid(),
    tenantId,
    rail,
    amountMinor,
    currency,
    metadata,
    productId,
    priceId,
    quantity: 1,
    customerEmail,
    buyerCountry,
    buyerRegion,
    subscriptionId: subscription.id,
    subscriptionPeriod: subscription.period + 1,
    createdAt: clock.now(),
    // The subscription stays due until the charge is answered.
    dueAt: null,
  }
}

/** Handles an invoice that expired unpaid: opens the next one, or ends the subscription. */
export async function invoiceLapsed(
  tx: Transaction,
  { clock }: Pick<RenewalNeeds, 'clock'>,
  {
    tenantId,
    id,
    period,
  }: { readonly tenantId: string; readonly id: string; readonly period: number },
): Promise<void> {
  const subscription = await lockSubscription(tx, tenantId, id)
  if (subscription === undefined) return
  const now = clock.now()
  const isLast = subscription.attempts + 1 >= DUNNING_MS.length
  if (isLast) await cancelSubscriptionRow(tx, tenantId, id, now)
  else await fallBehind(tx, { tenantId, id }, period, now, now)
}
