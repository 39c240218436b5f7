/**
 * Detects a frozen server (stopped, or behind a broken network) while requests wait for it. A statement may take
 * `statement_timeout_secs`, so a wait alone proves nothing: the server is asked for a sign of life on a separate
 * connection. Without one, all waiting requests fail, at most `SILENT_MS + LOOK_MS` after the last answer.
 */
import { connect } from 'node:net'
import { ResponseLimit } from './response-limit.js'

/** Time without an answer after which the server is asked. */
const SILENT_MS = 1_500
/** Time for the sign of life. */
const LOOK_MS = 2_000
/** SSLRequest (PostgreSQL, Message Formats): the server answers with one byte, before authentication. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])

/** One request that waits for the server. */
export interface Waiting {
  readonly fromMs: number
  /** Ends the wait with an error of an unavailable database. */
  fail(cause: Error): void
}

class FrozenServer extends Error {
  override readonly name = 'FrozenServer'
}

export class FrozenServerWatch {
  readonly #url: string
  readonly #answeredMs: () => number
  readonly #onFrozen: (cause: Error) => void
  readonly #waiting = new Set<Waiting>()
  #timer: NodeJS.Timeout | undefined
  #isLooking = false

  /**
   * @param answeredMs when the server last answered, in milliseconds of `performance.now`.
   * @param onFrozen called before the waiting requests fail.
   */
  constructor(url: string, answeredMs: () => number, onFrozen: (cause: Error) => void) {
    this.#url = url
    this.#answeredMs = answeredMs
    this.#onFrozen = onFrozen
  }

  /** Call when a request begins to wait. The returned function ends the wait. */
  enter(waiting: Waiting): void {
    this.#waiting.add(waiting)
    this.#timer ??= setTimeout(this.#check, SILENT_MS).unref()
  }

  leave(waiting: Waiting): void {
    this.#waiting.delete(waiting)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#waiting.clear()
  }

  /** One timer for all requests: it stops when none waits. */
  readonly #check = (): void => {
    this.#timer = undefined
    // Entries are in the order of their start.
    const [oldest] = this.#waiting
    if (oldest === undefined || this.#isLooking) return
    const nowMs = performance.now()
    const silentMs = nowMs - Math.max(oldest.fromMs, this.#answeredMs())
    if (silentMs < SILENT_MS) {
      this.#timer = setTimeout(this.#check, SILENT_MS - silentMs).unref()
      return
    }
    this.#isLooking = true
    void showsLife(this.#url, LOOK_MS).then((isAlive) => {
      this.#isLooking = false
      // An answer to a request is a sign of life too.
      if (!isAlive && this.#answeredMs() < nowMs) this.#fail()
      if (this.#waiting.size > 0) this.#timer ??= setTimeout(this.#check, SILENT_MS).unref()
    })
  }

  #fail(): void {
    const cause = new FrozenServer('the database server accepts connections and does not answer')
    this.#onFrozen(cause)
    for (const waiting of this.#waiting) waiting.fail(cause)
    this.#waiting.clear()
  }
}

/**
 * False if the server accepts a connection and sends nothing. A refused connection is a response: requests learn of it
 * on their own connections.
 */
function showsLife(url: string, withinMs: number): Promise<boolean> {
  const { hostname, port, searchParams } = new URL(url)
  const number = Number(port === '' ? '5432' : port)
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  const socket = host.startsWith('/')
    ? connect({ path: `${host}/.s.PGSQL.${number}` })
    : connect({ host: host.replaceAll(/^\[|\]$/g, ''), port: number })
  return new Promise((resolve) => {
    const end = (isAlive: boolean) => {
      limit.end()
      socket.destroy()
      resolve(isAlive)
    }
    const limit = new ResponseLimit(withinMs, () => end(false))
    socket.once('connect', () => socket.write(SSL_REQUEST))
    for (const event of ['data', 'end', 'error'] as const) socket.once(event, () => end(true))
  })
}
