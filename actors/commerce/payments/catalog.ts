/**
 * Creates, lists, activates and deactivates products, prices and payment links
 * (docs/reference/commerce.md, Catalog).
 */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import {
  activatePaymentLink,
  activatePrice,
  activateProduct,
  findOffer,
  findOwnPaymentLink,
  findPrice,
  findProduct,
  insertPaymentLink,
  insertPrice,
  insertProduct,
  listPaymentLinks,
  listPrices,
  listProducts,
} from '../../../storage/commerce/products.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { type AuditOnlyType, audited, type Caller } from '../../domain/audit.js'
import { AMOUNT_MINOR_MAX, currencyExponent } from '../../domain/commerce/currencies.js'
import { payeeFault } from '../../domain/commerce/evm-addresses.js'
import type { IdempotencyClaim } from '../../domain/idempotency.js'
import { isUuid } from '../../domain/ids.js'
import type { CommerceNeeds } from './needs.js'
import type {
  Activate,
  Changed,
  CreatePaymentLink,
  CreatePrice,
  CreateProduct,
  Created,
  Found,
  IdempotencyRefused,
  Invalid,
  Listed,
  ListOf,
  Named,
  Unknown,
} from './protocol.js'
import { linkOf, listedOf, priceOf, productOf } from './records.js'

const TOKEN_BYTES = 24
const METADATA_BYTES_MAX = 8 * 1024

type Kind = 'product' | 'price' | 'payment_link'
type ListRows<Row> = (
  tx: Transaction,
  tenantId: string,
  limit: number,
  after: ListOf['after'],
) => Promise<Row[]>

