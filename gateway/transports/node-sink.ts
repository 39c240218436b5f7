/** The sink of a Node stream (node:http and node:http2). */
import type { Writable } from 'node:stream'
import type { Sink } from '../response/relay.js'

/** @param onBreak ends the stream with an error, so that the client notices the missing rest. */
export function streamSink(stream: Writable, onBreak: () => void): Sink {
  return {
    write: (chunk) => stream.write(chunk),
    whenRoom: () =>
      new Promise((resolve) => {
        const done = () => {
          stream.off('drain', done).off('close', done)
          resolve()
        }
        if (stream.destroyed) resolve()
        else stream.once('drain', done).once('close', done)
      }),
    end: () => void stream.end(),
    break: onBreak,
    get gone() {
      return stream.destroyed
    },
  }
}
