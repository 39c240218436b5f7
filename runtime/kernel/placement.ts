/**
 * Where actors sit. Placement is a property of the process and not of the actor: one table says which
 * actor runs in which plane, and where inside of the process. The checks here are what makes the
 * table safe to change: nobody asks an actor that is not there, and asks have a direction.
 */
import type { AnyDefinition } from './actor.js'

export type Place =
  /** On the event loop of the main thread: the default, for what mostly waits. */
  | { readonly tag: 'inline' }
  /** On a thread of this name, which several actors may share: isolation, long relays, steady CPU. */
  | { readonly tag: 'thread'; readonly name: string }
  /** Inline, with its `compute.ts` in a pool: pure CPU work of about a millisecond and more. */
  | { readonly tag: 'pool'; readonly name: string; readonly threadsMax: number }

export const inline: Place = { tag: 'inline' }

export function thread(name: string): Place {
  return { tag: 'thread', name }
}

export function pool(name: string, { threadsMax }: { threadsMax: number }): Place {
  return { tag: 'pool', name, threadsMax }
}

export interface Placement<Plane extends string = string> {
  readonly definition: AnyDefinition
  readonly place: Place
  readonly planes: readonly Plane[]
}

export function placement<Plane extends string>(
  definition: AnyDefinition,
  place: Place,
  ...planes: readonly Plane[]
): Placement<Plane> {
  return { definition, place, planes }
}

/** The seats that a process serving these planes fills, in the order of the table. */
export function placementsOf<Plane extends string>(
  placements: readonly Placement<Plane>[],
  planes: readonly NoInfer<Plane>[],
): Placement<Plane>[] {
  return placements.filter((placement) => placement.planes.some((plane) => planes.includes(plane)))
}

/** Asks that would find nobody, as `plane: asker asks asked`. Asks never leave a process. */
export function strandedAsks(placements: readonly Placement[]): string[] {
  const planesOf = new Map(
    placements.map(({ definition, planes }) => [definition.address.name, planes]),
  )
  return placements.flatMap(({ definition: { address, asks }, planes }) =>
    planes.flatMap((plane) =>
      Object.values(asks)
        .filter(({ name }) => planesOf.get(name)?.includes(plane) !== true)
        .map(({ name }) => `${plane}: ${address.name} asks ${name}`),
    ),
  )
}

/** Actors that ask each other in a circle, each circle once: two full mailboxes would wait for ever. */
export function askCycles(placements: readonly Placement[]): string[][] {
  const cycles: string[][] = []
  walk(placements, (circle) => cycles.push(circle))
  return cycles
}

/** The seats so that whoever is asked comes before whoever asks. Circles stay as they are. */
export function inOrderOfAsks<Plane extends string>(
  placements: readonly Placement<Plane>[],
): readonly Placement<Plane>[] {
  return walk(placements, () => {})
}

/** Depth first over the asks: what was left behind comes first, what is met again is a circle. */
function walk<Plane extends string>(
  placements: readonly Placement<Plane>[],
  onCircle: (names: string[]) => void,
): Placement<Plane>[] {
  const byName = new Map(
    placements.map((placement) => [placement.definition.address.name, placement]),
  )
  const ordered = new Set<Placement<Plane>>()
  const path: string[] = []
  const visit = (placement: Placement<Plane>) => {
    const { address, asks } = placement.definition
    const met = path.indexOf(address.name)
    if (met >= 0) {
      onCircle([...path.slice(met), address.name])
      return
    }
    if (ordered.has(placement)) return
    path.push(address.name)
    for (const { name } of Object.values(asks)) {
      const asked = byName.get(name)
      if (asked !== undefined) visit(asked)
    }
    path.pop()
    ordered.add(placement)
  }
  for (const placement of placements) visit(placement)
  return [...ordered]
}
