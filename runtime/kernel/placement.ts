/**
 * Where actors run. Placement belongs to the process and not to the actor: one table says in which
 * planes an actor runs, and where inside of the process. The checks here make the table safe to
 * change: every asked actor exists, and asks form no cycle.
 */
import type { AnyDefinition } from './actor.js'

export type Place =
  /** On the event loop of the main thread. The default, for actors that mostly wait. */
  | { readonly tag: 'inline' }
  /**
   * On a thread of this name, which several actors may share. For isolation, long relays and steady
   * CPU load.
   */
  | { readonly tag: 'thread'; readonly name: string }
  /**
   * Inline, with its `compute.ts` in a pool. For pure CPU work of a millisecond or more per call.
   */
  | { readonly tag: 'pool'; readonly name: string; readonly threadsMax: number }

/** When a thread, or the threads of a pool, start: with the process, or with the first message for them. */
export type ThreadStart = 'at_start' | 'at_first_use'

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

/** The placements on these planes, in the order of the table. */
export function placementsOf<Plane extends string>(
  placements: readonly Placement<Plane>[],
  planes: readonly NoInfer<Plane>[],
): Placement<Plane>[] {
  return placements.filter((placement) => placement.planes.some((plane) => planes.includes(plane)))
}

/**
 * Asks whose target does not run in the plane, as `plane: asker asks asked`. Asks never leave a
 * process.
 */
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

/**
 * Cycles of actors that ask each other, each once: with full mailboxes they would wait for each
 * other forever.
 */
export function askCycles(placements: readonly Placement[]): string[][] {
  const cycles: string[][] = []
  walk(placements, (circle) => cycles.push(circle))
  return cycles
}

/**
 * The placements ordered so that an actor follows the actors that it asks. Cycles stay in the
 * table's order.
 */
export function inOrderOfAsks<Plane extends string>(
  placements: readonly Placement<Plane>[],
): readonly Placement<Plane>[] {
  return walk(placements, () => {})
}

/**
 * Depth-first search over the asks. An actor that is met again on the current path closes a cycle.
 */
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
      const target = byName.get(name)
      if (target !== undefined) visit(target)
    }
    path.pop()
    ordered.add(placement)
  }
  for (const placement of placements) visit(placement)
  return [...ordered]
}
