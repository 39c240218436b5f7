/**
 * Bytes that arrive over time, as a value that a message may carry. A stream has one reader and one
 * writer with a window between them: at most `windowBytes` are on their way, a slow reader stops the
 * writer, and either end can give up and the other one learns of it.
 *
 * The same handle works inside a thread and across one; there the window is kept by credits, see
 * `stream-crossing.ts`.
 */
import { Readable } from 'node:stream'

/** Bytes on their way that a writer may run ahead of its reader, unless told otherwise. */
export const WINDOW_BYTES = 256 * 1024

/** Memory that nobody but a stream will look at again. */
const given = new WeakSet<ArrayBufferLike>()

/**
 * Chunks as one, in memory of its own that goes to another thread as it is. Write it to one stream and
 * forget it.
 */
export function handedOver(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  // Not pooled, and not filled with zeroes that would be written for nothing.
  const joined = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const chunk of chunks) {
    joined.set(chunk, at)
    at += chunk.byteLength
  }
  return handOver(joined)
}

/** The same for bytes that are alone in their memory. */
export function handOver(bytes: Buffer): Uint8Array {
  given.add(bytes.buffer)
  return bytes
}

/** The memory of bytes that were handed over and are whole; undefined where they must be copied. */
export function memoryOf(bytes: Uint8Array): ArrayBuffer | undefined {
  const { buffer, byteLength } = bytes
  return byteLength === buffer.byteLength && given.delete(buffer)
    ? (buffer as ArrayBuffer)
    : undefined
}

/** Thrown by `read` and `write` when the other end gave up, or the thread between them is gone. */
export class StreamAborted extends Error {
  override readonly name = 'StreamAborted'
  readonly reason: string

  constructor(reason: string) {
    super(`stream aborted: ${reason}`)
    this.reason = reason
  }
}

/** Where the bytes of a stream come from. `read` is not called again before it has answered. */
export interface ByteSource {
  /** The next chunk, `undefined` at the end. Rejects with `StreamAborted`. */
  read(): Promise<Uint8Array | undefined>
  /** The reader wants no more. */
  cancel(reason: string): void
}

/**
 * A handle that nobody holds any more will not be read: its writer must not wait for ever. The registry
 * holds on to the source, and through it to whatever the source knows, which may be the handle itself:
 * so a stream that is over is taken out, or it would stay for good.
 */
const forgotten = new FinalizationRegistry<ByteSource>((source) => source.cancel('forgotten'))

/** The reading end. Read it once, by `read` or `for await`; leaving the loop early cancels it. */
export class ByteStream implements AsyncIterable<Uint8Array> {
  readonly #source: ByteSource
  #taken = false

  constructor(source: ByteSource) {
    this.#source = source
    forgotten.register(this, source, this)
  }

  /** A stream over bytes that are there, that are being produced, or that a Node stream delivers. */
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

  /** Tells the writer that nobody reads any more. */
  cancel(reason = 'cancelled'): void {
    forgotten.unregister(this)
    this.#source.cancel(reason)
  }

  /** Takes the source out, to carry it to another thread. The handle is used up by this. */
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

  /** As a Node stream, for sinks that want one. */
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
    // A generator that is itself failing has already told its reader.
    Promise.resolve(this.#iterator.return?.()).catch(() => {})
  }
}

export interface PipeOptions {
  /** Bytes the writer may run ahead. */
  readonly windowBytes?: number | undefined
  /** Called with the bytes a reader has taken out, for whoever hands out credit. */
  readonly onTaken?: ((bytes: number) => void) | undefined
}

/** A stream and the end that fills it. */
export function bytePipe(options: PipeOptions = {}): { stream: ByteStream; writer: ByteWriter } {
  const pipe = new Pipe(options)
  return { stream: new ByteStream(pipe), writer: pipe }
}

/** The writing end. Chunks belong to the stream once written: do not change them afterwards. */
export interface ByteWriter {
  /** Adds a chunk and waits until there is room for another. @throws {StreamAborted} */
  write(chunk: Uint8Array): Promise<void>
  /** Adds a chunk; false asks to pause until `onDrain`. For sources that push. */
  push(chunk: Uint8Array): boolean
  /** No more chunks. */
  end(): void
  /** The rest will not come: the reader's next `read` throws. */
  abort(reason: string): void
  /** Called when there is room again after `push` returned false. */
  onDrain: (() => void) | undefined
  /** Called once when the reader gives up. */
  onCancel: ((reason: string) => void) | undefined
  /** Neither ended nor aborted nor cancelled. */
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
    // What was written before the abort is not worth more than what is missing: fail at once.
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
