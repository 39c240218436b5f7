/**
 * Splits a zstd stream into frame headers and blocks (RFC 8878 section 3.1), so that window size and
 * block size are checked before they are decoded.
 */

/** RFC 9659 section 3: the window size that a decoder of this content coding supports. */
const WINDOW_BYTES_MAX = 8 * 1024 * 1024
/** RFC 8878 section 3.1.1.2.4. */
const BLOCK_BYTES_MAX = 128 * 1024
const MAGIC = 0xfd2fb528
const SKIPPABLE_MAGIC = 0x184d2a50
const SKIPPABLE_HEADER_BYTES = 8
const BLOCK_HEADER_BYTES = 3
const CHECKSUM_BYTES = 4

type ZstdPiece =
  | { readonly tag: 'header'; readonly bytes: Buffer }
  /** The last block of a frame includes the checksum of the frame. */
  | { readonly tag: 'block'; readonly bytes: Buffer; readonly isLast: boolean }

export class ZstdRefused extends Error {
  override readonly name = 'ZstdRefused'
}

export class ZstdFrames {
  #held: Buffer = Buffer.alloc(0)
  /** Remaining bytes of a skippable frame. */
  #skipBytes = 0
  /** Null between frames. */
  #frame: { readonly hasChecksum: boolean } | null = null

  /** @returns the complete pieces. @throws {ZstdRefused} */
  push(chunk: Uint8Array): ZstdPiece[] {
    this.#held = this.#held.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk])
    const pieces: ZstdPiece[] = []
    for (let piece = this.#next(); piece !== null; piece = this.#next()) pieces.push(piece)
    return pieces
  }

  /** @throws {ZstdRefused} when a frame is incomplete. */
  end(): void {
    if (this.#frame !== null || this.#held.length > 0 || this.#skipBytes > 0) {
      throw new ZstdRefused('incomplete frame')
    }
  }

  #next(): ZstdPiece | null {
    if (this.#skipBytes > 0) {
      this.#skipBytes -= this.#take(Math.min(this.#skipBytes, this.#held.length)).length
      if (this.#skipBytes > 0) return null
    }
    return this.#frame === null ? this.#header() : this.#block(this.#frame.hasChecksum)
  }

  #header(): ZstdPiece | null {
    if (this.#held.length < 5) return null
    const magic = this.#held.readUInt32LE(0)
    if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
      if (this.#held.length < SKIPPABLE_HEADER_BYTES) return null
      this.#skipBytes = this.#held.readUInt32LE(4)
      this.#take(SKIPPABLE_HEADER_BYTES)
      return this.#next()
    }
    if (magic !== MAGIC) throw new ZstdRefused('not a zstd frame')
    const descriptor = this.#held[4]!
    const isSingle = (descriptor & 0x20) !== 0
    if ((descriptor & 0x08) !== 0) throw new ZstdRefused('reserved bit set')
    if ((descriptor & 0x03) !== 0) throw new ZstdRefused('dictionary required')
    const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6]!
    const bytes = 5 + (isSingle ? 0 : 1) + sizeBytes
    if (this.#held.length < bytes) return null
    if (this.#windowBytes(isSingle, sizeBytes) > WINDOW_BYTES_MAX) {
      throw new ZstdRefused('window larger than 8 MiB')
    }
    this.#frame = { hasChecksum: (descriptor & 0x04) !== 0 }
    return { tag: 'header', bytes: this.#take(bytes) }
  }

  #windowBytes(isSingle: boolean, sizeBytes: number): number {
    if (!isSingle) {
      const byte = this.#held[5]!
      const base = 2 ** (10 + (byte >> 3))
      return base + (base / 8) * (byte & 7)
    }
    if (sizeBytes === 8) return Number(this.#held.readBigUInt64LE(5))
    return this.#held.readUIntLE(5, sizeBytes) + (sizeBytes === 2 ? 256 : 0)
  }

  #block(hasChecksum: boolean): ZstdPiece | null {
    if (this.#held.length < BLOCK_HEADER_BYTES) return null
    const header = this.#held.readUIntLE(0, BLOCK_HEADER_BYTES)
    const isLast = (header & 1) !== 0
    const type = (header >> 1) & 3
    const size = header >> 3
    if (type === 3) throw new ZstdRefused('reserved block type')
    if (size > BLOCK_BYTES_MAX) throw new ZstdRefused('block larger than 128 KiB')
    // An RLE block stores one byte and its repeat count.
    const content = type === 1 ? 1 : size
    const bytes = BLOCK_HEADER_BYTES + content + (isLast && hasChecksum ? CHECKSUM_BYTES : 0)
    if (this.#held.length < bytes) return null
    if (isLast) this.#frame = null
    return { tag: 'block', bytes: this.#take(bytes), isLast }
  }

  #take(bytes: number): Buffer {
    const taken = this.#held.subarray(0, bytes)
    this.#held = this.#held.subarray(bytes)
    return taken
  }
}
