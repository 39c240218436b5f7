/**
 * Entry of the webhook delivery thread. It has its own small connection pool and its own connection
 * to the kms: secrets that it unseals are in no other thread's memory.
 */
import { deliveryWorker } from '../../../actors/webhooks/delivery/worker.js'
import { deliveryOutcomes } from '../../../actors/webhooks/delivery/metrics.js'
import { createSender, type SenderSettings } from '../../../actors/webhooks/delivery/sender.js'
import type { WebhooksSettings } from '../../../actors/webhooks/delivery/settings.js'
import { webhookSignerActor } from '../../../actors/webhooks/signer/actor.js'
import { webhookSigner } from '../../../actors/webhooks/signer/protocol.js'
import { TenantGroups } from '../../../actors/platform/tenant-groups.js'
import { openDatabase } from '../../../storage/platform/database.js'
import { createSealer } from '../../../storage/platform/sealing/seal.js'
import { untilSettled, wireActor } from '../../kernel/wiring.js'
import { systemRandom } from '../../kernel/random.js'
import { serveThread } from '../../kernel/threads/thread-serve.js'
import { startTelemetry } from '../telemetry/start.js'
import { kmsOf, smallPool, type ThreadAccess } from '../wiring/thread-access.js'

/** What the main thread passes to this thread. */
export type ThreadData = ThreadAccess & {
  readonly webhooks: WebhooksSettings
  readonly sending: SenderSettings
}

serveThread({
  placements: async ({ data, clock, log, metrics }) => {
    const { database: settings, urls, kms: access, webhooks, sending } = data as ThreadData
    const { telemetry, plane: servedPlane } = data as ThreadData
    const source = { plane: servedPlane, thread: 'webhooks' }
    const endTelemetry = await startTelemetry(telemetry, source, metrics.registry)
    const random = systemRandom(clock)
    const plane = 'async' as const
    const database = await openDatabase({ settings: smallPool(settings), urls, plane, log })
    const kms = await kmsOf(access, clock, log)
    const groups = new TenantGroups({ database, clock })
    const sender = createSender({ settings: sending, clock, groups })
    const outcomes = deliveryOutcomes(metrics.registry)
    return {
      actors: [
        wireActor(webhookSignerActor, () => ({
          sealer: createSealer({ database, kms, random, clock }),
          clock,
        })),
        wireActor(deliveryWorker, (context) => ({
          database,
          listener: database.listener,
          sender,
          signer: context.ref(webhookSigner),
          clock,
          random,
          outcomes,
          schedule: webhooks.retry_schedule_secs,
          lanesPerTenantMax: webhooks.lanes_per_tenant_max,
          shares: metrics.shares,
          settled: untilSettled(context),
        })),
      ],
      async close() {
        await sender.close()
        await kms.close()
        await database.close()
        await endTelemetry()
      },
    }
  },
})
