/**
 * Streams between two threads, inside the frames of a link. The writing side may send
 * `WINDOW_BYTES` and then needs credit. The reading side grants credit as chunks are consumed. A
 * stream therefore holds at most one window and one piece in memory, however slow its reader is.
 */
import {
  bytePipe,
  type ByteSource,
  ByteStream,
  type ByteWriter,
  StreamAborted,
  WINDOW_BYTES,
} from '../stream.js'
import { receivedBytes } from './received-bytes.js'
import type { StreamTable } from './wire.js'

/**
 * Larger chunks are sent in pieces, which bounds how far a window can be exceeded. Smaller chunks
 * of one turn are joined up to this size.
 */
const PIECE_BYTES = 64 * 1024
/** Pieces of this size or more are sent as a separate transferred buffer. */
const ATTACH_BYTES = 8 * 1024
/** Credit is returned in portions, not for every chunk. */
const CREDIT_BYTES = WINDOW_BYTES / 4

export const StreamRecord = {
  piece: 10,
  attached: 11,
  end: 12,
  abort: 13,
  credit: 14,
  cancel: 15,
} as const

/** What the crossing needs of its link. */
export interface Carrier {
  send(record: readonly unknown[]): void
  /** Adds bytes to the message next to the frame, taken from their chunks. */
  attach(chunks: readonly Uint8Array[], bytes: number): number
  /** Has `gather` called before the next frame is sent. */
  expect(): void
}

type Incoming = { writer: ByteWriter; owedBytes: number }

export class StreamCrossing implements StreamTable {
  readonly #carrier: Carrier
  readonly #outgoing = new Map<number, Outgoing>()
  readonly #incoming = new Map<number, Incoming>()
  /** Streams with pieces that wait for the end of the turn. */
  readonly #gathering = new Map<number, Outgoing>()
  #sequence = 0

  constructor(carrier: Carrier) {
    this.#carrier = carrier
  }

  /** Unfinished streams in both directions. */
  get open(): number {
    return this.#outgoing.size + this.#incoming.size
  }

  /** Bytes sent and received so far. */
  send(stream: ByteStream): number {
    const outgoing = new Outgoing(stream.detach())
    this.#sequence += 1
    const id = this.#sequence
    this.#outgoing.set(id, outgoing)
    void this.#pump(id, outgoing)
    return id
  }

  retract(id: number): void {
    this.#outgoing.get(id)?.close('not sent')
    this.#outgoing.delete(id)
  }

