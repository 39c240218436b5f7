/**
 * Decodes zstd (RFC 8878), which Node does from version 22 on: on a thread of its own, with a limit to
 * its memory and to the time that one chunk may take. svc does not ask for this coding; upstreams that
 * send it all the same are few, so few are decoded at a time.
 */
import { Transform, type TransformCallback } from 'node:stream'
import { Worker } from 'node:worker_threads'
import type { ZstdInput, ZstdOutput } from './zstd-thread.js'

const THREADS_MAX = 4
const CHUNK_MS_MAX = 5_000
const CHUNK_BYTES_MAX = 64 * 1024
const HEAP_MIB_MAX = 64

let threads = 0

/** Null when as many are being decoded as may be. */
export function createZstdDecoder(): Transform | null {
  return threads >= THREADS_MAX ? null : new ZstdDecoder()
}

class ZstdDecoder extends Transform {
  readonly #worker = new Worker(new URL('./zstd-thread.js', import.meta.url), {
    name: 'zstd',
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
  })
  #answered: ((output: ZstdOutput) => void) | null = null

  constructor() {
    super({ readableHighWaterMark: CHUNK_BYTES_MAX })
    threads += 1
    this.#worker.on('message', (output: ZstdOutput) => this.#answered?.(output))
    this.#worker.on('error', () => this.#answered?.(null))
    this.#worker.once('exit', () => {
      threads -= 1
      this.#answered?.(null)
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

  /** A chunk, or the end. */
  async #take(chunk: Buffer | null, done: TransformCallback): Promise<void> {
    try {
      if (chunk === null) await this.#ask(null)
      for (let at = 0; at < (chunk?.length ?? 0) && !this.destroyed; at += CHUNK_BYTES_MAX) {
        const parts = await this.#ask(chunk!.subarray(at, at + CHUNK_BYTES_MAX))
        for (const part of parts) this.push(part)
      }
    } catch (error) {
      done(error as Error)
      return
    }
    if (chunk === null) void this.#worker.terminate()
    done()
  }

  #ask(input: ZstdInput): Promise<readonly Uint8Array[]> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.#answered?.(null), CHUNK_MS_MAX)
      this.#answered = (output) => {
        clearTimeout(late)
        this.#answered = null
        if (output === null) reject(new Error('the zstd stream cannot be decoded'))
        else resolve(output)
      }
      // A copy: the chunk is a window of a larger one.
      this.#worker.postMessage(input === null ? null : new Uint8Array(input))
    })
  }
}
