/**
 * Relays one request to an upstream and its response back. Both bodies are streams with backpressure:
 * when a reader pauses, the relay stops reading from the other socket, so memory use is constant.
 *
 * A relay ends exactly once, by the first of: the end of the response, an upstream failure, the idle or
 * total time limit, the byte budget, a client disconnect, or a revocation.
 */
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { ByteStream } from '../../../../runtime/kernel/stream.js'
import { decoderOf } from '../decode/decoding.js'
import { Delivery, type DeliveryEvents, type DeliveryFault } from './response-body.js'
import { proxyErrorOf, SHARE_IN_USE } from '../../../platform/outbound-http/failures.js'
import { responseHeaders } from './headers.js'
import { NotProcessed } from '../../../platform/undici/http2-fixes.js'
import type { SharedRead } from '../../../platform/outbound-http/shared-read-buffer.js'
import { MemoryShareExhausted } from '../redact/secret-automaton.js'
import { ResponseBuffer } from './response-buffer.js'
import type { HeaderPair, RelayEnd, RelayLimits, RelayReport } from '../protocol.js'
import type { ByteBudget } from '../admission/byte-budget.js'
import type { Redactor } from '../redact/redaction.js'
import type { SharedReadDispatch } from '../../../platform/outbound-http/upstreams.js'
import { createUsageReader, NO_TOKENS, unreportedTokens, type UsageReader } from './usage.js'

/** Largest valid status (RFC 9110 section 15); node:http2 throws for larger ones. */
const STATUS_MAX = 599
/** Statuses without a body (RFC 9110 sections 6.4.1 and 15.3.6); a body that follows is discarded. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304])

export type RelayJob = {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Sanitized. */
  readonly headers: readonly HeaderPair[]
  /** Null when the request has none. */
  readonly body: ByteStream | Uint8Array | null
  /** Length of the body; null when unknown, which makes HTTP/1.1 requests chunked. */
  readonly bodyBytes: number | null
  readonly limits: RelayLimits
  /** Limit of the decoded response; null for none. */
  readonly answerBytesMax: number | null
  /** Budget of the bytes of both directions; null for none. */
  readonly byteBudget: ByteBudget | null
  readonly redactor: Redactor | null
  /** Ends the relay when the client disconnects before the response. */
  readonly context: Pick<MessageContext, 'abandoned' | 'onAbandoned'>
}

export type UpstreamFields = Readonly<Record<string, string | string[] | undefined>>

export type RelayStart =
  | {
      readonly tag: 'relaying'
      readonly status: number
      readonly headers: readonly HeaderPair[]
      /** The fields as the upstream sent them. */
      readonly received: UpstreamFields
      /** Bytes when the whole body arrived with the headers. */
      readonly body: ByteStream | Uint8Array
    }
  | { readonly tag: 'failed'; readonly report: RelayReport }

export interface Relay {
  /** Ends the relay after a revocation. */
  revoke(): void
  /** Ends the relay because another tenant needs its place. */
  giveUp(): void
}

