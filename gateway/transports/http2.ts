/**
 * TLS in process. `server.transport = tls_h2_only` offers HTTP/2 alone. `tls` offers HTTP/2 and HTTP/1.1 by ALPN (RFC
 * 7301), and the parser of http1.ts serves the latter. HTTP/2 uses the stream API of node:http2, because the
 * compatibility API costs a third more.
 */
import {
  constants,
  createSecureServer,
  createServer,
  sensitiveHeaders,
  type Http2SecureServer,
  type Http2Server,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { BodyReceiver } from '../body/body-receiver.js'
import { outliveStreams } from '../../runtime/kernel/http2-handle.js'
import type { ByteStream } from '../../runtime/kernel/stream.js'
import type {
  Answer,
  HttpExchange,
  HeaderBlock,
  HeaderPair,
  StreamedAnswer,
  StreamEnd,
} from '../http-exchange.js'
import {
  type AdmittedHead,
  admitHead,
  HEAD_BYTES_MAX,
  HEADER_COUNT_MAX,
  HeadCheck,
  splitTarget,
} from '../request/request-smuggling-guard.js'
import { plainAddress } from './addresses.js'
import { ConnectionBounds, heldBytesOf, Turns, UNSENT_BYTES_MAX } from './bounds.js'
import {
  type CertificateFiles,
  type CertifiedPair,
  readCertificate,
  type Renewal,
  TLS,
  watchCertificate,
} from './certificate.js'
import { inPieces, isLong, relayTo, UNREAD_MS_MAX } from '../response/relay.js'
import type { Http1Parser } from './http1.js'
import { droppedBytesMax } from './linger.js'
import { streamSink } from './node-sink.js'
import {
  ListenFailed,
  type ListenOptions,
  type Listener,
  OpenExchanges,
  REUSE_PORT,
  REPEATABLE_FIELDS,
  urlOf,
  IDLE_MS,
} from './open.js'
import { ReceivedRequest } from './received.js'
import { endTimerWithSession } from './http2-timer.js'

const SESSIONS_MAX = 10_000
const STREAMS_PER_SESSION_MAX = 100
/** Time for the last answers to be sent when the service stops. */
const LAST_ANSWERS_MS = 2_000
/** A client that offers no protocol (ALPN) is disconnected after this. */
const UNKNOWN_PROTOCOL_MS = 2_000
const HANDSHAKE_MS = 10_000
/** The highest id of a stream. */
const LAST_STREAM_ID = 2 ** 31 - 1
/** Streams that a client may cancel within the window. More end the session (rapid reset, CVE-2023-44487). */
const RESETS_MAX = 100
const RESETS_WINDOW_MS = 10_000
/** Memory of a session, which bounds queued frames such as PING and SETTINGS. */
const SESSION_MEMORY_MIB = 10

type Http2Options = ListenOptions & {
  /** Null is HTTP/2 without TLS. Only benches use it, no setting does. */
  readonly tls: CertificateFiles | null
  /** Serves the connections of clients that choose HTTP/1.1 or name no protocol. Without it they are refused. */
  readonly http1?: Http1Parser | undefined
  /** False where HTTP/1.1 is all: `tls_http1`. Default: true. */
  readonly offersHttp2?: boolean | undefined
  /** How renewed certificates are detected. Without it they are not. */
  readonly renewal?: Renewal | undefined
  readonly monotonicMs: () => number
}

type Shared = {
  draining: boolean
  readonly handler: ListenOptions['handler']
  readonly open: OpenExchanges
  readonly secure: boolean
  readonly unreadMs: number
  readonly idleMs: number
  readonly lingerMs: number
  readonly bounds: ConnectionBounds
  readonly monotonicMs: () => number
  readonly sessions: Map<ServerHttp2Session, ReadonlySet<Http2Exchange>>
  readonly connected: OpenExchanges
}

/** What the streams of one session share. */
type Peer = {
  readonly turns: Turns
  readonly resets: ResetCount
  readonly exchanges: Set<Http2Exchange>
}

/** Listeners find the exchange on the stream, so that all streams share them. */
const EXCHANGE = Symbol('exchange')
type ServedStream = ServerHttp2Stream & { [EXCHANGE]?: Http2Exchange }

function leaveExchange(this: ServedStream): void {
  this[EXCHANGE]?.leave()
}

/** A stream that is reset with NO_ERROR stays open until its body is read, and accepts no answer. */
function destroyStream(this: ServerHttp2Stream): void {
  this.destroy()
}

class Http2Exchange extends ReceivedRequest implements HttpExchange {
  private readonly stream: ServerHttp2Stream
  private readonly shared: Shared
  private readonly peer: Peer
  private relayed: ByteStream | null = null
  /** True if the server reset the stream: that reset does not count against the client. */
  private broken = false
  /** It is worked on. */
  private isInTurn = false
  /** Room that is kept for its answer. */
  private reservedBytes = 0
  private unsentBytes: number | null = null
  /** When the end of the answer was written to the stream. */
  private endedMs: number | null = null

  constructor(
    stream: ServerHttp2Stream,
    shared: Shared,
    peer: Peer,
    head: AdmittedHead,
    hasBody: boolean,
  ) {
    super(head, shared.secure, hasBody)
    this.stream = stream
    this.peer = peer
    this.shared = shared
    peer.exchanges.add(this)
    shared.open.begin()
    ;(stream as ServedStream)[EXCHANGE] = this
    stream.on('close', leaveExchange)
    stream.on('aborted', destroyStream)
  }

  /** Called in its turn. @returns false if the client has left. */
  begin(): boolean {
    this.isInTurn = true
    if (this.done) this.endTurn()
    else if (this.hasBody) this.receive()
    return !this.done
  }

  /** The next request of the session may begin. */
  private endTurn(): void {
    if (!this.isInTurn) return
    this.isInTurn = false
    this.peer.turns.finish(this.reservedBytes)
    this.reservedBytes = 0
  }

  turn(expectedBytes: number): true | Promise<void> {
    const bytes = Math.min(expectedBytes, UNSENT_BYTES_MAX)
    const room = this.peer.turns.reserve(bytes)
    if (room === true) {
      this.reservedBytes = bytes
      return true
    }
    return room.then(() => {
      if (this.isInTurn) this.reservedBytes = bytes
      else this.peer.turns.unreserve(bytes)
    })
  }

  private holdUnsent(body: string | Uint8Array): void {
    this.unsentBytes = heldBytesOf(body)
    this.peer.turns.holdAnswer(this.unsentBytes)
  }

  /** True if the client waits for the server. Silence does not mean then that the client has left. */
  get isOwed(): boolean {
    return !this.done || (this.relayed !== null && !this.stream.writableNeedDrain)
  }

  get peerAddress(): string {
    return this.peer.turns.address
  }

  async relay({ status, block, headers, body, bodyBytes }: StreamedAnswer): Promise<StreamEnd> {
    const { stream } = this
    this.endTurn()
    if (this.done || stream.destroyed || stream.headersSent) {
      body.cancel('the client left')
      return 'left'
    }
    this.done = true
    this.relayed = body
    const fields = fieldsOf(status, block, headers)
    if (bodyBytes !== undefined) fields['content-length'] = bodyBytes
    stream.respond(fields)
    const sink = streamSink(stream, () => this.cut())
    const end = await relayTo(sink, body, { bodyBytes, unreadMs: this.shared.unreadMs })
    this.relayed = null
    if (end === 'complete') {
      this.endedMs = this.shared.monotonicMs()
      this.refuseRest()
    }
    this.shared.open.finish()
    return end
  }

  /** Resets the stream if the client did not read the end of the answer in time. */
  cutUnread(nowMs: number): void {
    if (this.endedMs === null || nowMs - this.endedMs < this.shared.unreadMs) return
    const { stream } = this
    if (!stream.writableFinished && !stream.destroyed) this.cut()
  }

  private cut(): void {
    this.broken = true
    this.stream.destroy(new Error('the answer ended early'))
  }

  send(answer: Answer): void {
    if (this.done) return
    const { stream } = this
    const { body, status } = answer
    if (isLong(body) && this.method !== 'HEAD') {
      this.holdUnsent(body)
      void this.relay({ ...answer, body: inPieces(body), bodyBytes: bytesOf(body) })
      return
    }
    this.done = true
    this.shared.open.finish()
    this.endTurn()
    if (stream.destroyed || stream.headersSent) return
    this.endedMs = this.shared.monotonicMs()
    const fields = fieldsOf(answer.status, answer.block, answer.headers)
    const bodiless = status === 204 || status === 304
    if (!bodiless) fields['content-length'] = body === null ? 0 : bytesOf(body)
    if (bodiless || body === null || body.length === 0 || this.method === 'HEAD') {
      stream.respond(fields, { endStream: true })
    } else {
      this.holdUnsent(body)
      stream.respond(fields)
      stream.end(body)
    }
    this.refuseRest()
  }

  /** Tells the client to stop sending a body that is not read (RFC 9113 section 8.1). */
  private refuseRest(): void {
    const { stream } = this
    if (this.receiver === null || stream.readableEnded) return
    stream.once('finish', () => stream.close(constants.NGHTTP2_NO_ERROR))
  }

  private receive(): void {
    const { stream } = this
    const receiver = new BodyReceiver(
      {
        pause: () => void stream.pause(),
        resume: () => void stream.resume(),
      },
      droppedBytesMax(this.headers),
    )
    this.receiver = receiver
    stream.on('data', (chunk: Buffer) => receiver.push(chunk))
    stream.on('end', () => receiver.end())
    // Some clients, the fetch of undici among them, leave the stream of an empty body open.
    if (this.headers.get('content-length') === '0') receiver.end()
  }

  /** The stream has closed. */
  leave(): void {
    this.peer.exchanges.delete(this)
    if (this.unsentBytes !== null) this.peer.turns.releaseAnswer(this.unsentBytes)
    if (this.stream.aborted && !this.broken) this.peer.resets.count()
    this.relayed?.cancel('the client left')
    if (this.done) return
    this.done = true
    this.endTurn()
    this.receiver?.fail('aborted')
    this.aborted?.()
    this.shared.open.finish()
  }
}

/**
 * Fields whose value differs in each answer. Kept out of the table of HPACK (RFC 7541 section 2.3.2), they need some bytes
 * more, and less time: nothing is entered and displaced for a value that never occurs again.
 */
const NEVER_INDEXED = ['x-request-id', 'ratelimit']

function bytesOf(body: string | Uint8Array): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength
}

