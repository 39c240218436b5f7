/** One round over the due work of each kind, a batch at a time. */
import type { Lifecycle } from '../../../runtime/kernel/actor.js'
import { claimCardEvents } from '../../../storage/commerce/card-payments.js'
import {
  claimCharges,
  type ChargeRow,
  findCharge,
  isAbandoned,
} from '../../../storage/commerce/charges.js'
import { expireCheckouts } from '../../../storage/commerce/checkout-sessions.js'
import { appendEvents, type NewEvent } from '../../../storage/platform/outbox.js'
import { claimPayouts, type PayoutRow, finishPayout } from '../../../storage/commerce/payouts.js'
import { claimRefunds, type RefundRow } from '../../../storage/commerce/refunds.js'
import {
  claimSettlements,
  lockSettlement,
  type SettlementRow,
} from '../../../storage/commerce/settlements.js'
import {
  booksToClose,
  insertMerchantStatement,
} from '../../../storage/commerce/merchant-statements.js'
import { cancelSubscription, claimSubscriptions } from '../../../storage/commerce/subscriptions.js'
import { chargeFailed } from '../payments/charges.js'
import { chargeProcessing } from '../payments/charge-processing.js'
import { stepSettlement } from '../payments/disputes.js'
import { statementEvent, type ChargeDeps, payoutEvent } from '../payments/events.js'
import { applyRefund } from '../payments/refunds.js'
import { cardObjects } from './card-objects.js'
import { invoiceLapsed } from './invoice.js'
import { renewal } from './renewal.js'
import type { RenewalNeeds } from './needs.js'
import { postEntry } from '../../../storage/commerce/ledger.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { FinalDone } from '../payments/payment-provider.js'

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

