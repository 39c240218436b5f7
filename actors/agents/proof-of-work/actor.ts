/** Hands proofs to the pool in the batches that gather within a tick. Keeps nothing between them. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { Compute, PoolOptions } from '../../../runtime/kernel/threads/pool.js'
import { pow, type PowProtocol } from './protocol.js'
import { isNonce } from './work.js'

const CAPACITY = 4096
const INFLIGHT_MAX = 2048
/** A proof of work is some 2 microseconds of hashing: many make a trip to a thread worthwhile. */
const BATCH_MAX = 256

export type PowCompute = Compute<typeof import('./compute.js')>
export type PowNeeds = { readonly compute: PowCompute }

/** How the pool behind `PowNeeds.compute` is opened. */
export function powPool(processors: number): PoolOptions {
  return {
    name: 'pow',
    module: new URL('./compute.js', import.meta.url),
    threadsMax: Math.max(1, processors - 1),
    queueMax: CAPACITY,
    batchMax: BATCH_MAX,
  }
}

export const powActor = defineActor<PowProtocol, PowNeeds>({
  address: pow,
  asks: {},
  mailbox: { capacity: CAPACITY, inflightMax: INFLIGHT_MAX },
  create: ({ compute }) => ({
    async verify(message, context) {
      // Nonsense is answered here: it is not worth a place in a batch.
      if (!isNonce(message.nonce)) return { tag: 'malformed' }
      return { tag: await compute.run('work', message, context) }
    },
    verifyOwnership: (message, context) => compute.run('ownership', message, context),
    async verifySignature(message, context) {
      return { tag: await compute.run('signature', message, context) }
    },
  }),
})
