/**
 * Payments of the card provider under the provider's ids, and the webhooks that it sent. A payment
 * moves money only after its row contains the provider's id, so no crash loses a payment.
 */
import { columnsOf } from '../platform/portable/tenant-rows.js'
import {
  allRows,
  changedRows,
  execute,
  firstRow,
  isChanged,
  onlyRow,
  onlyValue,
  type Transaction,
} from '../platform/sql.js'

export type CardPaymentRow = {
  tenantId: string
  chargeId: string
  /** Number of calls that the provider answered with a server error. */
  failedCalls: number
  checkoutId: string | null
  paymentId: string | null
  /** Refused permanently before the provider issued a payment id. */
  abandoned: boolean
  lookUps: number
}

const COLUMNS = columnsOf(
  'tenant_id charge_id failed_calls checkout_id payment_id abandoned look_ups',
  'p',
)

/** Returns the payment of a charge. Inserts it if it does not exist. */
export const beginCardPayment = (tx: Transaction, tenantId: string, chargeId: string, now: Date) =>
  onlyRow<CardPaymentRow>(tx, {
    name: 'card_payment.begin',
    text: `insert into card_payments as p (tenant_id, charge_id, created_at) values ($1, $2, $3)
           on conflict (tenant_id, charge_id) do update set created_at = p.created_at
           returning ${COLUMNS}`,
    values: [tenantId, chargeId, now],
  })

export const findCardPayment = (tx: Transaction, tenantId: string, chargeId: string) =>
  firstRow<CardPaymentRow>(tx, {
    name: 'card_payment.find',
    text: `select ${COLUMNS} from card_payments p where tenant_id = $1 and charge_id = $2`,
    values: [tenantId, chargeId],
  })

/** Finds a payment by the provider's id. Crosses tenants: the provider does not name a tenant. */
export const cardPaymentOf = (tx: Transaction, paymentId: string) =>
  firstRow<CardPaymentRow>(tx, {
    name: 'card_payment.by_payment',
    text: `select ${COLUMNS} from card_payments p where payment_id = $1`,
    values: [paymentId],
  })

/**
 * Stores the first payment id of the provider. One of several concurrent creations wins.
 * @returns undefined when another id is stored, or the payment was abandoned.
 */
export const nameCardPayment = (
  tx: Transaction,
  named: {
    readonly tenantId: string
    readonly chargeId: string
    readonly checkoutId: string | null
    readonly paymentId: string | null
  },
) =>
  firstRow<CardPaymentRow>(tx, {
    name: 'card_payment.name',
    text: `update card_payments p set checkout_id = $3, payment_id = $4
           where tenant_id = $1 and charge_id = $2 and checkout_id is null and payment_id is null
             and not abandoned returning ${COLUMNS}`,
    values: [named.tenantId, named.chargeId, named.checkoutId, named.paymentId],
  })

/** Stores the payment that the buyer made on the provider's page. */
export const markCardPaymentPaid = (
  tx: Transaction,
  tenantId: string,
  chargeId: string,
  paymentId: string,
) =>
  execute(tx, {
    name: 'card_payment.paid',
    text: `update card_payments set payment_id = $3
           where tenant_id = $1 and charge_id = $2 and payment_id is null and not abandoned`,
    values: [tenantId, chargeId, paymentId],
  })

/**
 * Refuses a payment permanently while it has no provider id.
 * @returns undefined when it has one.
 */
export const abandonCardPayment = (
  tx: Transaction,
  tenantId: string,
  chargeId: string,
  now: Date,
) =>
  firstRow<CardPaymentRow>(tx, {
    name: 'card_payment.abandon',
    text: `insert into card_payments as p (tenant_id, charge_id, abandoned, created_at)
           values ($1, $2, true, $3)
           on conflict (tenant_id, charge_id) do update set abandoned = true
             where p.checkout_id is null and p.payment_id is null
           returning ${COLUMNS}`,
    values: [tenantId, chargeId, now],
  })

