/**
 * Decodes zstd (RFC 8878) in a worker thread with limits for its memory and for the time per chunk. The
 * proxy does not offer this coding and few upstreams send it anyway, so few decoders run at a time.
 */
import { Transform, type TransformCallback } from 'node:stream'
import { Worker } from 'node:worker_threads'
import type { ZstdInput, ZstdOutput } from './zstd-thread.js'

const THREADS_MAX = 4
const CHUNK_MS_MAX = 5_000
const CHUNK_BYTES_MAX = 64 * 1024
const HEAP_MIB_MAX = 64

let threads = 0

/** Null when the maximum number of decoders is running. */
export function createZstdDecoder(): Transform | null {
  return threads >= THREADS_MAX ? null : new ZstdDecoder()
}

class ZstdDecoder extends Transform {
  readonly #worker = new Worker(new URL('./zstd-thread.js', import.meta.url), {
    name: 'zstd',
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
  })
  #onOutput: ((output: ZstdOutput) => void) | null = null

  constructor() {
    super({ readableHighWaterMark: CHUNK_BYTES_MAX })
    threads += 1
    this.#worker.on('message', (output: ZstdOutput) => this.#onOutput?.(output))
    this.#worker.on('error', () => this.#onOutput?.(null))
    this.#worker.once('exit', () => {
      threads -= 1
      this.#onOutput?.(null)
    })
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    void this.#take(chunk, done)
  }

  override _flush(done: TransformCallback): void {
    void this.#take(null, done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    void this.#worker.terminate()
    done(error)
  }

  /** Decodes a chunk; null ends the stream. */
  async #take(chunk: Buffer | null, done: TransformCallback): Promise<void> {
    try {
      if (chunk === null) await this.#decode(null)
      for (let at = 0; at < (chunk?.length ?? 0) && !this.destroyed; at += CHUNK_BYTES_MAX) {
        const parts = await this.#decode(chunk!.subarray(at, at + CHUNK_BYTES_MAX))
        for (const part of parts) this.push(part)
      }
    } catch (error) {
      done(error as Error)
      return
    }
    if (chunk === null) void this.#worker.terminate()
    done()
  }

  #decode(input: ZstdInput): Promise<readonly Uint8Array[]> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.#onOutput?.(null), CHUNK_MS_MAX)
      this.#onOutput = (output) => {
        clearTimeout(late)
        this.#onOutput = null
        if (output === null) reject(new Error('invalid zstd stream or timeout'))
        else resolve(output)
      }
      // A copy, because the chunk is a view of a larger buffer.
      this.#worker.postMessage(input === null ? null : new Uint8Array(input))
    })
  }
}
