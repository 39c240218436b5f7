/**
 * Verifies proofs. Signatures are verified in the pool, in batches of one event-loop tick. A proof of work is one hash,
 * which takes less time than its message to another thread, so it is verified here. Stateless.
 */
import { defineActor } from '../../../runtime/kernel/actor.js'
import type { Compute, PoolOptions } from '../../../runtime/kernel/threads/pool.js'
import { pow, type PowProtocol } from './protocol.js'
import { judgeWork } from './work.js'

const CAPACITY = 4096
const INFLIGHT_MAX = 2048
const BATCH_MAX = 256

export type PowCompute = Compute<typeof import('./compute.js')>
export type PowNeeds = { readonly compute: PowCompute }

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
    verify: async ({ challengeToken, nonce, difficultyBits }) => ({
      tag: judgeWork(challengeToken, nonce, difficultyBits),
    }),
    verifyOwnership: (message, context) => compute.run('ownership', message, context),
    async verifySignature(message, context) {
      return { tag: await compute.run('signature', message, context) }
    },
  }),
})
