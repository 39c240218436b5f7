/** The pool that decodes and encodes uploaded images. */
import type { Compute, PoolOptions } from '../../../runtime/kernel/threads/pool.js'

/** The decoder stops after 5 seconds. A thread that does not is replaced. */
const THREAD_MS_MAX = 8_000
const QUEUE_MAX = 32
const QUEUE_PER_TENANT_MAX = 4

export type ImageModule = typeof import('./compute.js')
export type ImageCompute = Compute<ImageModule>

/** Options of the pool behind `TenantAssetsNeeds.compute`. */
export function imagePool(processors: number): PoolOptions {
  return {
    name: 'images',
    module: new URL('./compute.js', import.meta.url),
    threadsMax: processors,
    // Uploads are rare, and the decoder is large: no thread waits for them.
    threadsMin: 0,
    queueMax: QUEUE_MAX,
    queuePerShareMax: QUEUE_PER_TENANT_MAX,
    batchMax: 1,
    batchMsMax: THREAD_MS_MAX,
    nice: 5,
  }
}

/** A PNG of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Encodes a pixel. @throws if the decoder does not work on this machine: then every upload would be refused. */
export async function checkImageEngine(compute: ImageCompute): Promise<void> {
  const bytes = Uint8Array.from(Buffer.from(PIXEL, 'base64'))
  const { tag } = await compute.run('encode', { kind: 'favicon', bytes })
  if (tag !== 'image') throw new Error(`the image decoder failed its smoke test: ${tag}`)
}
