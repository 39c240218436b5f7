/**
 * The way of an answer's body to its reader: decoded, metered, its usage read, the secret taken out.
 * Each stage is asked to wait when the one behind it is full.
 */
import type { Transform } from 'node:stream'
import { isBomb } from '../decode/decompression-limit.js'
import { NoRoom } from '../redact/secret-automaton.js'
import { Gathering } from './chunk-coalescer.js'
import { isLent } from '../../../platform/outbound-http/shared-read-buffer.js'
import type { Outlet } from './response-buffer.js'
import { pace } from './pace.js'
import type { Purse } from '../admission/byte-budget.js'
import type { Redactor } from '../redact/redaction.js'
import type { UsageReader } from './usage.js'

export type DeliveryStages = {
  readonly outlet: Outlet
  readonly decoder: Transform | null
  readonly purse: Purse | null
  readonly redactor: Redactor | null
  readonly usage: UsageReader | null
  /** The longest body that is taken; null takes any. */
  readonly bytesMax: number | null
}

/** `room`: the memory to look for a long secret is not there. */
export type DeliveryFault = 'budget' | 'coding' | 'size' | 'room'

export type DeliveryEvents = {
  /** There is room again after `write` answered false. */
  readonly onRoom: () => void
  /** Bytes moved. */
  readonly onProgress: () => void
  /** The last byte has been handed over. */
  readonly onDone: () => void
  /** The rest will not be delivered. */
  readonly onFault: (fault: DeliveryFault) => void
}

export class Delivery {
  /** Body bytes after decoding, before anything was taken out of them. */
  bytes = 0
  chunks = 0
  readonly #stages: DeliveryStages
  readonly #events: DeliveryEvents
  readonly #waiting: Uint8Array[] = []
  #gathering: Gathering | null = null
  #receivedBytes = 0
  #blocked = false
  /** The reader asked to wait; otherwise it is the purse that is waited for. */
  #full = false
  #ending = false
  /** It has worked enough in this turn of the event loop. */
  #isPaced = false
  #over = false

  constructor(stages: DeliveryStages, events: DeliveryEvents) {
    this.#stages = stages
    this.#events = events
    const { outlet, decoder } = stages
    outlet.onDrain = () => this.#unblock()
    if (decoder === null) return
    decoder.on('data', (chunk: Buffer) => this.#decoded(chunk))
    decoder.on('drain', () => events.onRoom())
    decoder.on('end', () => this.#ended())
    decoder.on('error', () => this.#fail('coding'))
  }

  /** Takes bytes of the upstream, which may be lent; false asks to wait until `onRoom`. */
  write(chunk: Uint8Array): boolean {
    const { decoder } = this.#stages
    this.#receivedBytes += chunk.byteLength
    if (decoder === null && this.#gathering !== null) {
      this.#gathering.add(chunk)
      return !this.#blocked
    }
    const own = isLent(chunk) ? Buffer.from(chunk) : chunk
    if (decoder !== null) return decoder.write(own)
    this.#meter(own)
    return !this.#blocked
  }

  /** From here on the body is a stream: what comes in one turn goes on in few pieces. */
  streams(): void {
    this.#gathering = new Gathering((piece) => this.#meter(piece))
  }

  /** The upstream has sent everything. */
  end(): void {
    const { decoder } = this.#stages
    this.#gathering?.pass()
    if (decoder !== null && this.#receivedBytes > 0) return void decoder.end()
    // Of nothing there is nothing to decode, whatever coding an upstream names for it.
    decoder?.destroy()
    this.#ended()
  }

  /** Nothing more is delivered. */
  stop(): void {
    this.#over = true
    this.#waiting.length = 0
    this.#gathering?.stop()
    this.#stages.decoder?.destroy()
  }

  #decoded(chunk: Buffer): void {
    if (this.#over) return
    if (isBomb(this.#receivedBytes, this.bytes + chunk.byteLength)) this.#fail('coding')
    else this.#meter(chunk)
  }

  #meter(chunk: Uint8Array): void {
    if (this.#over) return
    const { purse } = this.#stages
    if (this.#waiting.length > 0 || this.#isPaced) this.#waiting.push(chunk)
    else if (purse === null || purse.take(chunk.byteLength)) this.#hand(chunk)
    else {
      this.#waiting.push(chunk)
      this.#block()
      void this.#draw()
    }
  }

  /** Hands on what waits, until it has to wait for the next turn. */
  async #draw(): Promise<void> {
    const { purse } = this.#stages
    for (let chunk = this.#waiting[0]; chunk !== undefined; chunk = this.#waiting[0]) {
      // A budget that cannot be asked is one that gives nothing.
      const enough = purse === null || (await purse.draw(chunk.byteLength).catch(() => false))
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
      if (!(error instanceof NoRoom)) throw error
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
    if (this.#stages.outlet.push(part)) return
    this.#full = true
    this.#block()
  }

  #block(): void {
    this.#blocked = true
    this.#stages.decoder?.pause()
  }

  #unblock(): void {
    this.#full = false
    if (!this.#blocked || this.#waiting.length > 0 || this.#isPaced || this.#over) return
    this.#blocked = false
    const { decoder } = this.#stages
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
    for (const part of this.#stages.redactor?.end() ?? []) this.#stages.outlet.push(part)
    this.#stages.outlet.end()
    this.#events.onDone()
  }

  #fail(fault: DeliveryFault): void {
    if (this.#over) return
    this.stop()
    this.#events.onFault(fault)
  }
}
