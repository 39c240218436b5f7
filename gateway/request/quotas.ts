/**
 * Rate limits of the pipeline. The `default` policy is counted in this process and synchronised with the other
 * processes in the background, so that it costs no round trip. The rate-limits actor counts all other policies in
 * the coordination backend.
 *
 * So with several processes a caller can exceed `default` by what the other processes admit within one
 * synchronisation period. Keys far below the quota are not synchronised.
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
/**
 * Large bodies that are parsed, in KiB, per tenant, or per address without a token. Parsing takes the time of the thread
 * that all requests share, so a quota of requests alone lets one tenant take all of it.
 */
export const BODIES: PolicyWindow = { name: 'body-kib', limit: 128 * 1024, windowSecs: 60 }
/** The part of each body that is free: most bodies are smaller. */
const FREE_BYTES = 64 * 1024
/** Keys below this part of the quota are not synchronised. */
const SETTLE_FROM_PART = 0.1

export type QuotaVerdict =
  | { readonly tag: 'taken'; readonly windows: readonly WindowState[] }
  | {
      readonly tag: 'exceeded'
      readonly windows: readonly WindowState[]
      readonly violated: readonly string[]
      readonly retryAfterSecs: number
    }
  /** The shared count is unavailable, and the policy requires it. */
  | { readonly tag: 'unknown' }

type Tally = { count: number; unsettled: number; others: number; resetMs: number }

/** Fixed windows per key, counted in this process. */
export class LocalWindow {
  private readonly tallies = new Map<string, Tally>()
  private readonly window: PolicyWindow
  private readonly clock: Clock
  /** When the last quota that was used up is available again, in monotonic milliseconds. */
  private spentUntilMs = 0

  constructor(window: PolicyWindow, clock: Clock) {
    this.window = window
    this.clock = clock
  }

  /** Takes if anything is left, so that a large amount is taken once. */
  take(key: string, units = 1): QuotaVerdict {
    const now = this.clock.monotonicMs()
    const tally = this.tally(key, now)
    const { name, limit, windowSecs } = this.window
    const resetSecs = Math.max(1, Math.ceil((tally.resetMs - now) / 1000))
    if (tally.count + tally.others >= limit) {
      const windows = [{ name, limit, windowSecs, remaining: 0, resetSecs }]
      return { tag: 'exceeded', windows, violated: [name], retryAfterSecs: resetSecs }
    }
    tally.count += units
    tally.unsettled += units
    const remaining = Math.max(0, limit - tally.count - tally.others)
    if (remaining <= 0) this.noteSpent(tally)
    return { tag: 'taken', windows: [{ name, limit, windowSecs, remaining, resetSecs }] }
  }

  /** False if no key has used up its quota. */
  anySpent(): boolean {
    return this.clock.monotonicMs() < this.spentUntilMs
  }

  private noteSpent({ resetMs }: Tally): void {
    this.spentUntilMs = Math.max(this.spentUntilMs, resetMs)
  }

  /** The refusal of a key whose quota is used up, otherwise null. Takes nothing from the quota. */
  spent(key: string): QuotaVerdict | null {
    const now = this.clock.monotonicMs()
    const tally = this.tallies.get(key)
    const { limit } = this.window
    if (tally === undefined || tally.resetMs <= now || tally.count + tally.others < limit)
      return null
    return this.take(key)
  }

  /** Returns the counts to synchronise, and marks them as synchronised. */
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

  /** Stores the total of all processes, including this one. */
  absorb(key: string, total: number): void {
    const tally = this.tallies.get(key)
    if (tally === undefined || tally.resetMs <= this.clock.monotonicMs()) return
    tally.others = Math.max(0, total - (tally.count - tally.unsettled))
    if (tally.count + tally.others >= this.window.limit) this.noteSpent(tally)
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

  /** Removes ended windows, and then the oldest keys down to 90 percent of the capacity. */
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
  /** server.endpoint_throttle.enabled */
  readonly enabled: boolean
  takeDefault(key: string): QuotaVerdict
  /** Takes a body from the quota of large ones. Null: it is small, or admitted. */
  refuseBody(key: () => string, bytes: number): QuotaVerdict | null
  /** False if no `default` quota is used up, so that no key needs to be computed. */
  anySpent(): boolean
  /** The refusal of a key whose `default` quota is used up, otherwise null. Takes nothing from the quota. */
  spentDefault(key: string): QuotaVerdict | null
  /** Never throws: an unavailable rate-limits actor is `unknown`. */
  takeShared(quotas: readonly Quota[], options: AskOptions): Promise<QuotaVerdict>
  close(): void
}

type QuotasNeeds = {
  readonly enabled: boolean
  readonly throttle: ActorRef<RateLimitsProtocol> | undefined
  readonly clock: Clock
  readonly log: Logger
}

export function openQuotas({ enabled, throttle, clock, log }: QuotasNeeds): Quotas {
  const local = new LocalWindow(POLICIES.default[0]!, clock)
  const bodies = new LocalWindow(BODIES, clock)
  let isSettling = false
  let isWarned = false
  const settle = async (ref: ActorRef<RateLimitsProtocol>) => {
    const counts = local.unsettled('default')
    if (counts.length === 0 || isSettling) return
    isSettling = true
    try {
      const { totals } = await ref.settle({ counts }, { timeoutMs: SETTLE_TIMEOUT_MS })
      for (const [index, { key }] of counts.entries()) {
        const total = totals[index]
        if (total !== null && total !== undefined) local.absorb(key, total)
      }
      isWarned = false
    } catch (error) {
      if (!isWarned)
        log.warn({ err: error }, 'rate limits: cannot synchronise, this process counts alone')
      isWarned = true
    } finally {
      isSettling = false
    }
  }
  const timer =
    enabled && throttle !== undefined
      ? setInterval(() => void settle(throttle), SETTLE_EVERY_MS).unref()
      : undefined
  return {
    enabled,
    takeDefault: (key) => local.take(key),
    refuseBody(key, bytes) {
      if (!enabled || bytes <= FREE_BYTES) return null
      const verdict = bodies.take(key(), Math.ceil((bytes - FREE_BYTES) / 1024))
      return verdict.tag === 'exceeded' ? verdict : null
    },
    anySpent: () => local.anySpent(),
    spentDefault: (key) => local.spent(key),
    async takeShared(quotas, options) {
      if (throttle === undefined) return { tag: 'unknown' }
      try {
        return await throttle.take({ quotas }, options)
      } catch (error) {
        log.error({ err: error }, 'rate limits: the actor is unavailable')
        return { tag: 'unknown' }
      }
    },
    close: () => clearInterval(timer),
  }
}
