/**
 * A worker: background work that receives no messages. It is an actor without a protocol, so a placement,
 * supervision, metrics and readiness are the same for both. Its address is only its name.
 */
import { type ActorDefinition, defineActor, type Asked, type Lifecycle } from './actor.js'
import { address } from './protocol.js'

/** The protocol of a worker: no messages. */
type NoMessages = Record<never, never>

interface WorkerDefinition<Needs> {
  /** In logs, metrics and `/health/ready`. */
  readonly name: string
  /** Every actor that the worker asks, as for an actor. */
  readonly asks: Asked<Needs>
  /**
   * Works until `lifecycle.signal` is aborted. A failed round is reported to `lifecycle.loop(...)` and
   * tried again here. A rejected promise is a defect: the worker is restarted, after a wait that grows.
   * A promise that resolves early means that nothing is left to do.
   */
  readonly run: (needs: Needs, lifecycle: Lifecycle) => Promise<void>
}

/** Defines background work that is placed, supervised and stopped like an actor. */
export function defineWorker<Needs>({
  name,
  asks,
  run,
}: WorkerDefinition<Needs>): ActorDefinition<NoMessages, Needs> {
  return defineActor<NoMessages, Needs>({
    address: address<NoMessages>(name),
    asks,
    mailbox: { capacity: 1, inflightMax: 1 },
    supervision: { onFailure: 'restart' },
    create: (needs, lifecycle) => {
      const ended = (error: unknown) => {
        if (lifecycle.signal.aborted) return
        // A dependency that is unavailable must not leave the worker ended: any error restarts it.
        lifecycle.failed(new Error(`worker ${name} ended`, { cause: error }))
      }
      void Promise.resolve()
        .then(() => run(needs, lifecycle))
        .catch(ended)
      return {}
    },
  })
}
