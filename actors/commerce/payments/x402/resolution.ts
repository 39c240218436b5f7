/**
 * Operators list payments and resolve those whose outcome neither the chain nor the facilitator
 * reveals. An operator's outcome is accepted unless known facts contradict it. A payment cannot be
 * resolved as failed while its authorization can still be spent, because its buyer could then pay
 * twice.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Handler } from '../../../../runtime/kernel/actor.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import {
  readX402Payment,
  takeX402Payment,
  type X402PaymentRow,
  listX402PaymentRows,
} from '../../../../storage/commerce/x402-payments.js'
import { listedOf } from '../../../platform/paging.js'
import { isUuid } from '../../../domain/ids.js'
import { recordAudit } from '../../../platform/record-audit.js'
import type { X402Needs } from './needs.js'
import type { AuthorizationStatus } from './chain.js'
import {
  failPayment,
  type LeasedPayment,
  onChain,
  postponePayment,
  settlePayment,
} from './endings.js'
import type {
  Resolution,
  ResolutionRefused,
  ResolvePayment,
  X402Payment,
  X402Protocol,
} from './protocol.js'
import { inTenant } from '../../../platform/in-tenant.js'

const UNKNOWN = { tag: 'unknown' } as const
/** Longer than a check of the chain takes. */
const LEASE_SECS = 90
/** Maximum wait for a worker that is checking the payment. */
const PATIENCE_MS = 5_000
const POLL_MS = 200
/** The reconciliation continues after a refusal. */
const FIRST_CHECK_SECS = 2
/** A reorganization shortly after the end of the authorization may still include the transfer. */
const REORGANIZATION_SECS = 60

/**
 * Checks an operator's outcome against known facts. Exported for property tests.
 * @param status the state on the chain. Null where no node is configured.
 * @returns undefined, or the reason of the refusal.
 */
export function resolutionFault(
  { outcome }: Resolution,
  status: AuthorizationStatus | null,
  validBeforeSecs: number,
  nowSecs: number,
): string | undefined {
  if (status?.tag === 'settled') {
    return outcome === 'settled'
      ? undefined
      : `The chain shows the transfer: ${status.transaction}.`
  }
  if (outcome === 'settled') {
    return status === null || status.tag === 'unclear'
      ? undefined
      : 'The chain shows no such transfer.'
  }
  if (status?.tag === 'cancelled') return undefined
  // Prefers the chain's time: a node that lags has not seen every transaction.
  const atSecs = status?.tag === 'unspent' ? status.blockTimeSecs : nowSecs
  return atSecs >= validBeforeSecs + REORGANIZATION_SECS
    ? undefined
    : 'The authorization can still be spent. The payment can fail a minute after valid_before at the earliest.'
}

type Handling<K extends keyof X402Protocol> = Handler<X402Needs, X402Protocol, K>

export const listX402Payments: Handling<'listX402Payments'> = async (
  { database },
  { tenantId, limit, after, state },
  context,
) => {
  const rows = await inTenant(database, tenantId, context, (tx) =>
    listX402PaymentRows(tx, tenantId, state, limit + 1, after),
  )
  return listedOf(rows, limit, paymentOf)
}

export const resolveX402Payment: Handling<'resolveX402Payment'> = async (
  needs,
  message,
  { signal, requestId, log },
) => {
  const { database, clock, random, nodes, metrics } = needs
  const { caller, id, resolution } = message
  const { tenantId } = caller.principal
  if (!isUuid(id)) return UNKNOWN
  const lease = random.uuid()
  const { mine, row } = await take(needs, tenantId, id, lease, signal)
  if (row === undefined) return UNKNOWN
  if (mine === undefined) return ended(row, resolution)
  const leased: LeasedPayment = { ...mine, lease }
  const claimed = resolution.outcome === 'settled' ? resolution.transaction : null
  const node = nodes.get(mine.network)
  const status = node === undefined ? null : await node.look(onChain(leased), claimed)
  const fault = resolutionFault(resolution, status, Number(mine.validBefore), clock.nowSecs())
  if (fault !== undefined) {
    await postponePayment(needs, leased, FIRST_CHECK_SECS, null)
    return refused(fault)
  }
  if (!(await end(needs, leased, message, status, requestId))) return refused(BUSY)
  const { outcome } = resolution
  metrics.resolved.inc({ outcome })
  log.warn({ charge_id: mine.chargeId, outcome }, 'x402: payment resolved by an operator')
  const now = await database.tenant(tenantId, (tx) => readX402Payment(tx, tenantId, id))
  return { tag: 'changed', row: paymentOf(now!) }
}

/** Leases the payment, or returns its state. */
async function take(
  { database, clock }: X402Needs,
  tenantId: string,
  id: string,
  lease: string,
  signal: AbortSignal,
) {
  const endMs = clock.monotonicMs() + PATIENCE_MS
  for (;;) {
    const [mine, row] = await inTenant(database, tenantId, { signal }, async (tx) => [
      await takeX402Payment(tx, tenantId, id, lease, LEASE_SECS),
      await readX402Payment(tx, tenantId, id),
    ])
    const isHeld = row?.state === 'settling' || row?.state === 'unknown'
    if (mine !== undefined || !isHeld || clock.monotonicMs() >= endMs) return { mine, row }
    await sleep(POLL_MS)
  }
}

/**
 * Ends the payment and audits the operator in the same transaction.
 * @returns false when the lease was lost.
 */
function end(
  needs: X402Needs,
  leased: LeasedPayment,
  { caller, resolution }: ResolvePayment,
  status: AuthorizationStatus | null,
  requestId: string | undefined,
): Promise<boolean> {
  const alsoAudit = (tx: Transaction) =>
    recordAudit(
      tx,
      needs,
      caller,
      { requestId },
      {
        type: 'commerce.x402_payment.resolved',
        resource: { type: 'x402_payment', id: leased.id },
        data: { charge_id: leased.chargeId, ...resolution, chain: status?.tag ?? null },
      },
    )
  if (resolution.outcome === 'settled') {
    const transaction = status?.tag === 'settled' ? status.transaction : resolution.transaction
    return settlePayment(needs, leased, transaction.toLowerCase(), requestId, alsoAudit)
  }
  return failPayment(needs, leased, 'unexpected_settle_error', requestId, alsoAudit)
}

/** The response for a payment that cannot be resolved. */
function ended(row: X402PaymentRow, { outcome }: Resolution) {
  if (row.state === outcome) return { tag: 'changed' as const, row: paymentOf(row) }
  const open = row.state === 'settling' || row.state === 'unknown'
  return refused(open ? BUSY : `The payment is ${row.state}.`)
}

const BUSY = 'The payment is being checked. Try again in a moment.'

function refused(detail: string): ResolutionRefused {
  return { tag: 'refused_resolution', detail }
}

function paymentOf(row: X402PaymentRow): X402Payment {
  return {
    id: row.id,
    chargeId: row.chargeId,
    paymentLinkId: row.paymentLinkId,
    checkoutSessionId: row.checkoutSessionId,
    state: row.state,
    network: row.network,
    asset: row.asset,
    payer: row.payer,
    payTo: row.payTo,
    amount: row.amount,
    nonce: row.nonce,
    validBefore: row.validBefore,
    transaction: row.transaction,
    errorReason: row.errorReason,
    checks: row.checks,
    createdAt: row.createdAt,
  }
}
