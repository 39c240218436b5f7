/** A byte stream to a socket, honouring both brakes: the reader's pace is the writer's. */
import { ByteStream, StreamAborted } from '../../runtime/kernel/stream.js'
import type { StreamEnd } from '../http-exchange.js'

/**
 * How long a client may read nothing of bytes that were written for it. Then its connection (HTTP/2: the
 * stream) is cut, since what it does not read is held in memory. uWebSockets itself cuts after 10 s.
 */
export const UNREAD_MS_MAX = 30_000

/** A body that is longer is written in pieces of this size, each once the client has read the one before. */
export const PIECE_BYTES = 64 * 1024

/** The writing side of a transport. */
export interface Sink {
  /** False asks to wait until `whenRoom`. */
  write(chunk: Uint8Array): boolean
  /** Settles when there is room again, or the client is gone. */
  whenRoom(): Promise<void>
  end(): void
  /** Breaks the connection, or the stream of it: what was sent is not the whole. */
  break(): void
  /** The client has left. */
  readonly gone: boolean
  /** Nothing has been sent, not even the head. */
  readonly unsent?: boolean
}

export type RelayBounds = {
  /** Length of the body where it is known: the body is over then, and is cancelled. */
  readonly bodyBytes?: number | undefined
  /** How long the client may read nothing. */
  readonly unreadMs: number
}

/** Hands a body to a socket. Never throws. */
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
        if (leftBytes !== Number.POSITIVE_INFINITY) throw new StreamAborted('the body is short')
        sink.end()
        return 'complete'
      }
      leftBytes -= chunk.byteLength
      if (leftBytes < 0) throw new StreamAborted('the body is long')
      if (!sink.write(chunk) && !(await hasRoom(sink, unreadMs))) {
        if (!sink.gone) sink.break()
        break
      }
      if (sink.gone) break
    }
    if (leftBytes === 0 && !sink.gone) {
      sink.end()
      body.cancel('all of it was written')
      return 'complete'
    }
  } catch (error) {
    body.cancel('it cannot be handed on')
    if (sink.gone) return 'left'
    if (sink.unsent === true) return { unsent: error instanceof StreamAborted ? error.reason : '' }
    sink.break()
    return 'broken'
  }
  body.cancel('the client left')
  return 'left'
}

/** False when the client has read nothing for too long. */
function hasRoom(sink: Sink, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), withinMs)
    void sink.whenRoom().then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

/** True for a body that is written at the client's pace. */
export function isLong(body: string | Uint8Array | null): body is string | Uint8Array {
  // A character is three bytes at most.
  if (body === null || body.length * 3 <= PIECE_BYTES) return false
  return Buffer.byteLength(body) > PIECE_BYTES
}

/** A body that is there, as a stream of pieces. */
export function inPieces(body: string | Uint8Array): ByteStream {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return ByteStream.from(piecesOf(bytes))
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) {
    yield bytes.subarray(at, at + PIECE_BYTES)
  }
}