/** Every claim crosses tenants: one worker serves all of them. */
export function renewalRounds(needs: RenewalNeeds, lifecycle: Pick<Lifecycle, 'signal' | 'log'>) {
  const { database, clock, random, providers } = needs
  const processing = chargeProcessing(needs)
  const deps = { clock, random }
  const options = { pool: 'background', signal: lifecycle.signal } as const
  const renew = renewal(needs, lifecycle)
  const follow = cardObjects(needs, lifecycle)

  const claimed = <Row>(
    claim: (tx: Parameters<typeof claimCharges>[0], now: Date, until: Date) => Promise<Row[]>,
  ) => {
    const now = clock.now()
    const until = new Date(now.getTime() + LEASE_MS)
    return database.system((tx) => claim(tx, now, until), options)
  }

  /**
   * Processes items. A failed item does not affect the others: its lease expires and it is retried.
   */
  async function each<Row extends object>(
    rows: readonly Row[],
    work: (row: Row) => Promise<void>,
  ): Promise<number> {
    const waiting = [...rows]
    const endMs = clock.monotonicMs() + KIND_MS_MAX
    async function workOn(): Promise<void> {
      for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
        if (lifecycle.signal.aborted || clock.monotonicMs() > endMs) return
        try {
          await work(row)
        } catch (error) {
          if (lifecycle.signal.aborted) return
          const tenantId = 'tenantId' in row ? row.tenantId : undefined
          lifecycle.log.warn({ err: error, tenantId }, 'renewals: item failed, retrying later')
        }
      }
    }
    // Runs items concurrently, so that an unresponsive provider delays as few as possible.
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, workOn))
    return rows.length
  }

  async function expire(): Promise<number> {
    return database.system(async (tx) => {
      const ended = await expireCheckouts(tx, clock.now(), BATCH)
      const events: NewEvent[] = []
      for (const { tenantId, chargeId } of ended) {
        const failed = await chargeFailed(tx, deps, { tenantId, chargeId, code: EXPIRED })
        events.push(...(failed?.events ?? []))
        const { subscriptionId: id = null, subscriptionPeriod: period = null } = failed?.row ?? {}
        if (id === null || period === null) continue
        // A subscription does not start without its first payment.
        if (period === 1) await cancelSubscription(tx, tenantId, id, clock.now())
        else await invoiceLapsed(tx, needs, { tenantId, id, period })
      }
      appendEvents(tx, events)
      return ended.length
    }, options)
  }

  async function conclude(charge: ChargeRow): Promise<void> {
    const { tenantId, id: chargeId, amountMinor, currency } = charge
    const provider = processing.providerNamed(charge.rail)
    const abandoned = await database.tenant(
      tenantId,
      (tx) => isAbandoned(tx, tenantId, chargeId, clock.now()),
      options,
    )
    const order = { tenantId, chargeId, amountMinor, currency, abandoned }
    const answer = await processing.ask(lifecycle.signal, (signal) =>
      provider.conclude(order, signal),
    )
    await processing.record(charge, provider, answer, options)
  }

  /** created -> held while the payment clears -> released. */
  async function settle({ tenantId, chargeId, rail }: SettlementRow): Promise<void> {
    const clearedAt = new Date(clock.now().getTime() + (providers.get(rail)?.clearingMs ?? 0))
    await database.tenant(
      tenantId,
      async (tx) => {
        const now = await lockSettlement(tx, tenantId, chargeId)
        if (now === undefined || now.holdReason === 'dispute') return
        const moved =
          now.status === 'created'
            ? await stepSettlement(tx, deps, now, 'held', 'clearing', clearedAt)
            : await stepSettlement(tx, deps, now, 'released', null, null)
        appendEvents(tx, moved?.events ?? [])
      },
      options,
    )
  }

  async function giveBack(refund: RefundRow): Promise<void> {
    const { tenantId, id: refundId, chargeId, amountMinor } = refund
    const charge = await database.tenant(
      tenantId,
      (tx) => findCharge(tx, tenantId, chargeId),
      options,
    )
    if (charge === undefined) throw new Error('a refund has no charge')
    const order = { tenantId, refundId, chargeId, amountMinor, currency: charge.currency }
    const provider = processing.providerNamed(charge.rail)
    const answer = await processing.ask(lifecycle.signal, (signal) =>
      provider.refund(order, signal),
    )
    if (answer.tag === 'pending') return
    await database.tenant(
      tenantId,
      async (tx) => appendEvents(tx, (await applyRefund(tx, deps, refund, answer)) ?? []),
      options,
    )
  }

  async function payOut(payout: PayoutRow): Promise<void> {
    const { tenantId, id: payoutId, amountMinor, currency } = payout
    const order = { tenantId, payoutId, amountMinor, currency }
    const provider = processing.providerNamed(payout.rail)
    const answer = await processing.ask(lifecycle.signal, (signal) =>
      provider.payOut(order, signal),
    )
    if (answer.tag === 'pending') return
    await database.tenant(
      tenantId,
      async (tx) => appendEvents(tx, (await applyPayout(tx, deps, payout, answer)) ?? []),
      options,
    )
  }

  /** Issues the monthly statement of every ledger book with entries since the last one. */
  async function close(book: { tenantId: string; currency: string }): Promise<void> {
    const { tenantId, currency } = book
    await database.tenant(
      tenantId,
      async (tx) => {
        const row = await insertMerchantStatement(
          tx,
          tenantId,
          currency,
          random.uuid(),
          clock.now(),
        )
        appendEvents(
          tx,
          row === undefined ? [] : [statementEvent('commerce.statement.created', row, deps)],
        )
      },
      options,
    )
  }

  function monthStart(): Date {
    const now = clock.now()
    return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1))
  }

  return {
    async round(): Promise<Record<string, number>> {
      return {
        expired: await expire(),
        concluded: await each(
          await claimed((tx, now, to) => claimCharges(tx, now, to, BATCH)),
          conclude,
        ),
        settled: await each(
          await claimed((tx, now, to) => claimSettlements(tx, now, to, BATCH)),
          settle,
        ),
        renewed: await each(
          await claimed((tx, now, to) => claimSubscriptions(tx, now, to, BATCH)),
          renew,
        ),
        refunded: await each(
          await claimed((tx, now, to) => claimRefunds(tx, now, to, BATCH)),
          giveBack,
        ),
        heard: await each(
          await claimed((tx, now, to) => claimCardEvents(tx, now, to, BATCH)),
          follow,
        ),
        paidOut: await each(
          await claimed((tx, now, to) => claimPayouts(tx, now, to, BATCH)),
          payOut,
        ),
        closed: await each(
          await database.system((tx) => booksToClose(tx, monthStart(), BATCH), options),
          close,
        ),
      }
    },
  }
}

/** @returns the events to emit. Undefined when the payout has ended before. */
async function applyPayout(
  tx: Transaction,
  deps: ChargeDeps,
  { tenantId, id, rail, currency, amountMinor }: PayoutRow,
  answer: FinalDone,
): Promise<readonly NewEvent[] | undefined> {
  const { clock, random } = deps
  const now = clock.now()
  const code = answer.tag === 'refused' ? answer.code : null
  const row = await finishPayout(tx, tenantId, id, code, now)
  if (row === undefined) return undefined
  await postEntry(tx, {
    tenantId,
    id: random.uuid(),
    currency,
    kind: code === null ? 'payout.paid' : 'payout.failed',
    subjectId: id,
    createdAt: now,
    lines: [
      { account: 'in_transit', rail, amountMinor },
      { account: code === null ? 'clearing' : 'available', rail, amountMinor: -amountMinor },
    ],
  })
  const type = code === null ? 'commerce.payout.paid' : 'commerce.payout.failed'
  return [payoutEvent(type, row, deps)]
}