/**
 * The fields of an answer, assigned one by one: V8 then reuses the hidden classes of earlier answers. A spread of a kept
 * object costs ten times more.
 */
function fieldsOf(
  status: number,
  block: HeaderBlock,
  headers: readonly HeaderPair[],
): OutgoingHttpHeaders {
  // The pseudo-header field comes first (RFC 9113 section 8.3).
  const fields: OutgoingHttpHeaders = { ':status': status, [sensitiveHeaders]: NEVER_INDEXED }
  for (const [name, value] of block.pairs) fields[name] = value
  for (const [name, value] of headers) {
    const earlier = REPEATABLE_FIELDS.has(name) ? fields[name] : undefined
    fields[name] = earlier === undefined ? value : [earlier, value].flat().map(String)
  }
  return fields
}

const LIMITS = {
  settings: {
    maxConcurrentStreams: STREAMS_PER_SESSION_MAX,
    maxHeaderListSize: HEAD_BYTES_MAX,
    enablePush: false,
  },
  maxSessionMemory: SESSION_MEMORY_MIB,
  maxHeaderListPairs: HEADER_COUNT_MAX + 6,
  maxOutstandingPings: 2,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  unknownProtocolTimeout: UNKNOWN_PROTOCOL_MS,
}

/** A server that offers `protocols` by ALPN, the first one that the client knows. */
function createTlsServer(pair: CertifiedPair, offered: readonly string[]): Http2SecureServer {
  return createSecureServer({
    ...LIMITS,
    allowHTTP1: false,
    ALPNCallback: ({ protocols }) => offered.find((protocol) => protocols.includes(protocol)),
    ...TLS,
    handshakeTimeout: HANDSHAKE_MS,
    ...pair,
  })
}

