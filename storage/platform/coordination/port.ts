/**
 * What processes agree on without a table of their own: quotas, things that happen once, short
 * locks, values that expire. Three drivers, one behaviour (test/conformance/coordination.test.ts).
 *
 * A driver that gets no answer throws. It never says `allowed` or `true` on its own authority:
 * whoever asks decides what an unknown answer means, and anything about security means no.
 */
import { createHash } from 'node:crypto'
import { DependencyUnavailable } from '../../../runtime/kernel/dependency.js'

export interface Window {
  /** Units per window. */
  readonly limit: number
  /** 1 second to 30 days. The window of a key begins with its first unit. */
  readonly windowSecs: number
}

export interface Taken {
  readonly allowed: boolean
  /** Units that the window holds now, those taken by this call included. */
  readonly used: number
  readonly remaining: number
  /** Seconds until the window begins afresh, at least 1. */
  readonly resetSecs: number
}

export type Release = () => Promise<void>

export interface Coordination {
  /**
   * Takes `cost` units of a key's window, all or none. Of any number of calls at once exactly
   * `limit` units are given. 0 looks, a negative cost gives back.
   */
  take(key: string, window: Window, cost?: number): Promise<Taken>
  /** True for the first call with the key within `ttlSecs`, false for every other. */
  once(key: string, ttlSecs: number): Promise<boolean>
  /**
   * Undefined while somebody else holds it. The lock ends with `release` or after `ttlSecs`; a
   * late release leaves the next holder's lock alone.
   */
  lock(key: string, ttlSecs: number): Promise<Release | undefined>
  get(key: string): Promise<Uint8Array | undefined>
  put(key: string, value: Uint8Array, ttlSecs: number): Promise<void>
  forget(key: string): Promise<void>
  close(): Promise<void>
}

/** Thrown where the backend gives no answer. */
export class CoordinationUnavailable extends DependencyUnavailable {
  override readonly name = 'CoordinationUnavailable'

  constructor(backend: string, cause: unknown) {
    super(`the coordination backend ${backend} gives no answer`, { cause })
  }
}

/** memcached reads a longer lifetime as a date. */
const LIFETIME_SECS_MAX = 30 * 24 * 60 * 60

/**
 * The key as the backend sees it: of one length, telling nothing, and apart from the keys of other
 * kinds. Callers may put addresses, tokens and codes into their keys.
 */
export function storedKey(kind: 'take' | 'once' | 'lock' | 'value', key: string): string {
  return `svc:${kind}:${createHash('sha256').update(key).digest('base64url')}`
}

/** @throws RangeError on what the backends would understand in different ways. */
export function checkLifetime(secs: number): void {
  if (!Number.isInteger(secs) || secs < 1 || secs > LIFETIME_SECS_MAX) {
    throw new RangeError(`a lifetime is 1 second to 30 days, not ${secs}`)
  }
}

/** The answer, with the bounds that all drivers keep. */
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
