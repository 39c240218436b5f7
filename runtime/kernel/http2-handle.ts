/**
 * Works around a crash of node:http2 (Node 20.20). A stream that ends with header fields that were
 * never reported, such as too many fields of a response, frees their memory one turn of the
 * event loop later. The native half of the session counts that memory. If the session is
 * garbage-collected within that turn, the count is not zero and Node aborts (`Assertion failed:
 * (current_nghttp2_memory_) == (0)`). The peer can provoke this at will.
 */
/** The members of a client or server session that this needs. */
export interface Http2SessionLike {
  readonly connecting: boolean
  once(event: 'connect' | 'close', listener: () => void): unknown
}

const held = new Set<unknown>()

/**
 * Call it for a new session: keeps its native half alive until its streams' native halves are collected.
 */
export function outliveStreams(session: Http2SessionLike): void {
  if (session.connecting) session.once('connect', () => hold(session))
  else hold(session)
}

function hold(session: Http2SessionLike): void {
  const handle = handleOf(session)
  held.add(handle)
  // Streams that end with their session end before it, and are freed in the following turn.
  session.once('close', () => setImmediate(() => setImmediate(() => held.delete(handle))))
}

/** The session drops its handle as it ends. Undefined in a Node version that uses another name. */
function handleOf(session: Http2SessionLike): unknown {
  const key = Object.getOwnPropertySymbols(session).find(
    ({ description }) => description === 'kHandle',
  )
  return key && (session as unknown as Readonly<Record<symbol, unknown>>)[key]
}
