/**
 * HTTP/1.1 without TLS on uWebSockets.js: `server.transport = plain_http`.
 *
 * Native request objects die when the handler returns and native responses die with the socket, so
 * everything is copied at once and nothing native leaves this file.
 */
import { STATUS_CODES } from 'node:http'
import type { HttpRequest, HttpResponse, us_listen_socket } from 'uWebSockets.js'
import { BodyReceiver } from '../body/body-receiver.js'
import { ByteStream } from '../../runtime/kernel/stream.js'
import type {
  Answer,
  BodyFailure,
  HttpExchange,
  HeaderBlock,
  HeaderFields,
  HeaderPair,
  HeadFault,
  StreamedAnswer,
  StreamEnd,
} from '../http-exchange.js'
import {
  type AdmittedHead,
  admitHead,
  announcesBody,
  HeadCheck,
} from '../request/request-smuggling-guard.js'
import { inPieces, relayTo, UNREAD_MS_MAX } from '../response/relay.js'
import { DROPPED_BYTES_MAX } from './linger.js'
import type { Uws } from './native.js'
import { ListenFailed, type ListenOptions, type Listener, OpenExchanges, urlOf } from './open.js'
import { KnownBody } from './uws-body.js'

const STATUS_LINES = new Map(
  Object.entries(STATUS_CODES).map(([status, reason]) => [Number(status), `${status} ${reason}`]),
)

/** How long the first chunk of an event stream is waited for, before its head is sent without one. */
const HEAD_WAIT_MS = 20

type Shared = {
  draining: boolean
  readonly open: OpenExchanges
  readonly peers: PeerNames
  readonly unreadMs: number
}
/** A body that is being written. */
type Relayed = { gone: boolean; wake: (() => void) | null; readonly body: ByteStream }

