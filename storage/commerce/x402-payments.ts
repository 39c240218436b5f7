/**
 * Payments by x402. Each transition is one conditional statement. One of several processes with the same payment wins,
 * and only the holder of the lease continues.
 */
import { columnsOf } from '../platform/portable/tenant-rows.js'
import {
  allRows,
  changedRows,
  execute,
  firstRow,
  isChanged,
  onlyRow,
  type Transaction,
} from '../platform/sql.js'

type X402State = 'verifying' | 'settling' | 'unknown' | 'settled' | 'failed'

export type X402PaymentRow = {
  tenantId: string
  id: string
  /** Exactly one of the two ids is set. */
  paymentLinkId: string | null
  checkoutSessionId: string | null
  chargeId: string
  version: 1 | 2
  network: string
  asset: string
  payer: string
  nonce: string
  payTo: string
  /** Atomic units, decimal. */
  amount: string
  /** Unix seconds, decimal. */
  validBefore: string
  proofSha256: Buffer
  payloadSha256: Buffer
  paymentIdentifier: string | null
  /** Body of the requests to the facilitator. */
  request: Record<string, unknown>
  state: X402State
  /** True while a process holds the lease. */
  held: boolean
  checks: number
  transaction: string | null
  errorReason: string | null
  createdAt: Date
}

export type NewX402Payment = Omit<
  X402PaymentRow,
  'state' | 'held' | 'checks' | 'transaction' | 'errorReason'
>

const COLUMNS = `${columnsOf(
  `tenant_id id payment_link_id checkout_session_id charge_id version network asset payer nonce
   pay_to amount::text valid_before::text proof_sha256 payload_sha256 payment_identifier request
   state checks transaction error_reason created_at`,
  'p',
)}, coalesce(p.leased_until > statement_timestamp(), false) as held`

/**
 * Claims an authorization for a payment in state `verifying`, held by `lease`.
 * @returns false when the authorization or the client's identifier is taken, by a row of this
 *   tenant or of another one.
 */
export const claimX402Payment = (
  tx: Transaction,
  payment: NewX402Payment,
  lease: string,
  leaseSecs: number,
) =>
  isChanged(tx, {
    name: 'x402.claim',
    text: `insert into x402_payments (tenant_id, id, payment_link_id, charge_id, version, network,
             asset, payer, nonce, pay_to, amount, valid_before, proof_sha256, payload_sha256,
             payment_identifier, request, state, lease, leased_until, created_at, updated_at,
             checkout_session_id)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
             'verifying', $17, statement_timestamp() + make_interval(secs => $18), $19, $19, $20)
           on conflict do nothing`,
    values: [
      payment.tenantId,
      payment.id,
      payment.paymentLinkId,
      payment.chargeId,
      payment.version,
      payment.network,
      payment.asset,
      payment.payer,
      payment.nonce,
      payment.payTo,
      payment.amount,
      payment.validBefore,
      payment.proofSha256,
      payment.payloadSha256,
      payment.paymentIdentifier,
      JSON.stringify(payment.request),
      lease,
      leaseSecs,
      payment.createdAt,
      payment.checkoutSessionId,
    ],
  })

/**
 * Takes over a payment whose holder died before it requested a settlement.
 * @returns false when a process holds it, or it has moved on.
 */
export const takeOverX402Payment = (
  tx: Transaction,
  tenantId: string,
  id: string,
  lease: string,
  leaseSecs: number,
) =>
  isChanged(tx, {
    name: 'x402.take_over',
    text: `update x402_payments set lease = $3,
             leased_until = statement_timestamp() + make_interval(secs => $4)
           where tenant_id = $1 and id = $2 and state = 'verifying'
             and leased_until <= statement_timestamp()`,
    values: [tenantId, id, lease, leaseSecs],
  })

