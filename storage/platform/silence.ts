/**
 * An unresponsive server: it accepts bytes and sends no response (stopped, or behind a network failure). The first
 * request waits for its full time limit. Later ones wait at most 2 s, until the server answers a probe or a running
 * statement.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../runtime/kernel/log.js'

const LOOK_AGAIN_MS = 250
/** Time that a request waits for a server that is known to be unresponsive. */
const PATIENCE_MS = 2_000

interface SilenceOptions {
  /** Name of the pool, for the log. */
  readonly pool: string
  /** Probes the server once, within its own time limit. Rejects without a response. */
  readonly look: () => Promise<void>
  readonly log: Logger
}

export class Silence {
  readonly #options: SilenceOptions
  readonly #waiting = new Set<() => void>()
  #isSilent = false
  #isClosed = false
  /** The error of the first request without a response. */
  cause: unknown

  constructor(options: SilenceOptions) {
    this.#options = options
  }

  /**
   * True if a request may use the server: immediately if it is responsive, otherwise when it responds again. False
   * after 2 s.
   * @throws the reason of the signal if it aborts first.
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

  /** Call if a request got no response in time, and no other request got one since it started. */
  begin(cause: unknown): void {
    if (this.#isSilent || this.#isClosed) return
    this.#isSilent = true
    this.cause = cause
    const { pool, log } = this.#options
    log.warn({ pool, err: cause }, 'the database is unresponsive')
    void this.#watch()
  }

  /** Call when the server has responded. */
  end(): void {
    if (!this.#isSilent) return
    this.#isSilent = false
    this.cause = undefined
    for (const settle of this.#waiting) settle()
    this.#options.log.info({ pool: this.#options.pool }, 'the database is responsive again')
  }

  /** Stops the probes. */
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
