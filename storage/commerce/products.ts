/**
 * The catalog of a merchant: products, prices and payment links. docs/reference/commerce.md,
 * Catalog.
 */
import { allRows, firstRow, onlyRow, type Transaction } from '../platform/sql.js'

export type Interval = 'day' | 'week' | 'month' | 'year'

export type ProductRow = {
  id: string
  tenantId: string
  name: string
  active: boolean
  createdAt: Date
}

export type PriceRow = {
  id: string
  tenantId: string
  productId: string
  amountMinor: number
  currency: string
  /** Both null for a one-time price. */
  interval: Interval | null
  intervalCount: number | null
  active: boolean
  createdAt: Date
}

/** x402 terms of a payment link. */
export type LinkX402 = {
  readonly network: string
  readonly asset?: string | undefined
  readonly pay_to?: string | undefined
}

export type PaymentLinkRow = {
  id: string
  tenantId: string
  token: string
  priceId: string
  quantity: number
  metadata: Record<string, unknown>
  x402: LinkX402 | null
  active: boolean
  createdAt: Date
}

/** A price with its product. */
export type OfferRow = PriceRow & { productName: string; productActive: boolean }

type After = { readonly createdAt: Date; readonly id: string } | null

const PRODUCT = `id, tenant_id as "tenantId", name, active, created_at as "createdAt"`
const PRICE = `id, tenant_id as "tenantId", product_id as "productId",
  amount_minor as "amountMinor", currency, recurring_interval as "interval",
  recurring_interval_count as "intervalCount", active, created_at as "createdAt"`
const LINK = `id, tenant_id as "tenantId", token, price_id as "priceId", quantity, metadata, x402,
  active, created_at as "createdAt"`
const OFFER = `p.id, p.tenant_id as "tenantId", p.product_id as "productId",
  p.amount_minor as "amountMinor", p.currency, p.recurring_interval as "interval",
  p.recurring_interval_count as "intervalCount", p.active, p.created_at as "createdAt",
  o.name as "productName", o.active as "productActive"`

export const insertProduct = (tx: Transaction, row: Omit<ProductRow, 'active'>) =>
  onlyRow<ProductRow>(tx, {
    name: 'product.insert',
    text: `insert into products (tenant_id, id, name, created_at) values ($1, $2, $3, $4)
           returning ${PRODUCT}`,
    values: [row.tenantId, row.id, row.name, row.createdAt],
  })

/** @returns undefined when the tenant has no such product. */
export const insertPrice = (tx: Transaction, row: Omit<PriceRow, 'active'>) =>
  firstRow<PriceRow>(tx, {
    name: 'price.insert',
    text: `insert into prices (tenant_id, id, product_id, amount_minor, currency,
             recurring_interval, recurring_interval_count, created_at)
           select tenant_id, $2, id, $4, $5, $6, $7, $8 from products
           where tenant_id = $1 and id = $3
           returning ${PRICE}`,
    values: [
      row.tenantId,
      row.id,
      row.productId,
      row.amountMinor,
      row.currency,
      row.interval,
      row.intervalCount,
      row.createdAt,
    ],
  })

export const insertPaymentLink = (tx: Transaction, row: Omit<PaymentLinkRow, 'active'>) =>
  onlyRow<PaymentLinkRow>(tx, {
    name: 'payment_link.insert',
    text: `insert into payment_links (tenant_id, id, token, price_id, quantity, metadata, x402,
             created_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8) returning ${LINK}`,
    values: [
      row.tenantId,
      row.id,
      row.token,
      row.priceId,
      row.quantity,
      JSON.stringify(row.metadata),
      row.x402 === null ? null : JSON.stringify(row.x402),
      row.createdAt,
    ],
  })

/** One page, newest first. */
export async function listProducts(tx: Transaction, tenantId: string, limit: number, after: After) {
  return allRows<ProductRow>(tx, {
    name: 'product.list',
    text: page('products', PRODUCT),
    values: pageValues(tenantId, limit, after),
  })
}

export async function findProduct(tx: Transaction, tenantId: string, id: string) {
  return firstRow<ProductRow>(tx, {
    name: 'product.find',
    text: `select ${PRODUCT} from products where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
}

export async function findPrice(tx: Transaction, tenantId: string, id: string) {
  return firstRow<PriceRow>(tx, {
    name: 'price.find',
    text: `select ${PRICE} from prices where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
}

export async function findOwnPaymentLink(tx: Transaction, tenantId: string, id: string) {
  return firstRow<PaymentLinkRow>(tx, {
    name: 'payment_link.find',
    text: `select ${LINK} from payment_links where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
}

export async function listPrices(tx: Transaction, tenantId: string, limit: number, after: After) {
  return allRows<PriceRow>(tx, {
    name: 'price.list',
    text: page('prices', PRICE),
    values: pageValues(tenantId, limit, after),
  })
}

export async function listPaymentLinks(
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: After,
) {
  return allRows<PaymentLinkRow>(tx, {
    name: 'payment_link.list',
    text: page('payment_links', LINK),
    values: pageValues(tenantId, limit, after),
  })
}

/** @returns undefined when the tenant has no such row. */
export const activateProduct = (tx: Transaction, tenantId: string, id: string, active: boolean) =>
  firstRow<ProductRow>(tx, {
    name: 'product.activate',
    text: `update products set active = $3 where tenant_id = $1 and id = $2 returning ${PRODUCT}`,
    values: [tenantId, id, active],
  })

export const activatePrice = (tx: Transaction, tenantId: string, id: string, active: boolean) =>
  firstRow<PriceRow>(tx, {
    name: 'price.activate',
    text: `update prices set active = $3 where tenant_id = $1 and id = $2 returning ${PRICE}`,
    values: [tenantId, id, active],
  })

export const activatePaymentLink = (
  tx: Transaction,
  tenantId: string,
  id: string,
  active: boolean,
) =>
  firstRow<PaymentLinkRow>(tx, {
    name: 'payment_link.activate',
    text: `update payment_links set active = $3 where tenant_id = $1 and id = $2 returning ${LINK}`,
    values: [tenantId, id, active],
  })

/** A price with its product, active or not. Crosses tenants: buyers do not name one. */
export const findOffer = (tx: Transaction, priceId: string) =>
  firstRow<OfferRow>(tx, {
    name: 'price.offer',
    text: `select ${OFFER} from prices p
           join products o on o.tenant_id = p.tenant_id and o.id = p.product_id
           where p.id = $1`,
    values: [priceId],
  })

/** Finds a payment link by its token. Crosses tenants: buyers do not name one. */
export const findPaymentLink = (tx: Transaction, token: string) =>
  firstRow<PaymentLinkRow>(tx, {
    name: 'payment_link.by_token',
    text: `select ${LINK} from payment_links where token = $1`,
    values: [token],
  })

function page(table: string, columns: string): string {
  return `select ${columns} from ${table}
          where tenant_id = $1 and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
          order by created_at desc, id desc limit $2`
}

function pageValues(tenantId: string, limit: number, after: After): unknown[] {
  return [tenantId, limit, after?.createdAt ?? null, after?.id ?? null]
}
