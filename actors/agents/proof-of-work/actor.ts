/** Verifies proofs in the pool, in batches of one event-loop tick. Stateless. */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { Compute, PoolOptions } from '../../../runtime/kernel/threads/pool.js'
import { pow, type PowProtocol } from './protocol.js'
import { judgeSignature } from './signatures.js'
import { isNonce } from './work.js'

const CAPACITY = 4096
const INFLIGHT_MAX = 2048
/** One proof is about 2 microseconds of hashing, so a batch amortises the thread hop. */
const BATCH_MAX = 256

type PowCompute = Compute<typeof import('./compute.js')>
type PowNeeds = { readonly compute: PowCompute }

/** Options of the pool behind `PowNeeds.compute`. */
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
      // A malformed nonce is refused here, without a place in a batch.
      if (!isNonce(message.nonce)) return { tag: 'malformed' }
      return { tag: await compute.run('work', message, context) }
    },
    verifyOwnership: (message, context) => compute.run('ownership', message, context),
    // In place: a thread hop takes as much processor time as the signature.
    async verifySignature(message) {
      return { tag: judgeSignature(message) }
    },
  }),
})
