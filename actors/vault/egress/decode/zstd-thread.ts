/**
 * Entry of a thread that decodes one zstd answer. A block of a few bytes can keep the decoder busy for
 * seconds, so it works where nobody else waits, and is ended from outside when it takes too long.
 */
import { parentPort } from 'node:worker_threads'
import { Decompress } from 'fzstd'
import { isBomb } from './decompression-limit.js'
import { ZstdFrames, ZstdRefused } from './zstd-frames.js'

/** One chunk of the answer as it came; null is its end. */
export type ZstdInput = Uint8Array | null
/** What it decodes to; null when it cannot be decoded. */
export type ZstdOutput = readonly Uint8Array[] | null

const frames = new ZstdFrames()
let decoder: Decompress | null = null
let parts: Uint8Array[] = []
let [inputBytes, outputBytes] = [0, 0]

function take(data: Uint8Array): void {
  if (data.length === 0) return
  outputBytes += data.length
  if (isBomb(inputBytes, outputBytes)) throw new ZstdRefused('it makes too much of too little')
  parts.push(data)
}

function decoded(chunk: ZstdInput): ZstdOutput {
  try {
    if (chunk === null) {
      frames.end()
      return []
    }
    inputBytes += chunk.length
    for (const piece of frames.push(chunk)) {
      if (piece.tag === 'header') {
        // One for each frame, so that nothing of one is left in the next.
        decoder = new Decompress(take)
        decoder.push(piece.bytes)
      } else decoder!.push(piece.bytes, piece.isLast)
    }
    return parts
  } catch {
    return null
  } finally {
    parts = []
  }
}

parentPort?.on('message', (chunk: ZstdInput) => parentPort!.postMessage(decoded(chunk)))
