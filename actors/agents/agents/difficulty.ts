/**
 * How much work a registration costs just now. Up to a trickle it is what the settings say; a flood
 * makes each further start dearer, one bit, that is twice the work, for each doubling of its rate.
 *
 * The rate is that of one tenant, so that a flood on one makes nothing dearer in another, and as
 * this process sees it: several processes share a flood and each of them a part of its rate. It is
 * kept in memory alone, so that it can neither be out of reach nor become what the flood exhausts.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { ChallengeSettings } from '../proof-of-work/settings.js'

/** The rate is taken over this long. */
const WINDOW_MS = 60_000
const SLICES = 12
const SLICE_MS = WINDOW_MS / SLICES
const TENANTS_MAX = 10_000
/** What a challenge can ask for (decisions.md 23, proof-of-work settings). */
const BITS_MAX = 28

export type DifficultySettings = Pick<
  ChallengeSettings,
  'pow_difficulty_bits' | 'pow_trickle_per_minute' | 'pow_flood_bits_max'
>

/** The bits for a start when `starts` were counted in the last minute, itself included. */
export function bitsFor(starts: number, settings: DifficultySettings): number {
  const { pow_difficulty_bits, pow_trickle_per_minute, pow_flood_bits_max } = settings
  const doublings =
    starts <= pow_trickle_per_minute
      ? 0
      : Math.floor(Math.log2(starts / pow_trickle_per_minute)) + 1
  return Math.min(pow_difficulty_bits + Math.min(doublings, pow_flood_bits_max), BITS_MAX)
}

export interface Difficulty {
  /** Counts a start and says what it costs. */
  next(tenantId: string): number
}

/** Starts in slices of time; `slices[0]` is the one that runs since `sinceMs`. */
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
    // Deleted first, so that a tenant in use moves to the young end of the map.
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
