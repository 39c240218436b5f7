/**
 * `svc trace`: what happened to one request, in order of time: log lines from files or standard input, audit events,
 * webhook attempts and egress calls from the database. docs/guides/operations/trace.md.
 */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { Command } from 'commander'
import {
  attemptsOfEvents,
  eventsOfRequest,
  type TracedAttempt,
  type TracedEvent,
  type TraceWindow,
} from '../../storage/operations/request-trace.js'
import { startEventId } from '../../storage/vault/lost-egress-calls.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { errorText } from '../process/error-text.js'
import { withTarget } from './target.js'
import { type DatabaseHouse, openDatabaseTools } from './key-tools.js'
import { type CommandHost, lineHost } from './output.js'

export type TraceEntry = {
  /** RFC 3339 with milliseconds. */
  readonly at: string
  readonly source: 'log' | 'audit' | 'webhook' | 'egress'
} & Readonly<Record<string, unknown>>

/** A command that reads the database. */
export interface DatabaseCommandHost extends CommandHost {
  readonly open: () => Promise<Pick<DatabaseHouse, 'database' | 'close'>>
}
interface TraceCommandHost extends DatabaseCommandHost {
  readonly stdin: Readable
}

type TraceOptions = {
  readonly log: readonly string[]
  readonly since?: string
  readonly json?: boolean
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/
/** UUID version 7: the first 48 bits are a Unix time in milliseconds (RFC 9562 section 5.7). */
const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
/** The service and the database may have different clocks. */
const BEFORE_MS = 10 * 60_000
/** A streamed egress call ends long after its request. */
const AFTER_MS = 24 * 60 * 60_000
const LINE_CHARS_MAX = 1_000_000
const LEVELS: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
}

/** Adds `trace` to the program. */
export function traceCommand(
  program: Command,
  host: TraceCommandHost = { ...databaseHost(), stdin: process.stdin },
): void {
  program
    .command('trace')
    .argument('<request-id>', 'the x-request-id of a response')
    .description('what happened to a request: log, audit events, webhook attempts, egress calls')
    .option(
      '--log <file>',
      'a log of the service, JSON lines; - is standard input; may be repeated',
      (file: string, before: readonly string[]) => [...before, file],
      [] as readonly string[],
    )
    .option('--since <time>', 'for an id that is not from this service: events after this time')
    .option('--json', 'as JSON')
    .action(async (requestId: string, options: TraceOptions) => {
      try {
        const entries = await traced(requestId, options, host)
        host.out(
          options.json === true
            ? JSON.stringify(withTarget({ request_id: requestId, entries }), null, 2)
            : traceText(requestId, entries),
        )
      } catch (error) {
        host.err(`svc trace: ${errorText(error)}`)
        host.exitWith(1)
      }
    })
}

/** @throws with a message for an operator. */
async function traced(
  requestId: string,
  { log, since }: TraceOptions,
  { open, stdin }: TraceCommandHost,
): Promise<readonly TraceEntry[]> {
  const window = traceWindow(requestId, since)
  const lines: TraceEntry[] = []
  for (const file of log) {
    const input = file === '-' ? stdin : createReadStream(file, 'utf8')
    lines.push(...(await logEntries(input, requestId)))
  }
  const resources = await open()
  try {
    // Crosses tenants: the tenant of a request is not known.
    const [events, attempts] = await resources.database.system(async (tx) => {
      const found = await eventsOfRequest(tx, requestId, window)
      return [found, await attemptsOfEvents(tx, found)] as const
    })
    const entries = [
      ...lines,
      ...events.map(auditEntry),
      ...egressEntries(events),
      ...attempts.map(attemptEntry),
    ]
    // Entries of the same time stay in the order of their sources.
    return entries.sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  } finally {
    await resources.close()
  }
}

/** The time in which to look: from the id if it has a time, otherwise from `--since`. @throws for an invalid id. */
function traceWindow(requestId: string, since: string | undefined): TraceWindow {
  requireRequestId(requestId)
  if (since !== undefined) {
    const from = new Date(since)
    if (Number.isNaN(from.getTime())) throw new Error('--since must be a time of RFC 3339')
    return { since: from, until: null }
  }
  const parts = UUID_V7.exec(requestId)
  if (parts === null) return { since: null, until: null }
  const ms = Number.parseInt(`${parts[1]}${parts[2]}`, 16)
  return { since: new Date(ms - BEFORE_MS), until: new Date(ms + AFTER_MS) }
}

/** @throws with a message for an operator. */
export function requireRequestId(text: string): void {
  if (!REQUEST_ID.test(text))
    throw new Error('a request id has 1 to 128 characters of A-Z a-z 0-9 . _ -')
}

