/**
 * Checkout sessions: one page that pays one charge. open -> paying -> completed, or open ->
 * expired. The token of the page is stored as a hash.
 */
import { columnsOf } from '../platform/portable/tenant-rows.js'
import {
  allRows,
  allValues,
  execute,
  firstRow,
  isChanged,
  type Transaction,
} from '../platform/sql.js'

type CheckoutStatus = 'open' | 'paying' | 'completed' | 'expired' | 'canceled'

export type CheckoutSessionRow = {
  id: string
  tenantId: string
  chargeId: string
  status: CheckoutStatus
  successUrl: string | null
  cancelUrl: string | null
  expiresAt: Date
  createdAt: Date
}

const COLUMNS = columnsOf(
  'id tenant_id charge_id status success_url cancel_url expires_at created_at',
)

export const insertCheckoutSession = (
  tx: Transaction,
  row: Omit<CheckoutSessionRow, 'status'> & { readonly tokenSha256: Uint8Array },
) =>
  execute(tx, {
    name: 'checkout_session.insert',
    text: `insert into checkout_sessions (tenant_id, id, token_sha256, charge_id, success_url,
             cancel_url, expires_at, created_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    values: [
      row.tenantId,
      row.id,
      Buffer.from(row.tokenSha256),
      row.chargeId,
      row.successUrl,
      row.cancelUrl,
      row.expiresAt,
      row.createdAt,
    ],
  })

/** Finds a session by the hash of its token. Crosses tenants: buyers do not name one. */
export const findCheckoutSession = (tx: Transaction, tokenSha256: Uint8Array) =>
  firstRow<CheckoutSessionRow>(tx, {
    name: 'checkout_session.by_token',
    text: `select ${COLUMNS} from checkout_sessions where token_sha256 = $1`,
    values: [Buffer.from(tokenSha256)],
  })

/** Finds a session by its id, which buyers know. Crosses tenants: buyers do not name one. */
export const findCheckoutSessionById = (tx: Transaction, id: string) =>
  firstRow<CheckoutSessionRow>(tx, {
    name: 'checkout_session.by_id',
    text: `select ${COLUMNS} from checkout_sessions where id = $1`,
    values: [id],
  })

/** Locks a session until the end of the transaction. */
export const lockCheckout = (tx: Transaction, tenantId: string, id: string) =>
  execute(tx, {
    name: 'checkout_session.lock',
    text: `select 1 from checkout_sessions where tenant_id = $1 and id = $2 for no key update`,
    values: [tenantId, id],
  })

/**
 * Locks a payable session until the end of the transaction.
 * @returns false when it is not payable.
 */
export const lockOpenCheckout = (tx: Transaction, tenantId: string, id: string, now: Date) =>
  isChanged(tx, {
    name: 'checkout_session.lock_open',
    text: `select 1 from checkout_sessions
           where tenant_id = $1 and id = $2 and status = 'open' and expires_at > $3
           for no key update`,
    values: [tenantId, id, now],
  })

/** paying -> open: no money was taken, and the charge can be paid in another way. */
export const reopenCheckout = (tx: Transaction, tenantId: string, chargeId: string, now: Date) =>
  execute(tx, {
    name: 'checkout_session.reopen',
    text: `with reopened as (
             update checkout_sessions set status = 'open'
             where tenant_id = $1 and charge_id = $2 and status = 'paying'
             returning tenant_id, charge_id)
           -- The invoice of a renewal keeps the rail of its subscription.
           update charges c set updated_at = $3,
             rail = case when c.subscription_period > 1 then c.rail end
           from reopened r where c.tenant_id = r.tenant_id and c.id = r.charge_id
             and c.status = 'pending'`,
    values: [tenantId, chargeId, now],
  })

/**
 * open -> paying, with the chosen provider. One of several concurrent attempts wins.
 * @param dueAt when a worker asks the provider for the outcome if this process dies. Null for
 *   providers with their own worker.
 * @returns true if this call won.
 */
export const beginPaying = (
  tx: Transaction,
  payment: {
    readonly tenantId: string
    readonly id: string
    readonly rail: string
    readonly customerEmail: string | null
    readonly now: Date
    readonly dueAt: Date | null
  },
) =>
  isChanged(tx, {
    name: 'checkout_session.begin_paying',
    text: `with taken as (
             update checkout_sessions set status = 'paying'
             where tenant_id = $1 and id = $2 and status = 'open' and expires_at > $5
             returning tenant_id, charge_id)
           update charges c set rail = $3, customer_email = coalesce($4, c.customer_email),
             due_at = $6, updated_at = $5
           from taken where c.tenant_id = taken.tenant_id and c.id = taken.charge_id
             and c.status = 'pending'`,
    values: [
      payment.tenantId,
      payment.id,
      payment.rail,
      payment.customerEmail,
      payment.now,
      payment.dueAt,
    ],
  })

/** paying -> completed, in the transaction that ends the charge. */
export const completeCheckout = (tx: Transaction, tenantId: string, chargeId: string) =>
  execute(tx, {
    name: 'checkout_session.complete',
    text: `update checkout_sessions set status = 'completed'
           where tenant_id = $1 and charge_id = $2 and status in ('open', 'paying')`,
    values: [tenantId, chargeId],
  })

/**
 * open -> expired for the sessions of an ending subscription.
 * @returns the charges of the closed sessions.
 */
export const closeCheckoutsOf = (tx: Transaction, tenantId: string, subscriptionId: string) =>
  allValues<string>(tx, {
    name: 'checkout_session.close_of_subscription',
    text: `update checkout_sessions s set status = 'expired' from charges c
           where c.tenant_id = $1 and c.subscription_id = $2 and c.status = 'pending'
             and s.tenant_id = c.tenant_id and s.charge_id = c.id and s.status = 'open'
           returning s.charge_id as "chargeId"`,
    values: [tenantId, subscriptionId],
  })

/**
 * Marks sessions expired that ran out unpaid. Concurrent workers skip each other's rows. Crosses
 * tenants.
 */
export const expireCheckouts = (tx: Transaction, now: Date, limit: number) =>
  allRows<Pick<CheckoutSessionRow, 'tenantId' | 'chargeId'>>(tx, {
    name: 'checkout_session.expire',
    text: `update checkout_sessions s set status = 'expired'
           from (select tenant_id, id from checkout_sessions
                 where status = 'open' and expires_at <= $1
                   -- A transfer that arrived in time is booked first.
                   and not exists (select from checkout_transfers t
                     where t.tenant_id = checkout_sessions.tenant_id
                       and t.checkout_session_id = checkout_sessions.id and t.state = 'arrived')
                 order by expires_at limit $2 for update skip locked) due
           where s.tenant_id = due.tenant_id and s.id = due.id
           returning s.tenant_id as "tenantId", s.charge_id as "chargeId"`,
    values: [now, limit],
  })

/**
 * Deletes checkouts that expired before `before` without a payment attempt, up to `limit`: session,
 * charge, and the subscription that never started. Crosses tenants.
 * @returns how many.
 */
export async function sweepCheckouts(
  tx: Transaction,
  before: Date,
  limit: number,
): Promise<number> {
  const { rows } = await tx.query<{ tenantId: string; subscriptionId: string | null }>({
    name: 'checkout_session.sweep',
    text: `delete from charges c
           using (select s.tenant_id, s.charge_id from checkout_sessions s
                  join charges u on u.tenant_id = s.tenant_id and u.id = s.charge_id
                  where s.status = 'expired' and s.expires_at < $1
                    and u.status = 'failed' and u.rail is null
                  order by s.expires_at limit $2 for update of s skip locked) old
           where c.tenant_id = old.tenant_id and c.id = old.charge_id
           returning c.tenant_id as "tenantId", c.subscription_id as "subscriptionId"`,
    values: [before, limit],
  })
  const begun = rows.filter(({ subscriptionId }) => subscriptionId !== null)
  if (begun.length > 0) {
    await tx.query({
      name: 'checkout_session.sweep_subscriptions',
      text: `delete from subscriptions s using unnest($1::uuid[], $2::uuid[]) as g (tenant_id, id)
             where s.tenant_id = g.tenant_id and s.id = g.id and s.period = 0
               and s.status in ('incomplete', 'canceled')
               and not exists (select from charges c
                 where c.tenant_id = s.tenant_id and c.subscription_id = s.id)`,
      values: [
        begun.map(({ tenantId }) => tenantId),
        begun.map(({ subscriptionId }) => subscriptionId),
      ],
    })
  }
  return rows.length
}
