/** The payment page: item, price, payment methods and state of the payment. */
import type {
  LinkShown,
  LinkUnpayable,
  PayAgain,
  PayFull,
  PayShown,
  X402Shown,
} from '../../../actors/commerce/payments/checkout/protocol.js'
import type { Recurring } from '../../../actors/commerce/payments/protocol.js'
import type { PageAnswer, ReplyContext } from '../../response/replies.js'
import type { MessageKey } from '../texts/texts.js'
import { failurePage } from '../platform/error.js'
import { chooseLanguage, type Language } from '../platform/language.js'
import { pictureOf } from './qr.js'
import { renderPage } from '../platform/render.js'

const TITLES: Readonly<Record<PayShown['state'], MessageKey>> = {
  open: 'pay.title',
  processing: 'pay.processing.title',
  succeeded: 'pay.succeeded.title',
  failed: 'pay.failed.title',
  refunded: 'pay.refunded.title',
}
const FAULTS = {
  email: { key: 'pay.email.wrong', field: 'customer_email' },
  rail: { key: 'pay.rail.wrong', field: null },
  full: { key: 'pay.full', field: null },
} as const

/** Renders the payment page of a checkout session. */
export function payPage(
  shown: PayShown | PayAgain | PayFull,
  { browser, baseUrl }: ReplyContext,
): PageAnswer {
  const { tenant, state, recurring, successUrl, cancelUrl, leadsTo, paidAt, currency } = shown
  const { amountMinor, refundedAmountMinor } = shown
  const acceptLanguage = browser.languages
  const language = chooseLanguage(undefined, acceptLanguage, tenant.locale)
  const fault = shown.tag === 'again' ? shown.fault : shown.tag === 'full' ? 'full' : undefined
  const error = fault && FAULTS[fault]
  const html = renderPage(
    'pay',
    { titleKey: TITLES[state], branding: tenant, acceptLanguage, error },
    {
      ...shown,
      total: language.money(amountMinor, currency),
      each: eachOf(shown, language),
      paidOn: paidAt && language.time(paidAt),
      refunded: refundedAmountMinor === 0 ? null : language.money(refundedAmountMinor, currency),
      every: recurring === null ? null : everyOf(recurring, language),
      ...x402In(shown.x402, baseUrl, language),
      again: shown.tag === 'again' && shown.fault === 'email',
      csrf: browser.csrfToken,
    },
  )
  const led = [successUrl, cancelUrl].filter((url) => url !== null)
  return { html, formTargets: [...new Set([...led.map((url) => new URL(url).origin), ...leadsTo])] }
}

/** The price of one, where several are bought. */
function eachOf(
  { quantity, amountMinor, currency }: Pick<PayShown, 'quantity' | 'amountMinor' | 'currency'>,
  { money }: Language,
): string | null {
  return quantity > 1 && amountMinor % quantity === 0
    ? money(amountMinor / quantity, currency)
    : null
}

/** The x402 terms with their QR codes. `looks`: the page reloads until the payment arrives. */
function x402In(x402: X402Shown | null, baseUrl: string, { say }: Language) {
  if (x402 === null) return { x402, looks: false }
  const terms = x402.terms.map((term) => ({
    ...term,
    picture: term.wallet === null ? null : pictureOf(term.wallet, say('pay.x402.picture')),
  }))
  const looks = terms.some(({ recognised }) => recognised)
  return { x402: { terms, url: baseUrl + x402.path }, looks }
}

/** The billing interval in the page's language. */
function everyOf({ interval, intervalCount }: Recurring, { say, stretch }: Language): string {
  return intervalCount === 1
    ? say(`pay.every.${interval}`)
    : say('pay.every.more', { stretch: stretch(intervalCount, interval) })
}

/** The page of a payment link, with a button that opens the checkout. */
export function linkPage(
  shown: LinkShown | LinkUnpayable,
  { browser, baseUrl }: ReplyContext,
): PageAnswer {
  const { tenant, amountMinor, currency } = shown
  const acceptLanguage = browser.languages
  const language = chooseLanguage(undefined, acceptLanguage, tenant.locale)
  const html = renderPage(
    'pay-link',
    { titleKey: 'pay.title', branding: tenant, acceptLanguage },
    {
      ...shown,
      ...x402In(shown.x402, baseUrl, language),
      total: language.money(amountMinor, currency),
      each: eachOf(shown, language),
      every: null,
      csrf: browser.csrfToken,
    },
  )
  return { html }
}

export function payEndedPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return failure(410, 'pay.ended', context)
}

export function payUnknownPage(_outcome: unknown, context: ReplyContext): PageAnswer {
  return failure(404, 'error.404', context)
}

function failure(status: number, key: MessageKey, { requestId, browser }: ReplyContext) {
  return { html: failurePage({ status, key, acceptLanguage: browser.languages, requestId }) }
}
