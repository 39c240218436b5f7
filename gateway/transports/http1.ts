/**
 * HTTP/1.1 on node:http. Used if `server.http1_parser` is `node`, or if the native uWebSockets binary does not
 * load or is not the pinned one. It is slower and parses all of RFC 9112. With `server.transport = tls` it parses
 * the connections that do not choose HTTP/2.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { BodyReceiver } from '../body/body-receiver.js'
import type { ByteStream } from '../../runtime/kernel/stream.js'
import type {
  Answer,
  HttpExchange,
  HeaderBlock,
  HeaderPair,
  HeadFault,
  StreamedAnswer,
  StreamEnd,
} from '../http-exchange.js'
import {
  type AdmittedHead,
  admitHead,
  announcesBody,
  HEAD_BYTES_MAX,
  HeadCheck,
  TARGET_BYTES_MAX,
  targetOf,
} from '../request/request-smuggling-guard.js'
import { plainAddress } from './addresses.js'
import { ConnectionBounds, heldBytesOf, Turns } from './bounds.js'
import { inPieces, isLong, relayTo, UNREAD_MS_MAX } from '../response/relay.js'
import { droppedBytesMax, linger } from './linger.js'
import { namesAndValues, streamSink } from './node-sink.js'
import {
  ListenFailed,
  type ListenOptions,
  type Listener,
  OpenExchanges,
  IDLE_MS,
  REUSE_PORT,
  urlOf,
} from './open.js'
import { ReceivedRequest } from './received.js'
import { RefusedExchange } from './refused.js'

const HEADERS_MS_MAX = 12_000
/** Bodies of bytes up to this size are written in one piece with their head. */
const ONE_WRITE_BYTES_MAX = 16 * 1024
/** Time for the first byte of a connection. */
const FIRST_BYTE_MS_MAX = 12_000

/** One connection: its requests without an answer, and whether further requests are accepted. */
class Connection {
  /** In the order of the requests. The first one writes its answer, the others keep theirs until their turn. */
  readonly exchanges = new Set<Http1Exchange>()
  readonly turns: Turns
  /** Further requests are ignored. The parser still emits those that it has received. */
  isEnded = false
  /** The parser refused the rest of the last request's body. */
  isBodyBroken = false
  /** The request line of the current head is in an earlier TLS record. */
  hasHeadLine = false
  latest: IncomingMessage | null = null
  private last: (() => void) | null = null

  constructor(socket: Socket, bounds: ConnectionBounds) {
    const address = plainAddress(socket.remoteAddress ?? '')
    this.turns = new Turns(bounds, address, () => socket.destroy())
    this.turns.onEmpty = () => void socket.resume()
    // node:http reads on after each request that it has parsed.
    socket.on('resume', () => {
      if (this.turns.waiting > 0) stopReading(socket)
    })
    socket.once('close', () => {
      this.turns.end()
      // node:http reports this to the answer that is being written, and not to those behind it.
      for (const exchange of this.exchanges) exchange.leave()
    })
  }

  /** Sends the last answer of the connection, after the answers of the earlier requests. */
  endWith(answer: () => void): void {
    if (this.last !== null) return
    this.isEnded = true
    this.last = answer
    this.endIfDone()
  }

  finish(exchange: Http1Exchange): void {
    if (!this.exchanges.delete(exchange)) return
    this.turns.finish()
    if (this.turns.isEnded) return
    for (const next of this.exchanges) return next.takeTurn()
    this.endIfDone()
  }

  /** True if no request follows. */
  isLast(exchange: Http1Exchange): boolean {
    return this.isEnded && this.turns.waiting === 0 && [...this.exchanges].at(-1) === exchange
  }

  private endIfDone(): void {
    if (this.last === null || this.exchanges.size > 0 || this.turns.waiting > 0) return
    const { last } = this
    this.last = null
    last()
  }
}

