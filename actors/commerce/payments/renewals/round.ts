/** One round over the due work of each kind, a batch at a time. */
import { claimCardEvents } from '../../../../storage/commerce/card-payments.js'
import { claimCharges } from '../../../../storage/commerce/charges.js'
import { expireCheckouts } from '../../../../storage/commerce/checkout-sessions.js'
import { booksToClose } from '../../../../storage/commerce/merchant-statements.js'
import { claimPayouts } from '../../../../storage/commerce/payouts.js'
import { claimRefunds } from '../../../../storage/commerce/refunds.js'
import { claimSettlements } from '../../../../storage/commerce/settlements.js'
import {
  cancelSubscriptionRow,
  claimSubscriptions,
} from '../../../../storage/commerce/subscriptions.js'
import { appendEvents, type NewEvent } from '../../../../storage/platform/outbox.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import { chargeFailed } from '../charges.js'
import { followCardEvent } from './card-objects.js'
import { closeBook, concludeCharge, giveBack, payOut, settle } from './due-work.js'
import { invoiceLapsed } from './invoice.js'
import { inBackground, type RoundNeeds } from './needs.js'
import { renew } from './renewal.js'

const BATCH = 32
/** Longer than one item may take. */
const LEASE_MS = 60_000
const SIDE_BY_SIDE = 4
/**
 * Items not started by then wait for their lease to expire, so that an unresponsive provider does
 * not block other kinds.
 */
const KIND_MS_MAX = 15_000
const EXPIRED = 'checkout_expired'

/** Works on a batch of one kind. @returns its size. */
type Step = (needs: RoundNeeds) => Promise<number>

const STEPS: readonly Step[] = [
  expire,
  due(claimCharges, concludeCharge),
  due(claimSettlements, settle),
  due(claimSubscriptions, renew),
  due(claimRefunds, giveBack),
  due(claimCardEvents, followCardEvent),
  due(claimPayouts, payOut),
  closeBooks,
]

/** @returns the number of items that were due. */
export async function renewalRound(needs: RoundNeeds): Promise<number> {
  let worked = 0
  for (const step of STEPS) worked += await step(needs)
  return worked
}

/** Claims due rows and works on them. Every claim crosses tenants: one worker serves all of them. */
function due<Row extends object>(
  claim: (tx: Transaction, now: Date, leasedUntil: Date, limit: number) => Promise<Row[]>,
  work: (needs: RoundNeeds, row: Row) => Promise<void>,
): Step {
  return async (needs) => {
    const now = needs.clock.now()
    const until = new Date(now.getTime() + LEASE_MS)
    const { database } = needs
    const rows = await database.system((tx) => claim(tx, now, until, BATCH), inBackground(needs))
    return each(needs, rows, work)
  }
}

/**
 * Processes items. A failed item does not affect the others: its lease expires and it is retried.
 */
async function each<Row extends object>(
  needs: RoundNeeds,
  rows: readonly Row[],
  work: (needs: RoundNeeds, row: Row) => Promise<void>,
): Promise<number> {
  const { clock, signal, log } = needs
  const waiting = [...rows]
  const endMs = clock.monotonicMs() + KIND_MS_MAX
  async function workOn(): Promise<void> {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      if (signal.aborted || clock.monotonicMs() > endMs) return
      try {
        await work(needs, row)
      } catch (error) {
        if (signal.aborted) return
        const tenantId = 'tenantId' in row ? row.tenantId : undefined
        log.warn({ err: error, tenantId }, 'renewals: item failed, retrying later')
      }
    }
  }
  // Runs items concurrently, so that an unresponsive provider delays as few as possible.
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, workOn))
  return rows.length
}

function expire(needs: RoundNeeds): Promise<number> {
  const { database, clock } = needs
  return database.system(async (tx) => {
    const ended = await expireCheckouts(tx, clock.now(), BATCH)
    const events: NewEvent[] = []
    for (const { tenantId, chargeId } of ended) {
      const failed = await chargeFailed(tx, needs, { tenantId, chargeId, code: EXPIRED })
      events.push(...(failed?.events ?? []))
      const { subscriptionId: id = null, subscriptionPeriod: period = null } = failed?.row ?? {}
      if (id === null || period === null) continue
      // A subscription does not start without its first payment.
      if (period === 1) await cancelSubscriptionRow(tx, tenantId, id, clock.now())
      else await invoiceLapsed(tx, needs, { tenantId, id, period })
    }
    appendEvents(tx, events)
    return ended.length
  }, inBackground(needs))
}

/** Issues the monthly statement of every ledger book with entries since the last one. */
async function closeBooks(needs: RoundNeeds): Promise<number> {
  const now = needs.clock.now()
  const monthStart = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1))
  const books = await needs.database.system(
    (tx) => booksToClose(tx, monthStart, BATCH),
    inBackground(needs),
  )
  return each(needs, books, closeBook)
}
