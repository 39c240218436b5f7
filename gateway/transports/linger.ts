/**
 * Lingering close (RFC 9112 section 9.6): the write side is closed, and bytes that still arrive are read and
 * dropped. An immediate close makes the kernel answer later bytes with a reset, and a client that writes its
 * whole request before it reads would lose the answer.
 */
import type { Socket } from 'node:net'
import type { HeaderFields } from '../http-exchange.js'

/** Bytes of an answered request that are read and dropped. */
export const DROPPED_BYTES_MAX = 64 * 1024 * 1024
/** The same of a body whose length is unknown, which may have no end. */
const ENDLESS_BYTES_MAX = 16 * 1024 * 1024

export function droppedBytesMax(headers: HeaderFields): number {
  return headers.has('content-length') ? DROPPED_BYTES_MAX : ENDLESS_BYTES_MAX
}
const QUIET_MS = 1_000

/** Closes the write side now, and the connection when the client ends, is silent for a second, or sent 64 MiB. */
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
