/**
 * Opens checkouts: a pending charge, the session that pays it, and a subscription for recurring
 * prices.
 */
import type { Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import { idempotently } from '../../../../storage/platform/idempotency.js'
import { appendEvents, type NewEvent } from '../../../../storage/platform/outbox.js'
import {
  findOffer,
  findPaymentLink,
  type OfferRow,
  type PaymentLinkRow,
} from '../../../../storage/commerce/products.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { insertSubscription } from '../../../../storage/commerce/subscriptions.js'
import {
  findTenantWithSettings,
  type TenantWithSettings,
} from '../../../../storage/identity/tenants.js'
import { openCharge } from '../charges.js'
import { parseEmail } from '../../../domain/email.js'
import { recurringOf } from '../records.js'
import { buyerFault } from '../../../domain/commerce/buyers.js'
import { AMOUNT_MINOR_MAX } from '../../../domain/commerce/currencies.js'
import { type IdempotencyClaim, isUnguessableKey } from '../../../domain/idempotency.js'
import { isUuid } from '../../../domain/ids.js'
import { redirectFault, redirectHostsIn, redirectRules } from '../../../domain/redirect-hosts.js'
import { termsOf } from '../x402/offers.js'
import { sessionPath } from '../x402/sales.js'
import type { CheckoutNeeds } from './needs.js'
import { openSession, sessionToken } from './session.js'
import { offersIn } from './terms.js'
import { type WayToPay, waysToPay } from './ways-to-pay.js'
import type {
  CheckoutDetails,
  CheckoutOpened,
  CheckoutProtocol,
  CheckoutRefused,
  NoWayToPay,
  SubscriptionOpened,
} from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

const METADATA_BYTES_MAX = 8 * 1024

/** An active payment link with its merchant. */
type LinkOffer = Merchant & { readonly link: PaymentLinkRow }

type Handling<K extends keyof CheckoutProtocol> = Handler<CheckoutNeeds, CheckoutProtocol, K>
type Refused = Extract<CheckoutRefused, { tag: 'refused' }>
type Merchant = { readonly tenant: TenantWithSettings; readonly offer: OfferRow }
type Order = { readonly quantity: number; readonly link: PaymentLinkRow | null }

export const createCheckoutSession: Handling<'createCheckoutSession'> = async (
  needs,
  message,
  context,
) => {
  const merchant = await merchantOf(needs, message.priceId, context.signal)
  if (merchant === undefined) return NO_PRICE
  if (merchant.offer.interval !== null) {
    return refused('invalid_price', '/price_id', 'A recurring price needs a subscription.')
  }
  const order = { quantity: message.quantity, link: null }
  return (await open(needs, merchant, message, order, context)) as CheckoutOpened | CheckoutRefused
}

export const createSubscriptionCheckoutSession: Handling<
  'createSubscriptionCheckoutSession'
> = async (needs, message, context) => {
  const merchant = await merchantOf(needs, message.priceId, context.signal)
  if (merchant === undefined) return NO_PRICE
  if (merchant.offer.interval === null) {
    return refused('invalid_price', '/price_id', 'The price is not recurring.')
  }
  if (message.customerEmail === null) {
    return refused('invalid_buyer', '/customer_email', 'Required for a subscription.')
  }
  const opened = await open(needs, merchant, message, { quantity: 1, link: null }, context)
  return opened as SubscriptionOpened | CheckoutRefused
}

export const checkoutPaymentLink: Handling<'checkoutPaymentLink'> = async (
  needs,
  message,
  context,
) => {
  const offered = await linkOffer(needs, message.token, context.signal)
  if (offered === undefined) return { tag: 'unknown_link' }
  const { link } = offered
  const order = { quantity: message.quantity ?? link.quantity, link }
  return (await open(needs, offered, message, order, context)) as CheckoutOpened | CheckoutRefused
}

/**
 * The merchant that sells at this price. Crosses tenants: a buyer names a price and no tenant.
 */
async function merchantOf(
  { database }: CheckoutNeeds,
  priceId: string,
  signal: AbortSignal,
): Promise<Merchant | undefined> {
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

/** What a payment link sells. Crosses tenants: a buyer names a link and no tenant. */
export async function linkOffer(
  needs: CheckoutNeeds,
  token: string,
  signal: AbortSignal,
): Promise<LinkOffer | undefined> {
  const link = await needs.database.system((tx) => findPaymentLink(tx, token), { signal })
  if (link === undefined || !link.active) return undefined
  const merchant = await merchantOf(needs, link.priceId, signal)
  return merchant && { ...merchant, link }
}

async function open(
  needs: CheckoutNeeds,
  { tenant, offer }: Merchant,
  details: CheckoutDetails,
  order: Order,
  { signal, requestId }: MessageContext,
): Promise<CheckoutOpened | SubscriptionOpened | CheckoutRefused> {
  const { link } = order
  // Any buyer can call this, so the members that the merchant set on the link win.
  const metadata = { ...details.metadata, ...link?.metadata }
  const fault = detailsFault(needs, { ...details, metadata }, tenant)
  if (fault !== undefined) return fault
  const amountMinor = offer.amountMinor * order.quantity
  if (amountMinor > AMOUNT_MINOR_MAX) {
    return refused('bad_request', '/quantity', 'The total exceeds the maximum amount of a charge.')
  }
  const { currency } = offer
  const work = async (
    tx: Transaction,
  ): Promise<CheckoutOpened | SubscriptionOpened | NoWayToPay> => {
    const x402 = termsOf(link?.x402 ?? null)
    const ways = waysToPay(tenant, { amountMinor, currency, x402 }, needs)
    if (ways.length === 0) return { tag: 'no_way_to_pay' }
    const priced = { ...order, amountMinor, metadata, ways, requestId }
    const { outcome, events } = await write(tx, needs, offer, details, priced)
    appendEvents(tx, events)
    return outcome
  }
  const { idempotency } = details
  return inTenant(needs.database, tenant.id, { signal }, (tx) =>
    idempotently(
      tx,
      idempotency,
      () => work(tx),
      (outcome) => keptOf(outcome, idempotency),
    ),
  )
}

function detailsFault(
  { settings }: CheckoutNeeds,
  details: CheckoutDetails,
  tenant: TenantWithSettings,
): Refused | undefined {
  const buyer = buyerFault(details)
  if (buyer !== undefined) return refused('invalid_buyer', `/${buyer.member}`, buyer.detail)
  const { environment } = tenant
  const hosts = redirectHostsIn(tenant.settings)
  const rules = redirectRules(environment, settings.redirect_hosts, hosts)
  for (const [pointer, url] of [
    ['/success_url', details.successUrl],
    ['/cancel_url', details.cancelUrl],
  ] as const) {
    const fault = url === null ? undefined : redirectFault(url, rules)
    if (fault === undefined) continue
    const error = fault.allowed ? 'bad_request' : 'redirect_host_not_allowed'
    return refused(error, pointer, fault.detail)
  }
  return Buffer.byteLength(JSON.stringify(details.metadata)) > METADATA_BYTES_MAX
    ? refused('bad_request', '/metadata', `At most ${METADATA_BYTES_MAX} bytes of JSON.`)
    : undefined
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
  needs: CheckoutNeeds,
  offer: OfferRow,
  details: CheckoutDetails,
  order: Order & {
    readonly amountMinor: number
    readonly metadata: Record<string, unknown>
    readonly ways: readonly WayToPay[]
    readonly requestId: string | undefined
  },
): Promise<{ outcome: CheckoutOpened | SubscriptionOpened; events: readonly NewEvent[] }> {
  const { clock, random, settings } = needs
  const { tenantId, productId, id: priceId, currency } = offer
  const { buyerCountry, buyerRegion, successUrl, cancelUrl } = details
  // `buyerFault` has refused what is no address.
  const customerEmail = details.customerEmail && parseEmail(details.customerEmail)!
  const { amountMinor, metadata, quantity, link, ways, requestId } = order
  const buyerMetadata = link === null ? null : { ...details.metadata }
  const createdAt = clock.now()
  const [chargeId, checkoutSessionId] = [random.uuid(), random.uuid()]
  const token = sessionToken(random)
  const expiresAt = new Date(createdAt.getTime() + settings.checkout_ttl_secs * 1000)
  const shared = { tenantId, productId, priceId, amountMinor, currency, metadata, createdAt }
  const buyer = { customerEmail, buyerCountry, buyerRegion }
  const recurring = recurringOf(offer)
  const subscription =
    recurring === null || customerEmail === null
      ? null
      : { ...shared, ...buyer, ...recurring, customerEmail, id: random.uuid() }
  if (subscription !== null) await insertSubscription(tx, subscription)
  const charge = {
    ...shared,
    ...buyer,
    buyerMetadata,
    id: chargeId,
    rail: null,
    quantity,
    checkoutSessionId,
    paymentLinkId: link?.id ?? null,
    subscriptionId: subscription?.id ?? null,
    subscriptionPeriod: subscription === null ? null : 1,
    dueAt: null,
  }
  const opened = await openCharge(tx, { clock, random, requestId }, charge)
  if (opened === undefined) throw new Error('a new charge has the id of another one')
  const offers = offersIn(ways)
  const urls = { successUrl, cancelUrl }
  const session = { tenantId, id: checkoutSessionId, chargeId, ...urls, expiresAt, createdAt }
  await openSession(tx, needs, { ...session, token }, offers)
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
    subscription === null || recurring === null
      ? { tag: 'opened', ...result }
      : { tag: 'subscription_opened', ...result, subscriptionId: subscription.id, recurring }
  return { outcome, events: opened.events }
}

const NO_PRICE: Refused = refused(
  'invalid_price',
  '/price_id',
  'The price does not exist or is inactive.',
)

function refused(error: Refused['error'], pointer: string, detail: string): Refused {
  return { tag: 'refused', error, pointer, detail }
}