class UwsExchange implements HttpExchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: HeaderFields
  readonly host: string
  readonly secure = false
  readonly hasBody: boolean
  readonly fault: HeadFault | null
  done = false
  /** Answered or cut: nothing native may be touched. */
  private gone = false
  private readonly res: HttpResponse
  private readonly shared: Shared
  private readonly chunked: boolean
  private receiver: BodyReceiver | null = null
  private aborted: (() => void) | null = null
  private peer: string | null = null
  /** The answer is given once the rest of the body was read. */
  private isHeld = false
  /** While a body is being relayed: who is to be told when the client leaves. */
  private relayed: Relayed | null = null

  constructor(res: HttpResponse, shared: Shared, head: AdmittedHead) {
    const { method, headers } = head
    this.res = res
    this.shared = shared
    this.method = method
    this.path = head.path
    this.query = head.query
    this.headers = headers
    this.fault = head.fault
    this.host = head.host
    this.chunked = headers.has('transfer-encoding')
    this.hasBody = announcesBody(method, headers)
    shared.open.begin()
    res.onAborted(() => this.leave())
    if (this.hasBody) this.receive()
  }

  get peerAddress(): string {
    if (this.peer === null) {
      this.peer = this.done ? '' : this.shared.peers.nameOf(this.res.getRemoteAddress())
    }
    return this.peer
  }

  readBody(maxBytes: number, withinMs: number): Promise<Uint8Array> {
    if (this.receiver === null) return Promise.resolve(new Uint8Array(0))
    const declared = this.headers.get('content-length')
    return this.receiver.read(maxBytes, withinMs, declared === undefined ? 0 : Number(declared))
  }

  get bodyFailure(): BodyFailure | null {
    return this.receiver?.failure ?? null
  }

  streamBody(maxBytes: number): ByteStream {
    return this.receiver?.stream(maxBytes) ?? ByteStream.from([])
  }

  async relay(answer: StreamedAnswer): Promise<StreamEnd> {
    const { status, block, headers, body, bodyBytes, filler } = answer
    if (this.done) {
      body.cancel('the client left')
      return 'left'
    }
    this.done = true
    const bodiless = this.method === 'HEAD' || status === 204 || status === 304
    if (bodyBytes !== undefined && !bodiless) return this.relayKnown(answer, bodyBytes)
    const { res } = this
    const relayed: Relayed = { gone: false, wake: null, body }
    this.relayed = relayed
    const wake = () => {
      relayed.wake?.()
      relayed.wake = null
    }
    res.onWritable(() => {
      wake()
      return true
    })
    // The native side finishes a head with the first chunk. Sent before, half a head would be all
    // that a client gets of a body that breaks off, and some take that for an empty answer.
    let unsent = true
    const head = () => {
      if (!unsent) return
      unsent = false
      if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status))
      writeHeaders(res, block, headers)
      if (this.closes) res.writeHeader('connection', 'close')
    }
    // The first chunk may be on its way already; otherwise an event stream shows its head by a comment.
    const waiting =
      filler === undefined || bodiless
        ? undefined
        : setTimeout(() => {
            if (!unsent || relayed.gone || this.gone) return
            res.cork(() => {
              head()
              res.write(filler)
            })
          }, HEAD_WAIT_MS)
    const end = await relayTo(
      {
        // Written corked: the line that tells the length goes out with the chunk.
        write: (chunk) => {
          let taken = true
          res.cork(() => {
            if (bodiless) return
            head()
            taken = res.write(chunk)
          })
          return taken
        },
        whenRoom: () =>
          new Promise((resolve) => {
            relayed.wake = resolve
          }),
        end: () => {
          if (!this.closes) {
            this.receiver?.discard()
            return this.endBody(bodiless, head)
          }
          // A turn later, as in `send`. Told to close, the native side would write the header field
          // for it into the body; not read any more, the connection ends by its idle time.
          setImmediate(() => {
            if (this.gone) return
            res.pause()
            this.endBody(bodiless, head)
          })
        },
        break: () => res.close(),
        get gone() {
          return relayed.gone
        },
        get unsent() {
          return unsent
        },
      },
      body,
      { unreadMs: this.shared.unreadMs },
    )
    clearTimeout(waiting)
    return this.relayEnded(end)
  }

  /** The same with a content-length. */
  private async relayKnown(answer: StreamedAnswer, totalBytes: number): Promise<StreamEnd> {
    const { status, block, headers, body } = answer
    const { res, closes } = this
    const known = this.known(body, totalBytes, () => {
      if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status))
      writeHeaders(res, block, headers)
      if (closes) res.writeHeader('connection', 'close')
    })
    if (closes) {
      // A turn later, and nothing more is read: see `relay`.
      await new Promise((resolve) => setImmediate(resolve))
      if (!known.gone) res.pause()
    } else this.receiver?.discard()
    return this.writeKnown(known, totalBytes)
  }

  private known(body: ByteStream, totalBytes: number, head: (() => void) | null): KnownBody {
    const onComplete = () => {
      this.gone = true
    }
    const known = new KnownBody({ res: this.res, body, totalBytes, head, onComplete })
    this.relayed = known
    return known
  }

  private async writeKnown(known: KnownBody, bodyBytes: number): Promise<StreamEnd> {
    const { unreadMs } = this.shared
    return this.relayEnded(await relayTo(known, known.body, { bodyBytes, unreadMs }))
  }

  private relayEnded(end: StreamEnd): StreamEnd {
    this.relayed = null
    // Closing tells `onAborted`, which has counted it by then.
    if (end === 'complete') this.shared.open.finish()
    else if (typeof end === 'object') this.done = false
    return end
  }

  /** Within a cork, behind the head: the connection goes on once the client has read the answer. */
  private endAtPace(body: string | Uint8Array | null): void {
    const { res } = this
    if (body === null || body.length === 0) {
      res.end('')
      this.shared.open.finish()
      return
    }
    const totalBytes = Buffer.byteLength(body)
    const [, isComplete] = res.tryEnd(body, totalBytes)
    if (isComplete) {
      this.shared.open.finish()
      return
    }
    this.gone = false
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const rest = bytes.subarray(res.getWriteOffset())
    void this.writeKnown(this.known(inPieces(rest), totalBytes, null), rest.byteLength)
  }

  private endBody(bodiless: boolean, head: () => void): void {
    const { res } = this
    this.gone = true
    res.cork(() => {
      head()
      if (bodiless) res.endWithoutBody()
      else res.end()
    })
  }

  /** Whether nothing more may be read from this connection. */
  private get closes(): boolean {
    return this.chunked || this.shared.draining
  }

  send(answer: Answer): void {
    if (this.done) return
    const close = this.closes || this.fault !== null || answer.close === true
    if (this.mustReadOn(close)) {
      // The native side closes as it answers, and a reset for bytes that were not read can take the
      // answer away from a client that writes to the end before it reads (RFC 9112 section 9.6).
      this.done = true
      this.isHeld = true
      this.receiver!.drop(DROPPED_BYTES_MAX, () => {
        // A turn later: answered within it, what came in one segment with the body would run.
        setImmediate(() => {
          if (!this.isHeld) return
          this.isHeld = false
          this.done = false
          this.write(answer, close)
        })
      })
    } else if (this.chunked || this.fault !== null) {
      // Chunk lines ended by a bare LF are not told apart by the native parser, so what follows a
      // chunked body may be a smuggled request: it is not read, and the connection is closed behind
      // the answer. What came in one segment with the body ends the connection before it. The same
      // for a head that was refused.
      setImmediate(() => this.write(answer, true))
    } else {
      this.write(answer, close)
    }
  }

  /** Whether the connection ends with the answer while a body is still coming that we are ready to drop. */
  private mustReadOn(close: boolean): boolean {
    const { receiver, headers } = this
    if (receiver === null || receiver.complete) return false
    if (!close && headers.get('connection')?.toLowerCase() !== 'close') return false
    return Number(headers.get('content-length') ?? 0) <= DROPPED_BYTES_MAX
  }

  onAborted(listener: () => void): void {
    this.aborted = listener
  }

  private receive(): void {
    const { res } = this
    const receiver = new BodyReceiver({
      pause: () => void (this.gone || res.pause()),
      resume: () => void (this.gone || res.resume()),
    })
    this.receiver = receiver
    res.onData((chunk, isLast) => {
      if (chunk.byteLength > 0) receiver.push(new Uint8Array(chunk.slice(0)))
      if (!isLast) return
      receiver.end()
      // What follows is not read before the first request has its answer, and not believed after it.
      if (this.chunked && !this.gone) res.pause()
    })
  }

  private write(answer: Answer, close: boolean): void {
    if (this.done) return
    this.done = true
    if (!close) this.receiver?.discard()
    this.gone = true
    const { res } = this
    const { status, block, headers, body } = answer
    const isHead = this.method === 'HEAD' && status !== 204 && status !== 304
    // There is no native way to end a head and to close: not read any more, the connection ends by
    // its idle time, or when the client does as it was told.
    if (isHead && close) res.pause()
    res.cork(() => {
      if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status))
      writeHeaders(res, block, headers)
      if (close) res.writeHeader('connection', 'close')
      if (status === 204 || status === 304) {
        // Without arguments no content-length is written (RFC 9110 section 8.6); with the argument
        // that closes there is no way to leave it out.
        if (close) res.endWithoutBody(0, true)
        else res.endWithoutBody()
      } else if (isHead) {
        // Told the length, the native side waits for a body that never comes: the connection would
        // be cut at its next request, and without one stay open for ever.
        res.writeHeader('content-length', String(body === null ? 0 : Buffer.byteLength(body)))
        res.endWithoutBody()
      } else if (close) res.end(body ?? '', true)
      else return this.endAtPace(body)
      this.shared.open.finish()
    })
  }

  private leave(): void {
    const { relayed } = this
    this.gone = true
    if (relayed !== null) {
      relayed.gone = true
      this.relayed = null
      this.receiver?.fail('aborted')
      relayed.body.cancel('the client left')
      relayed.wake?.()
      this.shared.open.finish()
      return
    }
    if (this.isHeld) {
      this.isHeld = false
      this.shared.open.finish()
      return
    }
    if (this.done) return
    this.done = true
    this.receiver?.fail('aborted')
    this.aborted?.()
    this.shared.open.finish()
  }
}

