/**
 * Opens checkouts: a pending charge, the session that pays it, and a subscription for recurring
 * prices.
 */
import { createHash } from 'node:crypto'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { insertCheckoutSession } from '../../../storage/commerce/checkout-sessions.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { appendEvents, type NewEvent } from '../../../storage/platform/outbox.js'
import {
  findOffer,
  findPaymentLink,
  type OfferRow,
  type PaymentLinkRow,
} from '../../../storage/commerce/products.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { insertSubscription } from '../../../storage/commerce/subscriptions.js'
import {
  findTenantWithSettings,
  type TenantWithSettings,
} from '../../../storage/identity/tenants.js'
import { openCharge } from '../payments/charges.js'
import { parseEmail } from '../../domain/email.js'
import { buyerFault } from '../../domain/commerce/buyers.js'
import { AMOUNT_MINOR_MAX } from '../../domain/commerce/currencies.js'
import { type IdempotencyClaim, isUnguessableKey } from '../../domain/idempotency.js'
import { isUuid } from '../../domain/ids.js'
import { redirectFault, redirectHostsIn, redirectRules } from '../../domain/redirect-hosts.js'
import { termsOf } from '../x402/offers.js'
import { sessionPath } from '../x402/sales.js'
import { awaitTransfers } from '../x402/transfers.js'
import type { CheckoutNeeds } from './needs.js'
import { offersIn } from './terms.js'
import { type WayToPay, waysToPay } from './ways-to-pay.js'
import type {
  Checkout,
  CheckoutDetails,
  CheckoutLink,
  CheckoutOpened,
  CheckoutRefused,
  LinkUnknown,
  NoWayToPay,
  Subscribe,
  SubscriptionOpened,
} from './protocol.js'

const TOKEN_BYTES = 32
export const QUANTITY_MAX = 999
export const METADATA_BYTES_MAX = 8 * 1024

/** An active payment link with its merchant. */
export type LinkOffer = Merchant & { readonly link: PaymentLinkRow }
export type Checkouts = ReturnType<typeof checkouts>

type Refused = Extract<CheckoutRefused, { tag: 'refused' }>
type Merchant = { readonly tenant: TenantWithSettings; readonly offer: OfferRow }

