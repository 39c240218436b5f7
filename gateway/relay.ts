/** A byte stream to a socket, honouring both brakes: the reader's pace is the writer's. */
import { type ByteStream, StreamAborted } from '../runtime/kernel/stream.js'
import type { StreamEnd } from './exchange.js'

/** The writing side of a transport. */
export interface Sink {
  /** False asks to wait until `whenRoom`. */
  write(chunk: Uint8Array): boolean
  /** Settles when there is room again, or the client is gone. */
  whenRoom(): Promise<void>
  end(): void
  /** Breaks the connection, or the stream of it: what was sent is not the whole. */
  break(): void
  /** The client has left. */
  readonly gone: boolean
  /** Nothing has been sent, not even the head. */
  readonly unsent?: boolean
}

/** Hands a body to a socket. Never throws. */
export async function relayTo(sink: Sink, body: ByteStream): Promise<StreamEnd> {
  try {
    for (;;) {
      const chunk = await body.read()
      if (sink.gone) break
      if (chunk === undefined) {
        sink.end()
        return 'complete'
      }
      if (!sink.write(chunk)) await sink.whenRoom()
      if (sink.gone) break
    }
  } catch (error) {
    if (sink.gone) return 'left'
    if (sink.unsent === true) return { unsent: error instanceof StreamAborted ? error.reason : '' }
    sink.break()
    return 'broken'
  }
  body.cancel('the client left')
  return 'left'
}