/** Without it a second process shares the port silently (SO_REUSEPORT) and takes half the requests. */
const LISTEN_EXCLUSIVE_PORT = 1

/** The overload with host and options exists natively; the type definitions leave it out. */
type ListenOnHost = (
  host: string,
  port: number,
  options: number,
  listening: (token: us_listen_socket | false) => void,
) => void

export async function openUws(uws: Uws, options: ListenOptions): Promise<Listener> {
  const { host, port, handler, unreadMs = UNREAD_MS_MAX } = options
  const app = uws.App()
  const shared: Shared = {
    draining: false,
    open: new OpenExchanges(),
    peers: new PeerNames(),
    unreadMs,
  }

  app.any('/*', (res: HttpResponse, req: HttpRequest) => {
    const headers = new HeadCheck()
    req.forEach((name, value) => headers.add(name, value))
    const target = { path: req.getUrl(), query: req.getQuery() ?? '', authority: null }
    const head = admitHead(headers, req.getCaseSensitiveMethod(), target)
    // No answer: after an answer the parser would read the rest of the buffer as another request.
    if (head.fault === 'ambiguous') res.close()
    else handler(new UwsExchange(res, shared, head))
  })

  const socket = await new Promise<us_listen_socket>((resolve, reject) => {
    const listen = app.listen.bind(app) as unknown as ListenOnHost
    listen(host, port, LISTEN_EXCLUSIVE_PORT, (token) => {
      if (token !== false) resolve(token)
      else
        reject(
          new ListenFailed(
            `cannot listen on ${host} port ${port}: taken, or not an address of this machine`,
          ),
        )
    })
  })
  const bound = uws.us_socket_local_port(socket)

  return {
    url: urlOf('http', host, bound),
    port: bound,
    transport: 'uws',
    async drain(deadlineMs) {
      if (!shared.draining) uws.us_listen_socket_close(socket)
      shared.draining = true
      return shared.open.none(deadlineMs)
    },
    async close() {
      shared.draining = true
      app.close()
    },
  }
}