export function catalog({ database, clock, random }: CommerceNeeds) {
  const audit = (
    tx: Transaction,
    caller: Caller,
    type: AuditOnlyType,
    resource: { readonly type: Kind; readonly id: string },
    { requestId }: MessageContext,
    data: Readonly<Record<string, unknown>>,
  ) =>
    appendAudit(tx, [
      audited(caller, {
        id: random.uuid(),
        tenantId: caller.principal.tenantId,
        type,
        occurredAt: clock.now(),
        resource,
        requestId,
        data,
      }),
    ])

  /** Inserts a row and its audit event once per idempotency key. */
  function create<Row extends { id: string }, Shown>(
    {
      caller,
      idempotency,
    }: { readonly caller: Caller; readonly idempotency: IdempotencyClaim | null },
    kind: Kind,
    context: MessageContext,
    insert: (tx: Transaction) => Promise<Row | Invalid>,
    show: (row: Row) => Shown,
  ): Promise<Created<Shown> | Invalid | IdempotencyRefused> {
    return database.tenant(
      caller.principal.tenantId,
      (tx) =>
        idempotently(
          tx,
          idempotency,
          async (): Promise<Created<Shown> | Invalid> => {
            const row = await insert(tx)
            if ('tag' in row) return row
            const resource = { type: kind, id: row.id }
            await audit(tx, caller, `commerce.${kind}.created`, resource, context, {})
            return { tag: 'created', row: show(row), replayed: false }
          },
          (outcome) => (outcome.tag === 'created' ? outcome : undefined),
        ),
      { signal: context.signal },
    )
  }

  function list<Row extends { createdAt: Date; id: string }, Shown>(
    { tenantId, limit, after }: ListOf,
    { signal }: MessageContext,
    rowsOf: ListRows<Row>,
    show: (row: Row) => Shown,
  ): Promise<Listed<Shown>> {
    return database.tenant(
      tenantId,
      async (tx) => listedOf(await rowsOf(tx, tenantId, limit + 1, after), limit, show),
      { signal },
    )
  }

  async function read<Row, Shown>(
    { tenantId, id }: Named,
    { signal }: MessageContext,
    find: (tx: Transaction, tenantId: string, id: string) => Promise<Row | undefined>,
    show: (row: Row) => Shown,
  ): Promise<Found<Shown> | Unknown> {
    if (!isUuid(id)) return { tag: 'unknown' }
    const row = await database.tenant(tenantId, (tx) => find(tx, tenantId, id), { signal })
    return row === undefined ? { tag: 'unknown' } : { tag: 'found', row: show(row) }
  }

  async function activate<Row, Shown>(
    { caller, id, active }: Activate,
    kind: Kind,
    context: MessageContext,
    change: (
      tx: Transaction,
      tenantId: string,
      id: string,
      active: boolean,
    ) => Promise<Row | undefined>,
    show: (row: Row) => Shown,
  ): Promise<Changed<Shown> | Unknown> {
    const { tenantId } = caller.principal
    if (!isUuid(id)) return { tag: 'unknown' }
    return database.tenant(
      tenantId,
      async (tx) => {
        const row = await change(tx, tenantId, id, active)
        if (row === undefined) return { tag: 'unknown' }
        await audit(tx, caller, `commerce.${kind}.changed`, { type: kind, id }, context, { active })
        return { tag: 'changed', row: show(row) }
      },
      { signal: context.signal },
    )
  }

  return {
    createProduct: (message: CreateProduct, context: MessageContext) => {
      const { caller, name } = message
      const { tenantId } = caller.principal
      const row = { id: random.uuid(), tenantId, name, createdAt: clock.now() }
      return create(message, 'product', context, (tx) => insertProduct(tx, row), productOf)
    },
    listProducts: (message: ListOf, context: MessageContext) =>
      list(message, context, listProducts, productOf),
    getProduct: (message: Named, context: MessageContext) =>
      read(message, context, findProduct, productOf),
    changeProduct: (message: Activate, context: MessageContext) =>
      activate(message, 'product', context, activateProduct, productOf),

    async createPrice(message: CreatePrice, context: MessageContext) {
      const { caller, productId, amountMinor, currency, recurring } = message
      if (currencyExponent(currency) === undefined) {
        return invalid('/currency', 'Not an active ISO 4217 currency.')
      }
      if (!isUuid(productId)) return NO_PRODUCT
      const row = {
        id: random.uuid(),
        tenantId: caller.principal.tenantId,
        productId,
        amountMinor,
        currency,
        interval: recurring?.interval ?? null,
        intervalCount: recurring?.intervalCount ?? null,
        createdAt: clock.now(),
      }
      const insert = async (tx: Transaction) => (await insertPrice(tx, row)) ?? NO_PRODUCT
      return create(message, 'price', context, insert, priceOf)
    },
    listPrices: (message: ListOf, context: MessageContext) =>
      list(message, context, listPrices, priceOf),
    getPrice: (message: Named, context: MessageContext) =>
      read(message, context, findPrice, priceOf),
    changePrice: (message: Activate, context: MessageContext) =>
      activate(message, 'price', context, activatePrice, priceOf),

    async createPaymentLink(message: CreatePaymentLink, context: MessageContext) {
      const { caller, priceId, quantity, metadata, x402 } = message
      const { tenantId } = caller.principal
      if (Buffer.byteLength(JSON.stringify(metadata)) > METADATA_BYTES_MAX) {
        return invalid('/metadata', `At most ${METADATA_BYTES_MAX} bytes of JSON.`)
      }
      const fault = x402?.pay_to === undefined ? null : await payeeFault(x402.pay_to)
      if (fault !== null) return invalid('/x402/pay_to', fault)
      if (!isUuid(priceId)) return NO_PRICE
      const row = {
        id: random.uuid(),
        tenantId,
        token: random.token(TOKEN_BYTES),
        priceId,
        quantity,
        metadata: { ...metadata },
        x402,
        createdAt: clock.now(),
      }
      const insert = async (tx: Transaction) => {
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
      return create(message, 'payment_link', context, insert, linkOf)
    },
    listPaymentLinks: (message: ListOf, context: MessageContext) =>
      list(message, context, listPaymentLinks, linkOf),
    getPaymentLink: (message: Named, context: MessageContext) =>
      read(message, context, findOwnPaymentLink, linkOf),
    changePaymentLink: (message: Activate, context: MessageContext) =>
      activate(message, 'payment_link', context, activatePaymentLink, linkOf),
  }
}

const NO_PRODUCT = invalid('/product_id', 'The product does not exist in this tenant.')
const NO_PRICE = invalid('/price_id', 'The price does not exist in this tenant.')

function invalid(pointer: string, detail: string): Invalid {
  return { tag: 'invalid', pointer, detail }
}
