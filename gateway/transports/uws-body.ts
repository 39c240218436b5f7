/**
 * A body of known length on uWebSockets.js. Bytes that the socket does not take stay here, and are
 * offered again once it is writable: the native side would buffer any number of them, for every request
 * that a client sends without reading the answers.
 */
import type { HttpResponse } from 'uWebSockets.js'
import type { ByteStream } from '../../runtime/kernel/stream.js'
import type { Sink } from '../response/relay.js'

export type KnownBodyOptions = {
  readonly res: HttpResponse
  readonly body: ByteStream
  /** Length of the whole body, as `tryEnd` wants it. */
  readonly totalBytes: number
  /** Writes the head; null where it was written. */
  readonly head: (() => void) | null
  /** Called once the response has its last byte: nothing native may be touched from then on. */
  readonly onComplete: () => void
}

export class KnownBody implements Sink {
  gone = false
  wake: (() => void) | null = null
  readonly body: ByteStream
  private readonly options: KnownBodyOptions
  private isHeadDue: boolean
  private rest: Uint8Array | null = null

  constructor(options: KnownBodyOptions) {
    this.options = options
    this.body = options.body
    this.isHeadDue = options.head !== null
    options.res.onWritable(() => {
      const { rest } = this
      this.rest = null
      if (rest !== null && !this.write(rest)) return false
      this.wake?.()
      this.wake = null
      return true
    })
  }

  get unsent(): boolean {
    return this.isHeadDue
  }

  write(chunk: Uint8Array): boolean {
    let isTaken = false
    this.options.res.cork(() => {
      if (this.isHeadDue) this.options.head?.()
      this.isHeadDue = false
      isTaken = this.offer(chunk)
    })
    return isTaken
  }

  whenRoom(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }

  end(): void {
    // The last byte of a known length is the end.
  }

  break(): void {
    this.options.res.close()
  }

  private offer(chunk: Uint8Array): boolean {
    const { res, totalBytes, onComplete } = this.options
    const from = res.getWriteOffset()
    const [isTaken, isComplete] = res.tryEnd(chunk, totalBytes)
    if (isComplete) {
      onComplete()
      return true
    }
    if (isTaken) return true
    const takenBytes = res.getWriteOffset() - from
    if (takenBytes < chunk.byteLength) this.rest = chunk.subarray(takenBytes)
    return false
  }
}
