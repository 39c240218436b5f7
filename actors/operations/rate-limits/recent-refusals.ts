/** Caches refusals for a moment, so that repeated refused requests do not reach the backend. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Quota, QuotaExceeded } from './protocol.js'

/**
 * The cache is short although a window may last a day. A refused request returns the units that it
 * took from its other windows, so a cached refusal at the edge of a window may be wrong.
 * Retry-After is at least one second, so a client that respects it never hits a cached refusal.
 */
const KEPT_MS = 1_000
const KEYS_MAX = 50_000

type Kept = { readonly refusal: QuotaExceeded; readonly untilMs: number }

interface RecentRefusals {
  of(quotas: readonly Quota[]): QuotaExceeded | undefined
  /** @returns the same refusal. */
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
      // All entries live equally long, so the Map is ordered by expiry.
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
