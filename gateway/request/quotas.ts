/**
 * Quotas as the pipeline takes them. The `default` policy is counted in this process and settled
 * with the others in the background, so that a light request needs no round trip; every other
 * policy is asked of the throttle actor, which counts in the coordination backend.
 *
 * What that means for `default`: with several processes a caller may go over the quota by what the
 * others let through within one settling period. Keys far from the quota are not settled at all.
 */
import {
  POLICIES,
  type LocalCount,
  type PolicyWindow,
  type Quota,
  type RateLimitsProtocol,
  type WindowState,
} from '../../actors/operations/rate-limits/protocol.js'
import type { ActorRef, AskOptions } from '../../runtime/kernel/actor.js'
import type { Clock } from '../../runtime/kernel/clock.js'
import type { Logger } from '../../runtime/kernel/log.js'

const SETTLE_EVERY_MS = 2_000
const SETTLE_TIMEOUT_MS = 1_500
const KEYS_MAX = 50_000
/** Below this part of the quota a key is not worth a row. */
const SETTLE_FROM_PART = 0.1

export type QuotaVerdict =
  | { readonly tag: 'taken'; readonly windows: readonly WindowState[] }
  | {
      readonly tag: 'exceeded'
      readonly windows: readonly WindowState[]
      readonly violated: readonly string[]
      readonly retryAfterSecs: number
    }
  /** The shared count is out of reach and the policy does not run without it. */
  | { readonly tag: 'unknown' }

type Tally = { count: number; unsettled: number; others: number; resetMs: number }

/** Fixed windows per key, counted here. */
export class LocalWindow {
  private readonly tallies = new Map<string, Tally>()
  private readonly window: PolicyWindow
  private readonly clock: Clock

  constructor(window: PolicyWindow, clock: Clock) {
    this.window = window
    this.clock = clock
  }

  take(key: string): QuotaVerdict {
    const now = this.clock.monotonicMs()
    const tally = this.tally(key, now)
    const { name, limit, windowSecs } = this.window
    const resetSecs = Math.max(1, Math.ceil((tally.resetMs - now) / 1000))
    if (tally.count + tally.others >= limit) {
      const windows = [{ name, limit, windowSecs, remaining: 0, resetSecs }]
      return { tag: 'exceeded', windows, violated: [name], retryAfterSecs: resetSecs }
    }
    tally.count += 1
    tally.unsettled += 1
    const remaining = limit - tally.count - tally.others
    return { tag: 'taken', windows: [{ name, limit, windowSecs, remaining, resetSecs }] }
  }

  /** Whether the next `take` of this key would be refused; null when not. */
  spent(key: string): QuotaVerdict | null {
    const now = this.clock.monotonicMs()
    const tally = this.tallies.get(key)
    const { limit } = this.window
    if (tally === undefined || tally.resetMs <= now || tally.count + tally.others < limit)
      return null
    return this.take(key)
  }

  /** What to tell the others; counted as told from here on. */
  unsettled(policy: LocalCount['policy']): LocalCount[] {
    const from = this.window.limit * SETTLE_FROM_PART
    const counts: LocalCount[] = []
    for (const [key, tally] of this.tallies) {
      if (tally.unsettled === 0 || tally.count < from) continue
      counts.push({ policy, key, count: tally.unsettled })
      tally.unsettled = 0
    }
    return counts
  }

  /** What all processes counted for a key, this one included. */
  absorb(key: string, total: number): void {
    const tally = this.tallies.get(key)
    if (tally === undefined || tally.resetMs <= this.clock.monotonicMs()) return
    tally.others = Math.max(0, total - (tally.count - tally.unsettled))
  }

  private tally(key: string, now: number): Tally {
    const known = this.tallies.get(key)
    if (known !== undefined && known.resetMs > now) return known
    if (known === undefined && this.tallies.size >= KEYS_MAX) this.makeRoom(now)
    const fresh = {
      count: 0,
      unsettled: 0,
      others: 0,
      resetMs: now + this.window.windowSecs * 1000,
    }
    this.tallies.set(key, fresh)
    return fresh
  }

  /** Finished windows go first; when none has finished, the oldest tenth does. */
  private makeRoom(now: number): void {
    for (const [key, tally] of this.tallies) if (tally.resetMs <= now) this.tallies.delete(key)
    let excess = this.tallies.size - KEYS_MAX * 0.9
    for (const key of this.tallies.keys()) {
      if (excess <= 0) return
      this.tallies.delete(key)
      excess -= 1
    }
  }
}

export interface Quotas {
  /** Whether quotas are in force: server.endpoint_throttle.enabled. */
  readonly enabled: boolean
  takeDefault(key: string): QuotaVerdict
  /** Refuses a key whose `default` quota is used up without taking from it. */
  spentDefault(key: string): QuotaVerdict | null
  /** @throws {ActorUnavailable} never: an unreachable throttle is `unknown`. */
  takeShared(quotas: readonly Quota[], options: AskOptions): Promise<QuotaVerdict>
  close(): void
}

export type QuotasNeeds = {
  readonly enabled: boolean
  readonly throttle: ActorRef<RateLimitsProtocol> | undefined
  readonly clock: Clock
  readonly log: Logger
}

export function openQuotas({ enabled, throttle, clock, log }: QuotasNeeds): Quotas {
  const local = new LocalWindow(POLICIES.default[0]!, clock)
  let settling = false
  let silent = false
  const settle = async (ref: ActorRef<RateLimitsProtocol>) => {
    const counts = local.unsettled('default')
    if (counts.length === 0 || settling) return
    settling = true
    try {
      const { totals } = await ref.ask('settle', { counts }, { timeoutMs: SETTLE_TIMEOUT_MS })
      for (const [index, { key }] of counts.entries()) {
        const total = totals[index]
        if (total !== null && total !== undefined) local.absorb(key, total)
      }
      silent = false
    } catch (error) {
      if (!silent) log.warn({ err: error }, 'quotas are counted by this process alone')
      silent = true
    } finally {
      settling = false
    }
  }
  const timer =
    enabled && throttle !== undefined
      ? setInterval(() => void settle(throttle), SETTLE_EVERY_MS).unref()
      : undefined
  return {
    enabled,
    takeDefault: (key) => local.take(key),
    spentDefault: (key) => local.spent(key),
    async takeShared(quotas, options) {
      if (throttle === undefined) return { tag: 'unknown' }
      try {
        return await throttle.ask('take', { quotas }, options)
      } catch (error) {
        log.error({ err: error }, 'the throttle gave no answer')
        return { tag: 'unknown' }
      }
    },
    close: () => clearInterval(timer),
  }
}
