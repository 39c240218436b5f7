/** Resolves an order to the payment link or checkout session that x402 pays. */
import { type ChargeRow, findCharge } from '../../../../storage/commerce/charges.js'
import {
  type CheckoutSessionRow,
  findCheckoutSessionById,
} from '../../../../storage/commerce/checkout-sessions.js'
import {
  findOffer,
  findPaymentLink,
  type OfferRow,
  type PaymentLinkRow,
  paymentLinks,
} from '../../../../storage/commerce/products.js'
import type { Database, Transaction } from '../../../../storage/platform/sql.js'
import { findTenantWithSettings } from '../../../../storage/identity/tenants.js'
import { AMOUNT_MINOR_MAX } from '../../../domain/commerce/currencies.js'
import { isUuid } from '../../../domain/ids.js'
import type { Bill, Target } from './endings.js'
import { type LinkTerms, type Offer, type OfferSettings, offersOf, termsOf } from './offers.js'
import { type Payees, payeesOf } from './payees.js'
import type { Purchase } from './payments.js'
import type { OrderFault, X402Order } from './protocol.js'

/** ISO 3166-1 alpha-2, and the part of ISO 3166-2 after the hyphen. */
const COUNTRY = /^[A-Za-z]{2}$/
const REGION = /^[A-Za-z0-9][A-Za-z0-9-]{0,5}$/
/** base64url of at least 16 bytes. Other values are rejected without a query. */
const TOKEN = /^[A-Za-z0-9_-]{16,128}$/
const UNKNOWN = { tag: 'unknown' } as const

export type Found = LinkFound | SessionFound
type Shared = {
  readonly tenantId: string
  readonly price: OfferRow
  readonly terms: LinkTerms | null
  /** Null where the tenant may not sell. */
  readonly payees: Payees | null
}
type LinkFound = Shared & { readonly tag: 'link'; readonly link: PaymentLinkRow }
type SessionFound = Shared & {
  readonly tag: 'session'
  readonly session: CheckoutSessionRow
  readonly charge: ChargeRow
}

export type Sale = Omit<Purchase, 'offer' | 'proof'> & { readonly offers: readonly Offer[] }

export function targetOf(found: Found): Target {
  return found.tag === 'link'
    ? { paymentLinkId: found.link.id, checkoutSessionId: null }
    : { paymentLinkId: null, checkoutSessionId: found.session.id }
}

/** Crosses tenants: a buyer names a link or session and no tenant. */
export async function findOrdered(
  database: Pick<Database, 'system'>,
  { target }: X402Order,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const isFit = target.tag === 'link' ? TOKEN.test(target.token) : isUuid(target.id)
  if (!isFit) return undefined
  return database.system<Found | undefined>(
    (tx) => (target.tag === 'link' ? linkIn(tx, target.token) : sessionIn(tx, target.id)),
    { signal },
  )
}

async function linkIn(tx: Transaction, token: string): Promise<LinkFound | undefined> {
  const link = await findPaymentLink(tx, token)
  const price = link && (await findOffer(tx, link.priceId))
  if (link === undefined || price === undefined) return undefined
  const { tenantId } = link
  const payees = await payeesIn(tx, tenantId)
  return { tag: 'link', tenantId, link, price, terms: termsOf(link.x402), payees }
}

async function sessionIn(tx: Transaction, id: string): Promise<SessionFound | undefined> {
  const session = await findCheckoutSessionById(tx, id)
  const charge = session && (await findCharge(tx, session.tenantId, session.chargeId))
  const price = charge?.priceId == null ? undefined : await findOffer(tx, charge.priceId)
  if (session === undefined || charge === undefined || price === undefined) return undefined
  const { tenantId } = session
  const { paymentLinkId } = charge
  const link =
    paymentLinkId === null ? undefined : await paymentLinks.find(tx, tenantId, paymentLinkId)
  const terms = termsOf(link?.x402 ?? null)
  const payees = await payeesIn(tx, tenantId)
  return { tag: 'session', tenantId, session, charge, price, terms, payees }
}

async function payeesIn(tx: Transaction, tenantId: string): Promise<Payees | null> {
  const tenant = await findTenantWithSettings(tx, tenantId)
  return tenant?.status === 'active' ? payeesOf(tenant) : null
}

type SaleSettings = OfferSettings & { readonly baseUrl: string; readonly now: Date }

/** The item and its price, or the reason why it is not for sale. */
export function saleOf(found: Found, order: X402Order, settings: SaleSettings): Sale | OrderFault {
  return found.tag === 'link' ? linkSale(found, order, settings) : sessionSale(found, settings)
}

function linkSale(
  { link, price, terms, payees, tenantId }: LinkFound,
  { buyerCountry, buyerRegion }: X402Order,
  settings: SaleSettings,
): Sale | OrderFault {
  const { quantity, metadata } = link
  const { currency, productId } = price
  const amountMinor = price.amountMinor * quantity
  const isForSale = link.active && price.active && price.productActive
  if (payees === null || !isForSale || amountMinor > AMOUNT_MINOR_MAX) return UNKNOWN
  // A payment link needs a one-time price.
  if (price.interval !== null) return UNKNOWN
  const offers = offersOf(terms, { amountMinor, currency }, payees, settings)
  if (offers.length === 0) return UNKNOWN
  if (buyerCountry === undefined || !COUNTRY.test(buyerCountry)) {
    return { tag: 'invalid_buyer', parameter: 'buyer_country' }
  }
  if (buyerRegion === undefined || !REGION.test(buyerRegion)) {
    return { tag: 'invalid_buyer', parameter: 'buyer_region' }
  }
  const bill: Bill = {
    tag: 'link',
    amountMinor,
    currency,
    quantity,
    metadata,
    productId,
    priceId: price.id,
    paymentLinkId: link.id,
    buyerCountry: buyerCountry.toUpperCase(),
    buyerRegion: buyerRegion.toUpperCase(),
  }
  const resource = { url: settings.baseUrl + linkPath(link.token), description: price.productName }
  return { tenantId, offers, resource, bill }
}

function sessionSale(
  { session, charge, price, terms, payees, tenantId }: SessionFound,
  settings: SaleSettings,
): Sale | OrderFault {
  const offers = payees === null ? [] : offersOf(terms, charge, payees, settings)
  if (offers.length === 0) return UNKNOWN
  const isOpen = session.status === 'open' && session.expiresAt > settings.now
  if (!isOpen || charge.status !== 'pending') return { tag: 'not_open' }
  const resource = {
    url: settings.baseUrl + sessionPath(session.id),
    description: price.productName,
  }
  const { id: chargeId } = charge
  return { tenantId, offers, resource, bill: { tag: 'session', sessionId: session.id, chargeId } }
}

/** Path at which x402 pays a payment link. */
export function linkPath(token: string): string {
  return `/api/v1/public/commerce/payment-links/${token}/x402`
}

/** Path at which x402 pays a checkout session. */
export function sessionPath(id: string): string {
  return `/api/v1/public/commerce/checkout-sessions/${id}/x402`
}
