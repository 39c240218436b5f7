/** Compute pools of actors. */
import { availableParallelism } from 'node:os'
import { openPool, type Pool, type PoolOptions } from '../../kernel/threads/pool.js'
import type { ActorContext } from '../../kernel/wiring.js'
import type { ProcessResources } from '../process-resources.js'

/** A pool that closes with its actor. */
export function pooled<M>(
  context: ActorContext,
  { metrics, log, settings }: ProcessResources,
  options: PoolOptions,
): Pool<M> {
  const starts = settings.deployment.thread_start
  const opened = openPool<M>({
    starts,
    // Threads that start at their first use also end when they are idle.
    threadsMin: starts === 'at_first_use' ? 0 : 1,
    ...options,
    metrics,
    log,
  })
  context.onStop(() => opened.close())
  return opened
}

/** At most the threads in the table, and at most one per processor. */
export function processors({ place }: ActorContext): number {
  const most = place.tag === 'pool' ? place.threadsMax : 1
  return Math.min(availableParallelism(), most)
}