export async function openHttp2(options: Http2Options): Promise<Listener> {
  const { host, port, handler, tls, http1, offersHttp2 = true, monotonicMs } = options
  const { renewal, isShared, unreadMs = UNREAD_MS_MAX, lingerMs = 0 } = options
  const { bounds = new ConnectionBounds(), idleMs = IDLE_MS } = options
  const shared: Shared = {
    draining: false,
    handler,
    open: new OpenExchanges(),
    secure: tls !== null,
    unreadMs,
    idleMs,
    lingerMs,
    bounds,
    monotonicMs,
    sessions: new Map(),
    connected: new OpenExchanges(),
  }
  const offered = [...(offersHttp2 ? ['h2'] : []), ...(http1 === undefined ? [] : ['http/1.1'])]
  const pair = tls === null ? null : readCertificate(tls)
  const secured = pair === null ? null : createTlsServer(pair, offered)
  const server: Http2Server | Http2SecureServer = secured ?? createServer(LIMITS)
  server.maxConnections = SESSIONS_MAX
  if (http1 !== undefined) {
    server.on('unknownProtocol', (socket: Socket) => http1.accept(socket))
  }
  server.on('session', (session) => beginSession(shared, session))
  server.on('sessionError', ignore)

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new ListenFailed(`cannot listen on ${host} port ${port}: ${error.message}`)),
    )
    server.listen({ host, port, exclusive: true, ...(isShared ? REUSE_PORT : {}) }, resolve)
  })
  const unwatch =
    tls === null || pair === null || renewal === undefined
      ? ignore
      : watchCertificate(tls, pair, renewal, (next) =>
          secured?.setSecureContext({ ...TLS, ...next }),
        )
  const unread = setInterval(() => {
    const nowMs = monotonicMs()
    for (const exchanges of shared.sessions.values()) {
      for (const exchange of exchanges) exchange.cutUnread(nowMs)
    }
  }, unreadMs / 3).unref()
  const bound = (server.address() as AddressInfo).port

  return {
    url: urlOf(tls === null ? 'http' : 'https', host, bound),
    port: bound,
    transport: http1 === undefined ? 'http2' : offersHttp2 ? 'tls' : 'http1_tls',
    parser: 'node',
    keepAliveSecs: idleMs / 1000,
    async drain(deadlineMs) {
      unwatch()
      const isFirst = !shared.draining
      shared.draining = true
      if (isFirst) server.close()
      const from = monotonicMs()
      const leftMs = () => deadlineMs - (monotonicMs() - from)
      const http1Drained = http1?.drain(deadlineMs) ?? true
      if (isFirst && lingerMs > 0) {
        for (const session of shared.sessions.keys()) announceEnd(session)
        await shared.connected.none(Math.min(lingerMs, deadlineMs))
      }
      for (const session of shared.sessions.keys()) session.close()
      if (!(await shared.open.none(leftMs())) || !(await http1Drained)) return false
      // A session closes after its last answers are sent, or when its client closes it.
      await shared.connected.none(Math.min(LAST_ANSWERS_MS, leftMs()))
      return true
    },
    async close() {
      unwatch()
      clearInterval(unread)
      shared.draining = true
      server.close()
      http1?.close()
      for (const session of shared.sessions.keys()) endNow(session, true)
    },
  }
}

