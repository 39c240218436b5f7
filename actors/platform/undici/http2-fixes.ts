/**
 * Fixes for the HTTP/2 client of undici (pinned):
 *
 * - End of stream. A response is complete with END_STREAM (RFC 9113 section 8.1). But node:http2 ends a
 *   stream in the same way after a reset with NO_ERROR or CANCEL, and undici treats trailers as the end
 *   while the body is still unread. The fix turns a reset into an error and ignores trailers.
 * - Concurrency. undici delays a request that it cannot retry (every POST) until all others on the
 *   connection have ended. A relay does not rely on such retries, so requests run concurrently.
 * - Bodies with any method. undici ends a GET or HEAD after its headers and rejects the body of a DELETE
 *   or OPTIONS. Both throw during the write, which undici counts as a running request, so it stalls. The
 *   fix writes every request with a body like a POST.
 * - Abort. undici closes an aborted stream as if it were complete, and a piped request body destroys it
 *   before node:http2 has reset it. Then node:http2 produces empty DATA frames without end, in memory.
 *   The fix resets the stream immediately.
 * - Suspect connections. After an abort without response, or ENHANCE_YOUR_CALM, the connection takes no
 *   more requests: it may hang, and node:http2 refuses all its streams after too many large headers.
 * - GOAWAY and refused streams. The connection takes no more requests, and running ones complete (RFC 9113
 *   section 6.8). undici would abort them.
 * - SETTINGS_MAX_CONCURRENT_STREAMS (RFC 9113 section 5.1.2). undici queues excess requests on the
 *   connection. The fix lets the pool use another connection.
 * - Unprocessed requests are reported as such (RFC 9113 section 8.7), so that they can be retried.
 */
import { addAbortSignal, type Duplex } from 'node:stream'
import type { Client, Dispatcher } from 'undici'
import { type Http2SessionLike, outliveStreams } from '../../../runtime/kernel/http2-handle.js'
import { keyOf, memberOf } from './members.js'

interface Stream extends Duplex {
  /** Undefined before the headers are sent. */
  readonly id?: number
  readonly rstCode: number
  close(): void
}
interface Session extends Http2SessionLike {
  /** True once either side has started to close the connection. */
  readonly closed: boolean
  close(): void
  request(headers: Record<string, unknown>, options: unknown): Stream
  listeners(event: 'goaway'): readonly ((code: number, lastId: number) => void)[]
  removeAllListeners(event: 'goaway'): void
  on(event: 'goaway', listener: (code: number, lastId: number) => void): void
  on(
    event: 'remoteSettings',
    listener: (settings: { readonly maxConcurrentStreams?: number }) => void,
  ): void
}
/** A request inside undici; an empty body is null. */
interface PendingRequest {
  method: string
  readonly body: unknown
  onError(error: unknown): void
}
interface Context {
  readonly version?: 'h2'
  busy(request: PendingRequest): boolean
  write(request: PendingRequest): boolean
}

/** The upstream refused the request without processing it. */
export class NotProcessed extends Error {
  override readonly name = 'NotProcessed'
}

/** Limit of concurrent requests per connection, if the upstream allows as many. */
const STREAMS_PER_CONNECTION_MAX = 100
const NO_ERROR = 0
const REFUSED_STREAM = 7
const CANCEL = 8
const ENHANCE_YOUR_CALM = 11
/** Codes of streams without response after which the connection takes no more requests. */
const SUSPECT: ReadonlySet<number> = new Set([CANCEL, ENHANCE_YOUR_CALM])
const ABORTED = AbortSignal.abort()
/** A method with which undici sends bodies. */
const WITH_BODY = 'POST'

/** Call it for a newly connected client of the pool, before its first request. */
export function fixHttp2(pool: Dispatcher, client: Client): void {
  const context = memberOf<Context>(client, 'http context')
  if (context.version !== 'h2') return
  const session = memberOf<Session>(memberOf(client, 'socket'), 'http2Session')
  outliveStreams(session)
  context.busy = () => session.closed
  let atOnce = STREAMS_PER_CONNECTION_MAX
  const open = () => {
    if (!client.destroyed) client.pipelining = atOnce
  }
  // After undici has adopted the connection; the assignment makes it send queued requests.
  setImmediate(open)
  session.on('remoteSettings', ({ maxConcurrentStreams = STREAMS_PER_CONNECTION_MAX }) => {
    atOnce = Math.max(1, Math.min(STREAMS_PER_CONNECTION_MAX, maxConcurrentStreams))
    open()
  })
  const isFull = keyOf(pool, 'needDrain')
  const undiciListeners = session.listeners('goaway')
  session.removeAllListeners('goaway')
  let isRetired = false
  const retire = () => {
    if (isRetired) return
    isRetired = true
    session.close()
    // The pool skips a client that needs drain until it emits `drain`, after a reconnect.
    Object.assign(client, { [isFull]: true })
    client.pipelining += 0
  }
  const running = new Map<Stream, PendingRequest>()
  session.on('goaway', (code, lastId) => {
    // node:http2 refuses the streams above the last id one by one.
    if (code === NO_ERROR) return retire()
    for (const [{ id = Number.POSITIVE_INFINITY }, asked] of running) {
      if (id > lastId) failsUnprocessed(asked)
    }
    for (const listener of undiciListeners) listener.call(session, code, lastId)
  })
  const write = context.write.bind(context)
  let method = ''
  let written: PendingRequest | undefined
  context.write = (asked) => {
    method = asked.method
    written = asked
    try {
      if (asked.body !== null) asked.method = WITH_BODY
      return write(asked)
    } catch (error) {
      // Rethrown, it would stall the client permanently.
      asked.onError(error)
      return false
    } finally {
      asked.method = method
    }
  }
  const request = session.request.bind(session)
  session.request = (headers, options) => {
    headers[':method'] = method
    const asked = written!
    const stream = request(headers, options)
    running.set(stream, asked)
    // Before undici attaches its listener.
    stream.once('error', () => {
      if (stream.rstCode !== REFUSED_STREAM) return
      failsUnprocessed(asked)
      retire()
    })
    rejectIncompleteEnd(stream)
    let isAnswered = false
    stream.once('response', () => {
      isAnswered = true
    })
    stream.once('close', () => {
      running.delete(stream)
      if (!isAnswered && SUSPECT.has(stream.rstCode)) retire()
    })
    // Resets with CANCEL, as node:http2 does for an aborted signal.
    stream.close = () => void addAbortSignal(ABORTED, stream)
    // Without trailers the end of the body is the end. After undici has attached its listeners.
    queueMicrotask(() => stream.removeAllListeners('trailers'))
    return stream
  }
}

/** Makes a request fail with `NotProcessed`, whatever error follows. */
function failsUnprocessed(asked: PendingRequest): void {
  const onError = asked.onError.bind(asked)
  asked.onError = (cause) => onError(new NotProcessed('refused by the upstream', { cause }))
}

/** Reports EOF only after END_STREAM: a reset closes the stream before its readable side ends. */
function rejectIncompleteEnd(stream: Stream): void {
  const push = stream.push.bind(stream)
  let isWhole = false
  stream.push = (chunk) => {
    if (chunk === null && !isWhole) {
      if (stream.closed) {
        // Deferred, because node:http2 still uses the stream in this callback.
        queueMicrotask(() => stream.destroy())
        return false
      }
      isWhole = true
    }
    return push(chunk)
  }
}