type Shared = {
  draining: boolean
  readonly handler: ListenOptions['handler']
  readonly open: OpenExchanges
  readonly secure: boolean
  readonly unreadMs: number
  readonly idleMs: number
  readonly bounds: ConnectionBounds
  readonly connections: WeakMap<Socket, Connection>
  readonly sockets: Set<Socket>
  readonly connected: OpenExchanges
}

class Http1Exchange extends ReceivedRequest implements HttpExchange {
  readonly peerAddress: string
  readonly isHostless: boolean
  private readonly message: IncomingMessage
  private readonly response: ServerResponse
  private readonly shared: Shared
  private readonly connection: Connection
  private relayed: ByteStream | null = null
  /** Called when the earlier answers of the connection are written, or when it has closed. */
  private due: (() => void) | null = null
  private unsentBytes: number | null = null
  private isGone = false

  constructor(
    message: IncomingMessage,
    response: ServerResponse,
    shared: Shared,
    connection: Connection,
    head: AdmittedHead & { readonly isHostless: boolean },
  ) {
    super(head, shared.secure, announcesBody(head.headers))
    this.connection = connection
    this.message = message
    this.response = response
    this.shared = shared
    this.isHostless = head.isHostless
    this.peerAddress = plainAddress(message.socket.remoteAddress ?? '')
    shared.open.begin()
    connection.exchanges.add(this)
    response.on('close', () => this.leave())
    if (this.hasBody) this.receive()
    else message.resume()
  }

  turn(): true | Promise<void> {
    return this.hasTurn ? true : this.whenDue()
  }

  takeTurn(): void {
    const { due } = this
    this.due = null
    due?.()
  }

  async relay(answer: StreamedAnswer): Promise<StreamEnd> {
    const { status, block, headers, body, bodyBytes } = answer
    if (this.done) {
      body.cancel('the client left')
      return 'left'
    }
    this.done = true
    this.relayed = body
    if (!this.hasTurn) await this.whenDue()
    const { response } = this
    if (this.isGone) {
      this.shared.open.finish()
      return 'left'
    }
    const fields = this.answerFields(block, headers, answer.close === true)
    if (bodyBytes !== undefined) fields.push('content-length', String(bodyBytes))
    response.writeHead(status, fields)
    response.flushHeaders()
    const sink = streamSink(response, () => response.socket?.destroy())
    const end = await relayTo(sink, body, { bodyBytes, unreadMs: this.shared.unreadMs })
    this.relayed = null
    if (end === 'complete') this.cutUnread()
    this.dropRest()
    this.shared.open.finish()
    return end
  }

  send(answer: Answer): void {
    if (this.done) return
    this.done = true
    if (this.hasTurn) return this.write(answer)
    this.holdUnsent(answer)
    this.due = () => this.write(answer)
  }

  /** The earlier answers of the connection are written. */
  private get hasTurn(): boolean {
    for (const first of this.connection.exchanges) return first === this
    return true
  }

  private whenDue(): Promise<void> {
    return new Promise((resolve) => (this.due = resolve))
  }

  private holdUnsent({ body }: Answer): void {
    if (this.unsentBytes !== null) return
    this.unsentBytes = heldBytesOf(body)
    this.connection.turns.holdAnswer(this.unsentBytes)
  }

  private write(answer: Answer): void {
    const { response } = this
    const { status, block, headers, body } = answer
    if (this.isGone) return this.shared.open.finish()
    if (isLong(body) && this.method !== 'HEAD') {
      this.holdUnsent(answer)
      this.done = false
      void this.relay({ ...answer, body: inPieces(body), bodyBytes: Buffer.byteLength(body) })
      return
    }
    const fields = this.answerFields(block, headers, answer.close === true)
    if (status !== 204 && status !== 304) {
      fields.push('content-length', String(body === null ? 0 : Buffer.byteLength(body)))
    }
    response.writeHead(status, fields)
    if (body === null || this.method === 'HEAD') response.end()
    else if (typeof body === 'string' || body.byteLength > ONE_WRITE_BYTES_MAX) response.end(body)
    // As a text it goes to the socket together with the head.
    else
      response.end(
        Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1'),
        'latin1',
      )
    if (response.socket?.writableLength !== 0) {
      this.holdUnsent(answer)
      this.cutUnread()
    }
    this.dropRest()
    this.shared.open.finish()
  }

