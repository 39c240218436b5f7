/** The one failure of the database that is not the statement's fault: it gives no answer. */
import { DependencyUnavailable } from '../../runtime/kernel/dependency.js'

/**
 * Thrown where a connection could not be had or was lost, and where the server gave a statement up.
 * The same request may succeed later.
 */
export class DatabaseUnavailable extends DependencyUnavailable {
  override readonly name = 'DatabaseUnavailable'
  override readonly overloaded: boolean

  /** @param overloaded the server has more to do than it can; known of what it gave up itself. */
  constructor(message: string, cause?: unknown, overloaded = isGivenUp(cause)) {
    super(message, { cause })
    this.overloaded = overloaded
  }
}

/** Thrown where no connection can be made: the message names the address, never the user or password. */
export class DatabaseUnreachable extends DatabaseUnavailable {
  readonly #url: string

  constructor(url: string, cause: unknown) {
    super(`cannot reach PostgreSQL at ${databaseAddress(url)}`, cause, false)
    this.#url = url
  }

  /** Whether the URL that was tried is this one. It holds a password, so it is not given out. */
  isAt(url: string | undefined): boolean {
    return this.#url === url
  }
}

/** `127.0.0.1:5432`, or the folder of a unix socket: never a user or a password. */
export function databaseAddress(url: string): string {
  const { hostname, port, searchParams } = new URL(url)
  return searchParams.get('host') ?? `${hostname}:${port === '' ? '5432' : port}`
}

interface CodedError {
  readonly code?: string
  readonly severity?: string
}

/** SQLSTATE 40001 and 40P01: the transaction lost a race and may be run again from its start. */
export function isSerializationFailure(error: unknown): boolean {
  const { code } = error as CodedError
  return code === '40001' || code === '40P01'
}

/**
 * Whether the session ended under the statement: socket errors, class 08, and the server's own
 * goodbyes (57P01 administrator, 57P02 crash, 57P03 starting up, 57P05 idle session; 53300: it has no
 * connection left). 25006 too, which says that it takes no writes: we never ask for that, so it has
 * become a standby, and another connection may find its successor.
 */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as CodedError
  if (code !== undefined && /^(08...|57P0[1235]|25P03|25006|53300)$/.test(code)) return true
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return true
  return /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout e)/.test(
    error.message,
  )
}

/**
 * Whether the server gave the statement up for want of time or means: a timeout of its own (57014,
 * 55P03), a deadlock or a lost race (40P01, 40001), memory or disk (class 53). Nothing is wrong with
 * the request, and the connection is as good as before.
 */
export function isGivenUp(error: unknown): boolean {
  const { code } = (error ?? {}) as CodedError
  return code !== undefined && /^(57014|55P03|40P01|40001|53...)$/.test(code)
}

/** What to throw of what a session threw: that the database is unavailable, where it is. */
export function asUnavailable(error: unknown, message: string): unknown {
  const isUnavailable = isConnectionLoss(error) || isGivenUp(error)
  return isUnavailable ? new DatabaseUnavailable(message, error) : error
}

/**
 * Whether no connection was to be had in time, and none was refused: all are in use, or a new one does
 * not come about. What the pool says does not tell the two apart.
 */
export function isLate(error: unknown): boolean {
  const said =
    /^(timeout expired|timeout exceeded when trying to connect|Connection terminated due to connection timeout)$/
  return error instanceof Error && said.test(error.message)
}