/** Counts a server error of the provider. The next call uses another idempotency key. */
export const noteFailedCall = (
  tx: Transaction,
  { tenantId, chargeId, failedCalls }: CardPaymentRow,
) =>
  execute(tx, {
    name: 'card_payment.failed_call',
    text: `update card_payments set failed_calls = failed_calls + 1
           where tenant_id = $1 and charge_id = $2 and failed_calls = $3`,
    values: [tenantId, chargeId, failedCalls],
  })

/** Counts a look-up without an outcome. */
export const markLookedUp = (tx: Transaction, tenantId: string, chargeId: string) =>
  execute(tx, {
    name: 'card_payment.looked_up',
    text: `update card_payments set look_ups = look_ups + 1
           where tenant_id = $1 and charge_id = $2`,
    values: [tenantId, chargeId],
  })

/** Lets one of several waiting callers look the payment up. @returns true for that caller. */
export const claimLookUp = (
  tx: Transaction,
  tenantId: string,
  chargeId: string,
  now: Date,
  notSince: Date,
) =>
  isChanged(tx, {
    name: 'card_payment.claim_look_up',
    text: `update card_payments set looked_up_at = $3
           where tenant_id = $1 and charge_id = $2 and checkout_id is not null
             and (looked_up_at is null or looked_up_at < $4)`,
    values: [tenantId, chargeId, now, notSince],
  })

export type CardEventRow = {
  id: string
  type: string
  about: 'payment' | 'dispute' | 'refund'
  objectId: string
  paymentId: string | null
  receivedAt: Date
}

/**
 * Stores a webhook once by its id, and makes its object due for a worker: the payment of a pending
 * charge, pending refunds of ours, or a refund or dispute of the provider. Crosses tenants: the
 * provider does not name a tenant.
 * @returns true if the webhook is new.
 */
export const receiveCardEventRow = (
  tx: Transaction,
  { id, type, about, objectId, paymentId, receivedAt }: CardEventRow,
) =>
  onlyValue<boolean>(tx, {
    name: 'card_event.receive',
    text: `with fresh as (
             insert into card_events (id, type, about, object_id, payment_id, received_at, due_at)
             values ($1, $2, $3::text, $4, $5, $6::timestamptz,
               case when $3::text <> 'payment' then $6::timestamptz end)
             on conflict do nothing returning id),
           payment as (
             select p.tenant_id, p.charge_id from fresh, card_payments p
             where ($3::text = 'payment' and (p.checkout_id = $4 or p.payment_id = $4))
                or ($3::text = 'refund' and p.payment_id = $5)),
           charge as (
             update charges c set due_at = $6::timestamptz from payment
             where c.tenant_id = payment.tenant_id and c.id = payment.charge_id
               and $3::text = 'payment' and c.status = 'pending' returning 1),
           refund as (
             update refunds r set due_at = $6::timestamptz from payment
             where r.tenant_id = payment.tenant_id and r.charge_id = payment.charge_id
               and $3::text = 'refund' and r.status = 'pending' returning 1)
           select exists (select from fresh) as fresh`,
    values: [id, type, about, objectId, paymentId, receivedAt],
  })

/** Leases webhooks to a worker until `leasedUntil`. Concurrent workers skip them. */
export const claimCardEvents = (tx: Transaction, now: Date, leasedUntil: Date, limit: number) =>
  allRows<CardEventRow>(tx, {
    name: 'card_event.claim',
    text: `update card_events e set due_at = $2
           from (select id from card_events where due_at <= $1
                 order by due_at limit $3 for update skip locked) due
           where e.id = due.id
           returning ${columnsOf('id type about object_id payment_id received_at', 'e')}`,
    values: [now, leasedUntil, limit],
  })

export const finishCardEvent = (tx: Transaction, id: string) =>
  execute(tx, {
    name: 'card_event.finish',
    text: 'update card_events set due_at = null where id = $1',
    values: [id],
  })

/** Deletes processed webhooks received before `before`, up to `limit`. @returns how many. */
export const sweepCardEvents = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'card_event.sweep',
    text: `delete from card_events e
           using (select id from card_events where received_at < $1 and due_at is null
                  order by received_at limit $2 for update skip locked) old
           where e.id = old.id`,
    values: [before, limit],
  })
