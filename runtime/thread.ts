/**
 * Entry of the worker thread of the async plane. It has its own few connections and its own line to
 * the key management: what it opens there is seen by no other thread.
 */
import { deliveriesActor } from '../actors/deliveries/actor.js'
import { deliveryOutcomes } from '../actors/deliveries/metrics.js'
import { createSender } from '../actors/deliveries/sender.js'
import type { WebhooksSettings } from '../actors/deliveries/settings.js'
import { createDeliveryWorker } from '../actors/deliveries/worker.js'
import { openDatabase } from '../storage/database.js'
import { openKms } from '../storage/kms/client.js'
import { ephemeralKms } from '../storage/kms/ephemeral.js'
import type { PoolSettings, PoolUrls } from '../storage/pool-plan.js'
import { createSealer } from '../storage/seal.js'
import type { Clock } from './kernel/clock.js'
import { furnish } from './kernel/furnishing.js'
import type { Logger } from './kernel/log.js'
import { systemRandom } from './kernel/random.js'
import { serveThread } from './kernel/thread-serve.js'
import { type KmsAccess, THREAD_POOL_CONNECTIONS } from './site.js'

/** What the main thread gives it along. */
export type ThreadData = {
  readonly database: PoolSettings
  readonly urls: PoolUrls
  readonly kms: KmsAccess
  readonly webhooks: WebhooksSettings
  /** `security.webhook_allow_non_standard_ports`. */
  readonly nonStandardPorts: boolean
}

serveThread({
  seats: async ({ data, clock, log, metrics }) => {
    const { database: settings, urls, kms: access, webhooks, nonStandardPorts } = data as ThreadData
    const random = systemRandom(clock)
    const small = {
      ...settings,
      max_connections: THREAD_POOL_CONNECTIONS,
      min_connections: 0,
      identity_max_connections: 1,
      async_pool: undefined,
    }
    const database = await openDatabase({ settings: small, urls, plane: 'async', log })
    const kms = await kmsOf(access, clock, log)
    const sender = createSender({ settings: { ...webhooks, nonStandardPorts }, clock })
    const worker = createDeliveryWorker({
      database,
      listener: database.listener,
      sealer: createSealer({ database, kms, random, clock }),
      sender,
      clock,
      random,
      outcomes: deliveryOutcomes(metrics.registry),
      schedule: webhooks.retry_schedule_secs,
    })
    return {
      actors: [furnish(deliveriesActor, () => ({ worker }))],
      async close() {
        await worker.settled()
        await sender.close()
        await kms.close()
        await database.close()
      },
    }
  },
})

function kmsOf(access: KmsAccess, clock: Clock, log: Logger) {
  if (access.tag === 'socket') return openKms({ ...access, log, clock })
  return ephemeralKms({ random: systemRandom(clock), masterKey: access.masterKey })
}
