/** Catalog and charges of merchants. docs/reference/commerce.md. */
import { commerce } from '../../../actors/commerce/payments/protocol.js'
import { callerOf } from '../../request/caller.js'
import { json, type Route, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import {
  ChargeRecord,
  CreatePaymentLinkBody,
  CreatePriceBody,
  CreateProductBody,
  chargeRecord,
  linkRecord,
  PaymentLinkRecord,
  PriceRecord,
  ProductRecord,
  priceRecord,
  productRecord,
} from './commerce-shapes.js'
import { activates, created, invalid, lists, reads, writing } from './merchant-routes.js'

const AT = '/api/v1/commerce'
const creating = { ...writing, idempotent: true } as const
const refusals = { invalid, ...idempotencyRefusals }

export const commerceRoutes: readonly Route[] = [
  route(commerce, 'createProduct', {
    ...creating,
    path: `${AT}/products`,
    summary: 'Create a product',
    body: json(CreateProductBody),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      name: request.body.name,
    }),
    replies: { created: created('products', ProductRecord, productRecord), ...refusals },
  }),
  lists(commerce, 'listProducts', 'products', ProductRecord, productRecord),
  reads(commerce, 'getProduct', 'products', ProductRecord, productRecord),
  activates(commerce, 'changeProduct', 'products', ProductRecord, productRecord),
  route(commerce, 'createPrice', {
    ...creating,
    path: `${AT}/prices`,
    summary: 'Create a price of a product',
    description:
      'Prices are immutable. To change one, create a new price and deactivate the old one.',
    body: json(CreatePriceBody),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      productId: request.body.product_id,
      amountMinor: request.body.amount_minor,
      currency: request.body.currency,
      recurring:
        request.body.recurring == null
          ? null
          : {
              interval: request.body.recurring.interval,
              intervalCount: request.body.recurring.interval_count,
            },
    }),
    replies: { created: created('prices', PriceRecord, priceRecord), ...refusals },
  }),
  lists(commerce, 'listPrices', 'prices', PriceRecord, priceRecord),
  reads(commerce, 'getPrice', 'prices', PriceRecord, priceRecord),
  activates(commerce, 'changePrice', 'prices', PriceRecord, priceRecord),
  route(commerce, 'createPaymentLink', {
    ...creating,
    path: `${AT}/payment-links`,
    summary: 'Create a payment link',
    body: json(CreatePaymentLinkBody),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      priceId: request.body.price_id,
      quantity: request.body.quantity,
      metadata: request.body.metadata,
      x402: request.body.x402 ?? null,
    }),
    replies: { created: created('payment-links', PaymentLinkRecord, linkRecord), ...refusals },
  }),
  lists(commerce, 'listPaymentLinks', 'payment-links', PaymentLinkRecord, linkRecord),
  reads(commerce, 'getPaymentLink', 'payment-links', PaymentLinkRecord, linkRecord),
  activates(commerce, 'changePaymentLink', 'payment-links', PaymentLinkRecord, linkRecord),
  lists(commerce, 'listCharges', 'charges', ChargeRecord, chargeRecord),
  reads(commerce, 'getCharge', 'charges', ChargeRecord, chargeRecord),
]