/**
 * All headers in one native call: a call costs more than a header does. The native side writes
 * values as they are, so a value may carry the lines of the headers behind it; the pipeline has
 * refused CR and LF in every value that is not ours.
 */
function writeHeaders(res: HttpResponse, block: HeaderBlock, pairs: readonly HeaderPair[]): void {
  const [first] = pairs
  if (block.wire === null && first === undefined) return
  let at = 0
  let name: string
  let lines: string
  if (block.wire === null) {
    ;[name, lines] = first!
    at = 1
  } else [name, lines] = block.wire
  for (; at < pairs.length; at += 1) lines += `\r\n${pairs[at]![0]}: ${pairs[at]![1]}`
  res.writeHeader(name, lines)
}

/** Textual peer addresses; the last few thousand IPv4 ones are kept, they come back at once. */
class PeerNames {
  private readonly known = new Map<number, string>()

  nameOf(address: ArrayBuffer): string {
    const bytes = new Uint8Array(address)
    if (bytes.length === 4) return this.v4(bytes, 0)
    if (bytes.length !== 16) return ''
    return isMapped(bytes) ? this.v4(bytes, 12) : v6(bytes)
  }

  private v4(bytes: Uint8Array, at: number): string {
    const [a, b, c, d] = [bytes[at]!, bytes[at + 1]!, bytes[at + 2]!, bytes[at + 3]!]
    const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
    const known = this.known.get(number)
    if (known !== undefined) return known
    const text = `${a}.${b}.${c}.${d}`
    if (this.known.size >= 4_096) this.known.clear()
    this.known.set(number, text)
    return text
  }
}

/** ::ffff:0:0/96, as IPv4 peers of a socket for both are named. */
function isMapped(bytes: Uint8Array): boolean {
  for (let at = 0; at < 10; at += 1) if (bytes[at] !== 0) return false
  return bytes[10] === 0xff && bytes[11] === 0xff
}

/** RFC 5952 without the zero run shortened: one spelling per address is all that is needed. */
function v6(bytes: Uint8Array): string {
  const groups: string[] = []
  for (let at = 0; at < 16; at += 2) groups.push(((bytes[at]! << 8) | bytes[at + 1]!).toString(16))
  return groups.join(':')
}
