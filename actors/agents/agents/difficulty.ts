/**
 * The proof-of-work difficulty of a registration. Up to `pow_trickle_per_minute` starts it is the
 * configured value. Above, each doubling of the rate adds one bit, which doubles the work.
 *
 * The rate is counted per tenant, so a flood on one tenant does not affect another, and per process:
 * each process counts its share of a flood. The counters are in memory only, so they need no
 * dependency that a flood could exhaust.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'

/** Length of the sliding window over which the rate is counted. */
const WINDOW_MS = 60_000
const SLICES = 12
const SLICE_MS = WINDOW_MS / SLICES
const TENANTS_MAX = 10_000
/** Highest difficulty of a challenge (docs/reference/agents.md). */
const BITS_MAX = 28

export type DifficultySettings = Readonly<
  Record<'pow_difficulty_bits' | 'pow_trickle_per_minute' | 'pow_flood_bits_max', number>
>

/** The difficulty of a start. @param starts of the last minute, this one included. */
export function bitsFor(starts: number, settings: DifficultySettings): number {
  const { pow_difficulty_bits, pow_trickle_per_minute, pow_flood_bits_max } = settings
  const doublings =
    starts <= pow_trickle_per_minute
      ? 0
      : Math.floor(Math.log2(starts / pow_trickle_per_minute)) + 1
  return Math.min(pow_difficulty_bits + Math.min(doublings, pow_flood_bits_max), BITS_MAX)
}

export interface Difficulty {
  /** Counts a start. @returns its difficulty in bits. */
  next(tenantId: string): number
}

/** Starts per time slice; `slices[0]` is the current one, which began at `sinceMs`. */
type Tally = { sinceMs: number; slices: number[] }

export function difficulty(clock: Clock, settings: DifficultySettings): Difficulty {
  const tallies = new Map<string, Tally>()

  function tallyOf(tenantId: string, nowMs: number): Tally {
    const known = tallies.get(tenantId) ?? { sinceMs: nowMs, slices: [0] }
    const passed = Math.floor((nowMs - known.sinceMs) / SLICE_MS)
    if (passed > 0) {
      const fresh = Array.from({ length: Math.min(passed, SLICES) }, () => 0)
      known.slices = [...fresh, ...known.slices].slice(0, SLICES)
      known.sinceMs += passed * SLICE_MS
    }
    // Deleted and set again, so that the map is in order of last use (LRU eviction).
    tallies.delete(tenantId)
    if (tallies.size >= TENANTS_MAX) tallies.delete(tallies.keys().next().value!)
    tallies.set(tenantId, known)
    return known
  }

  return {
    next(tenantId) {
      const { slices } = tallyOf(tenantId, clock.monotonicMs())
      slices[0] = (slices[0] ?? 0) + 1
      const starts = slices.reduce((sum, count) => sum + count, 0)
      return bitsFor(starts, settings)
    },
  }
}
