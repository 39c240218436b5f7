/**
 * Where undici's HTTP/2 does otherwise than a relay wants.
 *
 * Ends of streams are told as they are: an answer is complete with its END_STREAM (RFC 9113 section 8.1),
 * but node:http2 ends a stream in the same way when it is reset with NO_ERROR or CANCEL, and undici takes
 * trailers for the end while the body before them still waits for its reader.
 *
 * Requests go side by side: undici lets one that it could not repeat, which is every POST, wait for the end
 * of all others on the connection. A relay repeats none of them by itself.
 *
 * A body goes with every method: undici ends the request of a GET or HEAD with its head, and finds the body
 * of a DELETE or OPTIONS longer than none. Either fails while the request is written, which undici takes
 * for a request that runs: it loses count, and with it the next requests or itself.
 *
 * What is broken off is reset at once: undici closes the stream, which ends it as if it were whole, and whoever
 * pipes a body into it destroys it within that call, before node:http2 has reset it. Then node:http2 sends
 * empty frames of the body without end, into memory.
 *
 * A connection on which a call was given up before its answer, or refused with ENHANCE_YOUR_CALM, is left too,
 * as one of HTTP/1.1 would be: it may hang, and node:http2 refuses every stream of one whose heads were too
 * large too often.
 *
 * A connection that its upstream wants to close takes no more requests, and those that run on it go on to
 * their ends (RFC 9113 section 6.8): undici breaks them off. So it is with one whose upstream refuses a
 * stream.
 *
 * No more go on one connection than its upstream allows at once (RFC 9113 section 5.1.2): undici leaves the
 * others waiting on it, where another connection takes them.
 *
 * Of requests that were not processed it is told so (RFC 9113 section 8.7): they may be sent again.
 */
import { addAbortSignal, type Duplex } from 'node:stream'
import type { Client, Dispatcher } from 'undici'
import { invariant } from '../../../runtime/kernel/assert.js'
import { type Http2SessionLike, outliveStreams } from '../../../runtime/kernel/http2-handle.js'

interface Stream extends Duplex {
  /** Undefined before it is sent. */
  readonly id?: number
  readonly rstCode: number
  close(): void
}
interface Session extends Http2SessionLike {
  /** As soon as either side has said that it wants to close it. */
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
/** The request as undici keeps it; a body of no bytes is null. */
interface Asked {
  method: string
  readonly body: unknown
  onError(error: unknown): void
}
interface Context {
  readonly version?: 'h2'
  busy(request: Asked): boolean
  write(request: Asked): boolean
}

/** A request that its upstream has refused and not processed in any way. */
export class NotProcessed extends Error {
  override readonly name = 'NotProcessed'
}

/** Requests on one connection, where its upstream allows as many; more open another. */
const STREAMS_PER_CONNECTION_MAX = 100
const NO_ERROR = 0
const REFUSED_STREAM = 7
const CANCEL = 8
const ENHANCE_YOUR_CALM = 11
/** What ends a stream without an answer on a connection that may never give one again. */
const SPENT: ReadonlySet<number> = new Set([CANCEL, ENHANCE_YOUR_CALM])
const ABORTED = AbortSignal.abort()
/** One of the methods that undici sends bodies with. */
const WITH_BODY = 'POST'

/** For a client of the pool that has just connected, before its first request. */
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
  // Once undici has taken the connection over: it looks for more to send at once.
  setImmediate(open)
  session.on('remoteSettings', ({ maxConcurrentStreams = STREAMS_PER_CONNECTION_MAX }) => {
    atOnce = Math.max(1, Math.min(STREAMS_PER_CONNECTION_MAX, maxConcurrentStreams))
    open()
  })
  const isFull = keyOf(pool, 'needDrain')
  const breaksOff = session.listeners('goaway')
  session.removeAllListeners('goaway')
  let isLeft = false
  const leave = () => {
    if (isLeft) return
    isLeft = true
    session.close()
    // Its pool passes it over until it tells that it is busy no more, which is once it can connect anew.
    Object.assign(client, { [isFull]: true })
    client.pipelining += 0
  }
  const running = new Map<Stream, Asked>()
  session.on('goaway', (code, lastId) => {
    // Those above the last are refused one by one.
    if (code === NO_ERROR) return leave()
    for (const [{ id = Number.POSITIVE_INFINITY }, asked] of running) {
      if (id > lastId) failsUnprocessed(asked)
    }
    for (const listener of breaksOff) listener.call(session, code, lastId)
  })
  const write = context.write.bind(context)
  let method = ''
  let written: Asked | undefined
  context.write = (asked) => {
    method = asked.method
    written = asked
    try {
      if (asked.body !== null) asked.method = WITH_BODY
      return write(asked)
    } catch (error) {
      // Thrown further, it would leave the client in the middle of its work for good.
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
    // Before undici listens.
    stream.once('error', () => {
      if (stream.rstCode !== REFUSED_STREAM) return
      failsUnprocessed(asked)
      leave()
    })
    onlyWholeEnds(stream)
    let isAnswered = false
    stream.once('response', () => {
      isAnswered = true
    })
    stream.once('close', () => {
      running.delete(stream)
      if (!isAnswered && SPENT.has(stream.rstCode)) leave()
    })
    // With CANCEL, as node:http2 does for a signal.
    stream.close = () => void addAbortSignal(ABORTED, stream)
    // Nobody wants them, and without them the end of the body is the end. Once undici listens.
    queueMicrotask(() => stream.removeAllListeners('trailers'))
    return stream
  }
}

/** Whatever it is told to have failed by. */
function failsUnprocessed(asked: Asked): void {
  const onError = asked.onError.bind(asked)
  asked.onError = (cause) => onError(new NotProcessed('refused by the upstream', { cause }))
}

/** What this version of undici keeps under that name; another one fails here, at its first connection. */
function memberOf<Member>(owner: object, name: string): Member {
  const member = (owner as Readonly<Record<symbol, unknown>>)[keyOf(owner, name)]
  invariant(typeof member === 'object' && member !== null, `undici has its ${name}`)
  return member as Member
}

function keyOf(owner: object, name: string): symbol {
  const key = Object.getOwnPropertySymbols(owner).find(({ description }) => description === name)
  invariant(key !== undefined, `undici knows of ${name}`)
  return key
}

/** END_STREAM ends the readable side while the stream is open; what else ends it closes it before. */
function onlyWholeEnds(stream: Stream): void {
  const push = stream.push.bind(stream)
  let isWhole = false
  stream.push = (chunk) => {
    if (chunk === null && !isWhole) {
      if (stream.closed) {
        // Not within the callback of node:http2, which has more to do with it.
        queueMicrotask(() => stream.destroy())
        return false
      }
      isWhole = true
    }
    return push(chunk)
  }
}
