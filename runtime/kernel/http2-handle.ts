/**
 * Keeps node:http2 from ending the process.
 *
 * A stream that ends with header fields nobody was told of, as those of an answer that has too many, gives
 * their memory back one turn of the event loop later. The native half of its session counts that memory:
 * collected as garbage within that turn, it finds some left and aborts (`Assertion failed:
 * (current_nghttp2_memory_) == (0)`, Node 20.20). The peer decides whether and how often a session ends so.
 */
/** What is needed of one, of either side. */
export interface Http2SessionLike {
  readonly connecting: boolean
  once(event: 'connect' | 'close', listener: () => void): unknown
}

const held = new Set<unknown>()

/** For a session that was just made: its native half is not collected before those of its streams. */
export function outliveStreams(session: Http2SessionLike): void {
  if (session.connecting) session.once('connect', () => hold(session))
  else hold(session)
}

function hold(session: Http2SessionLike): void {
  const handle = handleOf(session)
  held.add(handle)
  // Streams that end with their session end before it, and are gone in the turn after.
  session.once('close', () => setImmediate(() => setImmediate(() => held.delete(handle))))
}

/** The session itself forgets it as it ends. Undefined in a version of Node that calls it otherwise. */
function handleOf(session: Http2SessionLike): unknown {
  const key = Object.getOwnPropertySymbols(session).find(
    ({ description }) => description === 'kHandle',
  )
  return key && (session as unknown as Readonly<Record<symbol, unknown>>)[key]
}
