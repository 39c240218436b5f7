/**
 * One read buffer that all connections share. A new buffer per TLS record is external memory, which makes
 * V8 run full garbage collections: a third of the cost of a large body.
 *
 * undici gets the shared buffer only for reads that are entirely body, because it keeps bytes of an
 * incomplete header. Other reads are copied, but delivered the same way, because passing them through
 * the stream costs as much as parsing the header. A shared chunk is valid until the callback that
 * receives it returns.
 */
import type { Socket } from 'node:net'

/** A TLS record holds 16 KiB at most (RFC 8446 section 5.1). */
const memory = Buffer.allocUnsafeSlow(16 * 1024)

const sharedReads = new WeakMap<Socket, SharedRead>()

/** Read state of a connection. One per client, which uses one connection at a time. */
export class SharedRead {
  /** Number of next bytes that are known to be body. */
  bodyBytes = 0
  /** The chunk that the current `readable` event offers. */
  chunk: Buffer | null = null
}

/** `onread` option of `tls.connect`. Pass the connection to `shareReads` before its first read. */
export const SHARED_READS = {
  buffer: memory,
  callback(this: Socket, bytes: number): boolean {
    const chunk = memory.subarray(0, bytes)
    const sharedRead = sharedReads.get(this)
    // Earlier bytes come first.
    if (sharedRead === undefined || this.readableLength > 0) return this.push(Buffer.from(chunk))
    const isBody = bytes <= sharedRead.bodyBytes
    sharedRead.chunk = isBody ? chunk : Buffer.from(chunk)
    this.emit('readable')
    const left = sharedRead.chunk
    sharedRead.chunk = null
    // The reader is paused or not attached yet.
    return left === null || this.push(isBody ? Buffer.from(left) : left)
  },
}

/** True if the bytes must be copied to keep them. */
export function isShared({ buffer }: Uint8Array): boolean {
  return buffer === memory.buffer
}

/** Lets reads of the connection use the shared buffer. */
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
