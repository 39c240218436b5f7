/**
 * Frames: how messages leave a thread. Everything that is sent within one turn of the event loop
 * travels in one frame, because a hop costs far more than a message. A frame is msgpack in a buffer
 * of exactly its size. A large one is transferred, and a small one is copied, which costs less than a
 * transfer. msgpackr's own buffer is never transferred: its backing store holds other messages.
 *
 *  Objects of the same shape share a record definition per direction. A new definition travels with
 * the first frame that needs it, so both ends always know the same definitions.
 */
import { addExtension, Packr, RESET_BUFFER_MODE, Unpackr } from 'msgpackr'
import { invariant } from '../assert.js'
import { NotPlainData } from '../envelope.js'
import { Secret } from '../secret.js'
import { ByteStream, memoryOf } from '../stream.js'
import { SharedText, SharedTextReader, SharedTextWriter } from '../text/shared-text.js'

/**
 * The content of a `postMessage`: the frame, new definitions, and buffers too large to be packed.
 */
export type PostedFrame =
  | ArrayBuffer
  | readonly [
      frame: ArrayBuffer,
      definitions: Definitions | null,
      attachments: readonly ArrayBuffer[],
    ]
type Definitions = readonly (readonly string[])[]

/** Turns stream handles inside messages into numbers and back. */
export interface StreamTable {
  /** Takes ownership of the handle and names it for the other side. */
  send(stream: ByteStream): number
  /** A handle for a stream that the other side named. */
  receive(id: number): ByteStream
  /** The message that should carry the stream is not sent. */
  retract(id: number): void
}

/** Shapes that share a definition. Objects of further shapes are written out each time. */
const DEFINITIONS_MAX = 128
const STAGING_BYTES = 16 * 1024
/** A staging buffer that a large message grew beyond this is not kept. */
const STAGING_BYTES_MAX = 1024 * 1024
/** A transfer costs as much as a copy of about so many bytes. */
const COPIED_BYTES_MAX = 1024
const STREAM_EXTENSION = 0x53
const SECRET_EXTENSION = 0x54
const SHARED_TEXT_EXTENSION = 0x55

/**
 * The table of the active link. Both are synchronous, so there is one at a
 * time.
 */
let table: StreamTable | undefined
/** Streams handed over by the record that is being packed. */
let handedOver: number[] = []
/** The shared texts of the active direction. */
let textWriter: SharedTextWriter | undefined
let textReader: SharedTextReader | undefined

addExtension({
  Class: ByteStream,
  type: STREAM_EXTENSION,
  pack(stream: ByteStream) {
    invariant(table !== undefined, 'a stream is packed by a link')
    const id = table.send(stream)
    handedOver.push(id)
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(id)
    return bytes
  },
  unpack(bytes: Uint8Array) {
    invariant(table !== undefined, 'a stream is unpacked by a link')
    return table.receive(new DataView(bytes.buffer, bytes.byteOffset).getUint32(0))
  },
})

addExtension({
  Class: Secret,
  type: SECRET_EXTENSION,
  pack(): Buffer {
    throw new NotPlainData('message holds a Secret')
  },
})

// The last one is looked for first.
addExtension({
  Class: SharedText,
  type: SHARED_TEXT_EXTENSION,
  pack(shared: SharedText) {
    invariant(textWriter !== undefined, 'a shared text is packed by a link')
    return textWriter.write(shared)
  },
  unpack(bytes: Uint8Array) {
    invariant(textReader !== undefined, 'a shared text is unpacked by a link')
    return textReader.read(bytes)
  },
})

export class FrameWriter {
  readonly #streams: StreamTable
  readonly #texts = new SharedTextWriter()
  readonly #packr: Packr
  #staging = new Uint8Array(STAGING_BYTES)
  #length = 0
  #definitions: Definitions | null = null
  #attachments: ArrayBuffer[] = []

