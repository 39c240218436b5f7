/**
 * A byte stream that a message may carry. A stream has one reader, one writer and a flow-control
 * window: at most `windowBytes` are in transit, a slow reader stops the writer, and when one end
 * gives up the other one learns of it.
 *
 *  The same handle works within a thread and across threads. Across threads credits keep the window
 * (`stream-crossing.ts`).
 */
import { Readable } from 'node:stream'

/** The default window: bytes that a writer may send ahead of its reader. */
export const WINDOW_BYTES = 256 * 1024

/** Buffers whose only remaining user is a stream. */
const ownedBuffers = new WeakSet<ArrayBufferLike>()

/**
 * Joins chunks in a separate buffer, which is transferred to another thread without a copy. Write
 * the result to one stream, and do not use it afterwards.
 */
export function handedOver(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  // Not pooled, and not zero-filled: every byte is overwritten.
  const joined = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const chunk of chunks) {
    joined.set(chunk, at)
    at += chunk.byteLength
  }
  return handOver(joined)
}

/** The same for bytes that do not share their buffer. */
export function handOver(bytes: Buffer): Uint8Array {
  ownedBuffers.add(bytes.buffer)
  return bytes
}

/** The buffer of bytes that were handed over whole. Undefined: the bytes must be copied. */
export function memoryOf(bytes: Uint8Array): ArrayBuffer | undefined {
  const { buffer, byteLength } = bytes
  return byteLength === buffer.byteLength && ownedBuffers.delete(buffer)
    ? (buffer as ArrayBuffer)
    : undefined
}

/** Thrown by `read` and `write` when the other end gave up, or the thread between them died. */
export class StreamAborted extends Error {
  override readonly name = 'StreamAborted'
  readonly reason: string

  constructor(reason: string) {
    super(`stream aborted: ${reason}`)
    this.reason = reason
  }
}

/** Where the bytes of a stream come from. `read` is not called again before its promise settles. */
export interface ByteSource {
  /** The next chunk, `undefined` at the end. Rejects with `StreamAborted`. */
  read(): Promise<Uint8Array | undefined>
  /** The reader stops reading. */
  cancel(reason: string): void
}

/**
 * A handle that was garbage-collected is never read, and its writer must not wait forever. The
 * registry keeps the source alive, and with it everything that the source refers to, possibly the
 * handle itself. A finished stream must therefore be unregistered, or it would leak.
 */
const forgotten = new FinalizationRegistry<ByteSource>((source) => source.cancel('forgotten'))

/**
 * The reading end. Read it once, by `read` or `for await`. Leaving the loop early cancels the
 * stream.
 */
export class ByteStream implements AsyncIterable<Uint8Array> {
  readonly #source: ByteSource
  #taken = false

  constructor(source: ByteSource) {
    this.#source = source
    forgotten.register(this, source, this)
  }

  /** A stream of bytes that exist, that an iterable produces, or that a Node stream delivers. */
  static from(bytes: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>): ByteStream {
    if (bytes instanceof Uint8Array) return new ByteStream(new IteratedSource([bytes]))
    return new ByteStream(new IteratedSource(bytes))
  }

  /** The next chunk, `undefined` at the end. @throws {StreamAborted} */
  async read(): Promise<Uint8Array | undefined> {
    try {
      const chunk = await this.#source.read()
      if (chunk === undefined) forgotten.unregister(this)
      return chunk
    } catch (error) {
      forgotten.unregister(this)
      throw error
    }
  }

  /** Cancels the stream: the writer learns that it has no reader. */
  cancel(reason = 'cancelled'): void {
    forgotten.unregister(this)
    this.#source.cancel(reason)
  }

  /** Removes the source, to move it to another thread. The handle cannot be used afterwards. */
  detach(): ByteSource {
    if (this.#taken) throw new StreamAborted('already sent elsewhere')
    this.#taken = true
    forgotten.unregister(this)
    return this.#source
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    let open = true
    try {
      for (let chunk = await this.read(); chunk !== undefined; chunk = await this.read()) {
        yield chunk
      }
      open = false
    } finally {
      if (open) this.cancel()
    }
  }

  /** As a Node stream, for consumers that need one. */
  toReadable(): Readable {
    const readable: Readable = new Readable({
      read: () => {
        this.read().then(
          (chunk) => readable.push(chunk ?? null),
          (error: Error) => readable.destroy(error),
        )
      },
      destroy: (error, done) => {
        if (!readable.readableEnded) this.cancel(error?.message)
        done(error)
      },
    })
    return readable
  }
}

class IteratedSource implements ByteSource {
  readonly #iterator: Iterator<Uint8Array> | AsyncIterator<Uint8Array>
  #over = false

