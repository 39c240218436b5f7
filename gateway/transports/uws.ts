/**
 * A request and its answer on uWebSockets.js. Native responses are invalid after the socket closes, so native objects stay
 * in this file, uws-body.ts and uws-listener.ts.
 */
import { STATUS_CODES } from 'node:http'
import type { HttpResponse } from 'uWebSockets.js'
import { BodyReceiver } from '../body/body-receiver.js'
import type { ByteStream } from '../../runtime/kernel/stream.js'
import { systemClock } from '../../runtime/kernel/clock.js'
import { releaseReceived } from '../../runtime/kernel/threads/received-bytes.js'
import type {
  Answer,
  HttpExchange,
  HeaderBlock,
  HeaderPair,
  StreamedAnswer,
  StreamEnd,
} from '../http-exchange.js'
import { type AdmittedHead, announcesBody } from '../request/request-smuggling-guard.js'
import { inPieces, isLong, relayTo } from '../response/relay.js'
import { type ConnectionBounds, heldBytesOf, Holder } from './bounds.js'
import { DROPPED_BYTES_MAX, droppedBytesMax } from './linger.js'
import { OpenExchanges } from './open.js'
import { ReceivedRequest } from './received.js'
import { KnownBody } from './uws-body.js'

const STATUS_LINES = new Map(
  Object.entries(STATUS_CODES).map(([status, reason]) => [Number(status), `${status} ${reason}`]),
)

/** The native side closes a silent connection without an answer, after 8 s at the earliest. */
const SILENT_MS_MAX = 7_000
/** Longer answers that close the connection are written as the client reads them. */
const CLOSING_CHARS_MAX = 8 * 1024

/** What the exchanges of a listener share. */
export type Shared = {
  draining: boolean
  readonly open: OpenExchanges
  readonly secure: boolean
  readonly peers: PeerNames
  readonly unreadMs: number
  readonly bounds: ConnectionBounds
}
/** A body that is being written. */
type Relayed = { gone: boolean; wake: (() => void) | null; readonly body: ByteStream }

export class UwsExchange extends ReceivedRequest implements HttpExchange {
  /** Answered or closed: native objects must not be used. */
  private gone = false
  private readonly res: HttpResponse
  private readonly shared: Shared
  private readonly chunked: boolean
  private peer: string | null = null
  /** The answer is sent, and the rest of the body is dropped. */
  private isDropping = false
  /** The body that is being relayed. It is cancelled when the client leaves. */
  private relayed: Relayed | null = null
  /** Counts the unread rest of the answer. */
  private holder: Holder | null = null

  constructor(res: HttpResponse, shared: Shared, head: AdmittedHead) {
    super(head, shared.secure, announcesBody(head.headers))
    this.res = res
    this.shared = shared
    this.chunked = head.headers.has('transfer-encoding')
    shared.open.begin()
    shared.bounds.inProgress += 1
    res.onAborted(() => this.leave())
    if (this.hasBody) this.receive()
  }

  get peerAddress(): string {
    if (this.peer === null) {
      this.peer = this.done ? '' : this.shared.peers.nameOf(this.res.getRemoteAddress())
    }
    return this.peer
  }

  /** The connection has one request at a time. */
  turn(): true {
    return true
  }

