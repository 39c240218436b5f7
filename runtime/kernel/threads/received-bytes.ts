/**
 * Memory of bytes that another thread sent, released when they have been used. V8 counts it as memory outside of the
 * heap, and marks the whole heap after each 64 MiB of it, because it frees nothing before the next collection. A relay of
 * large bodies would spend more time on that than on the bytes.
 */

import { MessageChannel, type MessagePort } from 'node:worker_threads'

/** Buffers that arrived by transfer, and that have one reader. */
const received = new WeakSet<ArrayBufferLike>()

/** Transfers to a closed port detach the buffer and free its memory (Node.js, port.postMessage). */
const nowhere = closedPort()

function closedPort(): MessagePort {
  const { port1, port2 } = new MessageChannel()
  port1.close()
  port2.close()
  return port1
}

/** @returns the bytes of a buffer that was transferred to this thread, whose last reader may release them. */
export function receivedBytes(buffer: ArrayBuffer): Uint8Array {
  received.add(buffer)
  return new Uint8Array(buffer)
}

/**
 * Frees the memory of bytes that were received from another thread. They are empty afterwards. Bytes of another origin
 * stay as they are, because others may use them too. Call it only after the last read of the bytes.
 */
export function releaseReceived({ buffer }: Uint8Array): void {
  if (received.delete(buffer)) nowhere.postMessage(null, [buffer as ArrayBuffer])
}
