/**
 * Where undici's HTTP/2 does otherwise than a relay wants.
 *
 * Ends of streams are told as they are: an answer is complete with its END_STREAM (RFC 9113 section 8.1),
 * but node:http2 ends a stream in the same way when it is reset with NO_ERROR or CANCEL, and undici takes
 * trailers for the end while the body before them still waits for its reader.
 *
 * Requests go side by side: undici lets one that it could not repeat, which is every POST, wait for the end
 * of all others on the connection. A relay repeats nothing.
 */
import type { Socket } from 'node:net'
import type { Client } from 'undici'
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
interface Context {
  busy(request: unknown): boolean
}

/** For a connection that the client has just begun to speak HTTP/2 on, before its first request. */
export function conductHttp2(client: Client, socket: Socket): void {
  const context = memberOf<Context>(client, 'http context')
  context.busy = () => false
  const session = memberOf<Session>(socket, 'http2Session')
  const request = session.request.bind(session)
  session.request = (...asked) => {
    const stream = request(...asked)
    onlyWholeEnds(stream)
    // Nobody wants them, and without them the end of the body is the end. Once undici listens.
    queueMicrotask(() => stream.removeAllListeners('trailers'))
    return stream
  }
}

/** What this version of undici keeps under that name; another one fails here, at its first connection. */
function memberOf<Member>(owner: object, name: string): Member {
  const key = Object.getOwnPropertySymbols(owner).find(({ description }) => description === name)
  const member = key && (owner as Readonly<Record<symbol, unknown>>)[key]
  invariant(typeof member === 'object' && member !== null, `undici has its ${name}`)
  return member as Member
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
