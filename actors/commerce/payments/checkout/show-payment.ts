/** The payment page, and the page of a payment link. */
import type { Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import { type ChargeRow, findCharge } from '../../../../storage/commerce/charges.js'
import {
  type CheckoutSessionRow,
  findCheckoutSession,
} from '../../../../storage/commerce/checkout-sessions.js'
import type { CheckoutTransferRow } from '../../../../storage/commerce/checkout-transfers.js'
import { findOffer, paymentLinks } from '../../../../storage/commerce/products.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { findTenantWithSettings } from '../../../../storage/identity/tenants.js'
import { recordAnswer } from '../charge-processing.js'
import type { PaymentProvider } from '../payment-provider.js'
import { recurringOf } from '../records.js'
import { brandingOf } from '../../../domain/tenants/branding.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { type LinkTerms, termsOf } from '../x402/offers.js'
import { linkPath, sessionPath } from '../x402/sales.js'
import type { CheckoutNeeds } from './needs.js'
import { linkOffer } from './open.js'
import type {
  CheckoutProtocol,
  LinkShown,
  PayEnded,
  PayShown,
  PayState,
  PayUnknown,
} from './protocol.js'
import { transfersIn, x402Shown } from './terms.js'
import { type WayToPay, waysToPay } from './ways-to-pay.js'

/** Maximum wait for a look-up when a buyer returns to our page. */
const LOOK_UP_MS = 5_000
const TOKEN = /^[A-Za-z0-9_-]{43}$/
/** Tokens of payment links are shorter than tokens of sessions. */
const LINK_TOKEN = /^[A-Za-z0-9_-]{22,42}$/
const UNKNOWN: PayUnknown = { tag: 'unknown_page' }

/** The page of a session, with what its payment needs. */
export type Seen = {
  readonly session: CheckoutSessionRow
  readonly charge: ChargeRow
  readonly ways: readonly WayToPay[]
  readonly page: PayShown
}

export const showPayment: Handler<CheckoutNeeds, CheckoutProtocol, 'showPayment'> = async (
  needs,
  { token },
  context,
) => {
  const { signal } = context
  if (isLinkToken(token)) return showLink(needs, token, signal)
  const seen = await see(needs, token, signal)
  if ('tag' in seen) return seen
  if (!(await lookUp(needs, seen, context))) return seen.page
  const after = await see(needs, token, signal)
  return 'tag' in after ? after : after.page
}

/** True for the token of a payment link. */
export function isLinkToken(token: string): boolean {
  return LINK_TOKEN.test(token)
}

/** Crosses tenants: a buyer names a page and no tenant. */
export async function see(
  needs: CheckoutNeeds,
  token: string,
  signal: AbortSignal,
): Promise<Seen | PayEnded | PayUnknown> {
  if (!TOKEN.test(token)) return UNKNOWN
  return needs.database.system(async (tx) => seenIn(tx, needs, token), { signal })
}

async function seenIn(
  tx: Transaction,
  needs: CheckoutNeeds,
  token: string,
): Promise<Seen | PayEnded | PayUnknown> {
  const session = await findCheckoutSession(tx, sha256(token))
  if (session === undefined) return UNKNOWN
  const { tenantId, status, expiresAt } = session
  if (status === 'expired' || (status === 'open' && expiresAt <= needs.clock.now())) {
    return { tag: 'ended' }
  }
  const charge = await findCharge(tx, tenantId, session.chargeId)
  const tenant = await findTenantWithSettings(tx, tenantId)
  const offer = charge?.priceId == null ? undefined : await findOffer(tx, charge.priceId)
  if (charge === undefined || tenant === undefined || offer === undefined) return UNKNOWN
  if (tenant.status !== 'active') return UNKNOWN
  const x402 = await linkTerms(tx, tenantId, charge.paymentLinkId)
  const ways = waysToPay(tenant, { ...charge, x402 }, needs)
  const transfers = await transfersIn(tx, tenantId, session.id, ways)
  const page: PayShown = {
    tag: 'page',
    token,
    state: stateOf(session, charge, transfers),
    tenant: brandingOf(tenant.id, tenant.name, tenant.settings),
    productName: offer.productName,
    quantity: charge.quantity,
    amountMinor: charge.amountMinor,
    currency: charge.currency,
    recurring: charge.subscriptionId === null ? null : recurringOf(offer),
    chargeId: charge.id,
    paidAt: charge.paidAt,
    refundedAmountMinor: charge.refundedAmountMinor,
    customerEmail: charge.customerEmail,
    rails: providersIn(ways).map(({ name }) => name),
    continues: status === 'paying' && charge.status === 'pending' && hasOwnPage(needs, charge),
    leadsTo: providersIn(ways).flatMap(({ leadsTo }) => leadsTo),
    x402: x402Shown(sessionPath(session.id), ways, transfers),
    successUrl: session.successUrl === null ? null : withCharge(session.successUrl, charge.id),
    cancelUrl: session.cancelUrl,
  }
  return { session, charge, ways, page }
}

/**
 * Looks up a payment whose buyer has returned from the provider's page, at most once per interval
 * and page. Without an answer in time the page shows the stored state.
 * @returns true if the payment has ended.
 */
async function lookUp(
  needs: CheckoutNeeds,
  { charge, page }: Seen,
  { log, requestId }: MessageContext,
): Promise<boolean> {
  const provider = page.state === 'processing' ? needs.providers.get(charge.rail ?? '') : undefined
  if (provider?.lookUp === undefined) return false
  const { tenantId, id: chargeId, amountMinor, currency } = charge
  const order = { tenantId, chargeId, amountMinor, currency }
  try {
    const answer = await provider.lookUp(order, AbortSignal.timeout(LOOK_UP_MS))
    if (answer === undefined) return false
    await recordAnswer(needs, charge, provider, answer, { requestId })
    return answer.tag !== 'pending'
  } catch (error) {
    log.warn({ err: error, chargeId }, 'payment look-up failed')
    return false
  }
}

/** The page of a payment link. */
export async function showLink(
  needs: CheckoutNeeds,
  token: string,
  signal: AbortSignal,
): Promise<LinkShown | PayUnknown> {
  const offered = await linkOffer(needs, token, signal)
  if (offered === undefined) return UNKNOWN
  const { link, tenant, offer } = offered
  const { productName, currency } = offer
  const amountMinor = offer.amountMinor * link.quantity
  const ways = waysToPay(tenant, { amountMinor, currency, x402: termsOf(link.x402) }, needs)
  return {
    tag: 'link_page',
    token,
    tenant: brandingOf(tenant.id, tenant.name, tenant.settings),
    productName,
    quantity: link.quantity,
    amountMinor,
    currency,
    payable: ways.length > 0,
    x402: x402Shown(linkPath(token), ways, [], needs.x402?.watched),
  }
}

function hasOwnPage({ providers }: CheckoutNeeds, { rail }: ChargeRow): boolean {
  return (providers.get(rail ?? '')?.leadsTo.length ?? 0) > 0
}

function stateOf(
  { status }: CheckoutSessionRow,
  charge: ChargeRow,
  transfers: readonly CheckoutTransferRow[],
): PayState {
  if (charge.status !== 'pending') return charge.status
  const isUnderWay = status === 'paying' || transfers.some(({ state }) => state === 'arrived')
  return isUnderWay ? 'processing' : 'open'
}

/** The providers among the payment methods. */
export function providersIn(ways: readonly WayToPay[]): readonly PaymentProvider[] {
  return ways.flatMap((way) => (way.tag === 'provider' ? [way.provider] : []))
}

/** The x402 terms that the payment link of a charge sets. */
async function linkTerms(
  tx: Transaction,
  tenantId: string,
  linkId: string | null,
): Promise<LinkTerms | null> {
  const link = linkId === null ? undefined : await paymentLinks.find(tx, tenantId, linkId)
  return termsOf(link?.x402 ?? null)
}

/** Adds `charge_id`, so that the merchant's page knows which charge was paid. */
function withCharge(url: string, chargeId: string): string {
  const to = new URL(url)
  to.searchParams.set('charge_id', chargeId)
  return to.href
}
