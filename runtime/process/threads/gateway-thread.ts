/**
 * Entry of a gateway thread besides the main thread. It accepts connections on the port of the main thread, and has
 * its own inline actors, its share of the database pools, and its own connections to the kms, the coordination
 * backend and LISTEN. Actors that run once in a process are asked on the main thread
 * (docs/concepts/actor-runtime.md).
 */
import type { GatewayOptions } from '../../../gateway/gateway.js'
import { openDatabase } from '../../../storage/platform/database.js'
import { openKms } from '../../../storage/platform/kms/client.js'
import { createSealer } from '../../../storage/platform/sealing/seal.js'
import type { Plane } from '../configuration/deployment.js'
import type { Settings } from '../configuration/settings.js'
import type { ActorRef } from '../../kernel/actor.js'
import type { Metrics } from '../../kernel/metrics/metrics.js'
import { systemRandom } from '../../kernel/random.js'
import {
  serveThread,
  type ThreadPlacements,
  type ThreadStart,
} from '../../kernel/threads/thread-serve.js'
import { isOnMainThread, placementsOfGatewayThread, planesOf } from '../planes.js'
import { startTelemetry } from '../telemetry/start.js'
import { actorWirings } from '../wiring/actors.js'
import { gatewayOf } from '../wiring/gateway.js'
import type { ThreadAccess } from '../wiring/thread-access.js'
import { mainThread, type MainThreadProtocol } from './main-thread.js'
import { type Closers, openParts, openThreadSystem } from './thread-system.js'

/** What the main thread passes to a gateway thread. `database` is the thread's share of the pools. */
export type GatewayThreadData = ThreadAccess & {
  readonly settings: Settings
  readonly plane: Plane
  /** The port on which the main thread listens. */
  readonly port: number
  readonly keepsMail: boolean
  readonly cloneMessages: boolean | undefined
}

serveThread({ placements: (start) => openParts((closers) => opened(start, closers)) })

async function opened(
  start: ThreadStart,
  closers: Closers,
): Promise<Omit<ThreadPlacements, 'close' | 'reconfigure'>> {
  const { name, data, clock, log, metrics: own } = start
  const { settings, plane, port, urls, keepsMail, cloneMessages, ...access } =
    data as GatewayThreadData
  const { registry } = own
  const random = systemRandom(clock)
  const main = start.ref(mainThread)
  const metrics: Metrics = {
    ...own,
    exposition: async () => (await main.metrics(null)).text,
  }

  const source = { plane, thread: name }
  const endTelemetry = await startTelemetry(settings.telemetry, source, registry)
  closers.push(endTelemetry)
  const database = await openDatabase({ settings: access.database, urls, plane, log, registry })
  closers.push(() => database.close())
  const kms = await openKms({ ...access.kms, log, clock, registry })
  closers.push(() => kms.close())
  const sealer = createSealer({ database, kms, random, clock })
  const parts = { settings, database, kms, sealer, clock, random, metrics, log }
  const system = await openThreadSystem(parts, closers, {
    placements: placementsOfGatewayThread(settings),
    planes: planesOf(plane),
    elsewhere: (placement) =>
      isOnMainThread(placement) ? start.ref(placement.definition.address) : undefined,
    wirings: actorWirings,
    cloneMessages,
  })

  const gateway = gatewayOf({
    settings,
    plane,
    system,
    log,
    clock,
    random,
    metrics,
    devMailbox: keepsMail ? mailboxOf(main) : undefined,
    shared: { thread: name, port },
  })
  closers.push(() => gateway.close())
  await gateway.listen()
  gateway.warm()
  gateway.started()
  return {
    actors: [],
    stats: () => system.stats(),
    unready: () => system.readiness().unready.map((one) => `${name} ${one}`),
    finishRequests: (withinMs) => gateway.drain(withinMs),
  }
}

function mailboxOf(main: ActorRef<MainThreadProtocol>): NonNullable<GatewayOptions['devMailbox']> {
  const list = async () => (await main.mails(null)).mails
  return { list, find: async (id) => (await list()).find((mail) => mail.id === id) }
}
