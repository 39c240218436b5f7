/**
 * Closes a connection in stages (RFC 9112 section 9.6): no more is written, and what still arrives is
 * read and dropped. Closed at once, bytes that arrive later make the kernel send a reset, which can
 * take the answer away from a client that writes its request to the end before it reads.
 */
import type { Socket } from 'node:net'

/** What is read and dropped of a request that has its answer. */
export const DROPPED_BYTES_MAX = 64 * 1024 * 1024
const QUIET_MS = 1_000

/** Ends our side now, and the connection once the client ends, is quiet for a second, or sent 64 MiB. */
export function linger(socket: Socket): void {
  if (socket.destroyed) return
  socket.end()
  const from = socket.bytesRead
  let seen = from
  const watch = setInterval(() => {
    const { bytesRead } = socket
    if (bytesRead === seen || bytesRead - from > DROPPED_BYTES_MAX) socket.destroy()
    seen = bytesRead
  }, QUIET_MS)
  socket.once('close', () => clearInterval(watch))
  socket.resume()
}
