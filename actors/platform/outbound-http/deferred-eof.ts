/**
 * The end of a connection whose reader waits for room. undici (pinned) takes an end, or a reset, of a body
 * that only the connection delimits for a sign to finish parsing, and asserts that nobody waits: the error has
 * no catcher, and ends the thread. An upstream could bring that about at will. So an end is kept until the
 * parser reads on; and a reset is never an end: what came before it may be half of the body (RFC 9112
 * section 8).
 */
import type { Socket } from 'node:net'

/** Of a connection that was reset. Not ECONNRESET, which undici may take for an end. */
export const CONNECTION_RESET = 'SVC_CONNECTION_RESET'

/** Keeps ends back while the reader waits, and gives resets a code of our own. Before anybody reads. */
export function deferEof(socket: Socket): void {
  const push = socket.push.bind(socket)
  const read = socket.read.bind(socket)
  const unshift = socket.unshift.bind(socket)
  // The parser gives back what it has not parsed when it begins to wait, and reads when it goes on.
  let isWaiting = false
  let hasEnded = false

  const end = () => {
    if (isWaiting || !hasEnded) return
    hasEnded = false
    push(null)
    read(0)
  }
  socket.unshift = (chunk: unknown, encoding?: BufferEncoding) => {
    isWaiting = true
    unshift(chunk, encoding)
  }
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk !== null || !isWaiting) return push(chunk, encoding)
    hasEnded = true
    return false
  }
  socket.read = (size?: number) => {
    // To ask for 0 bytes is to fill the buffer, not to read.
    if (size === 0) return read(0) as unknown
    isWaiting = false
    const chunk = read(size) as unknown
    if (chunk === null && hasEnded) setImmediate(end)
    return chunk
  }
  socket.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = CONNECTION_RESET
  })
}
