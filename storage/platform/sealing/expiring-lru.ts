/** Keys in memory: data keys of tenants, and keys that are derived from sealed secrets. */
import type { Clock } from '../../../runtime/kernel/clock.js'

const ENTRIES_MAX = 4_096
/** Uses of an entry within this time count as one, so that most uses change nothing. */
const USE_MS = 1_000

/** A bounded LRU cache with a maximum age. Concurrent look-ups of an entry share one load. */
export class ExpiringLru<Value> {
  readonly #clock: Clock
  readonly #lifetimeMs: number
  readonly #entries = new Map<string, { value: Value; untilMs: number; usedMs: number }>()
  readonly #loading = new Map<string, Promise<Value>>()

  constructor(clock: Clock, lifetimeMs: number) {
    this.#clock = clock
    this.#lifetimeMs = lifetimeMs
  }

  /** Returns an entry that is not expired, and marks it as the most recently used. */
  peek(name: string): Value | undefined {
    const entry = this.#entries.get(name)
    if (entry === undefined) return undefined
    const nowMs = this.#clock.monotonicMs()
    if (nowMs < entry.untilMs && nowMs - entry.usedMs < USE_MS) return entry.value
    this.#entries.delete(name)
    if (nowMs >= entry.untilMs) return undefined
    entry.usedMs = nowMs
    this.#entries.set(name, entry)
    return entry.value
  }

  async get(name: string, load: () => Promise<Value>): Promise<Value> {
    const known = this.peek(name)
    if (known !== undefined) return known
    const loading = this.#loading.get(name) ?? this.#load(name, load)
    return loading
  }

  forget(name: string): void {
    this.#entries.delete(name)
    this.#loading.delete(name)
  }

  #load(name: string, load: () => Promise<Value>): Promise<Value> {
    const loading = load().then(
      (value) => {
        // If the entry was dropped during the load, the value may be outdated: it is used and not cached.
        if (this.#loading.get(name) === loading) this.#keep(name, value)
        return value
      },
      (error) => {
        if (this.#loading.get(name) === loading) this.#loading.delete(name)
        throw error
      },
    )
    this.#loading.set(name, loading)
    return loading
  }

  #keep(name: string, value: Value): void {
    this.#loading.delete(name)
    const nowMs = this.#clock.monotonicMs()
    this.#entries.set(name, { value, untilMs: nowMs + this.#lifetimeMs, usedMs: nowMs })
    if (this.#entries.size <= ENTRIES_MAX) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }
}
