/**
 * HTTP/1.1 on node:http: where the native uWebSockets binary does not load or is not the pinned one.
 * Slower, the same contract.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { BodyInbox } from '../body/inbox.js'
import { ByteStream } from '../../runtime/kernel/stream.js'
import type {
  Answer,
  BodyFailure,
  Exchange,
  HeaderBlock,
  HeaderFields,
  HeaderPair,
  HeadFault,
  StreamedAnswer,
  StreamEnd,
} from '../exchange.js'
import { announcesBody, HEAD_BYTES_MAX, HeadCheck } from '../guard.js'
import { plainAddress } from './addresses.js'
import { relayTo } from '../relay.js'
import { streamSink } from './node-sink.js'
import { ListenFailed, type ListenOptions, type Listener, OpenExchanges, urlOf } from './open.js'

const HEADERS_MS_MAX = 12_000
const IDLE_MS_MAX = 12_000
/** Fields that come more than once (RFC 9110 section 5.3, RFC 6265 section 3). */
const MANY = new Set(['set-cookie', 'link', 'vary', 'allow', 'cache-control'])

type Shared = {
  draining: boolean
  readonly open: OpenExchanges
  /** Sockets on which nothing more is believed; the parser goes on with what it has received. */
  readonly ended: WeakSet<Socket>
}

class Http1Exchange implements Exchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: HeaderFields
  readonly host: string
  readonly peerAddress: string
  readonly secure = false
  readonly hasBody: boolean
  readonly fault: HeadFault | null
  done = false
  private readonly message: IncomingMessage
  private readonly response: ServerResponse
  private readonly shared: Shared
  private inbox: BodyInbox | null = null
  private aborted: (() => void) | null = null
  private relayed: ByteStream | null = null

  constructor(
    message: IncomingMessage,
    response: ServerResponse,
    shared: Shared,
    head: Pick<Exchange, 'method' | 'path' | 'query' | 'headers' | 'fault'>,
  ) {
    this.message = message
    this.response = response
    this.shared = shared
    this.method = head.method
    this.path = head.path
    this.query = head.query
    this.headers = head.headers
    this.fault = head.fault
    this.host = head.headers.get('host')?.toLowerCase() ?? ''
    this.peerAddress = plainAddress(message.socket.remoteAddress ?? '')
    this.hasBody = announcesBody(head.method, head.headers)
    shared.open.begin()
    response.on('close', () => this.leave())
    if (this.hasBody) this.receive()
    else message.resume()
  }

  readBody(maxBytes: number, withinMs: number): Promise<Uint8Array> {
    if (this.inbox === null) return Promise.resolve(new Uint8Array(0))
    const declared = this.headers.get('content-length')
    return this.inbox.read(maxBytes, withinMs, declared === undefined ? 0 : Number(declared))
  }

  get bodyFailure(): BodyFailure | null {
    return this.inbox?.failure ?? null
  }

  streamBody(maxBytes: number): ByteStream {
    return this.inbox?.stream(maxBytes) ?? ByteStream.from([])
  }

  async relay({ status, block, headers, body }: StreamedAnswer): Promise<StreamEnd> {
    if (this.done) {
      body.cancel('the client left')
      return 'left'
    }
    this.done = true
    this.relayed = body
    const { response } = this
    this.writeFields(block, headers, false)
    response.writeHead(status)
    response.flushHeaders()
    const sink = streamSink(response, () => response.socket?.destroy())
    const end = await relayTo(sink, body)
    this.relayed = null
    this.shared.open.finish()
    return end
  }

  send(answer: Answer): void {
    if (this.done) return
    this.done = true
    const { response } = this
    const { status, block, headers, body } = answer
    this.writeFields(block, headers, answer.close === true)
    if (status !== 204 && status !== 304) {
      response.setHeader('content-length', body === null ? 0 : Buffer.byteLength(body))
    }
    response.writeHead(status)
    response.end(this.method === 'HEAD' ? undefined : (body ?? undefined))
    this.shared.open.finish()
  }

  onAborted(listener: () => void): void {
    this.aborted = listener
  }

  private writeFields(block: HeaderBlock, headers: readonly HeaderPair[], close: boolean): void {
    const { response } = this
    for (const [name, value] of block.pairs) response.setHeader(name, value)
    for (const [name, value] of headers) {
      if (MANY.has(name)) response.appendHeader(name, value)
      else response.setHeader(name, value)
    }
    const unread = this.inbox !== null && !this.inbox.complete
    const ended = this.shared.ended.has(this.message.socket)
    if (close || ended || this.shared.draining || unread) {
      response.setHeader('connection', 'close')
    }
  }

  private receive(): void {
    const { message } = this
    const inbox = new BodyInbox({
      pause: () => void message.pause(),
      resume: () => void message.resume(),
    })
    this.inbox = inbox
    message.on('data', (chunk: Buffer) => inbox.push(chunk))
    message.on('end', () => inbox.end())
    message.on('error', () => inbox.fail('aborted'))
  }

  private leave(): void {
    this.relayed?.cancel('the client left')
    if (this.done) return
    this.done = true
    this.inbox?.fail('aborted')
    this.aborted?.()
    this.shared.open.finish()
  }
}

export async function openHttp1({ host, port, handler }: ListenOptions): Promise<Listener> {
  const shared: Shared = {
    draining: false,
    open: new OpenExchanges(),
    ended: new WeakSet(),
  }
  const sockets = new Set<Socket>()
  const server = createServer(
    {
      maxHeaderSize: HEAD_BYTES_MAX * 2,
      headersTimeout: HEADERS_MS_MAX,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: IDLE_MS_MAX,
      requestTimeout: 0,
      // Answered by node:http itself, such a request would let the next one in the buffer run.
      requireHostHeader: false,
      insecureHTTPParser: false,
    },
    (message, response) => {
      const { socket } = message
      if (shared.ended.has(socket)) return
      const check = new HeadCheck()
      const { rawHeaders } = message
      for (let at = 0; at < rawHeaders.length; at += 2) {
        check.add(rawHeaders[at]!.toLowerCase(), rawHeaders[at + 1]!)
      }
      const method = message.method ?? ''
      const target = message.url ?? ''
      const mark = target.indexOf('?')
      const path = mark < 0 ? target : target.slice(0, mark)
      const query = mark < 0 ? '' : target.slice(mark + 1)
      const fault = check.judge(method, path, query)
      const lastOne = fault !== null || check.has('transfer-encoding')
      if (lastOne) shared.ended.add(socket)
      if (fault === 'ambiguous' || !check.has('host')) {
        shared.ended.add(socket)
        socket.destroy()
      } else {
        const head = { method, path, query, headers: check, fault }
        handler(new Http1Exchange(message, response, shared, head))
      }
    },
  )
  server.on('connection', (socket) => {
    sockets.add(socket)
    // A connection that has not sent a single byte is not counted by headersTimeout.
    socket.setTimeout(IDLE_MS_MAX, () => {
      if (socket.bytesRead === 0) socket.destroy()
    })
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('clientError', (_error, socket) => socket.destroy())

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new ListenFailed(`cannot listen on ${host} port ${port}: ${error.message}`)),
    )
    server.listen({ host, port, exclusive: true }, resolve)
  })
  const bound = (server.address() as AddressInfo).port

  return {
    url: urlOf('http', host, bound),
    port: bound,
    transport: 'http1',
    async drain(deadlineMs) {
      if (!shared.draining) server.close()
      shared.draining = true
      return shared.open.none(deadlineMs)
    },
    async close() {
      shared.draining = true
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
