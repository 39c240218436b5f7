/** Refusals of the last moment, so that who is refused again costs the backend nothing. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Quota, QuotaExceeded } from './protocol.js'

/**
 * Not longer, although a window may last a day: units that a refused request took of its other
 * windows are given back, so that a refusal at the very edge of a window may be one too many. A
 * refusal names whole seconds, at least one, so nobody who waits as told meets it again.
 */
const KEPT_MS = 1_000
const KEYS_MAX = 50_000

type Kept = { readonly refusal: QuotaExceeded; readonly untilMs: number }

export interface RecentRefusals {
  of(quotas: readonly Quota[]): QuotaExceeded | undefined
  /** @returns the same refusal */
  remember(quotas: readonly Quota[], refusal: QuotaExceeded): QuotaExceeded
}

export function recentRefusals(clock: Clock): RecentRefusals {
  const kept = new Map<string, Kept>()
  const keyOf = (quotas: readonly Quota[]) =>
    quotas.map(({ policy, key }) => `${policy}:${key}`).join('\n')
  return {
    of(quotas) {
      if (kept.size === 0) return undefined
      const key = keyOf(quotas)
      const found = kept.get(key)
      if (found === undefined) return undefined
      if (found.untilMs > clock.monotonicMs()) return found.refusal
      kept.delete(key)
      return undefined
    },
    remember(quotas, refusal) {
      const nowMs = clock.monotonicMs()
      // All are kept equally long: the oldest stand first, and with them whatever is over.
      for (const [key, { untilMs }] of kept) {
        if (untilMs > nowMs && kept.size < KEYS_MAX) break
        kept.delete(key)
      }
      const key = keyOf(quotas)
      kept.delete(key)
      kept.set(key, { refusal, untilMs: nowMs + KEPT_MS })
      return refusal
    },
  }
}
