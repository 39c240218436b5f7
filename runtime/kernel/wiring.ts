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
  spawn(site: ActorContext, options: SpawnOptions): Promise<Spawned<Protocol>>
}

export function wireActor<P extends Protocol, Needs>(
  definition: ActorDefinition<P, Needs>,
  needs: (site: ActorContext) => Needs | Promise<Needs>,
): ActorWiring {
  return {
    actor: definition.address.name,
    async spawn(site, options) {
      const spawned = spawnInline(definition, await needs(site), options)
      return spawned as unknown as Spawned<Protocol>
    },
  }
}

export function wiringOf(actorWirings: readonly ActorWiring[], actor: string): ActorWiring {
  const furnishing = actorWirings.find((candidate) => candidate.actor === actor)
  invariant(furnishing !== undefined, `${actor} is furnished`)
  return furnishing
}
