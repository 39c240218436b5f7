/**
 * The HTTP side of the egress thread: the egress address, with the actors that check tokens and count requests on this
 * thread. Loaded only where `server.egress_port` is set.
 */
import { approvalsActor } from '../../../actors/vault/approvals/actor.js'
import { browserSessionsActor } from '../../../actors/identity/sign-in/sessions/actor.js'
import { egressActor } from '../../../actors/vault/egress/actor.js'
import { healthActor } from '../../../actors/operations/health/actor.js'
import { rateLimitsActor } from '../../../actors/operations/rate-limits/actor.js'
import { signingKeysActor } from '../../../actors/oauth/signing-keys/actor.js'
import { tenantsActor } from '../../../actors/identity/users/tenants/actor.js'
import { tokensActor } from '../../../actors/oauth/tokens/actor.js'
import { trustedIssuersActor } from '../../../actors/oauth/trusted-issuers/actor.js'
import { openEgressDoor } from '../../../gateway/egress-door.js'
import type { Settings } from '../configuration/settings.js'
import type { ActorRef } from '../../kernel/actor.js'
import type { ActorStats } from '../../kernel/metrics/metrics.js'
import { inline, placement } from '../../kernel/placement.js'
import type { ThreadStart } from '../../kernel/threads/thread-serve.js'
import type { ProcessResources } from '../process-resources.js'
import { egressSizesOf, frontDoorOptions } from '../wiring/front-door.js'
import { issuingWirings } from '../wiring/issuing.js'
import { sharedNeeds } from '../wiring/shared-needs.js'
import { openParts, openThreadSystem } from './thread-system.js'

/** What the main thread passes for the egress address. */
export type EgressAddress = {
  readonly settings: Settings
  /** `server.egress_port`. */
  readonly port: number
  readonly plane: string
}

/** What the egress thread has opened already. */
type EgressDoorNeeds = Pick<ThreadStart, 'ref' | 'clock' | 'log' | 'metrics'> &
  Pick<ProcessResources, 'database' | 'kms' | 'sealer' | 'random'>

export interface OpenEgressDoor {
  drain(withinMs: number): Promise<boolean>
  stats(): readonly ActorStats[]
  unready(): readonly string[]
  close(): Promise<void>
}

const PLANE = 'auth'

/** Actors of the address: the actors of `planes.ts` that its routes ask, and the actors that these ask. */
const PLACEMENTS = [
  healthActor,
  signingKeysActor,
  tenantsActor,
  rateLimitsActor,
  trustedIssuersActor,
  tokensActor,
  browserSessionsActor,
  approvalsActor,
  egressActor,
].map((actor) => placement(actor, inline, PLANE))

/** The health of the process and approvals are asked on the main thread, and the proxy is the actor of this thread. */
const ELSEWHERE: ReadonlySet<string> = new Set(
  [healthActor, browserSessionsActor, approvalsActor, egressActor].map(
    ({ address }) => address.name,
  ),
)

/** Listens, and accepts requests. @throws {ListenFailed} */
export function openDoor(
  { settings, port, plane }: EgressAddress,
  { ref, ...opened }: EgressDoorNeeds,
): Promise<OpenEgressDoor> {
  return openParts(async (closers) => {
    const { clock, log, metrics, random } = opened
    const system = await openThreadSystem({ settings, ...opened }, closers, {
      placements: PLACEMENTS,
      planes: [PLANE],
      elsewhere: ({ definition: { address } }) =>
        ELSEWHERE.has(address.name) ? ref(address) : undefined,
      wirings: (resources) => issuingWirings(sharedNeeds(resources)),
    })
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
    }
  })
}