function beginSession(shared: Shared, session: ServerHttp2Session): void {
  const { bounds, idleMs, monotonicMs } = shared
  outliveStreams(session)
  endTimerWithSession(session)
  const exchanges = new Set<Http2Exchange>()
  const peer: Peer = {
    turns: new Turns(bounds, plainAddress(session.socket?.remoteAddress ?? ''), () =>
      session.destroy(),
    ),
    resets: new ResetCount(session, monotonicMs),
    exchanges,
  }
  shared.sessions.set(session, exchanges)
  shared.connected.begin()
  session.setTimeout(idleMs)
  session.on('timeout', () => {
    if ([...exchanges].some(({ isOwed }) => isOwed)) session.setTimeout(idleMs)
    else endNow(session, exchanges.size > 0)
  })
  session.on('error', () => session.destroy())
  session.once('close', () => {
    shared.sessions.delete(session)
    peer.turns.end()
    shared.connected.finish()
  })
  session.on('stream', (stream: ServerHttp2Stream, _: unknown, flags: number, fields: string[]) =>
    beginStream(shared, peer, stream, flags, fields),
  )
  if (shared.draining && shared.lingerMs > 0) announceEnd(session)
  else if (shared.draining) session.close()
}

function beginStream(
  shared: Shared,
  peer: Peer,
  stream: ServerHttp2Stream,
  flags: number,
  fields: readonly string[],
): void {
  stream.on('error', ignore)
  const head = headOf(fields)
  if (head === null) {
    stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
    return
  }
  const ended = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
  const exchange = new Http2Exchange(stream, shared, peer, head, !ended)
  peer.turns.begin(true, () => {
    if (exchange.begin()) shared.handler(exchange)
  })
}