export function checkouts(needs: CheckoutNeeds) {
  const { database, settings } = needs

  /**
   * The merchant that sells at this price. Crosses tenants: a buyer names a price and no tenant.
   */
  async function merchantOf(priceId: string, signal: AbortSignal): Promise<Merchant | undefined> {
    if (!isUuid(priceId)) return undefined
    return database.system(
      async (tx) => {
        const offer = await findOffer(tx, priceId)
        if (offer === undefined || !offer.active || !offer.productActive) return undefined
        const tenant = await findTenantWithSettings(tx, offer.tenantId)
        return tenant?.status === 'active' ? { tenant, offer } : undefined
      },
      { signal },
    )
  }

  /** Crosses tenants: a buyer names a link and no tenant. */
  async function linkOffer(token: string, signal: AbortSignal): Promise<LinkOffer | undefined> {
    const link = await database.system((tx) => findPaymentLink(tx, token), { signal })
    if (link === undefined || !link.active) return undefined
    const merchant = await merchantOf(link.priceId, signal)
    return merchant && { ...merchant, link }
  }

  function detailsFault(details: CheckoutDetails, tenant: TenantWithSettings): Refused | null {
    const buyer = buyerFault(details)
    if (buyer !== null) return refused('invalid_buyer', `/${buyer.member}`, buyer.detail)
    const { environment } = tenant
    const hosts = redirectHostsIn(tenant.settings)
    const rules = redirectRules(environment, settings.redirect_hosts, hosts)
    for (const [pointer, url] of [
      ['/success_url', details.successUrl],
      ['/cancel_url', details.cancelUrl],
    ] as const) {
      const fault = url === null ? null : redirectFault(url, rules)
      if (fault === null) continue
      const error = fault.allowed ? 'bad_request' : 'redirect_host_not_allowed'
      return refused(error, pointer, fault.detail)
    }
    return Buffer.byteLength(JSON.stringify(details.metadata)) > METADATA_BYTES_MAX
      ? refused('bad_request', '/metadata', `At most ${METADATA_BYTES_MAX} bytes of JSON.`)
      : null
  }

  async function opened(
    { tenant, offer }: Merchant,
    details: CheckoutDetails,
    order: { readonly quantity: number; readonly link: PaymentLinkRow | null },
    { signal, requestId }: MessageContext,
  ): Promise<CheckoutOpened | SubscriptionOpened | CheckoutRefused> {
    const merged = { ...details, metadata: metadataOf(details, order.link) }
    const fault = detailsFault(merged, tenant)
    if (fault !== null) return fault
    const amountMinor = offer.amountMinor * order.quantity
    if (amountMinor > AMOUNT_MINOR_MAX) {
      return refused(
        'bad_request',
        '/quantity',
        'The total exceeds the maximum amount of a charge.',
      )
    }
    return database.tenant(
      tenant.id,
      (tx) =>
        idempotently(
          tx,
          details.idempotency,
          async (): Promise<CheckoutOpened | SubscriptionOpened | NoWayToPay> => {
            const { currency } = offer
            const x402 = termsOf(order.link?.x402 ?? null)
            const ways = waysToPay(tenant, { amountMinor, currency, x402 }, needs)
            if (ways.length === 0) return { tag: 'no_way_to_pay' }
            const { outcome, events } = await write(tx, needs, offer, details, {
              ...order,
              amountMinor,
              ways,
              requestId,
            })
            appendEvents(tx, events)
            return outcome
          },
          (outcome) => keptOf(outcome, details.idempotency),
        ),
      { signal },
    )
  }

  return {
    async createCheckoutSession(
      message: Checkout,
      context: MessageContext,
    ): Promise<CheckoutOpened | CheckoutRefused> {
      const merchant = await merchantOf(message.priceId, context.signal)
      if (merchant === undefined) return NO_PRICE
      if (merchant.offer.interval !== null) {
        return refused('invalid_price', '/price_id', 'A recurring price needs a subscription.')
      }
      const order = { quantity: message.quantity, link: null }
      return (await opened(merchant, message, order, context)) as CheckoutOpened | CheckoutRefused
    },

    async createSubscriptionCheckoutSession(
      message: Subscribe,
      context: MessageContext,
    ): Promise<SubscriptionOpened | CheckoutRefused> {
      const merchant = await merchantOf(message.priceId, context.signal)
      if (merchant === undefined) return NO_PRICE
      if (merchant.offer.interval === null) {
        return refused('invalid_price', '/price_id', 'The price is not recurring.')
      }
      if (message.customerEmail === null) {
        return refused('invalid_buyer', '/customer_email', 'Required for a subscription.')
      }
      const order = { quantity: 1, link: null }
      return (await opened(merchant, message, order, context)) as
        | SubscriptionOpened
        | CheckoutRefused
    },

    linkOffer,

    async checkoutPaymentLink(
      message: CheckoutLink,
      context: MessageContext,
    ): Promise<CheckoutOpened | CheckoutRefused | LinkUnknown> {
      const offered = await linkOffer(message.token, context.signal)
      if (offered === undefined) return { tag: 'unknown_link' }
      const { link } = offered
      const order = { quantity: message.quantity ?? link.quantity, link }
      return (await opened(offered, message, order, context)) as CheckoutOpened | CheckoutRefused
    },
  }
}

/**
 * Merges metadata. Any buyer can call this, so the members that the merchant set on the link win.
 */
function metadataOf({ metadata }: CheckoutDetails, link: PaymentLinkRow | null) {
  return { ...metadata, ...link?.metadata }
}

/**
 * The response that a repetition of the request gets.
 * @returns undefined for a refusal, which is not stored.
 */