  constructor(streams: StreamTable) {
    this.#streams = streams
    this.#packr = new Packr({
      useRecords: true,
      structures: [],
      maxSharedStructures: DEFINITIONS_MAX,
      useBigIntExtension: true,
      useToJSON: false,
      saveStructures: (structures) => {
        this.#definitions = (structures as string[][]).map((names) => [...names])
      },
    } as ConstructorParameters<typeof Packr>[0])
  }

  /** Bytes that wait to be taken. */
  get length(): number {
    return this.#length
  }

  /**
   * Copies a record into the frame: later changes to the values have no effect.
   * @throws when a value cannot cross. The frame is then unchanged.
   */
  add(record: readonly unknown[]): void {
    table = this.#streams
    textWriter = this.#texts
    textWriter.begin()
    if (handedOver.length > 0) handedOver = []
    try {
      const packed = this.#packr.pack(record, RESET_BUFFER_MODE)
      this.#reserve(packed.byteLength)
      this.#staging.set(packed, this.#length)
      this.#length += packed.byteLength
    } catch (error) {
      for (const id of handedOver) this.#streams.retract(id)
      this.#texts.retract()
      throw error
    } finally {
      table = undefined
      textWriter = undefined
    }
  }

  /**
   * Adds bytes to the message next to the frame, for content that is too large to be packed.
   * Returns their number in the message. The bytes are copied, unless they were handed over.
   */
  attach(chunks: readonly Uint8Array[], bytes: number): number {
    const own = chunks.length === 1 ? memoryOf(chunks[0]!) : undefined
    return this.#attachments.push(own ?? rightSized(chunks, bytes)) - 1
  }

  /** What has been added so far, ready for `postMessage`. */
  take(): { posted: PostedFrame; transfer: ArrayBuffer[] } {
    const frame = rightSized([this.#staging.subarray(0, this.#length)], this.#length)
    const definitions = this.#definitions
    const attachments = this.#attachments
    this.#length = 0
    this.#definitions = null
    if (this.#staging.byteLength > STAGING_BYTES_MAX) this.#staging = new Uint8Array(STAGING_BYTES)
    const transfer = frame.byteLength > COPIED_BYTES_MAX ? [frame] : []
    if (definitions === null && attachments.length === 0) return { posted: frame, transfer }
    this.#attachments = []
    return { posted: [frame, definitions, attachments], transfer: [...transfer, ...attachments] }
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#staging.byteLength) return
    const grown = new Uint8Array(Math.max(needed, this.#staging.byteLength * 2))
    grown.set(this.#staging.subarray(0, this.#length))
    this.#staging = grown
  }
}

export class FrameReader {
  readonly #streams: StreamTable
  readonly #texts = new SharedTextReader()
  #unpackr = readerOf([])

  constructor(streams: StreamTable) {
    this.#streams = streams
  }

  /** The records of a frame in the order in which they were added. */
  read(posted: PostedFrame): { records: unknown[][]; attachments: readonly ArrayBuffer[] } {
    if (posted instanceof ArrayBuffer) return { records: this.#unpack(posted), attachments: [] }
    const [frame, definitions, attachments] = posted
    if (definitions !== null) this.#unpackr = readerOf(definitions)
    return { records: this.#unpack(frame), attachments }
  }

  #unpack(frame: ArrayBuffer): unknown[][] {
    table = this.#streams
    textReader = this.#texts
    try {
      // All records before any is handled: a handler may pack or unpack something else.
      return this.#unpackr.unpackMultiple(new Uint8Array(frame))
    } finally {
      table = undefined
      textReader = undefined
    }
  }
}

const valuePackr = new Packr({ useRecords: true, useBigIntExtension: true, useToJSON: false })
const valueUnpackr = new Unpackr({ useRecords: true, useBigIntExtension: true })
const NIL = Uint8Array.of(0xc0)

/**
 * One value in a frame that needs no other one: for pools, where any thread may take the next frame. Transfer it: then its
 * memory is in one thread only.
 * @throws when the value cannot cross.
 */
export function packFrame(value: unknown): ArrayBuffer {
  const packed = valuePackr.pack(value, RESET_BUFFER_MODE)
  const frame = rightSized([packed], packed.byteLength)
  // The value may have secrets, and the buffer stays.
  packed.fill(0)
  return frame
}

/** The value of a frame. Its byte arrays are parts of the frame: wiping one wipes its only copy. */
export function unpackFrame(frame: ArrayBuffer): unknown {
  const value: unknown = valueUnpackr.unpack(new Uint8Array(frame))
  // The decoder keeps its last frame, and strings of it.
  valueUnpackr.unpack(NIL)
  return value
}

function readerOf(definitions: Definitions): Unpackr {
  const structures = definitions.map((names) => [...names])
  // Byte arrays are copied out of the frame. A small one would otherwise keep the whole frame
  // alive.
  return new Unpackr({
    useRecords: true,
    getStructures: () => structures,
    maxSharedStructures: DEFINITIONS_MAX,
    copyBuffers: true,
    useBigIntExtension: true,
  })
}

/** A buffer of exactly the size of the chunks. Not zero-filled: every byte is overwritten. */
function rightSized(chunks: readonly Uint8Array[], bytes: number): ArrayBuffer {
  const copy = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const chunk of chunks) {
    copy.set(chunk, at)
    at += chunk.byteLength
  }
  return copy.buffer as ArrayBuffer
}
