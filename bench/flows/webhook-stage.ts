/**
 * The setup of the webhook benches: a durable PostgreSQL, a tenant, the sender and delivery worker
 * of the service, and a receiver on another thread.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Registry } from 'prom-client'
import { sequencerWorker } from '../../actors/operations/sequencer/worker.js'
import { type DeliveryOutcome, deliveryOutcomes } from '../../actors/webhooks/delivery/metrics.js'
import type { AttemptResult, Outgoing } from '../../actors/webhooks/delivery/protocol.js'
import { createSender } from '../../actors/webhooks/delivery/sender.js'
import { deliveryWorker } from '../../actors/webhooks/delivery/worker.js'
import { webhookSignerActor } from '../../actors/webhooks/signer/actor.js'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { systemClock as clock } from '../../runtime/kernel/clock.js'
import { type Spawned, spawnInline } from '../../runtime/kernel/inline.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { ShareCounts } from '../../runtime/kernel/fairness/fair-share.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import type { OpenDatabase } from '../../storage/platform/database.js'
import { memoryKms } from '../../storage/platform/kms/memory.js'
import { insertOrganization } from '../../storage/identity/organizations.js'
import { createSealer } from '../../storage/platform/sealing/seal.js'
import { insertTenant } from '../../storage/identity/tenants.js'
import { insertWebhook, webhookSecretContext } from '../../storage/webhooks/webhooks.js'
import { openBenchDatabase } from '../bench-database.js'
import { LOCALHOST_CERT } from './loopback-tls.js'

const SCHEDULE = [0, 5, 300]
const SUBSCRIPTIONS_MAX = 1_000

export interface WebhookStage {
  readonly database: OpenDatabase
  readonly tenantId: string
  /** Signs and sends, without the outbox. */
  send(
    outgoing: Pick<Outgoing, 'url' | 'deliveryId' | 'eventType' | 'body'>,
  ): Promise<AttemptResult>
  /** Origin of the receiver, which accepts everything. */
  readonly origin: string
  /** Posts the received bodies with the time of their arrival. */
  readonly receiver: Worker
  readonly random: ReturnType<typeof systemRandom>
  /** Creates a subscription of the tenant to one event type. */
  subscribe(url: string, type: string): Promise<void>
  /** Attempts whose outcome is committed. */
  readonly attempts: number
  /** Starts the sequencer and the delivery worker. */
  work(): void
  end(): Promise<void>
}

export async function openWebhookStage(): Promise<WebhookStage> {
  const receiver = new Worker(new URL('./webhook-receiver.js', import.meta.url))
  const [port] = (await once(receiver, 'message')) as [number]
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-webhooks-'))
  const caPath = join(dataDir, 'ca.pem')
  await writeFile(caPath, LOCALHOST_CERT)
  const postgres = await startEmbeddedPostgres({ dataDir, log })
  await runMigrations({ url: postgres.url, log })
  const database = await openBenchDatabase(postgres.url, 'async', {
    max_connections: 4,
    identity_max_connections: 1,
  })
  const random = systemRandom(clock)
  const sealer = createSealer({ database, kms: memoryKms({ random }), random, clock })
  const sender = createSender({
    clock,
    settings: {
      max_age_secs: 300,
      timeout_secs: 15,
      allow_private_networks: true,
      nonStandardPorts: true,
      ownNames: [],
      ca_pem_path: caPath,
    },
  })
  const tenantId = random.uuid()
  const organizationId = random.uuid()
  const createdAt = clock.now()
  const named = { name: 'bench', slug: 'bench', createdAt }
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  await database.system(async (tx) => {
    await insertOrganization(tx, { id: organizationId, ...named, network: null })
    await insertTenant(tx, {
      id: tenantId,
      organizationId,
      ...named,
      environment: 'sandbox',
      status: 'active',
      admitAgents: true,
    } as Parameters<typeof insertTenant>[1])
  })
  const never = new AbortController().signal
  const signer = spawnInline(webhookSignerActor, { sealer, clock }).ref
  const sealedFor = (id: string) =>
    sealer.seal(tenantId, webhookSecretContext(id), Buffer.from(secret))
  const webhookId = random.uuid()
  const outcomes = deliveryOutcomes(new Registry())
  let attempts = 0
  let numbered: Promise<unknown> = Promise.resolve()
  let delivered: Promise<unknown> = Promise.resolve()
  const workers: Spawned<never>[] = []
  const deliveries = {
    database,
    listener: database.listener,
    sender,
    signer,
    clock,
    random,
    outcomes: {
      count(outcome: DeliveryOutcome, by = 1) {
        outcomes.count(outcome, by)
        attempts += by
      },
    },
    schedule: SCHEDULE,
    lanesPerTenantMax: 512,
    shares: new ShareCounts(),
    settled: (run: Promise<void>) => (delivered = run),
  }
  const known = { tenantId, webhookId, secret: await sealedFor(webhookId), previousSecret: null }
  return {
    database,
    tenantId,
    send: (outgoing) => sender.send({ ...known, ...outgoing }, signer, never),
    origin: `https://localhost:${port}`,
    receiver,
    random,
    async subscribe(url, type) {
      const id = random.uuid()
      const sealed = await sealedFor(id)
      const row = {
        id,
        tenantId,
        url,
        eventTypes: [type],
        description: '',
        active: true,
        createdAt,
      }
      await database.tenant(tenantId, (tx) =>
        insertWebhook(tx, { ...row, secret: sealed }, SUBSCRIPTIONS_MAX),
      )
    },
    get attempts() {
      return attempts
    },
    work() {
      const settled = (run: Promise<void>) => (numbered = run)
      const needs = { database, clock, registry: new Registry(), hasSinks: false, settled }
      workers.push(
        spawnInline(sequencerWorker, needs, { clock, log }) as Spawned<never>,
        spawnInline(deliveryWorker, deliveries, { clock, log }) as Spawned<never>,
      )
    },
    async end() {
      for (const worker of workers) await worker.stop()
      await Promise.all([numbered, delivered])
      await sender.close()
      await database.close()
      await postgres.stop()
      await receiver.terminate()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
