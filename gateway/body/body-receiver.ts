/** Receives a request body within limits of size and time, for all transports. */
import { bytePipe, type ByteStream, type ByteWriter } from '../../runtime/kernel/stream.js'
import { BodyUnreadable, type BodyFailure } from '../http-exchange.js'

/** Time after which a stalled body fails. */
const STALL_MS_MAX = 12_000
/** A client that pauses for this long while its body is dropped gets the answer. */
const QUIET_MS = 1_000
/** Minimum average rate of a body after `STALL_MS_MAX`. */
const BYTES_PER_SEC_MIN = 4_096
const RATE_CHECK_MS = 1_000
/** Bytes that are buffered before the body is read. Then reception is paused. */
const EARLY_BYTES_MAX = 64 * 1024
/** Bytes that are buffered for the reader of a streamed body. */
const STREAM_WINDOW_BYTES = 256 * 1024

interface FlowControl {
  pause(): void
  resume(): void
}

type Waiter = {
  readonly maxBytes: number
  readonly withinMs: number
  readonly resolve: (body: Uint8Array) => void
  readonly reject: (failure: BodyUnreadable) => void
}

export class BodyReceiver {
  private readonly chunks: Uint8Array[] = []
  private readonly flow: FlowControl
  private readonly droppedBytesMax: number
  private readonly silentMs: number
  private heardMs = performance.now()
  private silence: NodeJS.Timeout | undefined
  private size = 0
  private ended = false
  failure: BodyFailure | null = null
  private droppedBytes = 0
  private paused = false
  private waiter: Waiter | null = null
  private writer: ByteWriter | null = null
  private maxBytes = Number.POSITIVE_INFINITY
  private timer: NodeJS.Timeout | undefined
  private waitedMs = 0
  private dropping: { bytesLeft: number; readonly done: () => void } | null = null

  /**
   * @param droppedBytesMax bytes that are dropped after the body failed.
   * @param silentMs time without a byte after which it fails: less than the listener itself waits.
   */
  constructor(flow: FlowControl, droppedBytesMax: number, silentMs = STALL_MS_MAX) {
    this.flow = flow
    this.droppedBytesMax = droppedBytesMax
    this.silentMs = silentMs
  }

  /** True after the last byte has arrived. */
  get complete(): boolean {
    return this.ended
  }

  /** Adds a chunk. The bytes must not change afterwards. */
  push(chunk: Uint8Array): void {
    if (this.dropping !== null) {
      this.dropping.bytesLeft -= chunk.byteLength
      if (this.dropping.bytesLeft < 0) this.dropped()
      else if (this.dropping.bytesLeft < Number.POSITIVE_INFINITY) this.expectMore()
      return
    }
    if (this.failure !== null || this.ended) {
      this.droppedBytes += chunk.byteLength
      if (this.droppedBytes > this.droppedBytesMax) this.flow.pause()
      return
    }
    this.size += chunk.byteLength
    this.heardMs = performance.now()
    if (this.writer !== null) {
      this.writeToStream(this.writer, chunk)
      return
    }
    const { waiter } = this
    if (waiter !== null && this.size > waiter.maxBytes) {
      this.fail('too_large')
      return
    }
    this.chunks.push(chunk)
    if (waiter === null && this.size > EARLY_BYTES_MAX && !this.paused) {
      this.paused = true
      this.flow.pause()
    }
  }

  end(): void {
    if (this.dropping !== null) {
      this.dropped()
      return
    }
    if (this.ended || this.failure !== null) return
    this.ended = true
    // Reception resumes, because the next bytes belong to another request.
    if (this.paused) {
      this.paused = false
      this.flow.resume()
    }
    this.settle()
  }

  /**
   * Drops the rest as it arrives, so that a client that writes its whole request before it reads gets the answer, and
   * the connection can be used again.
   */
  discard(): void {
    this.fail('aborted')
    if (!this.paused) return
    this.paused = false
    this.flow.resume()
  }

  /**
   * Drops the rest as it arrives and calls `done` once: at the end, after the bytes that are dropped at most, or when
   * the client pauses. Later bytes are dropped too.
   */
  drop(done: () => void): void {
    this.dropping = { bytesLeft: this.droppedBytesMax, done }
    this.discard()
    this.expectMore()
  }

