/**
 * One relay: a request to an upstream and its answer back. Both bodies are streams with a window;
 * when a reader stops taking, reading from the other side's socket stops, so any number of bytes
 * passes through the same small memory.
 *
 * A relay runs until the answer's last byte and ends exactly once, by the first of: the end of the
 * answer, an upstream failure, either clock, the byte budget, the client going away, or the end of
 * what entitled it.
 */
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { ByteStream } from '../../../../runtime/kernel/stream.js'
import { decoderOf } from '../decode/decoding.js'
import { Delivery, type DeliveryFault } from './response-body.js'
import { proxyErrorOf, SHARE_IN_USE } from '../../../platform/outbound-http/failures.js'
import { responseHeaders } from './headers.js'
import { NotProcessed } from '../../../platform/outbound-http/undici-http2-fixes.js'
import type { Loan } from '../../../platform/outbound-http/shared-read-buffer.js'
import { NoRoom } from '../redact/secret-automaton.js'
import { Outlet } from './response-buffer.js'
import type { HeaderPair, RelayEnd, RelayLimits, RelayReport } from '../protocol.js'
import type { Purse } from '../admission/byte-budget.js'
import type { Redactor } from '../redact/redaction.js'
import type { LentDispatch } from '../../../platform/outbound-http/upstreams.js'
import { createUsageReader, NO_TOKENS, type UsageReader } from './usage.js'

/** Beyond it is no status (RFC 9110 section 15), and HTTP/2 of Node throws when it is to hand one on. */
const STATUS_MAX = 599
/** RFC 9110 sections 6.4.1 and 15.3.6. What comes behind a 205 all the same is handed on to nobody. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

export type RelayJob = {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Sanitized. */
  readonly headers: readonly HeaderPair[]
  /** Null when the request has none. */
  readonly body: ByteStream | Uint8Array | null
  /** Length of the body where it is known; otherwise it is sent chunked. */
  readonly bodyBytes: number | null
  readonly limits: RelayLimits
  /** The longest answer that is taken, after decoding; null takes any. */
  readonly answerBytesMax: number | null
  /** What the bytes of both directions are paid from; null is unmetered. */
  readonly purse: Purse | null
  readonly redactor: Redactor | null
  /** Given up when the client is gone before there is an answer. */
  readonly context: Pick<MessageContext, 'abandoned' | 'onAbandoned'>
}

export type RelayStart =
  | {
      readonly tag: 'relaying'
      readonly status: number
      readonly headers: readonly HeaderPair[]
      /** Bytes when all of it came together with the header. */
      readonly body: ByteStream | Uint8Array
      /** What the upstream announced (`content-length`); 0 where it announced nothing. */
      readonly announcedBytes: number
    }
  | { readonly tag: 'failed'; readonly report: RelayReport }

export interface Relay {
  /** Ends it: what entitled it has ended. */
  revoke(): void
}

export type RelayEvents = {
  /** Once: the answer's header is there, or is certain not to come. */
  readonly onStart: (start: RelayStart) => void
  /** Once, and after it nothing; perhaps within the call of `relay`, and before `onStart`. */
  readonly onEnd: (report: RelayReport) => void
}

export function relay(
  upstream: Dispatcher,
  job: RelayJob,
  clock: Clock,
  events: RelayEvents,
): Relay {
  return new RunningRelay(upstream, job, clock, events)
}

/** Thrown into undici to break off a request that we ended. */
class Ended extends Error {
  override readonly name = 'Ended'
}

class RunningRelay implements Relay {
  readonly #job: RelayJob
  readonly #upstream: Dispatcher
  readonly #events: RelayEvents
  readonly #clock: Clock
  readonly #beganMs: number
  /** For both limits: set to the nearer one, and anew where bytes have moved by then. */
  #timer: NodeJS.Timeout | undefined
  #movedMs: number
  #unfollow: (() => void) | undefined
  #controller: Dispatcher.DispatchController | undefined
  #outlet: Outlet | undefined
  #delivery: Delivery | undefined
  #usage: UsageReader | null = null
  #requestBytes = 0
  #loan: Loan | undefined
  /** The answer is of a kind that has no body. */
  #isEmpty = false
  /** What is to come of the answer's body by its announced length; 0 or less where none was. */
  #announcedBytes = 0
  #isRepeated = false
  #over = false