function keptOf(
  outcome: CheckoutOpened | SubscriptionOpened | NoWayToPay,
  claim: IdempotencyClaim | null,
): CheckoutOpened | SubscriptionOpened | undefined {
  if (outcome.tag === 'no_way_to_pay') return undefined
  return claim !== null && isUnguessableKey(claim.key) ? outcome : { ...outcome, token: null }
}

async function write(
  tx: Transaction,
  { clock, random, settings, x402 }: CheckoutNeeds,
  offer: OfferRow,
  details: CheckoutDetails,
  order: {
    readonly quantity: number
    readonly link: PaymentLinkRow | null
    readonly amountMinor: number
    readonly ways: readonly WayToPay[]
    readonly requestId: string | undefined
  },
): Promise<{ outcome: CheckoutOpened | SubscriptionOpened; events: readonly NewEvent[] }> {
  const { tenantId, productId, id: priceId, currency, interval, intervalCount } = offer
  const { buyerCountry, buyerRegion } = details
  // `buyerFault` has refused what is no address.
  const customerEmail = details.customerEmail && parseEmail(details.customerEmail)!
  const { amountMinor, quantity, link, ways, requestId } = order
  const metadata = metadataOf(details, link)
  const buyerMetadata = link === null ? null : details.metadata
  const now = clock.now()
  const [chargeId, checkoutSessionId] = [random.uuid(), random.uuid()]
  const token = random.token(TOKEN_BYTES)
  const expiresAt = new Date(now.getTime() + settings.checkout_ttl_secs * 1000)
  const shared = { tenantId, productId, priceId, amountMinor, currency, metadata, createdAt: now }
  const buyer = { customerEmail, buyerCountry, buyerRegion }
  let subscriptionId: string | null = null
  if (interval !== null && intervalCount !== null && customerEmail !== null) {
    subscriptionId = random.uuid()
    const recurring = { interval, intervalCount }
    await insertSubscription(tx, {
      ...shared,
      ...buyer,
      customerEmail,
      ...recurring,
      id: subscriptionId,
    })
  }
  const opened = await openCharge(
    tx,
    { clock, random },
    {
      ...shared,
      ...buyer,
      buyerMetadata: buyerMetadata && { ...buyerMetadata },
      id: chargeId,
      rail: null,
      quantity,
      checkoutSessionId,
      paymentLinkId: link?.id ?? null,
      subscriptionId,
      subscriptionPeriod: subscriptionId === null ? null : 1,
      dueAt: null,
    },
    requestId,
  )
  if (opened === undefined) throw new Error('a new charge has the id of another one')
  await insertCheckoutSession(tx, {
    tenantId,
    id: checkoutSessionId,
    tokenSha256: hashOf(token),
    chargeId,
    successUrl: details.successUrl,
    cancelUrl: details.cancelUrl,
    expiresAt,
    createdAt: now,
  })
  const offers = offersIn(ways)
  if (x402 !== null && offers.length > 0) {
    const session = { tenantId, id: checkoutSessionId, chargeId, expiresAt, createdAt: now }
    await awaitTransfers(tx, random, offers, x402.watched, session)
  }
  const result = {
    token,
    checkoutSessionId,
    chargeId,
    amountMinor,
    currency,
    metadata,
    buyerMetadata,
    x402Path: offers.length === 0 ? null : sessionPath(checkoutSessionId),
    expiresAt,
    replayed: false,
  }
  const outcome: CheckoutOpened | SubscriptionOpened =
    subscriptionId === null || interval === null || intervalCount === null
      ? { tag: 'opened', ...result }
      : {
          tag: 'subscription_opened',
          ...result,
          subscriptionId,
          recurring: { interval, intervalCount },
        }
  return { outcome, events: opened.events }
}

export function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}

const NO_PRICE: Refused = refused(
  'invalid_price',
  '/price_id',
  'The price does not exist or is inactive.',
)

function refused(error: Refused['error'], pointer: string, detail: string): Refused {
  return { tag: 'refused', error, pointer, detail }
}