  /** Ends the dropping if the client pauses, because it may wait for its answer. */
  private expectMore(): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.dropped(), QUIET_MS)
  }

  private dropped(): void {
    clearTimeout(this.timer)
    const { dropping } = this
    if (dropping === null) return
    this.dropping = { bytesLeft: Number.POSITIVE_INFINITY, done: () => undefined }
    dropping.done()
  }

  fail(reason: BodyFailure): void {
    if (this.failure !== null || this.ended) return
    this.failure = reason
    this.chunks.length = 0
    this.settle()
  }

  /**
   * The body as a stream. When the window is full, reception is paused. The stall limit applies only while the
   * reader waits for the client.
   */
  stream(maxBytes: number): ByteStream {
    const { stream, writer } = bytePipe({ windowBytes: STREAM_WINDOW_BYTES })
    this.writer = writer
    this.maxBytes = maxBytes
    writer.onDrain = () => this.proceed()
    writer.onCancel = () => {
      clearTimeout(this.timer)
      this.chunks.length = 0
    }
    if (this.failure !== null) writer.abort(this.failure)
    else if (this.size > maxBytes) this.fail('too_large')
    else {
      for (const chunk of this.chunks.splice(0)) writer.push(chunk)
      if (this.ended) writer.end()
      else this.proceed()
    }
    return stream
  }

  private writeToStream(writer: ByteWriter, chunk: Uint8Array): void {
    if (this.size > this.maxBytes) {
      this.fail('too_large')
      return
    }
    this.awaitMore()
    if (writer.push(chunk) || this.paused) return
    this.paused = true
    clearTimeout(this.timer)
    this.flow.pause()
  }

  /** Resumes reception after the reader has emptied the window. */
  private proceed(): void {
    if (this.ended || this.failure !== null) return
    this.awaitMore()
    if (!this.paused) return
    this.paused = false
    this.flow.resume()
  }

  private awaitMore(): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.fail('timeout'), this.silentMs)
  }

  read(maxBytes: number, withinMs: number, declaredBytes: number): Promise<Uint8Array> {
    if (this.failure === null && (this.size > maxBytes || declaredBytes > maxBytes)) {
      this.failure = 'too_large'
      this.chunks.length = 0
    }
    return new Promise((resolve, reject) => {
      this.waiter = { maxBytes, withinMs, resolve, reject }
      this.settle()
      if (this.waiter === null) return
      if (this.paused) {
        this.paused = false
        this.flow.resume()
      }
      watchLater(this)
    })
  }

  /** Starts the time limits of an incomplete body. */
  watchIncomplete(): void {
    if (this.waiter === null) return
    const { withinMs } = this.waiter
    this.watch(Math.min(STALL_MS_MAX, withinMs), withinMs)
    if (this.silentMs < STALL_MS_MAX) this.watchSilence()
  }

  private watchSilence(): void {
    const leftMs = this.silentMs - (performance.now() - this.heardMs)
    if (leftMs <= 0) this.fail('timeout')
    else this.silence = setTimeout(() => this.watchSilence(), leftMs)
  }

  private watch(delayMs: number, withinMs: number): void {
    this.timer = setTimeout(() => {
      this.waitedMs += delayMs
      const owedBytes = ((this.waitedMs - STALL_MS_MAX) / 1000 + 1) * BYTES_PER_SEC_MIN
      if (this.size < owedBytes || this.waitedMs >= withinMs) this.fail('timeout')
      else this.watch(RATE_CHECK_MS, withinMs)
    }, delayMs)
  }

  private settle(): void {
    const { waiter, writer } = this
    if (writer !== null) {
      clearTimeout(this.timer)
      if (this.failure === null) writer.end()
      else writer.abort(this.failure)
    }
    if (waiter === null || (this.failure === null && !this.ended)) return
    this.waiter = null
    clearTimeout(this.timer)
    clearTimeout(this.silence)
    if (this.failure !== null) waiter.reject(new BodyUnreadable(this.failure))
    else waiter.resolve(joined(this.chunks, this.size))
  }
}

/** Bodies that are being read. Nearly all are complete within this turn and need no timer. */
let awaited: BodyReceiver[] = []

function watchLater(receiver: BodyReceiver): void {
  awaited.push(receiver)
  if (awaited.length > 1) return
  setImmediate(() => {
    const receivers = awaited
    awaited = []
    for (const receiver of receivers) receiver.watchIncomplete()
  })
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = chunks
  if (first === undefined) return new Uint8Array(0)
  if (chunks.length === 1) return first
  const whole = new Uint8Array(size)
  let offset = 0
  for (const chunk of chunks) {
    whole.set(chunk, offset)
    offset += chunk.byteLength
  }
  return whole
}
