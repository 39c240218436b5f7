/**
 * State that processes share without a dedicated table: quotas, single-use keys, short locks, expiring values. The
 * three drivers behave the same (test/conformance/coordination.test.ts).
 *
 * A driver without a response throws and never guesses a result. The caller decides what that means. For security
 * checks it means a refusal.
 */
import { createHash } from 'node:crypto'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'

export interface Window {
  /** Units per window. */
  readonly limit: number
  /** 1 second to 30 days. The window of a key starts with its first unit. */
  readonly windowSecs: number
}

interface Taken {
  readonly allowed: boolean
  /** Used units of the window, including this call. */
  readonly used: number
  readonly remaining: number
  /** Seconds until the window ends, at least 1. */
  readonly resetSecs: number
}

type Release = () => Promise<void>

export interface Coordination {
  /**
   * Takes `cost` units of a key's window, all or none. Concurrent calls get exactly `limit` units. A cost of 0 only
   * reads, a negative cost gives back.
   */
  take(key: string, window: Window, cost?: number): Promise<Taken>
  /** True for the first call with the key within `ttlSecs`, false for later ones. */
  once(key: string, ttlSecs: number): Promise<boolean>
  /**
   * Undefined if another holder has the lock. The lock ends with `release` or after `ttlSecs`. A late release does not
   * affect the next holder.
   */
  lock(key: string, ttlSecs: number): Promise<Release | undefined>
  get(key: string): Promise<Uint8Array | undefined>
  put(key: string, value: Uint8Array, ttlSecs: number): Promise<void>
  forget(key: string): Promise<void>
  close(): Promise<void>
}

/** The coordination backend is unavailable. */
export class CoordinationUnavailable extends DependencyUnavailable {
  override readonly name = 'CoordinationUnavailable'

  constructor(backend: string, cause: unknown) {
    super(`the coordination backend ${backend} is unavailable`, { cause })
  }
}

/** memcached interprets a longer lifetime as a date. */
const LIFETIME_SECS_MAX = 30 * 24 * 60 * 60

/**
 * The key in the backend: a hash of fixed length, separate for each kind. So callers can use addresses, tokens and
 * codes in keys.
 */
export function storedKey(kind: 'take' | 'once' | 'lock' | 'value', key: string): string {
  return `svc:${kind}:${createHash('sha256').update(key).digest('base64url')}`
}

/** @throws RangeError for lifetimes that the backends treat differently. */
export function checkLifetime(secs: number): void {
  if (!Number.isInteger(secs) || secs < 1 || secs > LIFETIME_SECS_MAX) {
    throw new RangeError(`a lifetime must be 1 second to 30 days, not ${secs}`)
  }
}

/** The result of `take`, within the bounds of all drivers. */
export function taken(
  allowed: boolean,
  used: number,
  { limit, windowSecs }: Window,
  resetSecs: number,
): Taken {
  return {
    allowed,
    used,
    remaining: Math.max(0, limit - used),
    resetSecs: Math.min(windowSecs, Math.max(1, Math.ceil(resetSecs))),
  }
}
