/**
 * Charges: an amount that a buyer owes or has paid. pending -> succeeded or failed; succeeded ->
 * refunded, in part or in full. Each transition is one conditional statement. When a concurrent
 * transition wins, the function returns undefined.
 */
import { columnsOf, tenantRows } from '../platform/portable/tenant-rows.js'
import { execute, firstRow, firstValue, type Transaction } from '../platform/sql.js'
import { claims } from './due-rows.js'

type ChargeStatus = 'pending' | 'succeeded' | 'failed' | 'refunded'

export type ChargeRow = {
  id: string
  tenantId: string
  status: ChargeStatus
  /** Null until a payment is started: `sandbox`, `x402`, ... */
  rail: string | null
  /** The provider's reference of the payment. Unique per tenant and provider. */
  railReference: string | null
  amountMinor: number
  currency: string
  refundedAmountMinor: number
  /** Sum of the pending refunds. */
  refundingAmountMinor: number
  /** Amount that lost disputes took back. */
  reversedAmountMinor: number
  failureCode: string | null
  metadata: Record<string, unknown>
  /** The buyer's metadata at a payment link, unmerged. Null for a charge without a link. */
  buyerMetadata: Record<string, unknown> | null
  productId: string | null
  priceId: string | null
  quantity: number
  buyerId: string | null
  customerEmail: string | null
  buyerCountry: string | null
  buyerRegion: string | null
  checkoutSessionId: string | null
  paymentLinkId: string | null
  subscriptionId: string | null
  subscriptionPeriod: number | null
  paidAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** A charge with the state of its dispute. Null when it was never disputed. */
export type ChargeView = ChargeRow & { disputeStatus: 'opened' | 'closed' | null }

export type NewCharge = Pick<
  ChargeRow,
  | 'id'
  | 'tenantId'
  | 'rail'
  | 'amountMinor'
  | 'currency'
  | 'metadata'
  | 'productId'
  | 'priceId'
  | 'quantity'
  | 'createdAt'
> & {
  readonly [K in
    | 'railReference'
    | 'buyerMetadata'
    | 'buyerId'
    | 'customerEmail'
    | 'buyerCountry'
    | 'buyerRegion'
    | 'checkoutSessionId'
    | 'paymentLinkId'
    | 'subscriptionId'
    | 'subscriptionPeriod']?: ChargeRow[K]
} & {
  /**
   * When a worker asks the provider for the outcome. Null for providers with their own worker.
   */
  readonly dueAt: Date | null
}

const COLUMNS = columnsOf(
  `id tenant_id status rail rail_reference amount_minor currency refunded_amount_minor
   refunding_amount_minor reversed_amount_minor failure_code metadata buyer_metadata product_id
   price_id quantity buyer_id customer_email buyer_country buyer_region checkout_session_id
   payment_link_id subscription_id subscription_period paid_at created_at updated_at`,
  'c',
)

export const chargeRows = tenantRows<ChargeView>(
  'charge',
  'charges c left join disputes d on d.tenant_id = c.tenant_id and d.charge_id = c.id',
  `${COLUMNS}, d.status as "disputeStatus"`,
  'c',
)
export const findCharge = chargeRows.find

/**
 * Inserts a pending charge.
 * @returns undefined when the subscription period, or the provider's reference, has a charge
 *   already.
 */
export const insertCharge = (tx: Transaction, charge: NewCharge) =>
  firstRow<ChargeRow>(tx, {
    name: 'charge.insert',
    text: `insert into charges as c (tenant_id, id, rail, rail_reference, amount_minor, currency,
             metadata, product_id, price_id, quantity, buyer_id, customer_email, buyer_country,
             buyer_region, checkout_session_id, payment_link_id, subscription_id,
             subscription_period, due_at, created_at, updated_at, buyer_metadata)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
             $19, $20, $20, $21)
           on conflict do nothing returning ${COLUMNS}`,
    values: [
      charge.tenantId,
      charge.id,
      charge.rail,
      charge.railReference ?? null,
      charge.amountMinor,
      charge.currency,
      JSON.stringify(charge.metadata),
      charge.productId,
      charge.priceId,
      charge.quantity,
      charge.buyerId ?? null,
      charge.customerEmail ?? null,
      charge.buyerCountry ?? null,
      charge.buyerRegion ?? null,
      charge.checkoutSessionId ?? null,
      charge.paymentLinkId ?? null,
      charge.subscriptionId ?? null,
      charge.subscriptionPeriod ?? null,
      charge.dueAt,
      charge.createdAt,
      charge.buyerMetadata == null ? null : JSON.stringify(charge.buyerMetadata),
    ],
  })

/** pending -> succeeded. @returns undefined when it is not pending. */
export const succeedCharge = (
  tx: Transaction,
  tenantId: string,
  id: string,
  paid: {
    readonly rail: string
    readonly railReference: string | null
    readonly buyerId?: string | undefined
    readonly now: Date
  },
) =>
  firstRow<ChargeRow>(tx, {
    name: 'charge.succeed',
    text: `update charges c set status = 'succeeded', rail = $3,
             rail_reference = coalesce($4, c.rail_reference), buyer_id = coalesce($5, c.buyer_id),
             paid_at = $6, updated_at = $6, due_at = null
           where c.tenant_id = $1 and c.id = $2 and c.status = 'pending' returning ${COLUMNS}`,
    values: [tenantId, id, paid.rail, paid.railReference, paid.buyerId ?? null, paid.now],
  })

/** pending -> failed. @returns undefined when it is not pending. */
export const failCharge = (
  tx: Transaction,
  tenantId: string,
  id: string,
  failureCode: string,
  now: Date,
) =>
  firstRow<ChargeRow>(tx, {
    name: 'charge.fail',
    text: `update charges c set status = 'failed', failure_code = $3, updated_at = $4, due_at = null
           where c.tenant_id = $1 and c.id = $2 and c.status = 'pending' returning ${COLUMNS}`,
    values: [tenantId, id, failureCode, now],
  })

/** Leases what is due: charges without an outcome. */
export const claimCharges = claims<ChargeRow>('charge', 'charges', 'c', COLUMNS)

/**
 * Sets when the provider of a pending charge is asked again, or null for never. A due time in the
 * past is kept: a webhook has requested a look-up since.
 */
export const remindOfCharge = (
  tx: Transaction,
  reminder: {
    readonly tenantId: string
    readonly chargeId: string
    readonly dueAt: Date | null
    readonly now: Date
  },
) =>
  execute(tx, {
    name: 'charge.remind',
    text: `update charges set due_at = $3
           where tenant_id = $1 and id = $2 and status = 'pending'
             and (due_at is null or due_at > $4)`,
    values: [reminder.tenantId, reminder.chargeId, reminder.dueAt, reminder.now],
  })

/** True if the session of a pending charge has expired, or its subscription has ended. */
export const isAbandoned = async (tx: Transaction, tenantId: string, chargeId: string, now: Date) =>
  (await firstValue<boolean>(tx, {
    name: 'charge.is_abandoned',
    text: `select coalesce(s.expires_at <= $3, false) or coalesce(u.status = 'canceled', false)
             as abandoned
           from charges c
           left join checkout_sessions s on s.tenant_id = c.tenant_id and s.charge_id = c.id
           left join subscriptions u on u.tenant_id = c.tenant_id and u.id = c.subscription_id
           where c.tenant_id = $1 and c.id = $2`,
    values: [tenantId, chargeId, now],
  })) ?? false

/**
 * Makes the unanswered payments of a subscription due, so that a worker asks providers for their
 * outcome. x402 payments have their own worker.
 */
export const concludeChargesOf = (
  tx: Transaction,
  tenantId: string,
  subscriptionId: string,
  now: Date,
) =>
  execute(tx, {
    name: 'charge.conclude_of_subscription',
    text: `update charges set due_at = $3, updated_at = $3
           where tenant_id = $1 and subscription_id = $2 and status = 'pending'
             and rail is not null and rail <> 'x402'`,
    values: [tenantId, subscriptionId, now],
  })

/** The pending or paid charge of a subscription period. */
export const findPeriodCharge = (
  tx: Transaction,
  tenantId: string,
  subscriptionId: string,
  period: number,
) =>
  firstRow<ChargeRow>(tx, {
    name: 'charge.of_period',
    text: `select ${COLUMNS} from charges c
           where c.tenant_id = $1 and c.subscription_id = $2 and c.subscription_period = $3
             and c.status <> 'failed'`,
    values: [tenantId, subscriptionId, period],
  })

/** Adds the amount that a lost dispute took back. */
export const reverseCharge = (
  tx: Transaction,
  tenantId: string,
  id: string,
  byMinor: number,
  now: Date,
) =>
  execute(tx, {
    name: 'charge.reverse',
    text: `update charges set reversed_amount_minor = reversed_amount_minor + $3, updated_at = $4
           where tenant_id = $1 and id = $2`,
    values: [tenantId, id, byMinor, now],
  })

/** Locks a charge until the end of the transaction. */
export const lockCharge = (tx: Transaction, tenantId: string, id: string) =>
  execute(tx, {
    name: 'charge.lock',
    text: 'select 1 from charges where tenant_id = $1 and id = $2 for no key update',
    values: [tenantId, id],
  })
