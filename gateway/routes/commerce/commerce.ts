/** Catalog and charges of merchants. docs/reference/commerce.md. */
import { z } from 'zod'
import {
  type Changed,
  type Charge,
  commerce,
  type Created,
  type Invalid,
  type Listed,
  type PaymentLink,
  type Price,
  type Product,
} from '../../../actors/commerce/payments/protocol.js'
import { callerOf } from '../../request/caller.js'
import { nextLink, PageQuery, readPage } from '../../request/paging.js'
import { json, problem, type Route, reply, route } from '../../route.js'
import {
  ActivateBody,
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
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'

const AT = '/api/v1/commerce'
const named = z.object({ id: z.string().max(64) })
const readers = { scheme: 'bearer', scopes: ['commerce:read', 'commerce:manage'] } as const
const managers = { scheme: 'bearer', scopes: ['commerce:manage'] } as const
const shared = { tags: ['Commerce'], exposure: 'internal' } as const

const unknown = problem(404, 'not-found', { detail: 'The resource does not exist in this tenant.' })
export const invalid = problem<Invalid, 'bad-request'>(
  400,
  'bad-request',
  ({ pointer, detail }) => ({ detail, errors: [{ pointer: `#${pointer}`, detail }] }),
)

const product = {
  listed: reply(
    200,
    z.array(ProductRecord),
    ({ rows }: Listed<Product>) => rows.map(productRecord),
    ({ next }, context) => nextLink(next, context),
  ),
  changed: reply(200, ProductRecord, ({ row }: Changed<Product>) => productRecord(row)),
}
const price = {
  listed: reply(
    200,
    z.array(PriceRecord),
    ({ rows }: Listed<Price>) => rows.map(priceRecord),
    ({ next }, context) => nextLink(next, context),
  ),
  changed: reply(200, PriceRecord, ({ row }: Changed<Price>) => priceRecord(row)),
}
const link = {
  listed: reply(
    200,
    z.array(PaymentLinkRecord),
    ({ rows }: Listed<PaymentLink>, { baseUrl }) => rows.map((row) => linkRecord(row, baseUrl)),
    ({ next }, context) => nextLink(next, context),
  ),
  changed: reply(200, PaymentLinkRecord, ({ row }: Changed<PaymentLink>, { baseUrl }) =>
    linkRecord(row, baseUrl),
  ),
}

export const commerceRoutes: readonly Route[] = [
  route(commerce, 'createProduct', {
    ...shared,
    method: 'POST',
    path: `${AT}/products`,
    operationId: 'createProduct',
    summary: 'Create a product',
    security: managers,
    idempotent: true,
    body: json(CreateProductBody),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      name: request.body.name,
    }),
    replies: {
      created: reply(
        201,
        ProductRecord,
        ({ row }: Created<Product>) => productRecord(row),
        ({ row }) => ({ location: `${AT}/products/${row.id}` }),
      ),
      invalid,
      ...idempotencyRefusals,
    },
  }),
  route(commerce, 'listProducts', {
    ...shared,
    method: 'GET',
    path: `${AT}/products`,
    operationId: 'listProducts',
    summary: 'List the products of the tenant, newest first',
    security: readers,
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: { listed: product.listed },
  }),
  route(commerce, 'getProduct', {
    ...shared,
    method: 'GET',
    security: readers,
    path: `${AT}/products/{id}`,
    operationId: 'getProduct',
    summary: 'Read a product',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: reply(200, ProductRecord, ({ row }) => productRecord(row)), unknown },
  }),
  route(commerce, 'changeProduct', {
    ...shared,
    method: 'PATCH',
    path: `${AT}/products/{id}`,
    operationId: 'changeProduct',
    summary: 'Activate or deactivate a product',
    security: managers,
    params: named,
    body: json(ActivateBody),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      active: request.body.active,
    }),
    replies: { changed: product.changed, unknown },
  }),
  route(commerce, 'createPrice', {
    ...shared,
    method: 'POST',
    path: `${AT}/prices`,
    operationId: 'createPrice',
    summary: 'Create a price of a product',
    description:
      'Prices are immutable. To change one, create a new price and deactivate the old one.',
    security: managers,
    idempotent: true,
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
    replies: {
      created: reply(
        201,
        PriceRecord,
        ({ row }: Created<Price>) => priceRecord(row),
        ({ row }) => ({ location: `${AT}/prices/${row.id}` }),
      ),
      invalid,
      ...idempotencyRefusals,
    },
  }),
  route(commerce, 'listPrices', {
    ...shared,
    method: 'GET',
    path: `${AT}/prices`,
    operationId: 'listPrices',
    summary: 'List the prices of the tenant, newest first',
    security: readers,
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: { listed: price.listed },
  }),
  route(commerce, 'getPrice', {
    ...shared,
    method: 'GET',
    security: readers,
    path: `${AT}/prices/{id}`,
    operationId: 'getPrice',
    summary: 'Read a price',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: reply(200, PriceRecord, ({ row }) => priceRecord(row)), unknown },
  }),
  route(commerce, 'changePrice', {
    ...shared,
    method: 'PATCH',
    path: `${AT}/prices/{id}`,
    operationId: 'changePrice',
    summary: 'Activate or deactivate a price',
    security: managers,
    params: named,
    body: json(ActivateBody),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      active: request.body.active,
    }),
    replies: { changed: price.changed, unknown },
  }),
  route(commerce, 'createPaymentLink', {
    ...shared,
    method: 'POST',
    path: `${AT}/payment-links`,
    operationId: 'createPaymentLink',
    summary: 'Create a payment link',
    security: managers,
    idempotent: true,
    body: json(CreatePaymentLinkBody),
    message: (request) => ({
      caller: callerOf(request),
      idempotency: request.idempotency,
      priceId: request.body.price_id,
      quantity: request.body.quantity,
      metadata: request.body.metadata,
      x402: request.body.x402 ?? null,
    }),
    replies: {
      created: reply(
        201,
        PaymentLinkRecord,
        ({ row }: Created<PaymentLink>, { baseUrl }) => linkRecord(row, baseUrl),
        ({ row }) => ({ location: `${AT}/payment-links/${row.id}` }),
      ),
      invalid,
      ...idempotencyRefusals,
    },
  }),
  route(commerce, 'listPaymentLinks', {
    ...shared,
    method: 'GET',
    path: `${AT}/payment-links`,
    operationId: 'listPaymentLinks',
    summary: 'List the payment links of the tenant, newest first',
    security: readers,
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: { listed: link.listed },
  }),
  route(commerce, 'getPaymentLink', {
    ...shared,
    method: 'GET',
    security: readers,
    path: `${AT}/payment-links/{id}`,
    operationId: 'getPaymentLink',
    summary: 'Read a payment link',
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: {
      found: reply(200, PaymentLinkRecord, ({ row }, { baseUrl }) => linkRecord(row, baseUrl)),
      unknown,
    },
  }),
  route(commerce, 'changePaymentLink', {
    ...shared,
    method: 'PATCH',
    path: `${AT}/payment-links/{id}`,
    operationId: 'changePaymentLink',
    summary: 'Activate or deactivate a payment link',
    security: managers,
    params: named,
    body: json(ActivateBody),
    message: (request) => ({
      caller: callerOf(request),
      id: request.params.id,
      active: request.body.active,
    }),
    replies: { changed: link.changed, unknown },
  }),
  route(commerce, 'listCharges', {
    ...shared,
    method: 'GET',
    path: `${AT}/charges`,
    operationId: 'listCharges',
    summary: 'List the charges of the tenant, newest first',
    security: readers,
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: {
      listed: reply(
        200,
        z.array(ChargeRecord),
        ({ rows }: Listed<Charge>) => rows.map(chargeRecord),
        ({ next }, context) => nextLink(next, context),
      ),
    },
  }),
  route(commerce, 'getCharge', {
    ...shared,
    method: 'GET',
    path: `${AT}/charges/{id}`,
    operationId: 'getCharge',
    summary: 'Read a charge',
    security: readers,
    params: named,
    message: ({ params, principal }) => ({ tenantId: principal.tenantId, id: params.id }),
    replies: { found: reply(200, ChargeRecord, ({ row }) => chargeRecord(row)), unknown },
  }),
]
