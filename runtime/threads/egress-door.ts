/**
 * The HTTP side of the egress thread: the egress address, with the actors that check tokens and count requests on this
 * thread. Loaded only where `server.egress_port` is set.
 */
import { egressActor } from '../../actors/vault/egress/actor.js'
import { healthActor } from '../../actors/operations/health/actor.js'
import { rateLimitsActor } from '../../actors/operations/rate-limits/actor.js'
import { signingKeysActor } from '../../actors/oauth/signing-keys/actor.js'
import { tenantsActor } from '../../actors/identity/tenants/actor.js'
import { tenants } from '../../actors/identity/tenants/protocol.js'
import { tokensActor } from '../../actors/oauth/tokens/actor.js'
import { openEgressDoor } from '../../gateway/egress-door.js'
import { openCoordination } from '../../storage/platform/coordination/open.js'
import type { Settings } from '../configuration/settings.js'
import type { ActorRef } from '../kernel/actor.js'
import type { ActorStats } from '../kernel/metrics/metrics.js'
import { inline, placement } from '../kernel/placement.js'
import { startSystem } from '../kernel/system.js'
import type { ThreadStart } from '../kernel/threads/thread-serve.js'
import type { ProcessResources } from '../process/process-resources.js'
import { followChanges } from '../wiring/announcements.js'
import { egressSizesOf, frontDoorOptions } from '../wiring/front-door.js'
import { issuingWirings } from '../wiring/issuing.js'
import { sharedNeeds } from '../wiring/shared-needs.js'
import { awaitKeys } from './await-keys.js'

/** What the main thread passes for the egress address. */
export type EgressAddress = {
  readonly settings: Settings
  /** `server.egress_port`. */
  readonly port: number
  readonly plane: string
}

/** What the egress thread has opened already. */
export type EgressDoorNeeds = Pick<ThreadStart, 'ref' | 'clock' | 'log' | 'metrics'> &
  Pick<ProcessResources, 'database' | 'kms' | 'sealer' | 'random'>

export interface OpenEgressDoor {
  drain(withinMs: number): Promise<boolean>
  stats(): readonly ActorStats[]
  unready(): readonly string[]
  close(): Promise<void>
}

/** The end of a drain, for actors and connections. */
const CLOSE_WITHIN_MS = 1_000
const PLANE = 'auth'

/** Actors of the address. Those of the table in `planes.ts` that its routes ask, and the actors that these ask. */
const PLACEMENTS = [
  healthActor,
  signingKeysActor,
  tenantsActor,
  rateLimitsActor,
  tokensActor,
  egressActor,
].map((actor) => placement(actor, inline, PLANE))

/** The health of the process is asked on the main thread, and the proxy is the actor of this thread. */
const ELSEWHERE: ReadonlySet<string> = new Set([healthActor.address.name, egressActor.address.name])

/** Listens, and accepts requests. @throws {ListenFailed} */
export async function openDoor(
  { settings, port, plane }: EgressAddress,
  needs: EgressDoorNeeds,
): Promise<OpenEgressDoor> {
  const { ref, clock, log, metrics, database, kms, sealer, random } = needs
  const closers: (() => Promise<unknown>)[] = []
  const close = async () => {
    for (const end of closers.splice(0).toReversed()) await end()
  }
  try {
    const { deployment, redis, memcached } = settings
    const backend = deployment.coordination_backend
    const coordination = await openCoordination({ backend, redis, memcached, database, log })
    closers.push(() => coordination.close())
    const resources: ProcessResources = {
      settings,
      database,
      coordination,
      kms,
      clock,
      random,
      metrics,
      log,
      sealer,
      // Only the health actor reads the next two, and it runs on the main thread.
      process: { started: () => true, stopping: () => false, unfit: () => [] },
      report: { planes: () => [], actors: () => [] },
    }
    const system = await startSystem({
      placements: PLACEMENTS,
      planes: [PLANE],
      elsewhere: ({ definition: { address } }) =>
        ELSEWHERE.has(address.name) ? ref(address) : undefined,
      actorWirings: issuingWirings(sharedNeeds(resources)),
      clock,
      log,
      metrics,
    })
    closers.push(() => system.drain(CLOSE_WITHIN_MS))
    await system.ref(tenants).ensureControlPlane({})
    await awaitKeys(system, clock)
    closers.push(await followChanges(database.listener, system))
    const door = openEgressDoor({
      ...frontDoorOptions(settings, system),
      port,
      sizes: egressSizesOf(settings),
      refs: new Map(
        PLACEMENTS.map(({ definition: { address } }) => [
          address.name,
          system.ref(address) as ActorRef<never>,
        ]),
      ),
      plane,
      log,
      metrics,
      clock,
      random,
    })
    closers.push(() => door.close())
    await door.listen()
    door.started()
    return {
      drain: (withinMs) => door.drain(withinMs),
      stats: () => system.stats(),
      unready: () => system.readiness().unready.map((one) => `egress ${one}`),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