  /** Closes the connection if the client does not read the end of the answer in time. */
  private cutUnread(): void {
    const { response, message } = this
    if (response.socket?.writableLength === 0) return
    const timer = setTimeout(() => message.socket.destroy(), this.shared.unreadMs).unref()
    response.once('close', () => clearTimeout(timer))
  }

  /** Fails the body if the parser was in the middle of it. @returns true if so. */
  failBody(): boolean {
    if (this.receiver === null || this.receiver.complete) return false
    this.receiver.fail('malformed')
    return true
  }

  private answerFields(block: HeaderBlock, headers: readonly HeaderPair[], close: boolean) {
    const fields = namesAndValues(block, headers)
    const unread = this.receiver !== null && !this.receiver.complete
    if (close || this.shared.draining || unread || this.connection.isLast(this)) {
      fields.push('connection', 'close')
    }
    return fields
  }

  /** Reads on after the answer (`linger`), also where the reader of the body had paused it. */
  private dropRest(): void {
    if (this.receiver !== null && !this.receiver.complete) this.receiver.discard()
  }

  private receive(): void {
    const { message } = this
    const receiver = new BodyReceiver(
      {
        pause: () => void message.pause(),
        resume: () => void message.resume(),
      },
      droppedBytesMax(this.headers),
    )
    this.receiver = receiver
    if (this.connection.isBodyBroken && !message.complete) receiver.fail('malformed')
    message.on('data', (chunk: Buffer) => receiver.push(chunk))
    message.on('end', () => receiver.end())
    message.on('error', () => receiver.fail('aborted'))
  }

  /** The answer was written, or the connection has closed. */
  leave(): void {
    if (this.isGone) return
    this.isGone = true
    const { turns } = this.connection
    if (this.unsentBytes !== null) turns.releaseAnswer(this.unsentBytes)
    this.relayed?.cancel('the client left')
    this.takeTurn()
    this.connection.finish(this)
    if (this.done) return
    this.done = true
    this.receiver?.fail('aborted')
    this.aborted?.()
    this.shared.open.finish()
  }
}

/** A parser of HTTP/1.1 without a listener. */
export type Http1Parser = {
  readonly server: Server
  /** Serves a connection of another listener, after its TLS handshake. */
  accept(socket: Socket): void
  /** @returns whether all answers were given within the time. */
  drain(deadlineMs: number): Promise<boolean>
  close(): void
}

type ParserOptions = Pick<
  ListenOptions,
  'handler' | 'unreadMs' | 'idleMs' | 'lingerMs' | 'bounds'
> & {
  /** The connections are encrypted. */
  readonly secure: boolean
}

export async function openHttp1(options: ListenOptions): Promise<Listener> {
  const { host, port, isShared } = options
  const parser = createHttp1({ ...options, secure: false })
  const { server } = parser
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new ListenFailed(`cannot listen on ${host} port ${port}: ${error.message}`)),
    )
    server.listen({ host, port, exclusive: true, ...(isShared ? REUSE_PORT : {}) }, resolve)
  })
  const bound = (server.address() as AddressInfo).port
  return {
    url: urlOf('http', host, bound),
    port: bound,
    transport: 'http1',
    parser: 'node',
    keepAliveSecs: (options.idleMs ?? IDLE_MS) / 1000,
    drain: (deadlineMs) => parser.drain(deadlineMs),
    close: async () => parser.close(),
  }
}

