/**
 * Creates, activates and deactivates products, prices and payment links
 * (docs/reference/commerce.md, Catalog).
 */
import type { Handler, MessageContext } from '../../../runtime/kernel/actor.js'
import {
  findOffer,
  insertPaymentLink,
  insertPrice,
  insertProduct,
  type PaymentLinkRow,
  paymentLinks,
  prices,
  products,
} from '../../../storage/commerce/products.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { AMOUNT_MINOR_MAX, currencyExponent } from '../../domain/commerce/currencies.js'
import { payeeFault } from '../../domain/commerce/evm-addresses.js'
import type { Creation, IdempotencyRefused } from '../../domain/idempotency.js'
import { isUuid } from '../../domain/ids.js'
import { recordAudit } from '../../platform/record-audit.js'
import { createOnce } from '../../platform/creation.js'
import type { CommerceNeeds } from './needs.js'
import type { Activate, Changed, CommerceProtocol, Created, Invalid, Unknown } from './protocol.js'
import { linkOf, priceOf, productOf } from './records.js'
import { inTenant } from '../../platform/in-tenant.js'
import { invalid } from '../../domain/entities/messages.js'

const TOKEN_BYTES = 24
const METADATA_BYTES_MAX = 8 * 1024

type Kind = 'product' | 'price' | 'payment_link'
type Handling<K extends keyof CommerceProtocol> = Handler<CommerceNeeds, CommerceProtocol, K>

export const createProduct: Handling<'createProduct'> = (needs, message, context) => {
  const row = { ...newRow(needs, message), name: message.name }
  const insert = (tx: Transaction) => insertProduct(tx, row)
  return create(needs, message, context, { kind: 'product', insert, show: productOf })
}

export const createPrice: Handling<'createPrice'> = async (needs, message, context) => {
  const { productId, amountMinor, currency, recurring } = message
  if (currencyExponent(currency) === undefined) {
    return invalid('/currency', 'Not an active ISO 4217 currency.')
  }
  if (!isUuid(productId)) return NO_PRODUCT
  const row = {
    ...newRow(needs, message),
    productId,
    amountMinor,
    currency,
    interval: recurring?.interval ?? null,
    intervalCount: recurring?.intervalCount ?? null,
  }
  const insert = async (tx: Transaction) => (await insertPrice(tx, row)) ?? NO_PRODUCT
  return create(needs, message, context, { kind: 'price', insert, show: priceOf })
}

export const createPaymentLink: Handling<'createPaymentLink'> = async (needs, message, context) => {
  const { priceId, quantity, metadata, x402 } = message
  if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES_MAX) {
    return invalid('/metadata', `At most ${METADATA_BYTES_MAX} bytes of JSON.`)
  }
  const fault = x402?.pay_to === undefined ? undefined : await payeeFault(x402.pay_to)
  if (fault !== undefined) return invalid('/x402/pay_to', fault)
  if (!isUuid(priceId)) return NO_PRICE
  const token = needs.random.token(TOKEN_BYTES)
  const row = {
    ...newRow(needs, message),
    token,
    priceId,
    quantity,
    metadata: { ...metadata },
    x402,
  }
  const insert = (tx: Transaction) => insertLink(tx, row)
  return create(needs, message, context, { kind: 'payment_link', insert, show: linkOf })
}

export const changeProduct = activates('product', products, productOf)
export const changePrice = activates('price', prices, priceOf)
export const changePaymentLink = activates('payment_link', paymentLinks, linkOf)

function newRow({ clock, random }: CommerceNeeds, { caller }: Creation) {
  return { id: random.uuid(), tenantId: caller.principal.tenantId, createdAt: clock.now() }
}

async function insertLink(
  tx: Transaction,
  row: Omit<PaymentLinkRow, 'active'>,
): Promise<PaymentLinkRow | Invalid> {
  const { priceId, quantity } = row
  // Row-level security limits this to the prices of the tenant.
  const offer = await findOffer(tx, priceId)
  if (offer === undefined) return NO_PRICE
  if (offer.interval !== null) {
    return invalid('/price_id', 'A payment link needs a one-time price.')
  }
  return offer.amountMinor * quantity > AMOUNT_MINOR_MAX
    ? invalid('/quantity', 'The total exceeds the maximum amount of a charge.')
    : insertPaymentLink(tx, row)
}

/** Inserts a row and its audit event once per idempotency key. */
function create<Row extends { id: string }, Shown>(
  needs: CommerceNeeds,
  message: Creation,
  context: MessageContext,
  {
    kind,
    insert,
    show,
  }: {
    readonly kind: Kind
    readonly insert: (tx: Transaction) => Promise<Row | Invalid>
    readonly show: (row: Row) => Shown
  },
): Promise<Created<Shown> | Invalid | IdempotencyRefused> {
  const work = async (tx: Transaction): Promise<Created<Shown> | Invalid> => {
    const row = await insert(tx)
    if ('tag' in row) return row
    const resource = { type: kind, id: row.id }
    recordAudit(tx, needs, message.caller, context, { type: `commerce.${kind}.created`, resource })
    return { tag: 'created', row: show(row), replayed: false }
  }
  return createOnce(needs, message, context, work)
}

/** A handler that activates or deactivates a row. */
function activates<Row, Shown>(
  kind: Kind,
  {
    activate,
  }: {
    activate: (
      tx: Transaction,
      tenantId: string,
      id: string,
      active: boolean,
    ) => Promise<Row | undefined>
  },
  show: (row: Row) => Shown,
) {
  return async (
    needs: CommerceNeeds,
    { caller, id, active }: Activate,
    context: MessageContext,
  ): Promise<Changed<Shown> | Unknown> => {
    const { tenantId } = caller.principal
    if (!isUuid(id)) return { tag: 'unknown' }
    return inTenant(needs.database, tenantId, context, async (tx) => {
      const row = await activate(tx, tenantId, id, active)
      if (row === undefined) return { tag: 'unknown' }
      const action = { type: `commerce.${kind}.changed`, resource: { type: kind, id } } as const
      recordAudit(tx, needs, caller, context, { ...action, data: { active } })
      return { tag: 'changed', row: show(row) }
    })
  }
}

const NO_PRODUCT = invalid('/product_id', 'The product does not exist in this tenant.')
const NO_PRICE = invalid('/price_id', 'The price does not exist in this tenant.')
