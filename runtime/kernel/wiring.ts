/** Bringing definitions and their needs together, on the main thread and inside of worker threads. */
import type { ActorDefinition, ActorRef } from './actor.js'
import { invariant } from './assert.js'
import { type SpawnOptions, type Spawned, spawnInline } from './inline.js'
import type { Place } from './placement.js'
import type { Address, Protocol } from './protocol.js'

/** What is known where an actor is furnished. */
export interface ActorContext {
  /** An actor to ask: good to keep, whether or not it has been started yet. */
  ref<P extends Protocol>(address: Address<P>): ActorRef<P>
  readonly place: Place
  /** Called after the actor has stopped: to close what it needed. */
  onStop(close: () => Promise<void>): void
}

/** A definition and how its needs are made; the types meet here and nowhere else. */
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

export function wiringOf(actorWirings: readonly ActorWiring[], actor: string): ActorWiring {
  const wiring = actorWirings.find((candidate) => candidate.actor === actor)
  invariant(wiring !== undefined, `${actor} is furnished`)
  return wiring
}
