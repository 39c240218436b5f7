/**
 * Renewals by invoice, for providers without mandates: the buyer signs each x402 payment. The
 * charge of the next period is created with a payment page. The event of the charge contains the
 * page's URL, and the merchant sends it to the buyer. An expired invoice is followed by another
 * one, on the schedule of refused renewals, and then the subscription ends.
 */
import { findPeriodCharge } from '../../../storage/commerce/charges.js'
import { insertCheckoutSession } from '../../../storage/commerce/checkout-sessions.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  cancelSubscription,
  fallBehind,
  lockSubscription,
  parkSubscription,
  type SubscriptionRow,
} from '../../../storage/commerce/subscriptions.js'
import { findTenantWithSettings } from '../../../storage/identity/tenants.js'
import { hashOf } from '../checkout/open.js'
import { openCharge } from '../payments/charges.js'
import { DUNNING_MS } from '../payments/outcome.js'
import { offersOf } from '../x402/offers.js'
import { payeesOf } from '../x402/payees.js'
import { sessionPath } from '../x402/sales.js'
import { awaitTransfers } from '../x402/transfers.js'
import type { RenewalNeeds } from './needs.js'

/** The provider whose payments the buyer signs one by one. */
export const INVOICED_PROVIDER = 'x402'
const TOKEN_BYTES = 32
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
  const { clock, random, x402, baseUrl } = needs
  const { tenantId, id: subscriptionId, attempts, amountMinor, currency } = subscription
  const period = subscription.period + 1
  const now = clock.now()
  const lastsMs = DUNNING_MS[attempts] ?? DUNNING_MS.at(-1)!
  const expiresAt = new Date(now.getTime() + lastsMs)
  await parkSubscription(tx, tenantId, subscriptionId, new Date(expiresAt.getTime() + RECHECK_MS))
  if ((await findPeriodCharge(tx, tenantId, subscriptionId, period)) !== undefined) return
  const token = random.token(TOKEN_BYTES)
  const [chargeId, sessionId] = [random.uuid(), random.uuid()]
  const transition = await openCharge(
    tx,
    needs,
    {
      id: chargeId,
      tenantId,
      rail: INVOICED_PROVIDER,
      amountMinor,
      currency,
      metadata: subscription.metadata,
      productId: subscription.productId,
      priceId: subscription.priceId,
      quantity: 1,
      customerEmail: subscription.customerEmail,
      buyerCountry: subscription.buyerCountry,
      buyerRegion: subscription.buyerRegion,
      checkoutSessionId: sessionId,
      subscriptionId,
      subscriptionPeriod: period,
      createdAt: now,
      dueAt: null,
    },
    undefined,
    {
      invoice_url: `${baseUrl}/pay/${token}`,
      invoice_expires_at: expiresAt.toISOString(),
      x402_url: baseUrl + sessionPath(sessionId),
    },
  )
  if (transition === undefined) return
  await insertCheckoutSession(tx, {
    tenantId,
    id: sessionId,
    tokenSha256: hashOf(token),
    chargeId,
    successUrl: null,
    cancelUrl: null,
    expiresAt,
    createdAt: now,
  })
  const tenant = x402 === null ? undefined : await findTenantWithSettings(tx, tenantId)
  if (x402 !== null && tenant !== undefined) {
    const offers = offersOf(null, { amountMinor, currency }, payeesOf(tenant), x402)
    const session = { tenantId, id: sessionId, chargeId, expiresAt, createdAt: now }
    await awaitTransfers(tx, random, offers, x402.watched, session)
  }
  appendEvents(tx, transition.events)
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
  if (isLast) await cancelSubscription(tx, tenantId, id, now)
  else await fallBehind(tx, tenantId, id, period, now, now)
}