/** The parser for connections that another listener accepts and decrypts. */
export function createHttp1OverTls(options: Omit<ParserOptions, 'secure'>): Http1Parser {
  const parser = createHttp1({ ...options, secure: true })
  // node:http begins to watch for late heads when its server listens. This one never does.
  parser.server.emit('listening')
  return parser
}

function createHttp1({
  handler,
  secure,
  unreadMs = UNREAD_MS_MAX,
  idleMs = IDLE_MS,
  lingerMs = 0,
  bounds = new ConnectionBounds(),
}: ParserOptions): Http1Parser {
  const shared: Shared = {
    draining: false,
    handler,
    open: new OpenExchanges(),
    secure,
    unreadMs,
    idleMs,
    bounds,
    connections: new WeakMap(),
    sockets: new Set(),
    connected: new OpenExchanges(),
  }
  const server = createServer(
    {
      maxHeaderSize: HEAD_BYTES_MAX + 2 * TARGET_BYTES_MAX,
      headersTimeout: HEADERS_MS_MAX,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: idleMs,
      requestTimeout: 0,
      // node:http would answer such a request itself and go on with the next one in the buffer.
      requireHostHeader: false,
      insecureHTTPParser: false,
    },
    (message, response) => beginRequest(shared, message, response),
  )
  server.on('connection', (socket) => beginConnection(shared, socket))
  server.on('connect', (message, stream) => refuse(shared, stream as Socket, 'tunnel', message))
  server.on('clientError', (error, stream) => refuseBytes(shared, error, stream as Socket))

  return {
    server,
    accept(socket) {
      // As the sockets of node:http: a client may close its side before it reads the answer.
      socket.allowHalfOpen = true
      server.emit('connection', socket)
      // A TLS record has 16 KiB, less than a head that is refused. The parser reports the last record only.
      const connection = connectionOf(shared, socket)
      socket.on('data', (record: Buffer) => {
        connection.hasHeadLine ||= record.includes(0x0a)
      })
    },
    async drain(deadlineMs) {
      const from = performance.now()
      if (!shared.draining) {
        shared.draining = true
        // The close of node:http cuts idle connections, on which a request may be under way.
        NetServer.prototype.close.call(server)
        if (lingerMs > 0) await shared.connected.none(Math.min(lingerMs, deadlineMs))
        server.closeIdleConnections()
      }
      return shared.open.none(deadlineMs - (performance.now() - from))
    },
    close() {
      shared.draining = true
      server.close()
      for (const socket of shared.sockets) socket.destroy()
    },
  }
}

function connectionOf({ connections, bounds }: Shared, socket: Socket): Connection {
  let connection = connections.get(socket)
  if (connection === undefined)
    connections.set(socket, (connection = new Connection(socket, bounds)))
  return connection
}

function beginConnection({ sockets, connected, idleMs }: Shared, socket: Socket): void {
  sockets.add(socket)
  connected.begin()
  // node:http calls this after it has written the last answer of a connection.
  socket.destroySoon = () => linger(socket)
  // headersTimeout does not cover a connection that has sent no byte.
  socket.setTimeout(Math.min(idleMs, FIRST_BYTE_MS_MAX), () => {
    if (socket.bytesRead === 0) socket.destroy()
  })
  socket.on('close', () => {
    sockets.delete(socket)
    connected.finish()
  })
}

