/**
 * Where the body of an answer leaves: held until it is known whether all of it came at once, then
 * either one piece of bytes or a stream. Most answers are small, and a stream costs more than they do.
 */
import { bytePipe, type ByteStream, type ByteWriter } from '../../../../runtime/kernel/stream.js'

/**
 * Response bytes that may wait for a slow reader. A window that one read of the socket fills would
 * stop and start it every turn, at half the throughput.
 */
const WINDOW_BYTES = 256 * 1024
/** An answer that is whole and not longer travels in one piece. */
export const WHOLE_BYTES_MAX = 64 * 1024

export class Outlet {
  /** There is room again after `push` answered false. */
  onDrain: (() => void) | undefined = undefined
  #held: Uint8Array[] = []
  #heldBytes = 0
  #writer: ByteWriter | undefined = undefined
  #ended = false
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
    this.#writer?.end()
  }

  /** The rest will not come. */
  abort(reason: string): void {
    this.#broken = reason
    this.#writer?.abort(reason)
  }

  /** All of the body, if it is there and small; null otherwise. */
  whole(): Uint8Array | null {
    if (!this.#ended || this.#broken !== undefined || this.#heldBytes > WHOLE_BYTES_MAX) return null
    const [first] = this.#held
    if (this.#held.length === 1) return first!
    return Buffer.concat(this.#held, this.#heldBytes)
  }

  /** The body as it comes; what is held comes first. `onCancel` is told when its reader gives up. */
  open(onCancel: (reason: string) => void): ByteStream {
    const { stream, writer } = bytePipe({ windowBytes: WINDOW_BYTES })
    writer.onCancel = onCancel
    writer.onDrain = () => this.onDrain?.()
    this.#writer = writer
    for (const chunk of this.#held) writer.push(chunk)
    this.#held = []
    if (this.#broken !== undefined) writer.abort(this.#broken)
    else if (this.#ended) writer.end()
    return stream
  }
}
