/** Structured logs: one JSON object per line, with the request id, never with a secret. */
import { type DestinationStream, type Logger, pino, symbols } from 'pino'

export type { Logger }

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** Members that are removed in the first three levels of a log object. */
const SECRET_MEMBERS = [
  'access_token',
  'refresh_token',
  'id_token',
  'client_secret',
  'device_code',
  'password',
  'secret',
  'private_key',
  'code',
  'code_verifier',
  'key_ownership_proof',
  'signature',
  'authorization',
  'cookie',
] as const

interface LogOptions {
  readonly level: LogLevel
  readonly destination?: DestinationStream | undefined
}

export function createLogger({ level, destination }: LogOptions): Logger {
  const paths = SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])
  const options = {
    level,
    base: { service: 'svc' },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    redact: { paths, censor: '[secret]' },
    serializers: { err: described },
  }
  return destination ? pino(options, destination) : pino(options)
}

/** Length of the chain of causes that is logged. */
const CAUSES_MAX = 3

/**
 * The loggable members of an error. Drivers attach clients, queries and parameters to
 * their errors, which must not reach a log.
 */
function described(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack, cause } = error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  return {
    type: name,
    message,
    ...(code === undefined ? {} : { error_code: code }),
    stack,
    ...(cause === undefined || depth >= CAUSES_MAX ? {} : { cause: described(cause, depth + 1) }),
  }
}

/** A logger that writes nothing, for tests and tools. */
export const silentLogger: Logger = pino({ level: 'silent' })

/**
 * Writes finished lines to the destination of a logger: for lines that a worker thread has
 * formatted and redacted.
 */
export function lineWriter(log: Logger): (line: string) => void {
  const { [symbols.streamSym]: destination } = log as unknown as Record<symbol, DestinationStream>
  return (line) => destination?.write(line)
}
