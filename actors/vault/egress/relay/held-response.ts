/**
 * A buffered response. Its bytes stay on this thread, and count against the tenant's share, until the
 * gateway has written all of them to the client.
 */
import { type ByteSource, ByteStream, StreamAborted } from '../../../../runtime/kernel/stream.js'

/** The failure of a held response that the client does not read in time. */
const UNREAD = 'hop_timeout'

/**
 * The response as a stream. The end of a cross-thread stream means that the last window was sent, not
 * that it was read. So this stream does not end: the reader knows the length and cancels the stream
 * after it has written all bytes.
 * @param withinMs the stream fails with `hop_timeout` if it is not cancelled within this time.
 * @param onOver called once, when the stream is cancelled or fails.
 */
export function heldResponse(
  chunks: readonly Uint8Array[],
  withinMs: number,
  onOver: () => void,
): ByteStream {
  return new ByteStream(new HeldResponse(chunks, withinMs, onOver))
}

class HeldResponse implements ByteSource {
  #chunks: readonly Uint8Array[]
  #next = 0
  #failure: StreamAborted | undefined = undefined
  #waiting: ((failure: StreamAborted) => void) | undefined = undefined
  readonly #onOver: () => void
  readonly #timer: NodeJS.Timeout

  constructor(chunks: readonly Uint8Array[], withinMs: number, onOver: () => void) {
    this.#chunks = chunks
    this.#onOver = onOver
    this.#timer = setTimeout(() => this.cancel(UNREAD), withinMs).unref()
  }

  read(): Promise<Uint8Array | undefined> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const chunk = this.#chunks[this.#next]
    this.#next += 1
    if (chunk !== undefined) return Promise.resolve(chunk)
    return new Promise((_, reject) => {
      this.#waiting = reject
    })
  }

  cancel(reason: string): void {
    if (this.#failure !== undefined) return
    this.#failure = new StreamAborted(reason)
    clearTimeout(this.#timer)
    this.#chunks = []
    this.#waiting?.(this.#failure)
    this.#onOver()
  }
}