export type RelayEvents = {
  /** Called once: the response headers have arrived, or the relay has failed before them. */
  readonly onStart: (start: RelayStart) => void
  /** Called once, as the last event; possibly during the call of `relay`, before `onStart`. */
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

/** Aborts the undici request of an ended relay. */
class Ended extends Error {
  override readonly name = 'Ended'
}

/** It is the handler of its request: an object per call, without closures. */
class RunningRelay implements Relay, Dispatcher.DispatchHandler, DeliveryEvents {
  readonly #job: RelayJob
  readonly #upstream: Dispatcher
  readonly #events: RelayEvents
  readonly #clock: Clock
  readonly #beganMs: number
  /** One timer for both time limits, set to the nearer one and again after progress. */
  #timer: NodeJS.Timeout | undefined
  #movedMs: number
  /** The time for the response head begins here. */
  #sentMs: number
  #isSent: boolean
  #unfollow: (() => void) | undefined
  #controller: Dispatcher.DispatchController | undefined
  #request: SharedReadDispatch | null = null
  #responseBuffer: ResponseBuffer | undefined
  #delivery: Delivery | undefined
  #usage: UsageReader | null = null
  #requestBytes = 0
  #isHeard = false
  #status: number | null = null
  #sharedRead: SharedRead | undefined
  /** The response has no body by its status or method. */
  #isEmpty = false
  /** Remaining bytes by Content-Length; 0 or less without one. */
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
    this.#sentMs = this.#beganMs
    this.#isSent = !(job.body instanceof ByteStream)
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

  giveUp(): void {
    if (!this.#over) this.#fail(SHARE_IN_USE)
  }

  #await(nowMs: number): void {
    const { hopTimeoutMs, idleGapMs, headTimeoutMs = hopTimeoutMs } = this.#job.limits
    const hopLeftMs = this.#beganMs + hopTimeoutMs - nowMs
    const idleLeftMs = this.#movedMs + idleGapMs - nowMs
    const isWaiting = this.#isSent && this.#responseBuffer === undefined
    const headLeftMs = isWaiting ? this.#sentMs + headTimeoutMs - nowMs : hopLeftMs
    if (hopLeftMs <= 0 || headLeftMs <= 0) return this.#breakOff('hop_timeout')
    if (idleLeftMs <= 0) return this.#breakOff('idle_timeout')
    // A streamed body may end before the timer does: then the time for the head is the nearest limit.
    const waitMs = Math.ceil(Math.min(hopLeftMs, idleLeftMs, headLeftMs, headTimeoutMs))
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
    const request: SharedReadDispatch = {
      method: method as Dispatcher.HttpMethod,
      path,
      headers,
      body,
      onSharedRead: (sharedRead) => {
        this.#sharedRead = sharedRead
      },
    }
    this.#dispatch(request)
  }

  #dispatch(request: SharedReadDispatch): void {
    try {
      this.#request = request
      this.#upstream.dispatch(request, this)
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Called before the request is written, and again when undici retries on a new connection. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#over) controller.abort(new Ended())
    else this.#isHeard = true
  }

  #requestBody(): Readable | Uint8Array | null {
    const { body, byteBudget } = this.#job
    if (body === null) return null
    if (body instanceof Uint8Array) {
      // Admission has taken its length from the budget.
      if (byteBudget !== null && !byteBudget.take(body.byteLength))
        this.#breakOff('budget_exhausted')
      this.#requestBytes = body.byteLength
      return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    }
    const source = ByteStream.from(this.#metered(body)).toReadable()
    // undici handles errors while the request runs; later ones need a listener.
    source.on('error', () => {})
    return source
  }

  /** The request body, metered as the socket reads it. */
  async *#metered(body: ByteStream): AsyncGenerator<Uint8Array, void, void> {
    const { byteBudget } = this.#job
    for (;;) {
      let chunk: Uint8Array | undefined
      try {
        chunk = await body.read()
      } catch (error) {
        // The client's stream failed: the client has disconnected.
        this.#breakOff('client_closed')
        throw error
      }
      if (chunk === undefined || this.#over) {
        this.#isSent = true
        this.#sentMs = this.#clock.monotonicMs()
        return
      }
      this.#moved()
      const { byteLength } = chunk
      if (byteBudget !== null && !byteBudget.take(byteLength)) {
        const enough = await byteBudget.draw(byteLength).catch(() => false)
        if (!enough) this.#breakOff('budget_exhausted')
        if (!enough || this.#over) throw new Ended()
      }
      this.#requestBytes += byteLength
      yield chunk
    }
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    received: UpstreamFields,
  ): void {
    // Interim responses are not forwarded (RFC 9110 section 15.2), and are no progress.
    if (status < 200 || this.#over || this.#responseBuffer !== undefined) return
    this.#moved()
    if (status > STATUS_MAX) return this.#fail('http_protocol_error')
    this.#status = status
    this.#isEmpty = this.#isBodiless(status)
    const decoder = this.#isEmpty ? null : decoderOf(fieldOf(received['content-encoding']))
    if (decoder === 'unknown') return this.#fail('http_response_content_coding')
    const { byteBudget, redactor, answerBytesMax: bytesMax } = this.#job
    this.#announcedBytes = this.#isEmpty ? 0 : Number(fieldOf(received['content-length']) ?? 0)
    const responseBuffer = new ResponseBuffer()
    this.#responseBuffer = responseBuffer
    this.#usage = createUsageReader(fieldOf(received['content-type']))
    this.#delivery = new Delivery(
      { responseBuffer, decoder, byteBudget, redactor, usage: this.#usage, bytesMax },
      this,
    )
    let headers: readonly HeaderPair[]
    try {
      headers = responseHeaders(received, redactor, this.#job.method)
    } catch (error) {
      if (error instanceof MemoryShareExhausted) return this.onFault('room')
      throw error
    }
    // The microtask runs after undici has delivered the body bytes of the same read.
    queueMicrotask(() => this.#begin(responseBuffer, { status, headers, received }))
  }

  #begin(
    responseBuffer: ResponseBuffer,
    head: { status: number; headers: readonly HeaderPair[]; received: UpstreamFields },
  ): void {
    const whole = responseBuffer.whole()
    // From here on the reader of the body notices a disconnect.
    this.#unfollow?.()
    if (whole === null) this.#delivery?.startStreaming()
    const body = whole ?? responseBuffer.open(() => this.#breakOff('client_closed'))
    this.#events.onStart({ tag: 'relaying', ...head, body })
  }

  #isBodiless(status: number): boolean {
    return this.#job.method === 'HEAD' || BODILESS.has(status)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#announcedBytes -= chunk.byteLength
    if (this.#sharedRead !== undefined) this.#sharedRead.bodyBytes = this.#announcedBytes
    if (this.#over || this.#delivery === undefined || this.#isEmpty) return
    this.#moved()
    if (!this.#delivery.write(chunk)) controller.pause()
  }

  /** undici checks Content-Length for HTTP/1.1 only; an HTTP/2 stream may end early. */
  onResponseEnd(): void {
    if (this.#announcedBytes > 0) this.#finish('upstream_error', 'http_response_incomplete')
    else this.#delivery?.end()
  }

  /** False for a streamed request body, which is partly read. */
  get #isRepeatable(): boolean {
    return (
      !this.#isRepeated &&
      this.#responseBuffer === undefined &&
      !(this.#job.body instanceof ByteStream)
    )
  }

  onRoom(): void {
    this.#controller?.resume()
  }

  onProgress(): void {
    this.#moved()
  }

  onDone(): void {
    this.#finish('completed', null)
  }

  onFault(fault: DeliveryFault): void {
    if (fault === 'budget') return this.#breakOff('budget_exhausted')
    this.#fail(FAULTS[fault])
  }

  /** Ends the relay without a response, or in the middle of one. */
  #fail(proxyError: string): void {
    this.#finish('upstream_error', proxyError)
    this.#controller?.abort(new Ended())
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: unknown): void {
    this.#failed(error)
  }

  #failed(error: unknown): void {
    const request = this.#request
    if (this.#over || request === null) return
    if (error instanceof NotProcessed && this.#isRepeatable) {
      this.#isRepeated = true
      // After undici has finished with the connection that refused the request.
      return queueMicrotask(() => {
        if (!this.#over) this.#dispatch(request)
      })
    }
    this.#finish('upstream_error', proxyErrorOf(error, this.#responseBuffer !== undefined))
  }

  /** Ends the relay for a local reason and aborts the upstream request. */
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
      status: this.#status,
      bytes: this.#requestBytes + bytes,
      requestBytes: this.#requestBytes,
      responseBytes: bytes,
      chunks,
      durationMs: this.#clock.monotonicMs() - this.#beganMs,
      redactions: redactor?.count ?? 0,
      tokens: this.#usage?.counts ?? NO_TOKENS,
      isHeard: this.#isHeard,
      unreportedTokens: this.#isHeard
        ? unreportedTokens(outcome, this.#requestBytes, bytes, this.#usage)
        : 0,
      proxyError,
    }
    if (outcome !== 'completed') {
      this.#delivery?.stop()
      this.#responseBuffer?.abort(outcome)
    }
    // Also after an early response, which does not wait for the whole request body.
    if (body instanceof ByteStream) body.cancel(outcome)
    if (this.#responseBuffer === undefined) this.#events.onStart({ tag: 'failed', report })
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
