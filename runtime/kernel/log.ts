/** Structured logs: one JSON object a line, with the request id, never with a secret. */
import { type DestinationStream, type Logger, pino, symbols } from 'pino'

export type { Logger }

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent'

/** Members that are cut out wherever they appear in the first three levels of a log object. */
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

export interface LogOptions {
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

/** Causes that are followed; a longer chain tells nothing more. */
const CAUSES_MAX = 3

/**
 * What an error is allowed to say. Drivers hang whole clients, queries and their parameters on
 * theirs: none of that belongs into a log.
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

/** A logger that says nothing, for tests and tools. */
export const silentLogger: Logger = pino({ level: 'silent' })

/**
 * Writes finished lines where a logger writes its own: for the lines of worker threads, which have
 * been formatted and redacted there.
 */
export function lineWriter(log: Logger): (line: string) => void {
  const { [symbols.streamSym]: destination } = log as unknown as Record<symbol, DestinationStream>
  return (line) => destination?.write(line)
}
