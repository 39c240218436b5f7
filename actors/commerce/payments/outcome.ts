/**
 * Applies a provider's answer to a charge in one transaction: the charge, its session, its
 * subscription and its dispute. A repeated answer changes nothing.
 */
import { completeCheckout } from '../../../storage/commerce/checkout-sessions.js'
import type { ChargeRow } from '../../../storage/commerce/charges.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  beginPeriod,
  cancelSubscriptionRow,
  fallBehind,
  lockSubscription,
  type SubscriptionRow,
} from '../../../storage/commerce/subscriptions.js'
import { chargeFailed, chargePaid } from './charges.js'
import type { ChargeDeps } from './events.js'
import { openDispute } from './disputes.js'
import type { FinalAnswer } from './payment-provider.js'
import type { BillingInterval } from './protocol.js'

const HOUR_MS = 3_600_000
/**
 * Waits before a refused renewal is retried, one per refusal. After the last the subscription ends.
 */
export const DUNNING_MS: readonly number[] = [24 * HOUR_MS, 72 * HOUR_MS, 120 * HOUR_MS]

/** @returns the events to emit. Undefined when the charge has ended before. */
export async function applyAnswer(
  tx: Transaction,
  deps: ChargeDeps,
  charge: Pick<ChargeRow, 'tenantId' | 'id' | 'subscriptionId' | 'subscriptionPeriod'>,
  rail: string,
  answer: FinalAnswer,
): Promise<readonly NewEvent[] | undefined> {
  const { tenantId, id: chargeId, subscriptionId, subscriptionPeriod: period } = charge
  const paid = answer.tag === 'taken'
  // Lock order: the subscription before its charge (subscription-end.ts).
  const subscription =
    subscriptionId === null ? undefined : await lockSubscription(tx, tenantId, subscriptionId)
  const transition = paid
    ? await chargePaid(tx, deps, {
        tenantId,
        chargeId,
        rail,
        railReference: answer.reference,
        buyerId: answer.buyerId,
        direct: answer.direct === true,
      })
    : await chargeFailed(tx, deps, { tenantId, chargeId, code: answer.code })
  if (transition === undefined) return undefined
  await completeCheckout(tx, tenantId, chargeId)
  if (subscription !== undefined && period !== null) {
    const mandate = paid ? answer.mandate : null
    await (paid
      ? continueSubscription(tx, deps, subscription, { period, rail, mandate })
      : refuseRenewal(tx, deps, subscription, period))
  }
  if (!paid || answer.disputed === null) return transition.events
  const disputed = await openDispute(tx, deps, transition.row, answer.disputed)
  return [...transition.events, ...(disputed?.events ?? [])]
}

async function continueSubscription(
  tx: Transaction,
  { clock }: ChargeDeps,
  subscription: SubscriptionRow,
  paid: { readonly period: number; readonly rail: string; readonly mandate: string | null },
): Promise<void> {
  const { tenantId, id, interval, intervalCount } = subscription
  const now = clock.now()
  const anchorAt = subscription.anchorAt ?? now
  const { start, end } = periodBounds(anchorAt, interval, intervalCount, paid.period)
  await beginPeriod(tx, { tenantId, id, ...paid, anchorAt, start, end, now })
}

async function refuseRenewal(
  tx: Transaction,
  { clock }: ChargeDeps,
  { tenantId, id, attempts }: SubscriptionRow,
  period: number,
): Promise<void> {
  const now = clock.now()
  const pauseMs = period === 1 ? undefined : DUNNING_MS[attempts]
  if (pauseMs === undefined) await cancelSubscriptionRow(tx, tenantId, id, now)
  else await fallBehind(tx, { tenantId, id }, period, new Date(now.getTime() + pauseMs), now)
}

const DAY_MS = 86_400_000
const MONTHS: Readonly<Record<'month' | 'year', number>> = { month: 1, year: 12 }

/**
 * The end of `count` intervals after the anchor. Counting from the anchor instead of the previous
 * period restores the 31st after a short month.
 */
export function intervalsAfter(anchor: Date, interval: BillingInterval, count: number): Date {
  if (interval === 'day') return new Date(anchor.getTime() + count * DAY_MS)
  if (interval === 'week') return new Date(anchor.getTime() + count * 7 * DAY_MS)
  const month = anchor.getUTCMonth() + count * MONTHS[interval]
  const moved = new Date(anchor)
  moved.setUTCFullYear(anchor.getUTCFullYear(), month, 1)
  const lastDay = new Date(moved)
  lastDay.setUTCMonth(moved.getUTCMonth() + 1, 0)
  moved.setUTCDate(Math.min(anchor.getUTCDate(), lastDay.getUTCDate()))
  return moved
}

/** Start and end of a period. The first period is 1. */
export function periodBounds(
  anchor: Date,
  interval: BillingInterval,
  intervalCount: number,
  period: number,
): { readonly start: Date; readonly end: Date } {
  return {
    start: intervalsAfter(anchor, interval, (period - 1) * intervalCount),
    end: intervalsAfter(anchor, interval, period * intervalCount),
  }
}
