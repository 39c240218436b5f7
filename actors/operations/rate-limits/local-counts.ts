/** Fixed-window counters in this process, used while the shared counters are unavailable. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { PolicyWindow } from './protocol.js'

const KEYS_MAX = 50_000

type Tally = { used: number; readonly endsMs: number }

export class LocalCounts {
  private readonly tallies = new Map<string, Tally>()
  private readonly clock: Clock

  constructor(clock: Clock) {
    this.clock = clock
  }

  take(key: string, { limit, windowSecs }: PolicyWindow) {
    const now = this.clock.monotonicMs()
    let tally = this.tallies.get(key)
    if (tally === undefined || tally.endsMs <= now) {
      if (tally === undefined && this.tallies.size >= KEYS_MAX) this.makeRoom(now)
      tally = { used: 0, endsMs: now + windowSecs * 1000 }
      this.tallies.set(key, tally)
    }
    const allowed = tally.used < limit
    if (allowed) tally.used += 1
    return {
      allowed,
      used: tally.used,
      remaining: limit - tally.used,
      resetSecs: Math.max(1, Math.ceil((tally.endsMs - now) / 1000)),
    }
  }

  /**
   * Removes ended windows. If none has ended, removes all: restarted counters are better than none.
   */
  private makeRoom(now: number): void {
    for (const [key, tally] of this.tallies) if (tally.endsMs <= now) this.tallies.delete(key)
    if (this.tallies.size >= KEYS_MAX) this.tallies.clear()
  }
}
