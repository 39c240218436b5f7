/**
 * A server that accepts bytes and answers nothing (stopped, or behind a cut network). The first request
 * that finds it silent pays for that with its time limit. Later ones wait 2 s at most for the silence to
 * end: until the server answers a look or a statement under way.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../runtime/kernel/log.js'

const LOOK_AGAIN_MS = 250
/** What a request waits for a server that is known to be silent. */
const PATIENCE_MS = 2_000

export interface SilenceOptions {
  /** Name of the pool, for the log. */
  readonly pool: string
  /** Asks the server once, within a time of its own. Rejects without an answer. */
  readonly look: () => Promise<void>
  readonly log: Logger
}

export class Silence {
  readonly #options: SilenceOptions
  readonly #waiting = new Set<() => void>()
  #isSilent = false
  #isClosed = false
  /** What the first request without an answer failed with. */
  cause: unknown

  constructor(options: SilenceOptions) {
    this.#options = options
  }

  /**
   * Whether a request may ask the server: at once where it is not known to be silent, else as soon as it
   * answers. False after 2 s of silence more.
   * @throws the reason of the signal where it aborts first.
   */
  isOver(signal: AbortSignal | undefined): boolean | Promise<boolean> {
    if (!this.#isSilent) return true
    return new Promise((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#waiting.delete(settle)
        resolve(!this.#isSilent)
      }
      const abort = () => {
        reject(signal?.reason)
        settle()
      }
      const timer = setTimeout(settle, PATIENCE_MS)
      this.#waiting.add(settle)
      if (signal?.aborted) abort()
      else signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** A request got no answer in time, and no other one got any since it began. */
  begin(cause: unknown): void {
    if (this.#isSilent || this.#isClosed) return
    this.#isSilent = true
    this.cause = cause
    const { pool, log } = this.#options
    log.warn({ pool, err: cause }, 'the database does not answer')
    void this.#watch()
  }

  /** The server answered something. */
  end(): void {
    if (!this.#isSilent) return
    this.#isSilent = false
    this.cause = undefined
    for (const settle of this.#waiting) settle()
    this.#options.log.info({ pool: this.#options.pool }, 'the database answers again')
  }

  /** Stops looking. */
  close(): void {
    this.#isClosed = true
    this.#isSilent = false
    for (const settle of this.#waiting) settle()
  }

  async #watch(): Promise<void> {
    while (this.#isSilent) {
      try {
        await this.#options.look()
        this.end()
      } catch {
        await sleep(LOOK_AGAIN_MS)
      }
    }
  }
}
