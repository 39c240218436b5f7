/**
 * Ends of HTTP/2 streams, told as they are. An answer is complete with its END_STREAM (RFC 9113 section
 * 8.1), but node:http2 ends a stream in the same way when it is reset with NO_ERROR or CANCEL, and undici
 * takes trailers for the end while the body before them still waits for its reader.
 */
import type { Socket } from 'node:net'
import { invariant } from '../../runtime/kernel/assert.js'

interface Stream {
  readonly closed: boolean
  push(chunk: unknown): boolean
  destroy(): void
  removeAllListeners(event: 'trailers'): void
}
interface Session {
  request(...asked: unknown[]): Stream
}

/** For a connection that undici has just begun to speak HTTP/2 on, before its first request. */
export function tellEnds(socket: Socket): void {
  const session = sessionOf(socket)
  const request = session.request.bind(session)
  session.request = (...asked) => {
    const stream = request(...asked)
    onlyWholeEnds(stream)
    // Nobody wants them, and without them the end of the body is the end. Once undici listens.
    queueMicrotask(() => stream.removeAllListeners('trailers'))
    return stream
  }
}

/** Where this version of undici keeps it; another one fails here, at its first connection. */
function sessionOf(socket: Socket): Session {
  const key = Object.getOwnPropertySymbols(socket).find(
    ({ description }) => description === 'http2Session',
  )
  invariant(key !== undefined, 'undici keeps its session with the socket')
  return (socket as unknown as Readonly<Record<symbol, Session>>)[key]!
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
