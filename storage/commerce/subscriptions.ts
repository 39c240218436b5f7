/** Subscriptions: incomplete -> active <-> past_due -> canceled. */
import { tenantInForce } from '../platform/in-force.js'
import { columnsOf, tenantRows } from '../platform/portable/tenant-rows.js'
import type { Interval } from './products.js'
import { execute, firstRow, isChanged, type Transaction } from '../platform/sql.js'
import { claims } from './due-rows.js'

type SubscriptionStatus = 'incomplete' | 'active' | 'past_due' | 'canceled'

export type SubscriptionRow = {
  id: string
  tenantId: string
  productId: string
  priceId: string
  amountMinor: number
  currency: string
  interval: Interval
  intervalCount: number
  customerEmail: string
  buyerCountry: string | null
  buyerRegion: string | null
  metadata: Record<string, unknown>
  status: SubscriptionStatus
  rail: string | null
  /** The provider's id of the buyer's consent to future charges. */
  mandate: string | null
  /** The last paid period. The first is 1. */
  period: number
  anchorAt: Date | null
  currentPeriodStart: Date | null
  currentPeriodEnd: Date | null
  /** Payment attempts for the next period. */
  attempts: number
  cancelAtPeriodEnd: boolean
  canceledAt: Date | null
  createdAt: Date
  updatedAt: Date
}

const COLUMNS = `${columnsOf(
  `id tenant_id product_id price_id amount_minor currency customer_email buyer_country buyer_region
   metadata status rail mandate period anchor_at current_period_start current_period_end attempts
   cancel_at_period_end canceled_at created_at updated_at`,
  's',
)}, s.recurring_interval as "interval", s.recurring_interval_count as "intervalCount"`

export const subscriptionRows = tenantRows<SubscriptionRow>(
  'subscription',
  'subscriptions s',
  COLUMNS,
)

export const insertSubscription = (
  tx: Transaction,
  row: Pick<
    SubscriptionRow,
    | 'id'
    | 'tenantId'
    | 'productId'
    | 'priceId'
    | 'amountMinor'
    | 'currency'
    | 'interval'
    | 'intervalCount'
    | 'customerEmail'
    | 'buyerCountry'
    | 'buyerRegion'
    | 'metadata'
    | 'createdAt'
  >,
) =>
  execute(tx, {
    name: 'subscription.insert',
    text: `insert into subscriptions (tenant_id, id, product_id, price_id, amount_minor, currency,
             recurring_interval, recurring_interval_count, customer_email, buyer_country,
             buyer_region, metadata, status, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'incomplete', $13, $13)`,
    values: [
      row.tenantId,
      row.id,
      row.productId,
      row.priceId,
      row.amountMinor,
      row.currency,
      row.interval,
      row.intervalCount,
      row.customerEmail,
      row.buyerCountry,
      row.buyerRegion,
      JSON.stringify(row.metadata),
      row.createdAt,
    ],
  })

/** Locks a subscription until the end of the transaction. */
export const lockSubscription = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<SubscriptionRow>(tx, {
    name: 'subscription.lock',
    text: `select ${COLUMNS} from subscriptions s where tenant_id = $1 and id = $2
           for no key update`,
    values: [tenantId, id],
  })

/**
 * Starts the next period after its payment and makes the subscription active. Only from the
 * previous period.
 */
export const beginPeriod = (
  tx: Transaction,
  paid: {
    readonly tenantId: string
    readonly id: string
    readonly period: number
    readonly rail: string
    readonly mandate: string | null
    readonly anchorAt: Date
    readonly start: Date
    readonly end: Date
    readonly now: Date
  },
) =>
  isChanged(tx, {
    name: 'subscription.begin_period',
    text: `update subscriptions set status = 'active', period = $3, rail = $4,
             mandate = coalesce($5, mandate), anchor_at = $6, current_period_start = $7,
             current_period_end = $8, attempts = 0, due_at = $8, updated_at = $9
           where tenant_id = $1 and id = $2 and period = $3 - 1 and status <> 'canceled'`,
    values: [
      paid.tenantId,
      paid.id,
      paid.period,
      paid.rail,
      paid.mandate,
      paid.anchorAt,
      paid.start,
      paid.end,
      paid.now,
    ],
  })

/** Schedules a retry after a refused renewal. */
export const fallBehind = (
  tx: Transaction,
  { tenantId, id }: Pick<SubscriptionRow, 'tenantId' | 'id'>,
  period: number,
  dueAt: Date,
  now: Date,
) =>
  isChanged(tx, {
    name: 'subscription.fall_behind',
    text: `update subscriptions set status = 'past_due', attempts = attempts + 1, due_at = $4,
             updated_at = $5
           where tenant_id = $1 and id = $2 and period = $3 - 1
             and status in ('active', 'past_due')`,
    values: [tenantId, id, period, dueAt, now],
  })

/** Ends the subscription. @returns undefined when it has ended before. */
export const cancelSubscriptionRow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  firstRow<SubscriptionRow>(tx, {
    name: 'subscription.cancel',
    text: `update subscriptions s set status = 'canceled', canceled_at = $3, due_at = null,
             updated_at = $3
           where tenant_id = $1 and id = $2 and status <> 'canceled' returning ${COLUMNS}`,
    values: [tenantId, id, now],
  })

/** Schedules the cancellation at the end of the period, or (false) revokes it. */
export const cancelAtPeriodEnd = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  firstRow<SubscriptionRow>(tx, {
    name: 'subscription.cancel_at_end',
    text: `update subscriptions s set cancel_at_period_end = true, updated_at = $3
           where tenant_id = $1 and id = $2 and status in ('active', 'past_due')
           returning ${COLUMNS}`,
    values: [tenantId, id, now],
  })

/** Postpones a subscription: another event makes it due. */
export const parkSubscription = (tx: Transaction, tenantId: string, id: string, dueAt: Date) =>
  execute(tx, {
    name: 'subscription.park',
    text: `update subscriptions set due_at = $3
           where tenant_id = $1 and id = $2 and status in ('active', 'past_due')`,
    values: [tenantId, id, dueAt],
  })

/** Makes the next renewal due now. For sandboxes. */
export const renewNow = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  firstRow<SubscriptionRow>(tx, {
    name: 'subscription.renew_now',
    text: `update subscriptions s set due_at = $3, updated_at = $3
           where tenant_id = $1 and id = $2 and status in ('active', 'past_due')
           returning ${COLUMNS}`,
    values: [tenantId, id, now],
  })

/** Leases what is due: subscriptions whose next period begins. */
export const claimSubscriptions = claims<SubscriptionRow>(
  'subscription',
  'subscriptions',
  's',
  COLUMNS,
  `and ${tenantInForce('d.tenant_id')}`,
)
