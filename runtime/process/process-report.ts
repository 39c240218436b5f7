/** What runs in this process, for operators of the deployment (GET /api/v1/deployment/planes and /actors). */
import type { ActorReport, PlaneReport } from '../../actors/operations/health/protocol.js'
import { type ActorStats, mergeStats } from '../kernel/metrics/metrics.js'
import type { Place, Placement } from '../kernel/placement.js'
import type { RunPlane } from './planes.js'

const PLANES: readonly RunPlane[] = ['auth', 'control', 'async']

export function planeReports(
  placements: readonly Placement[],
  served: readonly RunPlane[],
): readonly PlaneReport[] {
  return PLANES.map((name) => ({
    name,
    here: served.includes(name),
    actors: placements.filter(({ planes }) => planes.includes(name)).length,
  }))
}

export function actorReports(
  placements: readonly Placement[],
  stats: readonly ActorStats[],
): readonly ActorReport[] {
  const byName = new Map(placements.map((one) => [one.definition.address.name, one]))
  return mergeStats(stats)
    .flatMap((seen) => {
      const placed = byName.get(seen.actor)
      if (placed === undefined) return []
      const { mailbox } = placed.definition
      return [
        {
          name: seen.actor,
          place: placeText(placed.place),
          planes: placed.planes,
          ready: seen.ready,
          waiting: seen.waiting,
          running: seen.inflight,
          capacity: mailbox.capacity,
          runningMax: mailbox.inflightMax,
          accepted: seen.accepted,
          completed: seen.answered,
          failed: Object.values(seen.unavailable).reduce((sum, count) => sum + count, 0),
          restarts: seen.restarts,
        },
      ]
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function placeText(place: Place): string {
  return place.tag === 'inline' ? 'inline' : `${place.tag} ${place.name}`
}
