/**
 * The catalog of a merchant: products, prices and payment links. docs/reference/commerce.md,
 * Catalog.
 */
import { columnsOf, tenantRows } from '../platform/portable/tenant-rows.js'
import { firstRow, onlyRow, type Transaction } from '../platform/sql.js'

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

const PRODUCT = columnsOf('id tenant_id name active created_at')
const LINK = columnsOf('id tenant_id token price_id quantity metadata x402 active created_at')
const PRICE = `${columnsOf(
  'id tenant_id product_id amount_minor currency active created_at',
  'p',
)}, p.recurring_interval as "interval", p.recurring_interval_count as "intervalCount"`

/** The statements that products, prices and payment links share. */
function goods<Row>(name: string, table: string, columns: string) {
  return {
    ...tenantRows<Row>(name, `${table} p`, columns),
    /** @returns undefined when the tenant has no such row. */
    activate: (tx: Transaction, tenantId: string, id: string, active: boolean) =>
      firstRow<Row>(tx, {
        name: `${name}.activate`,
        text: `update ${table} p set active = $3 where tenant_id = $1 and id = $2 returning ${columns}`,
        values: [tenantId, id, active],
      }),
  }
}

export const products = goods<ProductRow>('product', 'products', PRODUCT)
export const prices = goods<PriceRow>('price', 'prices', PRICE)
export const paymentLinks = goods<PaymentLinkRow>('payment_link', 'payment_links', LINK)

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
    text: `insert into prices as p (tenant_id, id, product_id, amount_minor, currency,
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

/** A price with its product, active or not. Crosses tenants: buyers do not name one. */
export const findOffer = (tx: Transaction, priceId: string) =>
  firstRow<OfferRow>(tx, {
    name: 'price.offer',
    text: `select ${PRICE}, o.name as "productName", o.active as "productActive" from prices p
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
