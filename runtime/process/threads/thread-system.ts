/** The actors of a thread that serves requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import { signingKeys } from '../../../actors/oauth/signing-keys/protocol.js'
import { tenants } from '../../../actors/identity/users/tenants/protocol.js'
import { openCoordination } from '../../../storage/platform/coordination/open.js'
import type { Clock } from '../../kernel/clock.js'
import { startSystem, type System, type SystemOptions } from '../../kernel/system.js'
import type { ActorWiring } from '../../kernel/wiring.js'
import type { ProcessResources } from '../process-resources.js'
import { followChanges } from '../wiring/announcements.js'

const KEYS_WITHIN_MS = 15_000
const KEYS_RETRY_MS = 250
/** The end of a drain, for actors and connections. */
const CLOSE_WITHIN_MS = 1_000

/** What a thread has opened, to be closed in the opposite order. */
export type Closers = (() => Promise<unknown>)[]

/** Opens the parts of a thread. If one of them fails, those before it are closed. */
export async function openParts<Parts>(
  open: (closers: Closers) => Promise<Parts>,
): Promise<Parts & { close(): Promise<void> }> {
  const closers: Closers = []
  const close = async () => {
    for (const end of closers.splice(0).toReversed()) await end()
  }
  try {
    return { ...(await open(closers)), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Starts the actors of a thread with its own coordination, until they have their keys and follow changes elsewhere. */
export async function openThreadSystem<Plane extends string>(
  opened: Omit<ProcessResources, 'coordination' | 'process' | 'report' | 'caughtMail'>,
  closers: Closers,
  {
    wirings,
    ...options
  }: Pick<SystemOptions<Plane>, 'placements' | 'planes' | 'elsewhere' | 'cloneMessages'> & {
    readonly wirings: (resources: ProcessResources) => readonly ActorWiring[]
  },
): Promise<System> {
  const { settings, database, clock, log, metrics } = opened
  const { deployment, redis, memcached } = settings
  const backend = deployment.coordination_backend
  const coordination = await openCoordination({ backend, redis, memcached, database, log })
  closers.push(() => coordination.close())
  const actorWirings = wirings({
    ...opened,
    coordination,
    // Only the health actor reads the next two, and it runs on the main thread.
    process: { started: () => true, stopping: () => false, unfit: () => [] },
    report: { planes: () => [], actors: () => [] },
  })
  const system = await startSystem({ ...options, actorWirings, clock, log, metrics })
  closers.push(() => system.drain(CLOSE_WITHIN_MS))
  await system.ref(tenants).ensureControlPlane({})
  await awaitKeys(system, clock)
  closers.push(await followChanges(database, system))
  return system
}

/** The main thread has created the keys by now. This thread reads them before it accepts requests. */
async function awaitKeys(system: System, clock: Clock): Promise<void> {
  const endMs = clock.monotonicMs() + KEYS_WITHIN_MS
  while (!(await system.ref(signingKeys).state(null)).signing) {
    if (clock.monotonicMs() > endMs) throw new Error('the signing keys cannot be loaded')
    await sleep(KEYS_RETRY_MS)
  }
}
