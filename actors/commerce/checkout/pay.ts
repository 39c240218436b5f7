/**
 * The payment page, and the page of a payment link, which opens a checkout. A payment takes three
 * steps: the session is claimed (one of several concurrent attempts wins), the provider is called,
 * and its answer is stored. If the process dies in between, the charge keeps a due time at which a
 * worker asks the provider for the outcome.
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { type ChargeRow, findCharge } from '../../../storage/commerce/charges.js'
import {
  beginPaying,
  type CheckoutSessionRow,
  findCheckoutSession,
} from '../../../storage/commerce/checkout-sessions.js'
import type { CheckoutTransferRow } from '../../../storage/commerce/checkout-transfers.js'
import { findOffer, paymentLinks } from '../../../storage/commerce/products.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { findTenantWithSettings } from '../../../storage/identity/tenants.js'
import { chargeProcessing } from '../payments/charge-processing.js'
import type { PaymentProvider } from '../payments/payment-provider.js'
import { type Email, parseEmail } from '../../domain/email.js'
import { brandingOf } from '../../domain/tenants/branding.js'
import { type LinkTerms, termsOf } from '../x402/offers.js'
import { linkPath, sessionPath } from '../x402/sales.js'
import type { CheckoutNeeds } from './needs.js'
import { type Checkouts, hashOf } from './open.js'
import type {
  LinkShown,
  LinkUnpayable,
  Pay,
  PayAgain,
  PayEnded,
  PayFull,
  PaySent,
  PayShown,
  PayState,
  PayUnknown,
} from './protocol.js'
import { transfersIn, x402Shown } from './terms.js'
import { type WayToPay, waysToPay } from './ways-to-pay.js'

/** After this a worker asks the provider for the outcome. Longer than any request lasts. */
const ASK_AGAIN_MS = 120_000
/** Maximum wait for a look-up when a buyer returns to our page. */
const LOOK_UP_MS = 5_000
const TOKEN = /^[A-Za-z0-9_-]{43}$/
/** A session token. Link tokens are shorter. */
const LINK_TOKEN = /^[A-Za-z0-9_-]{22,42}$/
/** Empty details for a checkout from the page of a link. */
const NO_DETAILS = {
  quantity: null,
  successUrl: null,
  cancelUrl: null,
  customerEmail: null,
  buyerCountry: null,
  buyerRegion: null,
  metadata: {},
  idempotency: null,
} as const

type Seen = {
  readonly session: CheckoutSessionRow
  readonly charge: ChargeRow
  readonly ways: readonly WayToPay[]
  readonly page: PayShown
}

/** The provider page to redirect the buyer to, or null when there is none. */
type StartedPayment = { readonly sendTo: string | null }

