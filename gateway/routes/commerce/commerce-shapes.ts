/** Schemas of the commerce routes. docs/reference/commerce.md. */
import { z } from 'zod'
import type { Charge, PaymentLink } from '../../../actors/commerce/payments/protocol.js'
import { AMOUNT_MINOR_MAX } from '../../../actors/domain/commerce/currencies.js'
import { SHOWN_TEXT } from '../../../actors/domain/shown-names.js'
import { idText } from '../../request/ids.js'
import { presenter } from '../../response/presenter.js'
import type { ReplyContext } from '../../response/replies.js'

export const QUANTITY_MAX = 999

const currency = () =>
  z
    .string()
    .regex(/^[A-Z]{3}$/)
    .meta({ description: 'ISO 4217.' })
const amount = () => z.int().min(1).max(AMOUNT_MINOR_MAX).meta({ description: 'Minor units.' })
const quantity = () => z.int().min(1).max(QUANTITY_MAX)

export const Metadata = z
  .record(z.string(), z.unknown())
  .meta({ description: 'Any JSON of the merchant, up to 8 KiB. Returned in events and look-ups.' })

const RecurringTerms = z
  .object({
    interval: z.enum(['day', 'week', 'month', 'year']),
    interval_count: z.int().min(1).max(365).default(1),
  })
  .meta({ id: 'RecurringTerms' })

const Evm = z.string().regex(/^0x[0-9a-fA-F]{40}$/)
const LinkTerms = z
  .object({
    network: z.string().regex(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/),
    asset: Evm.optional(),
    pay_to: Evm.optional(),
  })
  .meta({ id: 'PaymentLinkX402', description: 'Makes the link payable by x402.' })

export const CreateProductBody = z
  .object({ name: z.string().trim().min(1).max(200).regex(SHOWN_TEXT) })
  .meta({ id: 'CreateProduct' })
export const CreatePriceBody = z
  .object({
    product_id: idText(),
    amount_minor: amount(),
    currency: currency(),
    recurring: RecurringTerms.nullish(),
  })
  .meta({ id: 'CreatePrice' })
export const CreatePaymentLinkBody = z
  .object({
    price_id: idText(),
    quantity: quantity().default(1),
    metadata: Metadata.default({}),
    x402: LinkTerms.nullish(),
  })
  .meta({ id: 'CreatePaymentLink' })
export const ActivateBody = z.object({ active: z.boolean() }).meta({ id: 'Activate' })

export const ProductRecord = z
  .object({ id: z.uuid(), name: z.string(), active: z.boolean(), created_at: z.iso.datetime() })
  .meta({ id: 'Product' })
export const PriceRecord = z
  .object({
    id: z.uuid(),
    product_id: z.uuid(),
    amount_minor: z.int(),
    currency: z.string(),
    recurring: z.object({ interval: z.string(), interval_count: z.int() }).nullable(),
    active: z.boolean(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Price' })
export const PaymentLinkRecord = z
  .object({
    id: z.uuid(),
    token: z.string().meta({ description: 'The payment_link_token: publish it.' }),
    url: z.url().meta({ description: 'The page for buyers, which opens a checkout session.' }),
    price_id: z.uuid(),
    quantity: z.int(),
    metadata: z.record(z.string(), z.unknown()),
    x402: z
      .object({
        network: z.string(),
        asset: z.string().optional(),
        pay_to: z.string().optional(),
      })
      .optional(),
    active: z.boolean(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'PaymentLink' })

export const BuyerMetadata = z.record(z.string(), z.unknown()).meta({
  description:
    'The metadata that the buyer sent at the payment link, unmerged. Not trustworthy: do not fulfil by it. ' +
    'In `metadata` the members of the link take precedence.',
})

const fulfillment = {
  charge_id: z.uuid(),
  tenant_id: z.uuid(),
  status: z.enum(['pending', 'succeeded', 'failed', 'refunded']),
  amount_minor: z.int(),
  currency: z.string(),
  metadata: z.record(z.string(), z.unknown()),
  buyer_metadata: BuyerMetadata.optional(),
  product_id: z.uuid().optional(),
  price_id: z.uuid().optional(),
  buyer_id: z.string().optional(),
  customer_email: z.string().optional(),
  subscription_id: z.uuid().optional(),
  refunded_amount_minor: z.int().optional(),
  failure_code: z.string().optional(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  paid_at: z.iso.datetime().optional(),
}
export const FulfillmentView = z.object(fulfillment).meta({ id: 'FulfillmentView' })
export const ChargeRecord = z
  .object({
    ...fulfillment,
    rail: z.string().optional(),
    checkout_session_id: z.uuid().optional(),
    payment_link_id: z.uuid().optional(),
    dispute: z.object({ status: z.enum(['opened', 'closed']) }).optional(),
  })
  .meta({ id: 'Charge' })

export const RefundRecord = z
  .object({
    id: z.uuid(),
    charge_id: z.uuid(),
    amount_minor: z.int(),
    status: z.enum(['pending', 'succeeded', 'failed', 'recorded']).meta({
      description: 'recorded: the merchant sent the money back without the service.',
    }),
    reason: z.string().optional(),
    failure_code: z.string().optional(),
    external_reference: z.string().optional(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Refund' })
export const RefundedCharge = ChargeRecord.extend({ refund: RefundRecord }).meta({
  id: 'RefundedCharge',
})

export const SubscriptionRecord = z
  .object({
    id: z.uuid(),
    product_id: z.uuid(),
    price_id: z.uuid(),
    amount_minor: z.int(),
    currency: z.string(),
    recurring: z.object({ interval: z.string(), interval_count: z.int() }),
    customer_email: z.string(),
    metadata: z.record(z.string(), z.unknown()),
    status: z.enum(['incomplete', 'active', 'past_due', 'canceled']),
    period: z.int().meta({ description: 'The last paid period. The first is 1.' }),
    current_period_start: z.iso.datetime().optional(),
    current_period_end: z.iso.datetime().optional(),
    cancel_at_period_end: z.boolean(),
    canceled_at: z.iso.datetime().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Subscription' })

export const refundRecord = presenter(RefundRecord)
export const productRecord = presenter(ProductRecord)

export const priceRecord = presenter(PriceRecord)
export const subscriptionRecord = presenter(SubscriptionRecord)

const linkShown = presenter(PaymentLinkRecord)
export function linkRecord(link: PaymentLink, { baseUrl }: ReplyContext) {
  const { token, x402 } = link
  const terms = x402 && { network: x402.network, asset: x402.asset, payTo: x402.pay_to }
  return linkShown({ ...link, x402: terms, url: `${baseUrl}/pay/${token}` })
}

const fulfillmentShown = presenter(FulfillmentView)
export function fulfillmentView(charge: Charge) {
  return fulfillmentShown(chargeRow(charge))
}

const chargeShown = presenter(ChargeRecord)
export function chargeRecord(charge: Charge) {
  const { disputeStatus: status } = charge
  return chargeShown({ ...chargeRow(charge), dispute: status && { status } })
}

function chargeRow(charge: Charge) {
  const refundedAmountMinor = charge.status === 'refunded' ? charge.refundedAmountMinor : null
  return { ...charge, chargeId: charge.id, refundedAmountMinor }
}
