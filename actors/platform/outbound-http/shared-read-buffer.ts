/**
 * Reads of the bodies of answers into one piece of memory that all connections take turns in. A buffer
 * of its own for each TLS record is memory outside of the heap, for which V8 collects all of the heap
 * again and again: a third of what a large body costs.
 *
 * Only what is known to be body from its first byte to its last is lent to undici, because what it
 * takes of a header it keeps until the header is complete. Everything else is copied, and handed on the
 * same way: to pass through the stream costs as much as reading the header does. What is lent is good
 * until the callback that was given it returns.
 */
import type { Socket } from 'node:net'

/** A TLS record holds 16 KiB at most (RFC 8446 section 5.1). */
const memory = Buffer.allocUnsafeSlow(16 * 1024)

const sharedReads = new WeakMap<Socket, SharedRead>()

/** What is known of the next bytes of a connection. One for each client, whose connections follow one another. */
export class SharedRead {
  /** As many of the next bytes are body. */
  bodyBytes = 0
  /** What its owner may take right now. */
  chunk: Buffer | null = null
}

/** For `tls.connect`: `onread`. Each connection is given to `lend` before anybody reads from it. */
export const SHARED_READS = {
  buffer: memory,
  callback(this: Socket, bytes: number): boolean {
    const chunk = memory.subarray(0, bytes)
    const sharedRead = sharedReads.get(this)
    // What came before goes first.
    if (sharedRead === undefined || this.readableLength > 0) return this.push(Buffer.from(chunk))
    const isBody = bytes <= sharedRead.bodyBytes
    sharedRead.chunk = isBody ? chunk : Buffer.from(chunk)
    this.emit('readable')
    const left = sharedRead.chunk
    sharedRead.chunk = null
    // Whoever reads is waiting for room, or there is nobody yet.
    return left === null || this.push(isBody ? Buffer.from(left) : left)
  },
}

/** Whether bytes are to be copied by whoever wants to keep them. */
export function isShared({ buffer }: Uint8Array): boolean {
  return buffer === memory.buffer
}

/** Lets reads of the connection be lent as the sharedRead says. */
export function shareReads(socket: Socket, sharedRead: SharedRead): void {
  sharedRead.bodyBytes = 0
  sharedRead.chunk = null
  sharedReads.set(socket, sharedRead)
  const read = socket.read.bind(socket)
  socket.read = (size?: number) => {
    const { chunk } = sharedRead
    if (chunk === null) return read(size) as unknown
    sharedRead.chunk = null
    return chunk
  }
}