  async relay(answer: StreamedAnswer): Promise<StreamEnd> {
    const { status, block, headers, body, bodyBytes } = answer
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
    // The native side completes a head with the first chunk. If the head were sent before and the body failed,
    // the client would get half a head, and some clients take that for an empty answer.
    let unsent = true
    const head = () => {
      if (!unsent) return
      unsent = false
      if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status))
      writeHeaders(res, block, headers)
      if (this.closes) res.writeHeader('connection', 'close')
    }
    const end = await relayTo(
      {
        // Corked, so that the chunk size and the chunk are sent in one segment.
        write: (chunk) => {
          let taken = true
          res.cork(() => {
            if (bodiless) return
            head()
            taken = res.write(chunk)
            // The native side has sent or copied it.
            releaseReceived(chunk)
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
          // In the next turn, as in `send`. Native closing would write `connection: close` into the body. A paused
          // connection is closed by its idle timeout instead.
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
    return this.relayEnded(end)
  }

  /** Relays a body with a content-length. */
  private async relayKnown(
    answer: StreamedAnswer,
    totalBytes: number,
    closes = this.closes,
  ): Promise<StreamEnd> {
    const { status, block, headers, body } = answer
    const { res } = this
    const known = this.known(body, totalBytes, () => {
      if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status))
      writeHeaders(res, block, headers)
      if (closes) res.writeHeader('connection', 'close')
    })
    if (closes) {
      // In the next turn, with reading paused: see `relay`.
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

  private finish(): void {
    this.holder?.end()
    this.shared.bounds.inProgress -= 1
    this.shared.open.finish()
  }

  private relayEnded(end: StreamEnd): StreamEnd {
    this.relayed = null
    // After a close, `onAborted` has counted the exchange already.
    if (end === 'complete') this.finish()
    else if (typeof end === 'object') this.done = false
    return end
  }

  /** Called corked, after the head. The connection accepts the next request when the client has read the answer. */
  private endAtPace(body: string | Uint8Array | null): void {
    const { res } = this
    if (body === null || body.length === 0) {
      res.end('')
      this.finish()
      return
    }
    const totalBytes = Buffer.byteLength(body)
    // With TLS the native side must be offered the same bytes again, so it gets no more than the first piece.
    const isTried = !this.shared.secure || !isLong(body)
    if (isTried && res.tryEnd(body, totalBytes)[1]) {
      this.finish()
      return
    }
    this.gone = false
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const rest = bytes.subarray(res.getWriteOffset())
    this.hold(body)
    void this.writeKnown(this.known(inPieces(rest), totalBytes, null), rest.byteLength)
  }

  /** Counts an unread answer. */
  private hold(body: string | Uint8Array): void {
    const { res } = this
    const { bounds, peers } = this.shared
    const holder = new Holder(bounds, peers.nameOf(res.getRemoteAddress()), () => res.close())
    this.holder = holder
    // Not while the response is corked, because this may close it.
    setImmediate(() => holder.hold(heldBytesOf(body)))
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

  /** True if the connection must not be read after this request. */
  private get closes(): boolean {
    if (this.chunked || this.shared.draining) return true
    // The rest is too long to be dropped.
    if (this.receiver === null || this.receiver.complete) return false
    return Number(this.headers.get('content-length') ?? 0) > DROPPED_BYTES_MAX
  }

  send(answer: Answer): void {
    if (this.done) return
    const close = this.closes || this.fault !== null || answer.close === true
    const body = this.method === 'HEAD' ? null : answer.body
    if (close && isHeldLong(body)) {
      // The native side would hold it until the client has read it, and count nothing.
      this.done = true
      this.hold(body)
      const pieces = { ...answer, body: inPieces(body) }
      void this.relayKnown(pieces, Buffer.byteLength(body), true)
    } else if (this.mustDropRest(close)) {
      this.answerEarly(answer)
    } else if (this.chunked || this.fault !== null) {
      // The native parser accepts chunk lines that end with a bare LF, so bytes after a chunked body may be a
      // smuggled request. They are not read, and the connection is closed after the answer. Bytes in the same
      // segment as the body close the connection before the answer. The same holds for a refused head.
      setImmediate(() => this.write(answer, true))
    } else {
      this.write(answer, close)
    }
  }

  /**
   * Sends an answer while the body arrives, drops the rest, and closes. The native side would close with the end of an
   * answer, and a reset for unread bytes could take the answer from a client that writes its whole request before it
   * reads (RFC 9112 section 9.6). So it gets the body as part of a field and takes the answer for unfinished.
   */
  private answerEarly({ status, block, headers, body }: Answer): void {
    const { res, method } = this
    this.done = true
    this.isDropping = true
    const isBodiless = status === 204 || status === 304
    // The native side ends a field with CRLF, and so the body.
    const bodyBytes = body === null ? 0 : Buffer.byteLength(body) + 2
    const length = isBodiless ? '' : `content-length: ${bodyBytes}\r\n`
    const text = isBodiless || method === 'HEAD' || body === null ? '' : `\r\n${body as string}`
    const rest = `date: ${systemClock.now().toUTCString()}\r\n${length}${text}`
    res.cork(() => {
      if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status))
      writeHeaders(res, block, headers)
      res.writeHeader('connection', `close\r\n${rest}`)
    })
    this.receiver!.drop(() => {
      // In the next turn: otherwise a request in the same segment as the body would be executed.
      setImmediate(() => {
        if (this.isDropping) res.close()
      })
    })
  }

  /** True if the connection ends with the answer, and the rest of the body is short enough to be dropped. */
  private mustDropRest(close: boolean): boolean {
    const { receiver, headers } = this
    if (receiver === null || receiver.complete) return false
    if (!close && headers.get('connection')?.toLowerCase() !== 'close') return false
    return Number(headers.get('content-length') ?? 0) <= DROPPED_BYTES_MAX
  }

  private receive(): void {
    const { res } = this
    const receiver = new BodyReceiver(
      {
        pause: () => void (this.gone || res.pause()),
        resume: () => void (this.gone || res.resume()),
      },
      droppedBytesMax(this.headers),
      SILENT_MS_MAX,
    )
    this.receiver = receiver
    res.onData((chunk, isLast) => {
      if (chunk.byteLength > 0) receiver.push(new Uint8Array(chunk.slice(0)))
      if (!isLast) return
      receiver.end()
      // Bytes after a chunked body are not read: the connection is closed after the answer.
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
    // The native side cannot close after a head without a body. A paused connection is closed by its idle
    // timeout, or by the client.
    if (isHead && close) res.pause()
    res.cork(() => {
      if (status !== 200) res.writeStatus(STATUS_LINES.get(status) ?? String(status))
      writeHeaders(res, block, headers)
      if (close) res.writeHeader('connection', 'close')
      if (status === 204 || status === 304) {
        // Without arguments no content-length is written (RFC 9110 section 8.6). With the argument that closes,
        // it cannot be left out.
        if (close) res.endWithoutBody(0, true)
        else res.endWithoutBody()
      } else if (isHead) {
        // Given the length, the native side would wait for a body: it would close the connection at the next
        // request, and otherwise keep it open forever.
        res.writeHeader('content-length', String(body === null ? 0 : Buffer.byteLength(body)))
        res.endWithoutBody()
      } else if (close) res.end(body ?? '', true)
      else return this.endAtPace(body)
      this.finish()
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
      this.finish()
      return
    }
    if (this.isDropping) {
      this.isDropping = false
      this.finish()
      return
    }
    if (this.done) return
    this.done = true
    this.receiver?.fail('aborted')
    this.aborted?.()
    this.finish()
  }
}

/** True for an answer that may be longer than what the kernel takes of an unread connection. */
function isHeldLong(body: string | Uint8Array | null): body is string | Uint8Array {
  return body !== null && (typeof body !== 'string' || body.length > CLOSING_CHARS_MAX)
}

/**
 * Writes all header fields in one native call, because a call costs more than a field. The native side writes
 * values unchanged, so the value of the first field carries the other lines. The pipeline refuses CR and LF in
 * values that come from elsewhere.
 */
function writeHeaders(res: HttpResponse, block: HeaderBlock, pairs: readonly HeaderPair[]): void {
  const [first] = pairs
  if (block.wire === null && first === undefined) return
  let index = 0
  let name: string
  let lines: string
  if (block.wire === null) {
    ;[name, lines] = first!
    index = 1
  } else [name, lines] = block.wire
  for (; index < pairs.length; index += 1) lines += `\r\n${pairs[index]![0]}: ${pairs[index]![1]}`
  res.writeHeader(name, lines)
}

/** Peer addresses as text. The last few thousand IPv4 addresses are cached. */
export class PeerNames {
  private readonly known = new Map<number, string>()

  nameOf(address: ArrayBuffer): string {
    const bytes = new Uint8Array(address)
    if (bytes.length === 4) return this.v4(bytes, 0)
    if (bytes.length !== 16) return ''
    return isMapped(bytes) ? this.v4(bytes, 12) : v6(bytes)
  }

  private v4(bytes: Uint8Array, offset: number): string {
    const [a, b, c, d] = [
      bytes[offset]!,
      bytes[offset + 1]!,
      bytes[offset + 2]!,
      bytes[offset + 3]!,
    ]
    const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
    const known = this.known.get(number)
    if (known !== undefined) return known
    const text = `${a}.${b}.${c}.${d}`
    if (this.known.size >= 4_096) this.known.clear()
    this.known.set(number, text)
    return text
  }
}

/** True for ::ffff:0:0/96: IPv4 peers of a dual-stack socket. */
function isMapped(bytes: Uint8Array): boolean {
  for (let index = 0; index < 10; index += 1) if (bytes[index] !== 0) return false
  return bytes[10] === 0xff && bytes[11] === 0xff
}

/** RFC 5952 without shortened zero runs: one spelling per address is enough. */
function v6(bytes: Uint8Array): string {
  const groups: string[] = []
  for (let index = 0; index < 16; index += 2)
    groups.push(((bytes[index]! << 8) | bytes[index + 1]!).toString(16))
  return groups.join(':')
}
