/**
 * The pipeline of a response body: decode, meter, read token usage, redact. Each stage applies
 * backpressure to the one before.
 */
import type { Transform } from 'node:stream'
import { decoderFor } from '../decode/decoding.js'
import { exceedsDecompressionLimit } from '../decode/decompression-limit.js'
import { MemoryShareExhausted } from '../redact/secret-automaton.js'
import { ChunkCoalescer } from './chunk-coalescer.js'
import { isShared } from '../../../platform/outbound-http/shared-read-buffer.js'
import type { ResponseBuffer } from './response-buffer.js'
import type { ByteBudget } from '../admission/byte-budget.js'
import type { Redactor } from '../redact/redaction.js'
import type { UsageReader } from './usage.js'

type DeliveryStages = {
  readonly responseBuffer: ResponseBuffer
  readonly decoder: Transform | null
  readonly byteBudget: ByteBudget | null
  readonly redactor: Redactor | null
  readonly usage: UsageReader | null
  /** Limit of the decoded body; null for none. */
  readonly bytesMax: number | null
}

/** `room`: the tenant's memory share has no room for the redaction table of a long secret. */
export type DeliveryFault = 'budget' | 'coding' | 'size' | 'room'

export type DeliveryEvents = {
  /** There is room again after `write` returned false. */
  readonly onRoom: () => void
  /** Bytes were relayed. */
  readonly onProgress: () => void
  /** The last byte was delivered. */
  readonly onDone: () => void
  /** Delivery failed. */
  readonly onFault: (fault: DeliveryFault) => void
}

export class Delivery {
  /** Body bytes after decoding, before redaction. */
  bytes = 0
  chunks = 0
  readonly #stages: DeliveryStages
  readonly #events: DeliveryEvents
  readonly #waiting: Uint8Array[] = []
  #coalescer: ChunkCoalescer | null = null
  #decoder: Transform | null
  #receivedBytes = 0
  #blocked = false
  /** Blocked by the reader; otherwise by the byte budget. */
  #full = false
  #ending = false
  /** The redaction work of this turn of the event loop is used up. */
  #isPaced = false
  #over = false

  constructor(stages: DeliveryStages, events: DeliveryEvents) {
    this.#stages = stages
    this.#events = events
    const { responseBuffer, decoder } = stages
    responseBuffer.onDrain = () => this.#unblock()
    this.#decoder = decoder
    if (decoder !== null) this.#listen(decoder)
  }

