/**
 * Circuit breaker of a coordination backend. A stopped process refuses connections immediately. A frozen one, or one
 * behind a network failure, accepts bytes and never responds, without an error.
 *
 * The first command without a response opens the circuit: all connections are closed, pending commands fail, and
 * later ones fail immediately until a probe on a new connection gets a response.
 */
import type { Logger } from '../../../runtime/kernel/log.js'
import { CoordinationUnavailable } from './port.js'

const PROBE_AGAIN_MS_MIN = 50
const PROBE_AGAIN_MS_MAX = 2_000

interface CircuitOptions {
  /** Name of the backend, for errors and the log. */
  readonly backend: string
  /** Time limit of a command, including the wait for a connection. */
  readonly limitMs: number
  /** Closes all connections, so that pending commands fail. */
  readonly tearDown: () => void
  /** Connects and sends one command. Rejects without a response. The circuit limits its time. */
  readonly probe: () => Promise<void>
  /** True if an error is a response of the backend, which refuses the command. */
  readonly isAnswer: (error: unknown) => boolean
  readonly log: Logger
}

/** The backend did not respond within the limit. */
class Silent extends Error {
  override readonly name = 'Silent'

  constructor(limitMs: number) {
    super(`no response within ${limitMs} ms`)
  }
}

export class Circuit {
  readonly #options: CircuitOptions
  /** Why the circuit is open. Undefined if it is closed. */
  #cause: unknown
  #isOpen = false
  /** Number of times that the circuit has opened. */
  #epoch = 0
  #isClosed = false
  #retry: NodeJS.Timeout | undefined

  constructor(options: CircuitOptions) {
    this.#options = options
  }

  /**
   * Runs one command.
   * @throws {CoordinationUnavailable} within `limitMs`, and immediately while the circuit is open.
   */
  async run<T>(command: () => Promise<T>): Promise<T> {
    const { backend, limitMs, isAnswer } = this.#options
    if (this.#isOpen) throw new CoordinationUnavailable(backend, this.#cause)
    const epoch = this.#epoch
    try {
      return await within(limitMs, command)
    } catch (error) {
      // A command from before the last opening says nothing about the current connections.
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
 * The result of `work`, or `Silent` after `limitMs`. A response that arrived while this thread was busy is read
 * before the limit is checked.
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
