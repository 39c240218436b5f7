/**
 * Pays at the payment page, or opens a checkout at the page of a payment link. A payment takes three
 * steps: the session is claimed (one of several concurrent attempts wins), the provider is called,
 * and its answer is stored. If the process dies in between, the charge keeps a due time at which a
 * worker asks the provider for the outcome.
 */
import type { Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import { beginPaying } from '../../../../storage/commerce/checkout-sessions.js'
import { roomInBooks } from '../../../../storage/commerce/ledger.js'
import { providerNamed, recordAnswer } from '../charge-processing.js'
import type { PaymentProvider } from '../payment-provider.js'
import { type Email, parseEmail } from '../../../domain/email.js'
import type { CheckoutNeeds } from './needs.js'
import { checkoutPaymentLink } from './open.js'
import type { CheckoutProtocol, LinkUnpayable, Pay, PaySent, PayUnknown } from './protocol.js'
import { isLinkToken, providersIn, see, type Seen, showLink } from './show-payment.js'
import { inTenant } from '../../../platform/in-tenant.js'

/** After this a worker asks the provider for the outcome. Longer than any request lasts. */
const ASK_AGAIN_MS = 120_000
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

/** The provider page to redirect the buyer to, or null. */
type StartedPayment = { readonly sendTo: string | null }

export const pay: Handler<CheckoutNeeds, CheckoutProtocol, 'pay'> = async (
  needs,
  message,
  context,
) => {
  const { token, rail, customerEmail } = message
  if (isLinkToken(token)) return beginAtLink(needs, token, context)
  const seen = await see(needs, token, context.signal)
  if ('tag' in seen) return seen
  if (seen.page.state === 'open') {
    const provider = providersIn(seen.ways).find(({ name }) => name === rail)
    if (provider === undefined) return { ...seen.page, tag: 'again', fault: 'rail' }
    const email = customerEmail === '' ? null : parseEmail(customerEmail)
    if (email === undefined) return { ...seen.page, tag: 'again', fault: 'email' }
    const started = await begin(needs, { ...seen, given: email }, provider, message, context)
    if (started === 'full') return { ...seen.page, tag: 'full' }
    if (started.sendTo !== null) return { tag: 'sent', location: started.sendTo }
  } else if (seen.page.continues && rail === seen.charge.rail) {
    const { sendTo } = await ask(needs, seen, providerNamed(needs, rail), message, context)
    if (sendTo !== null) return { tag: 'sent', location: sendTo }
  }
  const after = await see(needs, token, context.signal)
  if ('tag' in after) return after
  const { state, successUrl } = after.page
  const done = state === 'succeeded' && successUrl !== null
  return { tag: 'sent', location: done ? successUrl : `/pay/${token}` }
}

/**
 * Starts a payment.
 * @returns 'full' when the ledger has no room for the amount. The provider is not called then.
 */
async function begin(
  needs: CheckoutNeeds,
  { given, ...seen }: Seen & { readonly given: Email | null },
  provider: PaymentProvider,
  message: Pay,
  context: MessageContext,
): Promise<StartedPayment | 'full'> {
  const { session, charge } = seen
  const { tenantId, currency, amountMinor } = charge
  const { name: rail } = provider
  // The subscription belongs to the signed-in user who ordered it.
  const email = charge.subscriptionId === null ? given : null
  const now = needs.clock.now()
  const claimed = await inTenant(needs.database, tenantId, context, async (tx) => {
    if (!(await roomInBooks(tx, tenantId, currency, rail, amountMinor))) return 'full'
    const dueAt = new Date(now.getTime() + ASK_AGAIN_MS)
    return beginPaying(tx, { tenantId, id: session.id, rail, customerEmail: email, now, dueAt })
  })
  if (claimed === 'full') {
    context.log.error({ tenantId, rail, currency }, 'the ledger of a payment provider is full')
    return 'full'
  }
  if (!claimed) return { sendTo: null }
  const customerEmail = email ?? charge.customerEmail
  return ask(needs, { ...seen, charge: { ...charge, customerEmail } }, provider, message, context)
}

/**
 * Calls the provider and stores its answer. When a payment is pending at a provider's page, the
 * answer names that page again.
 */
async function ask(
  needs: CheckoutNeeds,
  { charge, page }: Seen,
  provider: PaymentProvider,
  { outcome }: Pay,
  { log, requestId }: MessageContext,
): Promise<StartedPayment> {
  const { tenantId, id: chargeId, amountMinor, currency, customerEmail } = charge
  const by = {
    tag: 'buyer',
    instruction: outcome,
    again: charge.subscriptionId !== null,
    page: {
      url: `${needs.baseUrl}/pay/${page.token}`,
      productName: page.productName,
      merchantName: page.tenant.name,
      customerEmail,
    },
  } as const
  // From here on the outcome is needed even if the browser disconnects.
  const signal = AbortSignal.timeout(ASK_AGAIN_MS / 2)
  const answer = await provider
    .take({ tenantId, chargeId, amountMinor, currency, by }, signal)
    .catch((error: unknown) => {
      log.warn({ err: error, chargeId }, 'payment provider unavailable')
      return undefined
    })
  if (answer === undefined) return { sendTo: null }
  await recordAnswer(needs, charge, provider, answer, { requestId })
  return { sendTo: answer.tag === 'pending' ? answer.sendTo : null }
}

async function beginAtLink(
  needs: CheckoutNeeds,
  token: string,
  context: MessageContext,
): Promise<PaySent | LinkUnpayable | PayUnknown> {
  const opened = await checkoutPaymentLink(needs, { ...NO_DETAILS, token }, context)
  if (opened.tag === 'no_way_to_pay') {
    const shown = await showLink(needs, token, context.signal)
    return shown.tag === 'link_page' ? { ...shown, tag: 'link_unpayable' } : shown
  }
  return opened.tag === 'opened'
    ? { tag: 'sent', location: `/pay/${opened.token!}` }
    : { tag: 'unknown_page' }
}
