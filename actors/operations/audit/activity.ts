/** How much happened in a tenant lately: figures in equal steps. */
import type { ActivityRow } from '../../../storage/operations/activity.js'
import { ACTIVITY_KINDS, type ActivityPeriod, type ActivitySeries } from './protocol.js'

const HOUR_SECS = 3_600
/** Steps of each period, which begin at whole multiples in UTC. */
const STEPS: Readonly<Record<ActivityPeriod, { readonly secs: number; readonly count: number }>> = {
  '24h': { secs: HOUR_SECS, count: 24 },
  '7d': { secs: 6 * HOUR_SECS, count: 28 },
  '30d': { secs: 24 * HOUR_SECS, count: 30 },
}

/** The beginning of each step of a period that ends with the step of `now`. */
export function stepsOf(period: ActivityPeriod, now: Date) {
  const { secs, count } = STEPS[period]
  const ms = secs * 1000
  const last = Math.floor(now.getTime() / ms) * ms
  return {
    secs,
    starts: Array.from({ length: count }, (_, nth) => new Date(last - (count - 1 - nth) * ms)),
  }
}

/** The figures of each kind at each step, 0 where nothing happened. */
export function seriesOf(
  rows: readonly ActivityRow[],
  starts: readonly Date[],
): readonly ActivitySeries[] {
  return ACTIVITY_KINDS.map((kind) => {
    const counted = new Map(
      rows.filter((row) => row.kind === kind).map((row) => [row.at.getTime(), row]),
    )
    const points = starts.map((at) => {
      const { total = 0, failed = 0 } = counted.get(at.getTime()) ?? {}
      return { at, total, failed }
    })
    const sum = (of: 'total' | 'failed') => points.reduce((all, point) => all + point[of], 0)
    return { kind, total: sum('total'), failed: sum('failed'), points }
  })
}