export function payments(needs: CheckoutNeeds, { linkOffer, checkoutPaymentLink }: Checkouts) {
  const { database, clock, providers, baseUrl } = needs
  const hasOwnPage = (rail: string | null) => (providers.get(rail ?? '')?.leadsTo.length ?? 0) > 0
  const processing = chargeProcessing(needs)

  /** Crosses tenants: a buyer names a page and no tenant. */
  async function see(token: string, signal: AbortSignal): Promise<Seen | PayEnded | PayUnknown> {
    if (!TOKEN.test(token)) return UNKNOWN
    return database.system(async (tx) => found(tx, token), { signal })
  }

  async function found(tx: Transaction, token: string): Promise<Seen | PayEnded | PayUnknown> {
    const session = await findCheckoutSession(tx, hashOf(token))
    if (session === undefined) return UNKNOWN
    const { tenantId, status, expiresAt } = session
    if (status === 'expired' || (status === 'open' && expiresAt <= clock.now())) {
      return { tag: 'ended' }
    }
    const charge = await findCharge(tx, tenantId, session.chargeId)
    const tenant = await findTenantWithSettings(tx, tenantId)
    const offer = charge?.priceId == null ? undefined : await findOffer(tx, charge.priceId)
    if (charge === undefined || tenant === undefined || offer === undefined) return UNKNOWN
    if (tenant.status !== 'active') return UNKNOWN
    const { interval, intervalCount } = offer
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
      recurring:
        charge.subscriptionId === null || interval === null || intervalCount === null
          ? null
          : { interval, intervalCount },
      chargeId: charge.id,
      customerEmail: charge.customerEmail,
      rails: providersIn(ways).map(({ name }) => name),
      continues: status === 'paying' && charge.status === 'pending' && hasOwnPage(charge.rail),
      leadsTo: providersIn(ways).flatMap(({ leadsTo }) => leadsTo),
      x402: x402Shown(sessionPath(session.id), ways, transfers),
      successUrl: session.successUrl === null ? null : withCharge(session.successUrl, charge.id),
      cancelUrl: session.cancelUrl,
    }
    return { session, charge, ways, page }
  }

  /**
   * Starts a payment.
   * @returns 'full' when the ledger has no room for the amount. The provider is not called then.
   */
  async function begin(
    seen: Seen,
    provider: PaymentProvider,
    email: Email | null,
    message: Pay,
    context: MessageContext,
  ): Promise<StartedPayment | 'full'> {
    const { session, charge } = seen
    const { tenantId } = session
    const now = clock.now()
    const claimed = await database.tenant(
      tenantId,
      async (tx) => {
        if (!(await processing.canBook(tx, charge, provider))) return 'full'
        return beginPaying(tx, {
          tenantId,
          id: session.id,
          rail: provider.name,
          // The subscription belongs to the signed-in user who ordered it.
          customerEmail: charge.subscriptionId === null ? email : null,
          now,
          dueAt: new Date(now.getTime() + ASK_AGAIN_MS),
        })
      },
      { signal: context.signal },
    )
    if (claimed === 'full') {
      const { currency } = charge
      context.log.error(
        { tenantId, rail: provider.name, currency },
        'the ledger of a payment provider is full',
      )
      return 'full'
    }
    if (!claimed) return { sendTo: null }
    const customerEmail =
      charge.subscriptionId === null ? (email ?? charge.customerEmail) : charge.customerEmail
    return ask({ ...seen, charge: { ...charge, customerEmail } }, provider, message, context)
  }

  /**
   * Calls the provider and stores its answer. When a payment is pending at a provider's page, the
   * answer names that page again.
   */
  async function ask(
    { charge, page }: Seen,
    provider: PaymentProvider,
    message: Pay,
    context: MessageContext,
  ): Promise<StartedPayment> {
    const { tenantId } = charge
    // From here on the outcome is needed even if the browser disconnects.
    const signal = AbortSignal.timeout(ASK_AGAIN_MS / 2)
    const answer = await provider
      .take(
        {
          tenantId,
          chargeId: charge.id,
          amountMinor: charge.amountMinor,
          currency: charge.currency,
          by: {
            tag: 'buyer',
            instruction: message.outcome,
            again: charge.subscriptionId !== null,
            page: {
              url: `${baseUrl}/pay/${page.token}`,
              productName: page.productName,
              merchantName: page.tenant.name,
              customerEmail: charge.customerEmail,
            },
          },
        },
        signal,
      )
      .catch((error: unknown) => {
        context.log.warn({ err: error, chargeId: charge.id }, 'payment provider unavailable')
        return undefined
      })
    if (answer === undefined) return { sendTo: null }
    await processing.record(charge, provider, answer, { requestId: context.requestId })
    return { sendTo: answer.tag === 'pending' ? answer.sendTo : null }
  }

  /**
   * Looks up a payment whose buyer has returned from the provider's page, at most once per interval
   * and page. Without an answer in time the page shows the stored state.
   */
  async function lookUp({ charge, page }: Seen, context: MessageContext): Promise<boolean> {
    const provider = page.state === 'processing' ? providers.get(charge.rail ?? '') : undefined
    if (provider?.lookUp === undefined) return false
    const { tenantId, id: chargeId, amountMinor, currency } = charge
    const order = { tenantId, chargeId, amountMinor, currency }
    try {
      const answer = await provider.lookUp(order, AbortSignal.timeout(LOOK_UP_MS))
      if (answer === undefined) return false
      await processing.record(charge, provider, answer, { requestId: context.requestId })
      return answer.tag !== 'pending'
    } catch (error) {
      context.log.warn({ err: error, chargeId }, 'payment look-up failed')
      return false
    }
  }

  async function showLink(token: string, signal: AbortSignal): Promise<LinkShown | PayUnknown> {
    const offer = await linkOffer(token, signal)
    if (offer === undefined) return UNKNOWN
    const { link, tenant } = offer
    const { productName, currency } = offer.offer
    const amountMinor = offer.offer.amountMinor * link.quantity
    const x402 = termsOf(link.x402)
    const ways = waysToPay(tenant, { amountMinor, currency, x402 }, needs)
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

  async function beginAtLink(
    token: string,
    context: MessageContext,
  ): Promise<PaySent | LinkUnpayable | PayUnknown> {
    const opened = await checkoutPaymentLink({ ...NO_DETAILS, token }, context)
    if (opened.tag === 'no_way_to_pay') {
      const shown = await showLink(token, context.signal)
      return shown.tag === 'link_page' ? { ...shown, tag: 'link_unpayable' } : shown
    }
    return opened.tag === 'opened' ? { tag: 'sent', location: `/pay/${opened.token!}` } : UNKNOWN
  }

  return {
    async showPayment(
      { token }: { readonly token: string },
      context: MessageContext,
    ): Promise<PayShown | LinkShown | PayEnded | PayUnknown> {
      const { signal } = context
      if (LINK_TOKEN.test(token)) return showLink(token, signal)
      const seen = await see(token, signal)
      if ('tag' in seen) return seen
      if (!(await lookUp(seen, context))) return seen.page
      const after = await see(token, signal)
      return 'tag' in after ? after : after.page
    },

    async pay(
      message: Pay,
      context: MessageContext,
    ): Promise<PaySent | PayAgain | PayFull | LinkUnpayable | PayEnded | PayUnknown> {
      if (LINK_TOKEN.test(message.token)) return beginAtLink(message.token, context)
      const seen = await see(message.token, context.signal)
      if ('tag' in seen) return seen
      if (seen.page.state === 'open') {
        const provider = providersIn(seen.ways).find(({ name }) => name === message.rail)
        if (provider === undefined) return { ...seen.page, tag: 'again', fault: 'rail' }
        const email = message.customerEmail === '' ? null : parseEmail(message.customerEmail)
        if (email === undefined) {
          return { ...seen.page, tag: 'again', fault: 'email' }
        }
        const started = await begin(seen, provider, email, message, context)
        if (started === 'full') return { ...seen.page, tag: 'full' }
        if (started.sendTo !== null) return { tag: 'sent', location: started.sendTo }
      } else if (seen.page.continues && message.rail === seen.charge.rail) {
        const { sendTo } = await ask(seen, processing.providerNamed(message.rail), message, context)
        if (sendTo !== null) return { tag: 'sent', location: sendTo }
      }
      const after = await see(message.token, context.signal)
      if ('tag' in after) return after
      const { state, successUrl } = after.page
      const done = state === 'succeeded' && successUrl !== null
      return { tag: 'sent', location: done ? successUrl : `/pay/${message.token}` }
    },
  }
}

const UNKNOWN: PayUnknown = { tag: 'unknown_page' }

function stateOf(
  { status }: CheckoutSessionRow,
  charge: ChargeRow,
  transfers: readonly CheckoutTransferRow[],
): PayState {
  if (charge.status !== 'pending') return charge.status
  const isUnderWay = status === 'paying' || transfers.some(({ state }) => state === 'arrived')
  return isUnderWay ? 'processing' : 'open'
}

function providersIn(ways: readonly WayToPay[]): readonly PaymentProvider[] {
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
