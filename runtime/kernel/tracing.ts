/**
 * Traces of requests over actors, threads, the database and other servers. `tracing` is undefined when [telemetry] is
 * off: then each place that could begin a span costs one comparison. docs/guides/operations/telemetry.md.
 */

/** The roles of OpenTelemetry: `client` and `server` for calls that leave or enter the process. */
export type SpanRole = 'server' | 'client' | 'internal'

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>

/** One step of a trace. */
export interface Span {
  /** The value of a `traceparent` header (W3C Trace Context) that makes this span the parent. */
  readonly traceparent: string
  rename(name: string): void
  set(attributes: SpanAttributes): void
  /**
   * Ends the span. Later calls have no effect.
   * @param failure a word for what failed. Never a message, which may contain data.
   */
  end(failure?: string): void
}

export interface SpanOptions {
  readonly role?: SpanRole | undefined
  readonly attributes?: SpanAttributes | undefined
  /** A `traceparent` of another thread of this process, or of a trusted sender. Default: the current span. */
  readonly parent?: string | undefined
  /** The trace id of a new trace: 32 hexadecimal digits. Ignored where there is a parent. */
  readonly traceId?: string | undefined
}

export interface Tracing {
  begin(name: string, options?: SpanOptions): Span
  /** The span of the running code. */
  current(): Span | undefined
  /** Runs work, and everything that it awaits, as part of a span. */
  within<T>(span: Span, work: () => T): T
  /** Sends what is left. */
  stop(): Promise<void>
}

export let tracing: Tracing | undefined

/** Turns tracing on or off for this thread. */
export function useTracing(active: Tracing | undefined): void {
  tracing = active
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const ZEROS = /^0+$/

/** The trace of a request without a `traceparent` has the digits of its request id, so that one leads to the other. */
export function traceIdOf(requestId: string): string | undefined {
  if (!UUID.test(requestId)) return undefined
  const id = requestId.replaceAll('-', '')
  return ZEROS.test(id) ? undefined : id
}

interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Reads a `traceparent` (W3C Trace Context section 3.2). Undefined for an invalid one. */
export function readTraceparent(text: string | undefined): TraceParent | undefined {
  const parts = text === undefined ? null : TRACEPARENT.exec(text)
  if (parts === null) return undefined
  const [, version = '', traceId = '', spanId = '', flags = '', more] = parts
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function writeTraceparent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/**
 * Whether a trace is recorded, where no parent decides. It depends on the trace id alone, so that all processes decide
 * the same. Request ids differ in few digits, so the id is mixed first.
 * @param ratio 0 to 1.
 */
export function isSampledAt(ratio: number, traceId: string): boolean {
  let mixed = 0x811c9dc5
  for (let index = 0; index < traceId.length; index += 1)
    mixed = Math.imul(mixed ^ traceId.charCodeAt(index), 0x01000193)
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32 < ratio
}
