/** Errors of an unavailable or overloaded database, as opposed to errors of a statement. */
import { DependencyUnavailable } from '../../runtime/kernel/dependency.js'

/** No connection was available, the connection was lost, or the server cancelled the statement. A retry can succeed. */
export class DatabaseUnavailable extends DependencyUnavailable {
  override readonly name = 'DatabaseUnavailable'
  override readonly overloaded: boolean

  /** @param overloaded the server is overloaded. Default: it cancelled the statement itself. */
  constructor(message: string, cause?: unknown, overloaded = isGivenUp(cause)) {
    super(message, { cause })
    this.overloaded = overloaded
  }
}

/** The server is unreachable. The message names the address, never the user or password. */
export class DatabaseUnreachable extends DatabaseUnavailable {
  readonly #url: string

  constructor(url: string, cause: unknown) {
    super(`cannot reach PostgreSQL at ${databaseAddress(url)}`, cause, false)
    this.#url = url
  }

  /** Compares the URL, which is private because it contains a password. */
  isAt(url: string | undefined): boolean {
    return this.#url === url
  }
}

/** The address of a URL without user and password: `127.0.0.1:5432`, or the directory of a unix socket. */
export function databaseAddress(url: string): string {
  const { hostname, port, searchParams } = new URL(url)
  return searchParams.get('host') ?? `${hostname}:${port === '' ? '5432' : port}`
}

interface CodedError {
  readonly code?: string
  readonly severity?: string
}

/** The server is a standby, which accepts no writes and can lag behind. SQLSTATE as for a refused write. */
export class ServerIsStandby extends Error {
  override readonly name = 'ServerIsStandby'
  readonly code = '25006'

  constructor() {
    super('the server is a standby: a connection must reach the primary')
  }
}

/**
 * The server committed, and stopped waiting for its synchronous standby (synchronous_standby_names). A failover can
 * lose the commit, so it is not acknowledged.
 */
export class CommitNotReplicated extends Error {
  override readonly name = 'CommitNotReplicated'
  readonly code = '08007'

  constructor() {
    super('the commit was not confirmed by a synchronous standby')
  }
}

/** SQLSTATE 40001 and 40P01: the transaction can be run again. */
export function isSerializationFailure(error: unknown): boolean {
  const { code } = error as CodedError
  return code === '40001' || code === '40P01'
}

/**
 * True if the connection was lost: socket errors, class 08, and disconnects by the server (57P01 administrator, 57P02
 * crash, 57P03 starting up, 57P05 idle session, 53300 too many connections). Also 25006, read-only: the server has
 * become a standby, and a new connection may reach the new primary. Also an error that ended the session or the whole
 * server: the outcome of a commit is unknown then.
 */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (hasEndedSession(error as CodedError)) return true
  const { code } = error as CodedError
  if (code !== undefined && /^(08...|57P0[1235]|25P03|25006|53300)$/.test(code)) return true
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return true
  return /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout e)/.test(
    error.message,
  )
}

/**
 * True if the server cancelled the statement: a timeout (57014, 55P03), a deadlock or serialization failure (40P01,
 * 40001), or a lack of memory or disk (class 53). The request is valid, the connection still usable, and nothing was
 * committed.
 */
export function isGivenUp(error: unknown): boolean {
  const { code } = (error ?? {}) as CodedError
  if (code === undefined || hasEndedSession(error as CodedError)) return false
  return /^(57014|55P03|40P01|40001|53...)$/.test(code)
}

/**
 * A full disk is an error of one statement if a table cannot grow, and a PANIC of the server if its log (WAL) cannot. The
 * commit may be in the log then. The server's language (lc_messages) can translate the severity, so that class 53 with any
 * other word than `ERROR` counts as ended.
 */
function hasEndedSession({ code, severity }: CodedError): boolean {
  if (severity === undefined || severity === 'ERROR') return false
  return severity === 'PANIC' || code?.startsWith('53') === true
}

/** Wraps connection losses and cancelled statements in `DatabaseUnavailable`. Returns other errors unchanged. */
export function asUnavailable(error: unknown, message: string): unknown {
  const isUnavailable = isConnectionLoss(error) || isGivenUp(error)
  return isUnavailable ? new DatabaseUnavailable(message, error) : error
}

/**
 * True if no connection was available in time and none was refused: all are in use, or the server does not accept a
 * new one. The pool's error is the same for both.
 */
export function isLate(error: unknown): boolean {
  const timeoutMessage =
    /^(timeout expired|timeout exceeded when trying to connect|Connection terminated due to connection timeout)$/
  return error instanceof Error && timeoutMessage.test(error.message)
}