/** Finds a payment by its authorization. */
export const findX402Payment = (
  tx: Transaction,
  tenantId: string,
  key: Pick<X402PaymentRow, 'network' | 'asset' | 'payer' | 'nonce'>,
) =>
  firstRow<X402PaymentRow>(tx, {
    name: 'x402.find',
    text: `select ${COLUMNS} from x402_payments p
           where tenant_id = $1 and network = $2 and asset = $3 and payer = $4 and nonce = $5`,
    values: [tenantId, key.network, key.asset, key.payer, key.nonce],
  })

/** Finds a payment by the hash of its first proof. */
export const findX402PaymentByProof = (
  tx: Transaction,
  tenantId: string,
  proofSha256: Uint8Array,
) =>
  firstRow<X402PaymentRow>(tx, {
    name: 'x402.find_by_proof',
    text: `select ${COLUMNS} from x402_payments p
           where tenant_id = $1 and proof_sha256 = $2`,
    values: [tenantId, proofSha256],
  })

/** Finds a payment by the client's identifier. */
export const findX402PaymentByIdentifier = (
  tx: Transaction,
  tenantId: string,
  identifier: string,
) =>
  firstRow<X402PaymentRow>(tx, {
    name: 'x402.find_by_identifier',
    text: `select ${COLUMNS} from x402_payments p
           where tenant_id = $1 and payment_identifier = $2`,
    values: [tenantId, identifier],
  })

/** Deletes a payment whose verification failed. No money was taken. */
export const dropX402Payment = (tx: Transaction, tenantId: string, id: string, lease: string) =>
  execute(tx, {
    name: 'x402.drop',
    text: `delete from x402_payments
           where tenant_id = $1 and id = $2 and lease = $3 and state = 'verifying'`,
    values: [tenantId, id, lease],
  })

/**
 * verifying -> settling: from here on the outcome must be found out, even after a crash.
 * @param leaseSecs how long the holder may take before a worker checks the payment.
 * @returns false when the lease was lost.
 */
export const beginX402Settlement = (
  tx: Transaction,
  tenantId: string,
  id: string,
  lease: string,
  leaseSecs: number,
) =>
  isChanged(tx, {
    name: 'x402.begin',
    text: `update x402_payments set state = 'settling',
             leased_until = statement_timestamp() + make_interval(secs => $4),
             due_at = statement_timestamp() + make_interval(secs => $4),
             updated_at = statement_timestamp()
           where tenant_id = $1 and id = $2 and lease = $3 and state = 'verifying'`,
    values: [tenantId, id, lease, leaseSecs],
  })

type X402End =
  | { readonly state: 'settled'; readonly transaction: string }
  | { readonly state: 'failed'; readonly errorReason: string }

/** -> settled or failed, by the lease holder. @returns false when the lease was lost. */
export const endX402Payment = (
  tx: Transaction,
  tenantId: string,
  id: string,
  lease: string,
  end: X402End,
) =>
  isChanged(tx, {
    name: 'x402.end',
    text: `update x402_payments set state = $4, transaction = coalesce($5, transaction),
             error_reason = $6, lease = null, leased_until = null, due_at = null,
             updated_at = statement_timestamp()
           where tenant_id = $1 and id = $2 and lease = $3 and state in ('settling', 'unknown')`,
    values: [
      tenantId,
      id,
      lease,
      end.state,
      end.state === 'settled' ? end.transaction : null,
      end.state === 'failed' ? end.errorReason : null,
    ],
  })

/**
 * -> unknown: releases the lease. A worker checks again later.
 * @param transaction a transaction hash that the facilitator named, to be checked first.
 */
export const postponeX402Payment = (
  tx: Transaction,
  { tenantId, id, lease }: { tenantId: string; id: string; lease: string },
  againSecs: number,
  transaction: string | null,
) =>
  isChanged(tx, {
    name: 'x402.postpone',
    text: `update x402_payments set state = 'unknown', lease = null, leased_until = null,
             due_at = statement_timestamp() + make_interval(secs => $4),
             transaction = coalesce($5, transaction), updated_at = statement_timestamp()
           where tenant_id = $1 and id = $2 and lease = $3 and state in ('settling', 'unknown')`,
    values: [tenantId, id, lease, againSecs, transaction],
  })

