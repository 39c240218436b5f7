/**
 * Coalesces body chunks that arrive in one turn of the event loop: a TLS record has 16 KiB and
 * a turn delivers many. Each byte is copied once, into memory that is transferred to another thread.
 */
import { handedOver, handOver } from '../../../../runtime/kernel/stream.js'
import { isShared } from '../../../platform/outbound-http/shared-read-buffer.js'

const PIECE_BYTES = 64 * 1024

export class ChunkCoalescer {
  readonly #onPiece: (piece: Uint8Array) => void
  /** Chunks that this object owns. Empty while `#memory` is in use, and vice versa. */
  #kept: Uint8Array[] = []
  #keptBytes = 0
  /** Copies of chunks in the shared read buffer. */
  #memory: Buffer | null = null
  #filledBytes = 0
  #scheduled: NodeJS.Immediate | undefined = undefined

  constructor(onPiece: (piece: Uint8Array) => void) {
    this.#onPiece = onPiece
  }

  add(chunk: Uint8Array): void {
    if (isShared(chunk)) this.#fill(chunk)
    else this.#keep(chunk)
    this.#scheduled ??= setImmediate(() => this.flush())
  }

  /** Passes on all chunks. */
  flush(): void {
    clearImmediate(this.#scheduled)
    this.#scheduled = undefined
    if (this.#keptBytes > 0) this.#passKept()
    if (this.#filledBytes > 0) this.#passFilled()
  }

  /** Discards all chunks. */
  stop(): void {
    clearImmediate(this.#scheduled)
    this.#kept = []
    this.#keptBytes = 0
    this.#memory = null
    this.#filledBytes = 0
  }

  #keep(chunk: Uint8Array): void {
    if (this.#filledBytes > 0) this.#passFilled()
    if (this.#keptBytes + chunk.byteLength > PIECE_BYTES) this.#passKept()
    this.#kept.push(chunk)
    this.#keptBytes += chunk.byteLength
  }

  #fill(chunk: Uint8Array): void {
    if (this.#keptBytes > 0) this.#passKept()
    for (let from = 0; from < chunk.byteLength; ) {
      const memory = (this.#memory ??= Buffer.allocUnsafeSlow(PIECE_BYTES))
      const part = chunk.subarray(from, from + PIECE_BYTES - this.#filledBytes)
      memory.set(part, this.#filledBytes)
      this.#filledBytes += part.byteLength
      from += part.byteLength
      if (this.#filledBytes === PIECE_BYTES) this.#passFilled()
    }
  }

  #passKept(): void {
    const kept = this.#kept
    const bytes = this.#keptBytes
    if (bytes === 0) return
    this.#kept = []
    this.#keptBytes = 0
    this.#onPiece(kept.length === 1 ? kept[0]! : handedOver(kept, bytes))
  }

  #passFilled(): void {
    const memory = this.#memory!
    const bytes = this.#filledBytes
    this.#filledBytes = 0
    if (bytes < PIECE_BYTES) return this.#onPiece(handedOver([memory.subarray(0, bytes)], bytes))
    this.#memory = null
    this.#onPiece(handOver(memory))
  }
}
