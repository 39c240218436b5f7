/**
 * Works around undici (pinned): it treats EOF or RST on a body delimited by connection close as "finish
 * parsing" and asserts that the parser is not paused. The assertion is uncaught and kills the thread, so
 * a hostile upstream could crash the service. EOF is deferred until the parser resumes, and RST is
 * reported as an error, because the body may be incomplete (RFC 9112 section 8).
 */
import type { Socket } from 'node:net'

/** Error code of a reset connection. Not ECONNRESET, which undici may treat as EOF. */
export const CONNECTION_RESET = 'SVC_CONNECTION_RESET'

/** Defers EOF while the parser is paused and recodes resets. Call it before the first read. */
export function deferEof(socket: Socket): void {
  const push = socket.push.bind(socket)
  const read = socket.read.bind(socket)
  const unshift = socket.unshift.bind(socket)
  // The parser unshifts unparsed bytes when it pauses, and reads when it resumes.
  let isPaused = false
  let hasEnded = false

  const end = () => {
    if (isPaused || !hasEnded) return
    hasEnded = false
    push(null)
    read(0)
  }
  socket.unshift = (chunk: unknown, encoding?: BufferEncoding) => {
    isPaused = true
    unshift(chunk, encoding)
  }
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk !== null || !isPaused) return push(chunk, encoding)
    hasEnded = true
    return false
  }
  socket.read = (size?: number) => {
    // read(0) fills the buffer and consumes nothing.
    if (size === 0) return read(0) as unknown
    isPaused = false
    const chunk = read(size) as unknown
    if (chunk === null && hasEnded) setImmediate(end)
    return chunk
  }
  socket.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = CONNECTION_RESET
  })
}
