/**
 * Bounds the wait for a coordination backend. A backend that is killed refuses connections at once; one
 * that is frozen, or behind a cut network, accepts bytes and never answers, and no error reaches us.
 *
 * The first command without an answer opens the circuit: every connection is torn down, the commands
 * under way fail, and later ones fail at once until a probe on a new connection gets an answer.
 */
import type { Logger } from '../../../runtime/kernel/log.js'
import { CoordinationUnavailable } from './port.js'

const PROBE_AGAIN_MS_MIN = 50
const PROBE_AGAIN_MS_MAX = 2_000

export interface CircuitOptions {
  /** Name of the backend, for errors and the log. */
  readonly backend: string
  /** Milliseconds that a command may take: the wait for a connection included. */
  readonly limitMs: number
  /** Ends every connection, so that what waits on them fails. */
  readonly tearDown: () => void
  /** Connects and asks one question. Rejects without an answer; the circuit bounds its time. */
  readonly probe: () => Promise<void>
  /** Whether an error is an answer of the backend: it is there, and refuses this command. */
  readonly isAnswer: (error: unknown) => boolean
  readonly log: Logger
}

/** Thrown where the backend stayed silent for as long as a command may take. */
class Silent extends Error {
  override readonly name = 'Silent'

  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`)
  }
}

export class Circuit {
  readonly #options: CircuitOptions
  /** Why the circuit is open; undefined while it is closed. */
  #cause: unknown
  #isOpen = false
  /** Counts how often the circuit opened. */
  #epoch = 0
  #isClosed = false
  #retry: NodeJS.Timeout | undefined

  constructor(options: CircuitOptions) {
    this.#options = options
  }

  /**
   * Runs one command.
   * @throws {CoordinationUnavailable} after `limitMs` at the latest, and at once while the circuit is open.
   */
  async run<T>(command: () => Promise<T>): Promise<T> {
    const { backend, limitMs, isAnswer } = this.#options
    if (this.#isOpen) throw new CoordinationUnavailable(backend, this.#cause)
    const epoch = this.#epoch
    try {
      return await within(limitMs, command)
    } catch (error) {
      // What was sent before the last tear-down says nothing of the connections of today.
      if (!isAnswer(error) && epoch === this.#epoch) this.#open(error)
      throw new CoordinationUnavailable(backend, error)
    }
  }

  /** Stops probing. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
  }

  #open(cause: unknown): void {
    if (this.#isOpen || this.#isClosed) return
    this.#isOpen = true
    this.#epoch += 1
    this.#cause = cause
    const { backend, log, tearDown } = this.#options
    log.warn({ err: cause, backend }, 'coordination backend unavailable')
    tearDown()
    void this.#probe(PROBE_AGAIN_MS_MIN)
  }

  async #probe(againMs: number): Promise<void> {
    const { backend, limitMs, log, probe, tearDown } = this.#options
    try {
      await within(limitMs, probe)
    } catch (error) {
      tearDown()
      if (this.#isClosed) return
      this.#cause = error
      this.#retry = setTimeout(
        () => void this.#probe(Math.min(againMs * 2, PROBE_AGAIN_MS_MAX)),
        againMs,
      )
      return
    }
    if (this.#isClosed) return tearDown()
    this.#isOpen = false
    this.#cause = undefined
    log.info({ backend }, 'coordination backend available again')
  }
}

/**
 * The result of `work`, or `Silent` after `limitMs`. An answer that arrived while this thread was busy
 * counts: it is read before the limit is judged.
 */
export function within<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(new Silent(limitMs))), limitMs)
    work().then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}
