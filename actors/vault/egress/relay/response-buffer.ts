/**
 * Output buffer of a response body. Holds the body until it is known whether it arrived in one piece, then
 * becomes one byte array or a stream. Most responses are small, and a stream costs more than they do.
 */
import { bytePipe, type ByteStream, type ByteWriter } from '../../../../runtime/kernel/stream.js'

/**
 * Bytes buffered for a slow reader. A window that one socket read fills would pause and resume the
 * socket every turn, at half the throughput.
 */
const WINDOW_BYTES = 256 * 1024
/** Many streams share these bytes, down to a smaller window each. */
const SHARED_BYTES = 8 * 1024 * 1024
const WINDOW_BYTES_MIN = 64 * 1024
/** A complete body up to this size is returned as one byte array. */
export const WHOLE_BYTES_MAX = 64 * 1024

/** Streams of this thread that are not at their end. */
let openStreams = 0

function windowOf(streams: number): number {
  return Math.min(WINDOW_BYTES, Math.max(WINDOW_BYTES_MIN, Math.floor(SHARED_BYTES / streams)))
}

export class ResponseBuffer {
  /** There is room again after `push` returned false. */
  onDrain: (() => void) | undefined = undefined
  #held: Uint8Array[] = []
  #heldBytes = 0
  #writer: ByteWriter | undefined = undefined
  #ended = false
  #isCounted = false
  #broken: string | undefined = undefined

  /** Adds a chunk; false asks to pause until `onDrain`. */
  push(chunk: Uint8Array): boolean {
    if (this.#writer !== undefined) return this.#writer.push(chunk)
    this.#held.push(chunk)
    this.#heldBytes += chunk.byteLength
    return this.#heldBytes < WINDOW_BYTES
  }

  end(): void {
    this.#ended = true
    this.#uncount()
    this.#writer?.end()
  }

  /** Marks the body as incomplete. */
  abort(reason: string): void {
    this.#broken = reason
    this.#uncount()
    this.#writer?.abort(reason)
  }

  #uncount(): void {
    if (!this.#isCounted) return
    this.#isCounted = false
    openStreams -= 1
  }

  /** The whole body if it is complete and small, else null. */
  whole(): Uint8Array | null {
    if (!this.#ended || this.#broken !== undefined || this.#heldBytes > WHOLE_BYTES_MAX) return null
    const [first] = this.#held
    if (this.#held.length === 1) return first!
    return Buffer.concat(this.#held, this.#heldBytes)
  }

  /** The body as a stream that starts with the held bytes. Calls `onCancel` when its reader cancels. */
  open(onCancel: (reason: string) => void): ByteStream {
    openStreams += 1
    this.#isCounted = true
    const { stream, writer } = bytePipe({ windowBytes: windowOf(openStreams) })
    writer.onCancel = (reason) => {
      this.#uncount()
      onCancel(reason)
    }
    writer.onDrain = () => this.onDrain?.()
    this.#writer = writer
    for (const chunk of this.#held) writer.push(chunk)
    this.#held = []
    if (this.#broken !== undefined) this.abort(this.#broken)
    else if (this.#ended) this.end()
    return stream
  }
}