  #listen(decoder: Transform): void {
    decoder.on('data', (chunk: Buffer) => this.#decoded(chunk))
    decoder.on('drain', () => this.#events.onRoom())
    decoder.on('end', () => this.#ended())
    decoder.on('error', () => this.#fail('coding'))
  }

  /** Accepts upstream bytes, possibly in the shared read buffer; false asks to pause until `onRoom`. */
  write(chunk: Uint8Array): boolean {
    if (this.#receivedBytes === 0 && this.#decoder !== null && chunk.byteLength > 0) {
      const decoder = decoderFor(this.#decoder, chunk[0]!)
      if (decoder !== this.#decoder) this.#listen(decoder)
      this.#decoder = decoder
    }
    const decoder = this.#decoder
    this.#receivedBytes += chunk.byteLength
    if (decoder === null && this.#coalescer !== null) {
      this.#coalescer.add(chunk)
      return !this.#blocked
    }
    const own = isShared(chunk) ? Buffer.from(chunk) : chunk
    if (decoder !== null) return decoder.write(own)
    this.#meter(own)
    return !this.#blocked
  }

  /** Starts coalescing: the body is relayed as a stream from here on. */
  startStreaming(): void {
    this.#coalescer = new ChunkCoalescer((piece) => this.#meter(piece))
  }

  /** The upstream has sent everything. */
  end(): void {
    const decoder = this.#decoder
    this.#coalescer?.flush()
    if (decoder !== null && this.#receivedBytes > 0) return void decoder.end()
    // An empty body is not decoded, whatever its Content-Encoding.
    decoder?.destroy()
    this.#ended()
  }

  /** Stops delivery. */
  stop(): void {
    this.#over = true
    this.#waiting.length = 0
    this.#coalescer?.stop()
    this.#decoder?.destroy()
  }

  #decoded(chunk: Buffer): void {
    if (this.#over) return
    if (exceedsDecompressionLimit(this.#receivedBytes, this.bytes + chunk.byteLength))
      this.#fail('coding')
    else this.#meter(chunk)
  }

  #meter(chunk: Uint8Array): void {
    if (this.#over) return
    const { byteBudget } = this.#stages
    if (this.#waiting.length > 0 || this.#isPaced) this.#waiting.push(chunk)
    else if (byteBudget === null || byteBudget.take(chunk.byteLength)) this.#hand(chunk)
    else {
      this.#waiting.push(chunk)
      this.#block()
      void this.#draw()
    }
  }

  /** Delivers waiting chunks until the work of this turn is used up. */
  async #draw(): Promise<void> {
    const { byteBudget } = this.#stages
    for (let chunk = this.#waiting[0]; chunk !== undefined; chunk = this.#waiting[0]) {
      // If the budget cannot be read, treat it as exhausted.
      const enough =
        byteBudget === null || (await byteBudget.draw(chunk.byteLength).catch(() => false))
      if (this.#over) return
      if (!enough) return this.#fail('budget')
      this.#waiting.shift()
      this.#hand(chunk)
      if (this.#isPaced || this.#over) return
    }
    if (this.#ending) this.#finish()
    else if (!this.#full) this.#unblock()
  }

  #hand(chunk: Uint8Array): void {
    const { redactor, usage, bytesMax } = this.#stages
    this.bytes += chunk.byteLength
    this.chunks += 1
    if (bytesMax !== null && this.bytes > bytesMax) return this.#fail('size')
    this.#events.onProgress()
    usage?.push(chunk)
    if (redactor === null) this.#push(chunk)
    else this.#redact(redactor, chunk)
  }

  #redact(redactor: Redactor, chunk: Uint8Array): void {
    const before = redactor.steps
    try {
      for (const part of redactor.push(chunk)) this.#push(part)
    } catch (error) {
      if (!(error instanceof MemoryShareExhausted)) throw error
      return this.#fail('room')
    }
    if (pace.spend(redactor.steps - before)) return
    this.#isPaced = true
    this.#block()
    pace.onTurn(() => {
      this.#isPaced = false
      if (!this.#over) void this.#draw()
    })
  }

  #push(part: Uint8Array): void {
    if (this.#stages.responseBuffer.push(part)) return
    this.#full = true
    this.#block()
  }

  #block(): void {
    this.#blocked = true
    this.#decoder?.pause()
  }

  #unblock(): void {
    this.#full = false
    if (!this.#blocked || this.#waiting.length > 0 || this.#isPaced || this.#over) return
    this.#blocked = false
    const decoder = this.#decoder
    if (decoder === null) this.#events.onRoom()
    else decoder.resume()
  }

  #ended(): void {
    this.#ending = true
    if (this.#waiting.length === 0) this.#finish()
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    for (const part of this.#stages.redactor?.end() ?? []) this.#stages.responseBuffer.push(part)
    this.#stages.responseBuffer.end()
    this.#events.onDone()
  }

  #fail(fault: DeliveryFault): void {
    if (this.#over) return
    this.stop()
    this.#events.onFault(fault)
  }
}

/** Redaction steps; the slowest ones take about two milliseconds in all. */
const STEPS_PER_TURN = 512 * 1024

/**
 * Limits the redaction work of all streams per turn of the event loop. A hostile pair of secret and body
 * costs some nanoseconds per byte, which must not block other streams.
 */
class Pace {
  #left = STEPS_PER_TURN
  #scheduled = false
  readonly #waiting: (() => void)[] = []

  /** Counts finished work; false when the stream must wait for `onTurn`. */
  spend(steps: number): boolean {
    this.#left -= steps
    this.#schedule()
    return this.#left > 0
  }

  /** Calls back in a later turn, first in, first out. */
  onTurn(resume: () => void): void {
    this.#waiting.push(resume)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#scheduled = false
    this.#left = STEPS_PER_TURN
    for (let count = this.#waiting.length; count > 0 && this.#left > 0; count -= 1) {
      this.#waiting.shift()!()
    }
    if (this.#waiting.length > 0) this.#schedule()
  }
}

/** The instance of this thread. */
const pace = new Pace()
