/**
 * Connects actor definitions with their dependencies, on the main thread and inside of worker
 * threads.
 */
import type { ActorDefinition, ActorRef } from './actor.js'
import { invariant } from './assert.js'
import { type SpawnOptions, type Spawned, spawnInline } from './inline.js'
import type { Place } from './placement.js'
import type { Address, Protocol } from './protocol.js'

/** What is known where an actor is wired. */
export interface ActorContext {
  /** A reference to an actor. It may be kept, and used once the actor has started. */
  ref<P extends Protocol>(address: Address<P>): ActorRef<P>
  readonly place: Place
  /** Registers what to close after the actor has stopped. */
  onStop(close: () => Promise<void>): void
}

/** A definition and the function that creates its dependencies. Only here their types meet. */
export interface ActorWiring {
  readonly actor: string
  spawn(context: ActorContext, options: SpawnOptions): Promise<Spawned<Protocol>>
}

export function wireActor<P extends Protocol, Needs>(
  definition: ActorDefinition<P, Needs>,
  needs: (context: ActorContext) => Needs | Promise<Needs>,
): ActorWiring {
  return {
    actor: definition.address.name,
    async spawn(context, options) {
      const spawned = spawnInline(definition, await needs(context), options)
      return spawned as unknown as Spawned<Protocol>
    },
  }
}

/**
 * For a worker whose run must end before its needs are closed.
 * @returns what the worker gives its run to.
 */
export function untilSettled({
  onStop,
}: Pick<ActorContext, 'onStop'>): (run: Promise<void>) => void {
  let running = Promise.resolve()
  onStop(() => running)
  return (run) => {
    running = run
  }
}

export function wiringOf(actorWirings: readonly ActorWiring[], actor: string): ActorWiring {
  const wiring = actorWirings.find((candidate) => candidate.actor === actor)
  invariant(wiring !== undefined, `${actor} has a wiring`)
  return wiring
}
