/** The sink of a Node stream (node:http and node:http2), and the fields of an answer of node:http. */
import type { Writable } from 'node:stream'
import type { HeaderBlock, HeaderPair } from '../http-exchange.js'
import type { Sink } from '../response/relay.js'
import { REPEATABLE_FIELDS } from './open.js'

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

/**
 * The fields of an answer as names and values in turn, which node:http writes faster than fields that are set one by one.
 * A later field replaces one of its name that occurs once.
 */
export function namesAndValues(block: HeaderBlock, headers: readonly HeaderPair[]): string[] {
  const fields: string[] = []
  for (const [name, value] of block.pairs) fields.push(name, value)
  for (const [name, value] of headers) {
    const at = REPEATABLE_FIELDS.has(name) ? -1 : placeOf(name, fields)
    if (at < 0) fields.push(name, value)
    else fields[at + 1] = value
  }
  return fields
}

function placeOf(name: string, fields: readonly string[]): number {
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === name) return at
  return -1
}