/** Leases payments of unknown outcome. Crosses tenants: one worker serves all of them. */
export const claimDueX402Payments = (
  tx: Transaction,
  lease: string,
  limit: number,
  leaseSecs: number,
) =>
  allRows<X402PaymentRow>(tx, {
    name: 'x402.claim_due',
    text: `with due as (
             select tenant_id, id from x402_payments
             where due_at <= statement_timestamp()
               and (leased_until is null or leased_until <= statement_timestamp())
             order by due_at limit $2
             for update skip locked)
           update x402_payments p set lease = $1, checks = p.checks + 1,
             leased_until = statement_timestamp() + make_interval(secs => $3)
           from due where p.tenant_id = due.tenant_id and p.id = due.id
           returning ${COLUMNS}`,
    values: [lease, limit, leaseSecs],
  })

/** Milliseconds until a payment is due, at most `withinMs`. */
export async function nextX402PaymentMs(tx: Transaction, withinMs: number): Promise<number> {
  const { rows } = await tx.query<{ ms: number | null }>({
    name: 'x402.next',
    text: `select (extract(epoch from min(greatest(due_at, leased_until)) - clock_timestamp())
             * 1000)::float8 as ms
           from x402_payments where due_at is not null`,
  })
  return Math.min(withinMs, Math.max(0, rows[0]?.ms ?? withinMs))
}

export const readX402Payment = (tx: Transaction, tenantId: string, id: string) =>
  firstRow<X402PaymentRow>(tx, {
    name: 'x402.read',
    text: `select ${COLUMNS} from x402_payments p where tenant_id = $1 and id = $2`,
    values: [tenantId, id],
  })

/** One page, newest first, after the row that `after` names. @param state null for every state. */
/** A page of the payments of a tenant, newest first. */
export const listX402PaymentRows = (
  tx: Transaction,
  tenantId: string,
  state: X402State | null,
  limit: number,
  after: { readonly createdAt: Date; readonly id: string } | null,
) =>
  allRows<X402PaymentRow>(tx, {
    name: 'x402.list',
    text: `select ${COLUMNS} from x402_payments p
           where tenant_id = $1 and ($2::text is null or state = $2)
             and ($4::timestamptz is null or (created_at, id) < ($4, $5::uuid))
           order by created_at desc, id desc limit $3`,
    values: [tenantId, state, limit, after?.createdAt ?? null, after?.id ?? null],
  })

/**
 * Leases one payment of unknown outcome. Undefined while another process holds it, or when it has
 * ended.
 */
export const takeX402Payment = (
  tx: Transaction,
  tenantId: string,
  id: string,
  lease: string,
  leaseSecs: number,
) =>
  firstRow<X402PaymentRow>(tx, {
    name: 'x402.take',
    text: `update x402_payments p set lease = $3,
             leased_until = statement_timestamp() + make_interval(secs => $4)
           where tenant_id = $1 and id = $2 and state in ('settling', 'unknown')
             and (leased_until is null or leased_until <= statement_timestamp())
           returning ${COLUMNS}`,
    values: [tenantId, id, lease, leaseSecs],
  })

/** Number and oldest age of payments of unknown outcome, for metrics. */
export const unknownX402Payments = (tx: Transaction) =>
  onlyRow<{ count: number; oldestSecs: number }>(tx, {
    name: 'x402.unknown',
    text: `select count(*)::int as count,
             coalesce(extract(epoch from statement_timestamp() - min(created_at)), 0)::float8
               as "oldestSecs"
           from x402_payments where state = 'unknown'`,
  })

/**
 * Deletes payments that never went beyond verification, up to `limit`. Needs a crossing
 * transaction.
 */
export const sweepX402Verifications = (tx: Transaction, before: Date, limit: number) =>
  changedRows(tx, {
    name: 'x402.sweep',
    text: `delete from x402_payments where (tenant_id, id) in (
             select tenant_id, id from x402_payments
             where state = 'verifying' and leased_until < $1 limit $2 for update skip locked)`,
    values: [before, limit],
  })
