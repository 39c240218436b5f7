/**
 * A whole answer on its way to the client. Its bytes stay on this thread, and stay counted, until the
 * gateway has written all of them to the connection.
 */
import { type ByteSource, ByteStream, StreamAborted } from '../../../../runtime/kernel/stream.js'

/** How a held answer ends where its client does not take it in time. */
export const UNREAD = 'hop_timeout'

/**
 * The answer as a stream. The end of a stream between threads says that its last window was sent, not
 * that it was read. So this stream has no end: the reader knows the length and cancels the stream once
 * it has written all bytes.
 * @param withinMs the stream fails with `hop_timeout` when it was not cancelled within this time.
 * @param onOver called once, when the stream was cancelled or has failed.
 */
export function heldAnswer(
  chunks: readonly Uint8Array[],
  withinMs: number,
  onOver: () => void,
): ByteStream {
  return new ByteStream(new HeldAnswer(chunks, withinMs, onOver))
}

class HeldAnswer implements ByteSource {
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