/**
 * The GOAWAY before the last one (RFC 9113 section 6.8): it names the highest stream, so that requests that are under
 * way are still served, and the client opens no further streams.
 */
function announceEnd(session: ServerHttp2Session): void {
  if (!session.closed && !session.destroyed) {
    session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM_ID)
  }
}

/** @param isCut answers are being sent: they are reset with an error, otherwise they would look complete. */
function endNow(session: ServerHttp2Session, isCut: boolean): void {
  if (isCut) session.destroy(new Error('answers ended early'))
  else session.destroy()
}

/**
 * The head of a stream, or null if HTTP/2 itself forbids it (RFC 9113 sections 8.2, 8.3).
 * @param fields names and values in turn, as received: the object of node:http2 keeps only the first of two.
 */
function headOf(fields: readonly string[]): AdmittedHead | null {
  const headers = new HeadCheck()
  let method = ''
  let target = ''
  let authority: string | null = null
  for (let index = 0; index < fields.length; index += 2) {
    const [name, value] = [fields[index]!, fields[index + 1]!]
    if (name.charCodeAt(0) !== 0x3a) headers.add(name, value)
    else if (name === ':method') method = value
    else if (name === ':path') target = value
    else if (name === ':authority') authority = value.toLowerCase()
  }
  const head = admitHead(headers, method, splitTarget(target, authority))
  if (head.fault === 'ambiguous') return null
  const hostField = headers.get('host')?.toLowerCase()
  const isMismatch = authority !== null && hostField !== undefined && authority !== hostField
  return isMismatch ? { ...head, fault: 'malformed' } : head
}

/** Ends a session whose client cancels more streams than `RESETS_MAX` within the window. */
class ResetCount {
  private readonly session: ServerHttp2Session
  private readonly monotonicMs: () => number
  private resets = 0
  private windowStart: number

  constructor(session: ServerHttp2Session, monotonicMs: () => number) {
    this.session = session
    this.monotonicMs = monotonicMs
    this.windowStart = monotonicMs()
  }

  count(): void {
    const now = this.monotonicMs()
    if (now - this.windowStart > RESETS_WINDOW_MS) {
      this.windowStart = now
      this.resets = 0
    }
    this.resets += 1
    if (this.resets >= RESETS_MAX) this.session.destroy()
  }
}

function ignore(): void {}