  constructor(bytes: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
    this.#iterator =
      Symbol.asyncIterator in bytes ? bytes[Symbol.asyncIterator]() : bytes[Symbol.iterator]()
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#over) return undefined
    const { done, value } = await this.#iterator.next()
    if (done !== true) return value
    this.#over = true
    return undefined
  }

  cancel(): void {
    if (this.#over) return
    this.#over = true
    // A generator that fails here has already reported the error to its reader.
    Promise.resolve(this.#iterator.return?.()).catch(() => {})
  }
}

interface PipeOptions {
  /** Bytes that the writer may send ahead of the reader. */
  readonly windowBytes?: number | undefined
  /** Called with the number of bytes that the reader consumed, for flow control by credits. */
  readonly onTaken?: ((bytes: number) => void) | undefined
}

/** A stream and the end that fills it. */
export function bytePipe(options: PipeOptions = {}): { stream: ByteStream; writer: ByteWriter } {
  const pipe = new Pipe(options)
  return { stream: new ByteStream(pipe), writer: pipe }
}

/**
 * The writing end. A chunk belongs to the stream once it is written: do not change it afterwards.
 */
export interface ByteWriter {
  /** Adds a chunk and waits for room for another one. @throws {StreamAborted} */
  write(chunk: Uint8Array): Promise<void>
  /** Adds a chunk. False asks the caller to pause until `onDrain`. For sources that push. */
  push(chunk: Uint8Array): boolean
  /** No more chunks. */
  end(): void
  /** Breaks the stream off: the reader's next `read` throws. */
  abort(reason: string): void
  /** Called when there is room again after `push` returned false. */
  onDrain: (() => void) | undefined
  /** Called once when the reader gives up. */
  onCancel: ((reason: string) => void) | undefined
  /** Not ended, aborted or cancelled. */
  readonly open: boolean
}

type Waiter<T> = { resolve: (value: T) => void; reject: (error: Error) => void }

class Pipe implements ByteSource, ByteWriter {
  onDrain: (() => void) | undefined = undefined
  onCancel: ((reason: string) => void) | undefined = undefined
  readonly #windowBytes: number
  readonly #onTaken: ((bytes: number) => void) | undefined
  readonly #chunks: Uint8Array[] = []
  #bytes = 0
  #ended = false
  #failure: StreamAborted | undefined = undefined
  #reader: Waiter<Uint8Array | undefined> | undefined = undefined
  #writers: Waiter<void>[] = []
  #full = false

  constructor({ windowBytes = WINDOW_BYTES, onTaken }: PipeOptions) {
    this.#windowBytes = windowBytes
    this.#onTaken = onTaken
  }

  get open(): boolean {
    return !this.#ended && this.#failure === undefined
  }

  push(chunk: Uint8Array): boolean {
    if (!this.open) return false
    if (chunk.byteLength === 0) return !this.#full
    const reader = this.#reader
    if (reader !== undefined) {
      this.#reader = undefined
      reader.resolve(chunk)
      this.#onTaken?.(chunk.byteLength)
      return true
    }
    this.#chunks.push(chunk)
    this.#bytes += chunk.byteLength
    this.#full = this.#bytes >= this.#windowBytes
    return !this.#full
  }

  write(chunk: Uint8Array): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (this.#ended) return Promise.reject(new StreamAborted('write after end'))
    if (this.push(chunk)) return Promise.resolve()
    return new Promise((resolve, reject) => this.#writers.push({ resolve, reject }))
  }

  end(): void {
    if (!this.open) return
    this.#ended = true
    this.#reader?.resolve(undefined)
    this.#reader = undefined
    this.#releaseWriters()
  }

  abort(reason: string): void {
    if (!this.open) return
    // The buffered bytes are useless without the missing ones: fail immediately.
    this.#fail(new StreamAborted(reason))
  }

  read(): Promise<Uint8Array | undefined> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const chunk = this.#chunks.shift()
    if (chunk !== undefined) {
      this.#bytes -= chunk.byteLength
      this.#onTaken?.(chunk.byteLength)
      if (this.#full && this.#bytes < this.#windowBytes) {
        this.#full = false
        this.#releaseWriters()
        this.onDrain?.()
      }
      return Promise.resolve(chunk)
    }
    if (this.#ended) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
    })
  }

  cancel(reason: string): void {
    const told = this.open
    if (this.#failure !== undefined || (this.#ended && this.#chunks.length === 0)) return
    this.#fail(new StreamAborted(reason))
    if (told) this.onCancel?.(reason)
  }

  #fail(failure: StreamAborted): void {
    this.#failure = failure
    this.#chunks.length = 0
    this.#bytes = 0
    this.#reader?.reject(failure)
    this.#reader = undefined
    for (const writer of this.#writers.splice(0)) writer.reject(failure)
  }

  #releaseWriters(): void {
    for (const writer of this.#writers.splice(0)) writer.resolve()
  }
}
