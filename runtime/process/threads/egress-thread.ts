/**
 * Entry of the egress thread, which relays calls with credentials. It unseals secrets, so it shares
 * no memory with other threads. It has its own small connection pool and its own connection to the
 * kms. With `server.egress_port` it has its own listener too.
 */
import { egressActor } from '../../../actors/vault/egress/actor.js'
import { createAdmission } from '../../../actors/vault/egress/admission/admission.js'
import { egressMetrics } from '../../../actors/vault/egress/metrics.js'
import type { EgressSettings } from '../../../actors/platform/outbound-http/outbound.js'
import { approvalLimitsOf } from '../../../actors/vault/vault/settings.js'
import { createManagedTokens } from '../../../actors/vault/vault/managed-tokens.js'
import { vaultMetrics } from '../../../actors/vault/vault/metrics.js'
import type { VaultSettings } from '../../../actors/vault/vault/settings.js'
import { createTokenEndpoint } from '../../../actors/vault/vault/token-endpoint.js'
import { openDatabase } from '../../../storage/platform/database.js'
import { EGRESS_CHANNEL } from '../../../storage/vault/egress-blocks.js'
import { createSealer } from '../../../storage/platform/sealing/seal.js'
import { wireActor } from '../../kernel/wiring.js'
import { systemRandom } from '../../kernel/random.js'
import { serveThread } from '../../kernel/threads/thread-serve.js'
import { startTelemetry } from '../telemetry/start.js'
import { kmsOf, smallPool, type ThreadAccess } from '../wiring/thread-access.js'
import type { EgressAddress, OpenEgressDoor } from './egress-door.js'

/** What the main thread passes to this thread. */
export type EgressThreadData = ThreadAccess & {
  readonly vault: VaultSettings & EgressSettings
  readonly issuer: string
  /** Set once the service has its keys, so that a restarted thread listens again. */
  readonly address?: EgressAddress | undefined
  /** The address follows. */
  readonly listens?: boolean | undefined
}

const loadDoor = () => import('./egress-door.js')

serveThread({
  placements: async ({ data, clock, log, metrics, ref }) => {
    const {
      database: settings,
      urls,
      kms: access,
      vault,
      issuer,
      listens,
    } = data as EgressThreadData
    const { telemetry, plane: servedPlane } = data as EgressThreadData
    const source = { plane: servedPlane, thread: 'egress' }
    const endTelemetry = await startTelemetry(telemetry, source, metrics.registry)
    const random = systemRandom(clock)
    const plane = 'auth' as const
    const database = await openDatabase({ settings: smallPool(settings), urls, plane, log })
    const kms = await kmsOf(access, clock, log)
    const measured = egressMetrics(metrics.registry)
    const admission = createAdmission({
      database,
      clock,
      random,
      log,
      unrecordedMax: vault.egress_unrecorded_calls_max,
      approvals: approvalLimitsOf(vault),
      onAdmitted: measured.admitted,
      onBudgetExceeded: measured.budgetExceeded,
    })
    const leave = await database.listener.listen(EGRESS_CHANNEL, {
      notified: (tenantId) => admission.forget(tenantId),
      caughtUp: () => admission.forget(null),
    })
    const sealer = createSealer({ database, kms, random, clock })
    const endpoint = createTokenEndpoint({ settings: vault, clock })
    const managed = createManagedTokens({
      database,
      sealer,
      endpoint,
      clock,
      random,
      log,
      metrics: vaultMetrics(metrics.registry),
      connectionTtlSecs: vault.connection_ttl_secs,
    })
    const needs = {
      database,
      sealer,
      admission,
      managed,
      clock,
      random,
      issuer,
      metrics: measured,
      counts: metrics.shares,
      settings: vault,
    }
    let door: OpenEgressDoor | undefined
    const openAddress = async ({ address }: EgressThreadData) => {
      if (address === undefined || door !== undefined) return
      const { openDoor } = await loadDoor()
      door = await openDoor(address, { ref, clock, log, metrics, database, kms, sealer, random })
    }
    // Its modules load while the process starts.
    if (listens === true) void loadDoor()
    return {
      actors: [wireActor(egressActor, () => needs)],
      opened: () => openAddress(data as EgressThreadData),
      reconfigure: (changed) => openAddress(changed as EgressThreadData),
      finishRequests: async (withinMs) => (await door?.drain(withinMs)) ?? true,
      stats: () => door?.stats() ?? [],
      unready: () => door?.unready() ?? [],
      async close() {
        await door?.close()
        leave()
        await admission.flushed()
        await managed.settled()
        await endpoint.close()
        await kms.close()
        await database.close()
        await endTelemetry()
      },
    }
  },
})
