/**
 * Caches reads, of the database for about a second, with bounded size. Notifications invalidate entries immediately. If one is
 * lost, the time limit still makes a revocation effective within a second.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'

/** A revocation is effective in every process within 1 s. See docs/concepts/tokens.md. */
const STALE_MS_MAX = 900
const ENTRIES_MAX = 20_000
/** Expired entries that leave for each new one. */
const EXPIRED_DROPPED = 4

type Entry<Value> = {
  readonly value: Promise<Value>
  readonly readAtMs: number
  /** Ids that the value depends on, as far as they are known. */
  ids: readonly string[]
  /** The value after the read has resolved. */
  found: Value | undefined
}

export interface TtlCache<Value> {
  /** The cached value, synchronously. Undefined if it is absent or still being read. */
  peek(key: string): Value | undefined
  /**
   * The cached value or the result of `read`. Concurrent callers share one read.
   * @param dependsOn further ids that the value depends on, known after the read.
   */
  get(
    key: string,
    ids: readonly string[],
    read: () => Promise<Value>,
    dependsOn?: (value: Value) => readonly string[],
  ): Promise<Value>
  /** Drops every value that depends on one of these ids. */
  invalidate(ids: readonly string[] | 'all'): void
}

/** @param staleMsMax how long a value is used. */
export function ttlCache<Value>(clock: Clock, staleMsMax = STALE_MS_MAX): TtlCache<Value> {
  /** The oldest first. */
  const entries = new Map<string, Entry<Value>>()

  /** More go than come, so that values of a tenant without requests do not stay in memory. */
  function dropExpired(nowMs: number): void {
    let left = EXPIRED_DROPPED
    for (const [key, { readAtMs }] of entries) {
      if (nowMs - readAtMs < staleMsMax || left === 0) return
      entries.delete(key)
      left -= 1
    }
  }

  return {
    peek(key) {
      const entry = entries.get(key)
      if (entry === undefined || clock.monotonicMs() - entry.readAtMs >= staleMsMax)
        return undefined
      return entry.found
    },
    get(key, ids, read, dependsOn) {
      const nowMs = clock.monotonicMs()
      const known = entries.get(key)
      if (known !== undefined && nowMs - known.readAtMs < staleMsMax) return known.value
      const entry: Entry<Value> = { value: read(), readAtMs: nowMs, ids, found: undefined }
      // Deleted first, so that a refreshed entry moves to the end of the map.
      entries.delete(key)
      dropExpired(nowMs)
      if (entries.size >= ENTRIES_MAX) entries.delete(entries.keys().next().value!)
      entries.set(key, entry)
      entry.value.then(
        (found) => {
          entry.found = found
          if (dependsOn !== undefined) entry.ids = [...ids, ...dependsOn(found)]
        },
        // A failed read is not cached: the next caller reads again.
        () => {
          if (entries.get(key) === entry) entries.delete(key)
        },
      )
      return entry.value
    },
    invalidate(ids) {
      if (ids === 'all') {
        entries.clear()
        return
      }
      const invalid = new Set(ids)
      for (const [key, entry] of entries) {
        if (entry.ids.some((id) => invalid.has(id))) entries.delete(key)
      }
    },
  }
}