/** The lines of the request. Other lines, and lines that are not JSON, are skipped. */
async function logEntries(input: Readable, requestId: string): Promise<TraceEntry[]> {
  const entries: TraceEntry[] = []
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    if (line.length > LINE_CHARS_MAX || !line.includes(requestId)) continue
    const entry = lineEntry(line, requestId)
    if (entry !== undefined) entries.push(entry)
  }
  return entries
}

function lineEntry(line: string, requestId: string): TraceEntry | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { time, level, request_id: id, service: _, ...members } = value as Record<string, unknown>
  const at = new Date(time as string | number)
  if (id !== requestId || Number.isNaN(at.getTime())) return undefined
  const word = typeof level === 'number' ? (LEVELS[level] ?? level) : level
  return { at: at.toISOString(), source: 'log', level: word, ...members }
}

function auditEntry(event: TracedEvent): TraceEntry {
  const { occurredAt, type, outcome, tenantId, id, clientId, subject, actors, resource } = event
  return {
    at: occurredAt.toISOString(),
    source: 'audit',
    type,
    outcome,
    tenant_id: tenantId,
    event_id: id,
    client_id: clientId,
    subject,
    actors,
    resource,
    ip: event.ip,
    data: event.data,
  }
}

/** One entry per call, from its two audit events. A call that runs, or was lost, has no end. */
function egressEntries(events: readonly TracedEvent[]): TraceEntry[] {
  const ends = new Map(
    events
      .filter(({ type }) => type === 'egress.stream.closed')
      .map((event) => [startEventId(event.id), event]),
  )
  return events
    .filter(({ type, data }) => type === 'vault.credential.accessed' && data['access'] === 'egress')
    .map((begun) => {
      const ended = ends.get(begun.id)
      const { host, method } = begun.data
      const { bytes, duration_ms, outcome } = ended?.data ?? {}
      return {
        at: begun.occurredAt.toISOString(),
        source: 'egress',
        tenant_id: begun.tenantId,
        resource: begun.resource,
        method,
        host,
        ended_at: ended?.occurredAt.toISOString() ?? null,
        outcome: outcome ?? null,
        bytes: bytes ?? null,
        duration_ms: duration_ms ?? null,
      }
    })
}

function attemptEntry(attempt: TracedAttempt): TraceEntry {
  const { attemptedAt, createdAt, nextAttemptAt } = attempt
  return {
    at: (attemptedAt ?? createdAt).toISOString(),
    source: 'webhook',
    tenant_id: attempt.tenantId,
    webhook_id: attempt.webhookId,
    delivery_id: attempt.deliveryId,
    event_id: attempt.eventId,
    event_type: attempt.eventType,
    url: attempt.url,
    attempt: attempt.number,
    status: attempt.deliveryStatus,
    response_status: attempt.responseStatus,
    duration_ms: attempt.durationMs,
    error: attempt.error,
    next_attempt_at: nextAttemptAt?.toISOString() ?? null,
  }
}

/** The entries as text: time, source, and what happened. */
function traceText(requestId: string, entries: readonly TraceEntry[]): string {
  if (entries.length === 0)
    return `Nothing is known of request ${requestId}. Name its log with --log.`
  return entries
    .map((entry) => `${entry.at}  ${entry.source.padEnd(7)}  ${summary(entry)}`)
    .join('\n')
}

function summary(entry: TraceEntry): string {
  const say = (...names: readonly string[]) =>
    names
      .filter((name) => entry[name] !== null && entry[name] !== undefined)
      .map((name) => `${name}=${String(entry[name])}`)
      .join(' ')
  switch (entry.source) {
    case 'log':
      return `${String(entry['level'])} ${String(entry['msg'] ?? '')} ${say('method', 'route', 'status', 'error', 'reason', 'client_id', 'tenant_id', 'presented_client_id', 'presented_tenant_id', 'grant_type', 'actor', 'ms')}`
    case 'audit':
      return `${String(entry['type'])} ${say('outcome', 'tenant_id', 'client_id', 'event_id')}`
    case 'egress':
      return `${String(entry['method'])} ${String(entry['host'])} ${say('outcome', 'bytes', 'duration_ms', 'tenant_id')}`
    case 'webhook':
      return `${String(entry['event_type'])} to ${String(entry['url'])} ${say('attempt', 'status', 'response_status', 'error', 'duration_ms', 'delivery_id')}`
  }
}

export const databaseHost = (): DatabaseCommandHost => ({
  open: () =>
    openDatabaseTools({
      environment: readEnvironment(),
      cwd: process.cwd(),
      uid: process.getuid?.(),
    }),
  ...lineHost,
})
