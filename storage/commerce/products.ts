/**
 * The catalog of a merchant: products, prices and payment links. docs/reference/commerce.md,
 * Catalog.
 */
import type { Transaction } from '../platform/sql.js'

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

export async function insertProduct(
  tx: Transaction,
  row: Omit<ProductRow, 'active'>,
): Promise<ProductRow> {
  const { rows } = await tx.query<ProductRow>({
    name: 'product.insert',
    text: `insert into products (tenant_id, id, name, created_at) values ($1, $2, $3, $4)
           returning ${PRODUCT}`,
    values: [row.tenantId, row.id, row.name, row.createdAt],
  })
  return rows[0]!
}

/** @returns undefined when the tenant has no such product. */
export async function insertPrice(
  tx: Transaction,
  row: Omit<PriceRow, 'active'>,
): Promise<PriceRow | undefined> {
  const { rows } = await tx.query<PriceRow>({
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
  return rows[0]
}

export async function insertPaymentLink(
  tx: Transaction,
  row: Omit<PaymentLinkRow, 'active'>,
): Promise<PaymentLinkRow> {
  const { rows } = await tx.query<PaymentLinkRow>({
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
  return rows[0]!
}

/** One page, newest first. */
export async function listProducts(tx: Transaction, tenantId: string, limit: number, after: After) {
  const { rows } = await tx.query<ProductRow>({
    name: 'product.list',
    text: page('products', PRODUCT),
    values: pageValues(tenantId, limit, after),
  })
  return rows
}

export async function findProduct(tx: Transaction, tenantId: string, id: string) {
  const { rows } = await tx.query<ProductRow>({
    name: 'product.find',
    text: `select ${PRODUCT} from products where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
  return rows[0]
}

export async function findPrice(tx: Transaction, tenantId: string, id: string) {
  const { rows } = await tx.query<PriceRow>({
    name: 'price.find',
    text: `select ${PRICE} from prices where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
  return rows[0]
}

export async function findOwnPaymentLink(tx: Transaction, tenantId: string, id: string) {
  const { rows } = await tx.query<PaymentLinkRow>({
    name: 'payment_link.find',
    text: `select ${LINK} from payment_links where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })
  return rows[0]
}

export async function listPrices(tx: Transaction, tenantId: string, limit: number, after: After) {
  const { rows } = await tx.query<PriceRow>({
    name: 'price.list',
    text: page('prices', PRICE),
    values: pageValues(tenantId, limit, after),
  })
  return rows
}

export async function listPaymentLinks(
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: After,
) {
  const { rows } = await tx.query<PaymentLinkRow>({
    name: 'payment_link.list',
    text: page('payment_links', LINK),
    values: pageValues(tenantId, limit, after),
  })
  return rows
}

/** @returns undefined when the tenant has no such row. */
export async function activateProduct(
  tx: Transaction,
  tenantId: string,
  id: string,
  active: boolean,
): Promise<ProductRow | undefined> {
  const { rows } = await tx.query<ProductRow>({
    name: 'product.activate',
    text: `update products set active = $3 where tenant_id = $1 and id = $2 returning ${PRODUCT}`,
    values: [tenantId, id, active],
  })
  return rows[0]
}

export async function activatePrice(
  tx: Transaction,
  tenantId: string,
  id: string,
  active: boolean,
): Promise<PriceRow | undefined> {
  const { rows } = await tx.query<PriceRow>({
    name: 'price.activate',
    text: `update prices set active = $3 where tenant_id = $1 and id = $2 returning ${PRICE}`,
    values: [tenantId, id, active],
  })
  return rows[0]
}

export async function activatePaymentLink(
  tx: Transaction,
  tenantId: string,
  id: string,
  active: boolean,
): Promise<PaymentLinkRow | undefined> {
  const { rows } = await tx.query<PaymentLinkRow>({
    name: 'payment_link.activate',
    text: `update payment_links set active = $3 where tenant_id = $1 and id = $2 returning ${LINK}`,
    values: [tenantId, id, active],
  })
  return rows[0]
}

/** A price with its product, active or not. Crosses tenants: buyers do not name one. */
export async function findOffer(tx: Transaction, priceId: string): Promise<OfferRow | undefined> {
  const { rows } = await tx.query<OfferRow>({
    name: 'price.offer',
    text: `select ${OFFER} from prices p
           join products o on o.tenant_id = p.tenant_id and o.id = p.product_id
           where p.id = $1`,
    values: [priceId],
  })
  return rows[0]
}

/** Finds a payment link by its token. Crosses tenants: buyers do not name one. */
export async function findPaymentLink(
  tx: Transaction,
  token: string,
): Promise<PaymentLinkRow | undefined> {
  const { rows } = await tx.query<PaymentLinkRow>({
    name: 'payment_link.by_token',
    text: `select ${LINK} from payment_links where token = $1`,
    values: [token],
  })
  return rows[0]
}

function page(table: string, columns: string): string {
  return `select ${columns} from ${table}
          where tenant_id = $1 and ($3::timestamptz is null or (created_at, id) < ($3, $4::uuid))
          order by created_at desc, id desc limit $2`
}

function pageValues(tenantId: string, limit: number, after: After): unknown[] {
  return [tenantId, limit, after?.createdAt ?? null, after?.id ?? null]
}