  receive(id: number): ByteStream {
    const incoming: Incoming = { writer: undefined as never, owedBytes: 0 }
    const { stream, writer } = bytePipe({
      // The other side keeps the window, by its credit.
      windowBytes: Number.POSITIVE_INFINITY,
      onTaken: (bytes) => this.#taken(id, incoming, bytes),
    })
    incoming.writer = writer
    writer.onCancel = (reason) => {
      if (this.#incoming.delete(id)) this.#carrier.send([StreamRecord.cancel, id, reason])
    }
    this.#incoming.set(id, incoming)
    return stream
  }

  /** Handles a record of the other side. False when it is not about streams. */
  handle(record: readonly unknown[], attachments: readonly ArrayBuffer[]): boolean {
    const [kind, id, detail] = record as [number, number, unknown]
    switch (kind) {
      case StreamRecord.piece:
        this.#arrived(id, detail as Uint8Array)
        return true
      case StreamRecord.attached:
        this.#arrived(id, receivedBytes(attachments[detail as number]!))
        return true
      case StreamRecord.end:
        this.#incoming.get(id)?.writer.end()
        this.#incoming.delete(id)
        return true
      case StreamRecord.abort:
        this.#incoming.get(id)?.writer.abort(detail as string)
        this.#incoming.delete(id)
        return true
      case StreamRecord.credit:
        this.#outgoing.get(id)?.credit(detail as number)
        return true
      case StreamRecord.cancel:
        this.#outgoing.get(id)?.close(detail as string)
        this.#outgoing.delete(id)
        return true
      default:
        return false
    }
  }

  /** The other side is gone: aborts every reader and writer. */
  close(reason: string): void {
    for (const outgoing of this.#outgoing.values()) outgoing.close(reason)
    for (const { writer } of this.#incoming.values()) writer.abort(reason)
    this.#outgoing.clear()
    this.#incoming.clear()
  }

  /** Adds what the streams produced in this turn to the frame. */
  gather(): void {
    for (const [id, outgoing] of this.#gathering) this.#sendGathered(id, outgoing)
    this.#gathering.clear()
  }

  #arrived(id: number, bytes: Uint8Array): void {
    this.#incoming.get(id)?.writer.push(bytes)
  }

  #taken(id: number, incoming: Incoming, bytes: number): void {
    incoming.owedBytes += bytes
    if (incoming.owedBytes < CREDIT_BYTES || !this.#incoming.has(id)) return
    this.#carrier.send([StreamRecord.credit, id, incoming.owedBytes])
    incoming.owedBytes = 0
  }

  async #pump(id: number, outgoing: Outgoing): Promise<void> {
    try {
      for (;;) {
        await outgoing.creditable()
        const chunk = outgoing.closed ? undefined : await outgoing.source.read()
        if (outgoing.closed) return
        if (chunk === undefined) break
        if (!(await this.#sendChunk(id, outgoing, chunk))) return
      }
      this.#sendGathered(id, outgoing)
      this.#carrier.send([StreamRecord.end, id])
    } catch (error) {
      if (outgoing.closed) return
      this.#sendGathered(id, outgoing)
      const reason = error instanceof StreamAborted ? error.reason : String(error)
      this.#carrier.send([StreamRecord.abort, id, reason])
    } finally {
      this.#outgoing.delete(id)
    }
  }

  async #sendChunk(id: number, outgoing: Outgoing, chunk: Uint8Array): Promise<boolean> {
    for (let from = 0; from < chunk.byteLength; from += PIECE_BYTES) {
      await outgoing.creditable()
      if (outgoing.closed) return false
      const isAll = from === 0 && chunk.byteLength <= PIECE_BYTES
      const piece = isAll ? chunk : chunk.subarray(from, from + PIECE_BYTES)
      outgoing.spend(piece.byteLength)
      if (outgoing.gatheredBytes + piece.byteLength > PIECE_BYTES) this.#sendGathered(id, outgoing)
      outgoing.gathered.push(piece)
      outgoing.gatheredBytes += piece.byteLength
      this.#gathering.set(id, outgoing)
      this.#carrier.expect()
    }
    return true
  }

  #sendGathered(id: number, outgoing: Outgoing): void {
    const { gathered, gatheredBytes } = outgoing
    if (gatheredBytes === 0 || outgoing.closed) return
    outgoing.gathered = []
    outgoing.gatheredBytes = 0
    if (gatheredBytes >= ATTACH_BYTES) {
      const place = this.#carrier.attach(gathered, gatheredBytes)
      this.#carrier.send([StreamRecord.attached, id, place])
    } else {
      const piece = gathered.length === 1 ? gathered[0]! : Buffer.concat(gathered, gatheredBytes)
      this.#carrier.send([StreamRecord.piece, id, piece])
    }
  }
}

class Outgoing {
  readonly source: ByteSource
  closed = false
  /** The content of the next frame. */
  gathered: Uint8Array[] = []
  gatheredBytes = 0
  #creditBytes = WINDOW_BYTES
  #proceed: (() => void) | undefined = undefined

  constructor(source: ByteSource) {
    this.source = source
  }

  spend(bytes: number): void {
    this.#creditBytes -= bytes
  }

  credit(bytes: number): void {
    this.#creditBytes += bytes
    if (this.#creditBytes > 0) this.#wake()
  }

  /** The reader stopped reading. */
  close(reason: string): void {
    if (this.closed) return
    this.closed = true
    this.gathered = []
    this.gatheredBytes = 0
    this.source.cancel(reason)
    this.#wake()
  }

  /** Resolves when bytes may be sent, or when there is nothing left to send. */
  creditable(): Promise<void> | undefined {
    if (this.#creditBytes > 0 || this.closed) return undefined
    return new Promise((resolve) => {
      this.#proceed = resolve
    })
  }

  #wake(): void {
    this.#proceed?.()
    this.#proceed = undefined
  }
}
