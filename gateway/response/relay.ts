/** Writes a byte stream to a socket with back pressure. */
import { ByteStream, StreamAborted } from '../../runtime/kernel/stream.js'
import type { StreamEnd } from '../http-exchange.js'

/**
 * Time that a client may leave written bytes unread. Then its connection (HTTP/2: the stream) is closed, because
 * unread bytes occupy memory. uWebSockets closes after 10 s.
 */
export const UNREAD_MS_MAX = 30_000

/** Longer bodies are written in pieces of this size, each after the client has read the one before. */
const PIECE_BYTES = 64 * 1024
const PIECE_CHARS = PIECE_BYTES / 2

/** The write side of a transport. */
export interface Sink {
  /** @returns false if the caller must wait for `whenRoom`. */
  write(chunk: Uint8Array): boolean
  /** Resolves when there is room, or the client has left. */
  whenRoom(): Promise<void>
  end(): void
  /** Breaks the connection or stream, so that the client notices an incomplete body. */
  break(): void
  /** The client has left. */
  readonly gone: boolean
  /** True if nothing was sent, not even the head. */
  readonly unsent?: boolean
}

type RelayBounds = {
  /** Length of the body if it is known. The stream is cancelled after it. */
  readonly bodyBytes?: number | undefined
  /** Time that the client may leave written bytes unread. */
  readonly unreadMs: number
}

/** Writes a body to a socket. Never throws. */
export async function relayTo(
  sink: Sink,
  body: ByteStream,
  { bodyBytes = Number.POSITIVE_INFINITY, unreadMs }: RelayBounds,
): Promise<StreamEnd> {
  let leftBytes = bodyBytes
  try {
    while (leftBytes > 0) {
      const chunk = await body.read()
      if (sink.gone) break
      if (chunk === undefined) {
        if (leftBytes !== Number.POSITIVE_INFINITY)
          throw new StreamAborted('the body is shorter than its content-length')
        sink.end()
        return 'complete'
      }
      leftBytes -= chunk.byteLength
      if (leftBytes < 0) throw new StreamAborted('the body is longer than its content-length')
      if (!sink.write(chunk) && !(await hasRoom(sink, unreadMs))) {
        if (!sink.gone) sink.break()
        break
      }
      if (sink.gone) break
    }
    if (leftBytes === 0 && !sink.gone) {
      sink.end()
      body.cancel('the body is complete')
      return 'complete'
    }
  } catch (error) {
    body.cancel('it cannot be relayed')
    if (sink.gone) return 'left'
    if (sink.unsent === true) return { unsent: error instanceof StreamAborted ? error.reason : '' }
    sink.break()
    return 'broken'
  }
  body.cancel('the client left')
  return 'left'
}

/** Waits for room. @returns false at the time limit. */
function hasRoom(sink: Sink, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), withinMs)
    void sink.whenRoom().then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

/** True for a body that is written in pieces. */
export function isLong(body: string | Uint8Array | null): body is string | Uint8Array {
  // A UTF-16 code unit has at most three bytes in UTF-8.
  if (body === null || body.length * 3 <= PIECE_BYTES) return false
  return Buffer.byteLength(body) > PIECE_BYTES
}

/** A complete body as a stream of pieces. A text is encoded piece by piece, when each is written. */
export function inPieces(body: string | Uint8Array): ByteStream {
  return ByteStream.from(typeof body === 'string' ? encodedPiecesOf(body) : piecesOf(body))
}

function* encodedPiecesOf(text: string): Generator<Uint8Array, void, void> {
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = start + PIECE_CHARS
    // A surrogate pair is encoded as one code point.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1
    yield Buffer.from(text.slice(start, end))
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  for (let offset = 0; offset < bytes.byteLength; offset += PIECE_BYTES) {
    yield bytes.subarray(offset, offset + PIECE_BYTES)
  }
}