  constructor(upstream: Dispatcher, job: RelayJob, clock: Clock, events: RelayEvents) {
    this.#job = job
    this.#upstream = upstream
    this.#clock = clock
    this.#events = events
    this.#beganMs = clock.monotonicMs()
    this.#movedMs = this.#beganMs
    this.#await(this.#beganMs)
    if (job.context.abandoned) this.#breakOff('client_closed')
    else {
      this.#unfollow = job.context.onAbandoned(() => this.#breakOff('client_closed'))
      this.#send()
    }
  }

  revoke(): void {
    this.#breakOff('revoked')
  }

  #await(nowMs: number): void {
    const { hopTimeoutMs, idleGapMs } = this.#job.limits
    const hopLeftMs = this.#beganMs + hopTimeoutMs - nowMs
    const idleLeftMs = this.#movedMs + idleGapMs - nowMs
    if (hopLeftMs <= 0) return this.#breakOff('hop_timeout')
    if (idleLeftMs <= 0) return this.#breakOff('idle_timeout')
    const waitMs = Math.ceil(Math.min(hopLeftMs, idleLeftMs))
    this.#timer = setTimeout(() => this.#await(this.#clock.monotonicMs()), waitMs)
  }

  #moved(): void {
    this.#movedMs = this.#clock.monotonicMs()
  }

  #send(): void {
    const { method, path, bodyBytes } = this.#job
    const headers: string[] = []
    for (const [name, value] of this.#job.headers) headers.push(name, value)
    const body = this.#requestBody()
    if (this.#over) return
    if (body !== null && bodyBytes !== null) headers.push('content-length', String(bodyBytes))
    const request: LentDispatch = {
      method: method as Dispatcher.HttpMethod,
      path,
      headers,
      body,
      onLoan: (loan) => {
        this.#loan = loan
      },
    }
    this.#dispatch(request)
  }

  #dispatch(request: LentDispatch): void {
    try {
      this.#upstream.dispatch(request, {
        onRequestStart: (controller) => this.#requestStarted(controller),
        onResponseStart: (_, status, received) => this.#answered(status, received),
        onResponseData: (controller, chunk) => this.#received(controller, chunk),
        onResponseEnd: () => this.#ended(),
        onResponseError: (_, error) => this.#failed(error, request),
      })
    } catch (error) {
      this.#failed(error, request)
    }
  }

  /** Before the request is written; called again when undici repeats it on a fresh connection. */
  #requestStarted(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#over) controller.abort(new Ended())
  }

  #requestBody(): Readable | Uint8Array | null {
    const { body, purse } = this.#job
    if (body === null) return null
    if (body instanceof Uint8Array) {
      // Its length was known and taken from the budget before the relay began.
      if (purse !== null && !purse.take(body.byteLength)) this.#breakOff('budget_exhausted')
      this.#requestBytes = body.byteLength
      return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    }
    const source = ByteStream.from(this.#metered(body)).toReadable()
    // undici listens while the request runs; an error after that is nobody's.
    source.on('error', () => {})
    return source
  }

  /** The request body, metered as it is taken by the socket. */
  async *#metered(body: ByteStream): AsyncGenerator<Uint8Array, void, void> {
    const { purse } = this.#job
    for (;;) {
      let chunk: Uint8Array | undefined
      try {
        chunk = await body.read()
      } catch (error) {
        // The client's own stream failed: it is gone.
        this.#breakOff('client_closed')
        throw error
      }
      if (chunk === undefined || this.#over) return
      this.#moved()
      const { byteLength } = chunk
      if (purse !== null && !purse.take(byteLength)) {
        const enough = await purse.draw(byteLength).catch(() => false)
        if (!enough) this.#breakOff('budget_exhausted')
        if (!enough || this.#over) throw new Ended()
      }
      this.#requestBytes += byteLength
      yield chunk
    }
  }

  #answered(
    status: number,
    received: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    this.#moved()
    // Interim answers are between us and the upstream (RFC 9110 section 15.2).
    if (status < 200 || this.#over || this.#outlet !== undefined) return
    if (status > STATUS_MAX) return this.#giveUp('http_protocol_error')
    this.#isEmpty = this.#isBodiless(status)
    const decoder = this.#isEmpty ? null : decoderOf(fieldOf(received['content-encoding']))
    if (decoder === 'unknown') return this.#giveUp('http_response_content_coding')
    const { purse, redactor, answerBytesMax: bytesMax } = this.#job
    this.#announcedBytes = this.#isEmpty ? 0 : Number(fieldOf(received['content-length']) ?? 0)
    const outlet = new Outlet()
    this.#outlet = outlet
    this.#usage = createUsageReader(fieldOf(received['content-type']))
    this.#delivery = new Delivery(
      { outlet, decoder, purse, redactor, usage: this.#usage, bytesMax },
      {
        onRoom: () => this.#controller?.resume(),
        onProgress: () => this.#moved(),
        onDone: () => this.#finish('completed', null),
        onFault: (fault) => this.#faulted(fault),
      },
    )
    let headers: readonly HeaderPair[]
    try {
      headers = responseHeaders(received, redactor)
    } catch (error) {
      if (error instanceof NoRoom) return this.#faulted('room')
      throw error
    }
    const announcedBytes = this.#announcedBytes
    // What came in the same read as the header is there when this turn of undici ends.
    queueMicrotask(() => this.#begin(outlet, { status, headers, announcedBytes }))
  }

  #begin(
    outlet: Outlet,
    head: { status: number; headers: readonly HeaderPair[]; announcedBytes: number },
  ): void {
    const whole = outlet.whole()
    // From here on the client is the reader of the body.
    this.#unfollow?.()
    if (whole === null) this.#delivery?.streams()
    const body = whole ?? outlet.open(() => this.#breakOff('client_closed'))
    this.#events.onStart({ tag: 'relaying', ...head, body })
  }

  #isBodiless(status: number): boolean {
    return this.#job.method === 'HEAD' || BODILESS.has(status)
  }

  #received(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#announcedBytes -= chunk.byteLength
    if (this.#loan !== undefined) this.#loan.bodyBytes = this.#announcedBytes
    if (this.#over || this.#delivery === undefined || this.#isEmpty) return
    this.#moved()
    if (!this.#delivery.write(chunk)) controller.pause()
  }

  /** undici counts what HTTP/1.1 announced; a stream of HTTP/2 may end before and be called whole. */
  #ended(): void {
    if (this.#announcedBytes > 0) this.#finish('upstream_error', 'http_response_incomplete')
    else this.#delivery?.end()
  }

  /** A body that comes as a stream is being read by now. */
  get #isRepeatable(): boolean {
    return (
      !this.#isRepeated && this.#outlet === undefined && !(this.#job.body instanceof ByteStream)
    )
  }

  #faulted(fault: DeliveryFault): void {
    if (fault === 'budget') return this.#breakOff('budget_exhausted')
    this.#giveUp(FAULTS[fault])
  }

  /** Ends it because of what the upstream answered. */
  #giveUp(proxyError: string): void {
    this.#finish('upstream_error', proxyError)
    this.#controller?.abort(new Ended())
  }

  #failed(error: unknown, request: LentDispatch): void {
    if (this.#over) return
    if (error instanceof NotProcessed && this.#isRepeatable) {
      this.#isRepeated = true
      // Once undici is done with the connection that refused it.
      return queueMicrotask(() => {
        if (!this.#over) this.#dispatch(request)
      })
    }
    this.#finish('upstream_error', proxyErrorOf(error, this.#outlet !== undefined))
  }

  /** Ends the relay for a reason of our own and lets the upstream know. */
  #breakOff(outcome: Exclude<RelayEnd, 'completed' | 'upstream_error'>): void {
    if (this.#over) return
    this.#finish(outcome, PROXY_ERRORS[outcome])
    this.#controller?.abort(new Ended())
  }

  #finish(outcome: RelayEnd, proxyError: string | null): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    const { body, redactor } = this.#job
    this.#unfollow?.()
    const { bytes = 0, chunks = 0 } = this.#delivery ?? {}
    const report: RelayReport = {
      outcome,
      bytes: this.#requestBytes + bytes,
      requestBytes: this.#requestBytes,
      responseBytes: bytes,
      chunks,
      durationMs: this.#clock.monotonicMs() - this.#beganMs,
      redactions: redactor?.count ?? 0,
      tokens: this.#usage?.counts ?? NO_TOKENS,
      proxyError,
    }
    if (outcome !== 'completed') {
      this.#delivery?.stop()
      this.#outlet?.abort(outcome)
    }
    // Also when the upstream answered without waiting for all of it.
    if (body instanceof ByteStream) body.cancel(outcome)
    if (this.#outlet === undefined) this.#events.onStart({ tag: 'failed', report })
    this.#events.onEnd(report)
  }
}

const PROXY_ERRORS = {
  idle_timeout: 'connection_read_timeout',
  hop_timeout: 'http_response_timeout',
  client_closed: null,
  budget_exhausted: null,
  revoked: null,
} as const

/** RFC 9209 section 2.3. */
const FAULTS = {
  coding: 'http_response_content_coding',
  size: 'http_response_body_size',
  room: SHARE_IN_USE,
} as const

function fieldOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
