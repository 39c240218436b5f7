/**
 * Sells payment links and checkout sessions by x402: states the price, verifies payment proofs and
 * has them settled.
 */
import { boundHandlers, defineActor } from '../../../../runtime/kernel/actor.js'
import type { PoolOptions } from '../../../../runtime/kernel/threads/pool.js'
import type { X402Needs } from './needs.js'
import { getX402Challenge, payByX402, type PayNeeds } from './pay-by-x402.js'
import { type X402Protocol, x402 } from './protocol.js'
import { listX402Payments, resolveX402Payment } from './resolution.js'

const CAPACITY = 2048
const INFLIGHT_MAX = 1024
/** A signature check takes about two milliseconds. */
const BATCH_MAX = 8

/** Options of the pool behind `X402Needs.compute`. No thread starts before the first signature. */
export function x402Pool(processors: number): PoolOptions {
  return {
    name: 'x402',
    module: new URL('./compute.js', import.meta.url),
    threadsMin: 0,
    threadsMax: Math.max(1, processors - 1),
    queueMax: CAPACITY,
    batchMax: BATCH_MAX,
  }
}

export const x402Actor = defineActor<X402Protocol, X402Needs>({
  address: x402,
  asks: {},
  mailbox: { capacity: CAPACITY, inflightMax: INFLIGHT_MAX },
  lane: { resolveX402Payment: ({ id }) => id },
  supervision: { onFailure: 'resume' },
  create: (needs) =>
    boundHandlers<X402Protocol, PayNeeds>(
      { getX402Challenge, payByX402, listX402Payments, resolveX402Payment },
      { ...needs, inProgress: new Map() },
    ),
})
