/**
 * Remembers answers of the database for about a second, bounded, and forgets them when told. The
 * ceiling alone keeps a revocation within its second; being told makes it immediate.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'

/** decisions.md 18: a revocation is effective in every process within 1 s. */
const STALE_MS_MAX = 900
const ENTRIES_MAX = 20_000

type Entry<Value> = {
  readonly value: Promise<Value>
  readonly readAtMs: number
  /** What it rests on, as far as it is known. */
  ids: readonly string[]
  /** The value once it is there. */
  found: Value | undefined
}

export interface BriefMemory<Value> {
  /** The remembered value without waiting; undefined where there is none or it is being read. */
  known(key: string): Value | undefined
  /**
   * The remembered value, or what `read` finds; callers at the same time share one read.
   * @param restsOn further ids that the value rests on, known once it is read.
   */
  get(
    key: string,
    ids: readonly string[],
    read: () => Promise<Value>,
    restsOn?: (value: Value) => readonly string[],
  ): Promise<Value>
  /** Drops every value that rests on one of these ids. */
  forget(ids: readonly string[] | 'all'): void
}

export function briefMemory<Value>(clock: Clock): BriefMemory<Value> {
  const entries = new Map<string, Entry<Value>>()

  return {
    known(key) {
      const entry = entries.get(key)
      if (entry === undefined || clock.monotonicMs() - entry.readAtMs >= STALE_MS_MAX)
        return undefined
      return entry.found
    },
    get(key, ids, read, restsOn) {
      const nowMs = clock.monotonicMs()
      const known = entries.get(key)
      if (known !== undefined && nowMs - known.readAtMs < STALE_MS_MAX) return known.value
      const entry: Entry<Value> = { value: read(), readAtMs: nowMs, ids, found: undefined }
      // Deleted first, so that a refreshed entry moves to the young end of the map.
      entries.delete(key)
      if (entries.size >= ENTRIES_MAX) entries.delete(entries.keys().next().value!)
      entries.set(key, entry)
      entry.value.then(
        (found) => {
          entry.found = found
          if (restsOn !== undefined) entry.ids = [...ids, ...restsOn(found)]
        },
        // A failed read is not an answer: whoever asks next reads again.
        () => {
          if (entries.get(key) === entry) entries.delete(key)
        },
      )
      return entry.value
    },
    forget(ids) {
      if (ids === 'all') {
        entries.clear()
        return
      }
      const gone = new Set(ids)
      for (const [key, entry] of entries) {
        if (entry.ids.some((id) => gone.has(id))) entries.delete(key)
      }
    },
  }
}
