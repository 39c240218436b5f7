/**
 * Entry of a worker thread that decodes one zstd response. A block of a few bytes can occupy the decoder
 * for seconds, so each response has its own thread, which is terminated on timeout.
 */
import { parentPort } from 'node:worker_threads'
import { Decompress } from 'fzstd'
import { exceedsDecompressionLimit } from './decompression-limit.js'
import { ZstdFrames, ZstdRefused } from './zstd-frames.js'

/** A compressed chunk; null for the end of the response. */
export type ZstdInput = Uint8Array | null
/** The decoded parts; null on an error. */
export type ZstdOutput = readonly Uint8Array[] | null

const frames = new ZstdFrames()
let decoder: Decompress | null = null
let parts: Uint8Array[] = []
let [inputBytes, outputBytes] = [0, 0]

function take(data: Uint8Array): void {
  if (data.length === 0) return
  outputBytes += data.length
  if (exceedsDecompressionLimit(inputBytes, outputBytes))
    throw new ZstdRefused('decompression limit exceeded')
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
        // One decoder per frame, so that frames share no state.
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
