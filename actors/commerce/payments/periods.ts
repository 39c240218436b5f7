/** Billing periods of a subscription, in calendar time (UTC). */
import type { BillingInterval } from './protocol.js'

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
