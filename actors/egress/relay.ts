/**
 * One relay: a request to an upstream and its answer back. Both bodies are streams with a window;
 * when a reader stops taking, reading from the other side's socket stops, so any number of bytes
 * passes through the same small memory.
 *
 * A relay runs until the answer's last byte and ends exactly once, by the first of: the end of the
 * answer, an upstream failure, either clock, the byte budget, or the client going away.
 */
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Clock } from '../../runtime/kernel/clock.js'
import { ByteStream, bytePipe, type ByteWriter } from '../../runtime/kernel/stream.js'
import { proxyErrorOf } from './failures.js'
import { responseHeaders } from './headers.js'
import type { HeaderPair, RelayEnd, RelayLimits, RelayReport } from './protocol.js'

export type RelayJob = {
  readonly method: string
  /** Path and query. */
  readonly path: string
  /** Sanitized. */
  readonly headers: readonly HeaderPair[]
  readonly body: ByteStream | null
  readonly bodyBytes: number | null
  readonly limits: RelayLimits
  /** Aborted when the client is gone before there is an answer. */
  readonly signal: AbortSignal
}

export type RelayStart =
  | {
      readonly tag: 'relaying'
      readonly status: number
      readonly headers: readonly HeaderPair[]
      readonly body: ByteStream
    }
  | { readonly tag: 'failed'; readonly report: RelayReport }

export type Relay = {
  /** Settles when the answer's header is there, or is certain not to come. */
  readonly started: Promise<RelayStart>
  readonly ended: Promise<RelayReport>
}

/** Response bytes that may wait for a slow reader. */
const WINDOW_BYTES = 256 * 1024

export function relay(upstream: Dispatcher, job: RelayJob, clock: Clock): Relay {
  return new RunningRelay(upstream, job, clock)
}

/** Thrown into undici to break off a request that we ended. */
class Ended extends Error {
  override readonly name = 'Ended'
}

class RunningRelay implements Relay {
  readonly started: Promise<RelayStart>
  readonly ended: Promise<RelayReport>
  readonly #job: RelayJob
  readonly #clock: Clock
  readonly #beganMs: number
  readonly #hopTimer: NodeJS.Timeout
  readonly #idleTimer: NodeJS.Timeout
  readonly #onAbort = () => this.#breakOff('client_closed')
  #controller: Dispatcher.DispatchController | undefined
  #writer: ByteWriter | undefined
  #requestBytes = 0
  #responseBytes = 0
  #chunks = 0
  #over = false
  #start!: (start: RelayStart) => void
  #end!: (report: RelayReport) => void

  constructor(upstream: Dispatcher, job: RelayJob, clock: Clock) {
    this.#job = job
    this.#clock = clock
    this.#beganMs = clock.monotonicMs()
    this.started = new Promise((resolve) => {
      this.#start = resolve
    })
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    const { hopTimeoutMs, idleGapMs } = job.limits
    this.#hopTimer = setTimeout(() => this.#breakOff('hop_timeout'), hopTimeoutMs)
    this.#idleTimer = setTimeout(() => this.#breakOff('idle_timeout'), idleGapMs)
    if (job.signal.aborted) this.#breakOff('client_closed')
    else if (job.limits.byteBudget !== null && job.limits.byteBudget <= 0) {
      this.#breakOff('budget_exhausted')
    } else {
      job.signal.addEventListener('abort', this.#onAbort, { once: true })
      this.#dispatch(upstream)
    }
  }

  #dispatch(upstream: Dispatcher): void {
    const { method, path, body, bodyBytes } = this.#job
    const headers = this.#job.headers.flat()
    if (body !== null && bodyBytes !== null) headers.push('content-length', String(bodyBytes))
    const options = {
      method: method as Dispatcher.HttpMethod,
      path,
      headers,
      body: body === null ? null : this.#metered(body),
    }
    try {
      upstream.dispatch(options, {
        onRequestStart: (controller) => this.#requestStarted(controller),
        onResponseStart: (_, status, received) => this.#answered(status, received),
        onResponseData: (controller, chunk) => this.#received(controller, chunk),
        onResponseEnd: () => this.#finish('completed', null),
        onResponseError: (_, error) => this.#failed(error),
      })
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Before the request is written; called again when undici repeats it on a fresh connection. */
  #requestStarted(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#over) controller.abort(new Ended())
  }

  #metered(body: ByteStream): Readable {
    const source = ByteStream.from(this.#counted(body)).toReadable()
    // undici listens while the request runs; an error after that is nobody's.
    source.on('error', () => {})
    return source
  }

  /** The request body, counted as it is taken by the socket. */
  async *#counted(body: ByteStream): AsyncGenerator<Uint8Array, void, void> {
    try {
      for await (const chunk of body) {
        if (!this.#spend(chunk.byteLength)) return
        this.#requestBytes += chunk.byteLength
        yield chunk
      }
    } catch (error) {
      // The client's own stream failed: it is gone.
      this.#breakOff('client_closed')
      throw error
    }
  }

  #answered(
    status: number,
    received: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    this.#idleTimer.refresh()
    // Interim answers are between us and the upstream (RFC 9110 section 15.2).
    if (status < 200 || this.#over || this.#writer !== undefined) return
    const { stream, writer } = bytePipe({ windowBytes: WINDOW_BYTES })
    this.#writer = writer
    writer.onDrain = () => this.#controller?.resume()
    writer.onCancel = () => this.#breakOff('client_closed')
    // From here on the client is the reader of the stream.
    this.#job.signal.removeEventListener('abort', this.#onAbort)
    this.#start({ tag: 'relaying', status, headers: responseHeaders(received), body: stream })
  }

  #received(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    const writer = this.#writer
    if (this.#over || writer === undefined || !this.#spend(chunk.byteLength)) return
    this.#responseBytes += chunk.byteLength
    this.#chunks += 1
    if (!writer.push(chunk)) controller.pause()
  }

  /** Whether the budget allows so many bytes more; if not, the relay is over. */
  #spend(bytes: number): boolean {
    if (this.#over) return false
    this.#idleTimer.refresh()
    const { byteBudget } = this.#job.limits
    if (byteBudget === null) return true
    if (this.#requestBytes + this.#responseBytes + bytes <= byteBudget) return true
    this.#breakOff('budget_exhausted')
    return false
  }

  #failed(error: unknown): void {
    if (this.#over) return
    this.#finish('upstream_error', proxyErrorOf(error, this.#writer !== undefined))
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
    clearTimeout(this.#hopTimer)
    clearTimeout(this.#idleTimer)
    this.#job.signal.removeEventListener('abort', this.#onAbort)
    const report: RelayReport = {
      outcome,
      bytes: this.#requestBytes + this.#responseBytes,
      requestBytes: this.#requestBytes,
      responseBytes: this.#responseBytes,
      chunks: this.#chunks,
      durationMs: this.#clock.monotonicMs() - this.#beganMs,
      proxyError,
    }
    if (outcome === 'completed') this.#writer?.end()
    else this.#writer?.abort(outcome)
    // Also when the upstream answered without waiting for all of it.
    this.#job.body?.cancel(outcome)
    if (this.#writer === undefined) this.#start({ tag: 'failed', report })
    this.#end(report)
  }
}

const PROXY_ERRORS = {
  idle_timeout: 'connection_read_timeout',
  hop_timeout: 'http_response_timeout',
  client_closed: null,
  budget_exhausted: null,
} as const
