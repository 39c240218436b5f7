/**
 * A body of known length on uWebSockets.js. Bytes that the socket does not accept are kept here and written when
 * it is writable again. The native side would buffer them without a limit, for each request whose answer
 * the client does not read.
 */
import type { HttpResponse } from 'uWebSockets.js'
import type { ByteStream } from '../../runtime/kernel/stream.js'
import type { Sink } from '../response/relay.js'

type KnownBodyOptions = {
  readonly res: HttpResponse
  readonly body: ByteStream
  /** Length of the whole body, for `tryEnd`. */
  readonly totalBytes: number
  /** Writes the head. Null if it is written already. */
  readonly head: (() => void) | null
  /** Called after the last byte. Native objects must not be used from then on. */
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

  /** The last byte of a body ends the response. An empty body has none. */
  end(): void {
    if (!this.isHeadDue) return
    const { res, head, onComplete } = this.options
    this.isHeadDue = false
    res.cork(() => {
      head?.()
      onComplete()
      res.end()
    })
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