function beginRequest(shared: Shared, message: IncomingMessage, response: ServerResponse): void {
  const { socket } = message
  // Ends the wait for the first byte. node:http would cut the connection while its first answer is prepared.
  socket.setTimeout(0)
  const connection = connectionOf(shared, socket)
  connection.hasHeadLine = false
  if (connection.isEnded) return
  const headers = fieldsOf(message)
  const method = message.method ?? ''
  const admitted = admitHead(headers, method, targetOf(method, message.url ?? ''))
  // Health checks of load balancers send HTTP/1.0 without a host.
  const hasHost = headers.has('host')
  const isHostless =
    !hasHost && message.httpVersion === '1.0' && admitted.path.startsWith('/health/')
  const fault =
    versionFault(message) ?? admitted.fault ?? (hasHost || isHostless ? null : 'malformed')
  if (fault === 'ambiguous') {
    connection.isEnded = true
    socket.destroy()
    return
  }
  if (fault !== null) connection.isEnded = true
  const head = { ...admitted, fault, isHostless }
  connection.latest = message
  const isStarted = connection.turns.begin(isSafe(method), () =>
    shared.handler(new Http1Exchange(message, response, shared, connection, head)),
  )
  if (!isStarted) stopReading(socket)
}

/** Answers what is not a request, after the earlier answers of the connection. */
function refuse(shared: Shared, socket: Socket, fault: HeadFault, message?: IncomingMessage): void {
  const exchange = new RefusedExchange({
    socket,
    secure: shared.secure,
    fault,
    method: message?.method,
    headers: message === undefined ? undefined : fieldsOf(message),
    onAnswered: () => linger(socket),
  })
  connectionOf(shared, socket).endWith(() => {
    // If the socket is not writable, the last of the earlier answers has closed the connection.
    if (socket.writable) shared.handler(exchange)
  })
}

function refuseBytes(shared: Shared, error: ParserError, socket: Socket): void {
  const connection = connectionOf(shared, socket)
  const fault = faultOf(error, connection.hasHeadLine)
  if (fault === null || socket.bytesRead === 0) {
    socket.destroy()
    return
  }
  if (connection.isEnded) return
  // The rest of the head is not read because earlier requests wait.
  if (fault === 'late' && connection.turns.waiting > 0) return
  const isInBody = connection.turns.waiting > 0 && connection.latest?.complete === false
  for (const exchange of connection.exchanges) {
    if (!isInBody && !exchange.failBody()) continue
    // The answer to that request reports the fault and closes the connection.
    connection.isEnded = true
    connection.isBodyBroken = isInBody
    return
  }
  refuse(shared, socket, fault)
}

/** Stops the reads of node:http, which listens to this event and does not get it from a paused socket. */
function stopReading(socket: Socket): void {
  if (socket.isPaused()) socket.emit('pause')
  else socket.pause()
}

/** The parser takes HTTP/0.9, also where the line has no version, and HTTP/2.0 for versions of this protocol. */
function versionFault({ httpVersion }: IncomingMessage): HeadFault | null {
  return httpVersion === '1.1' || httpVersion === '1.0' ? null : 'unknown_version'
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

type ParserError = Error & {
  readonly code?: string
  readonly reason?: string
  readonly rawPacket?: Buffer
}

/**
 * The fault of bytes that the parser refused, or null if the connection failed.
 * @param hasHeadLine the request line ended before these bytes.
 */
function faultOf(
  { code = '', reason, rawPacket }: ParserError,
  hasHeadLine: boolean,
): HeadFault | null {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'late'
  if (code === 'HPE_INVALID_EOF_STATE' || !code.startsWith('HPE_')) return null
  if (code === 'HPE_INVALID_TRANSFER_ENCODING') return 'unknown_coding'
  if (code === 'HPE_INVALID_VERSION' && reason === 'Invalid HTTP version') return 'unknown_version'
  if (code !== 'HPE_HEADER_OVERFLOW') return 'malformed'
  if (hasHeadLine) return 'too_large'
  // If the target is too long, the first line exceeds the limit.
  const lineEnd = rawPacket?.indexOf('\n') ?? -1
  return lineEnd < 0 || lineEnd > TARGET_BYTES_MAX ? 'target_too_long' : 'too_large'
}

function fieldsOf({ rawHeaders }: IncomingMessage): HeadCheck {
  const headers = new HeadCheck()
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.add(rawHeaders[index]!.toLowerCase(), rawHeaders[index + 1]!)
  }
  return headers
}
