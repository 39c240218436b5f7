/**
 * Targets 17 and 18: webhook deliveries to receivers on loopback, over TLS, beside bare requests of
 * undici to the same receiver. Once the sender alone, once everything from the outbox on: events
 * committed, fanned out, leased, signed, sent, and every attempt written down.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { once, setMaxListeners } from 'node:events'
import { Registry } from 'prom-client'
import { Pool } from 'undici'
import { deliveryOutcomes } from '../../actors/deliveries/metrics.js'
import { createSender } from '../../actors/deliveries/sender.js'
import { createDeliveryWorker } from '../../actors/deliveries/worker.js'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { systemClock as clock } from '../../runtime/kernel/clock.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { openDatabase } from '../../storage/database.js'
import { ephemeralKms } from '../../storage/kms/ephemeral.js'
import { insertOrganization } from '../../storage/organizations.js'
import { appendEvents } from '../../storage/outbox.js'
import { createSealer } from '../../storage/seal.js'
import { insertTenant } from '../../storage/tenants.js'
import { insertWebhook, webhookSecretContext } from '../../storage/webhooks.js'
import { compare, publish, saturate } from '../harness.js'
import { LOCALHOST_CERT } from './loopback-tls.js'

const IN_FLIGHT = 64
const SUBSCRIPTIONS = 32
const SCHEDULE = [0, 5, 300]
const TYPE = 'commerce.statement.created'

/** On a thread of its own, so that it does not share the event loop with what is measured. */
const receiver = new Worker(new URL('./webhook-receiver.js', import.meta.url))
const [port] = (await once(receiver, 'message')) as [number]
const origin = `https://localhost:${port}`

const dataDir = await mkdtemp(join(tmpdir(), 'svc-bench-webhooks-'))
const caPath = join(dataDir, 'ca.pem')
await writeFile(caPath, LOCALHOST_CERT)
const postgres = await startEmbeddedPostgres({ dataDir, log })
await runMigrations({ url: postgres.url, log })
const { url } = postgres
const database = await openDatabase({
  settings: {
    max_connections: 4,
    min_connections: 0,
    identity_max_connections: 1,
    connect_timeout_secs: 20,
    idle_timeout_secs: 600,
    max_lifetime_secs: 1800,
    statement_cache_capacity: 100,
    test_before_acquire: true,
    statement_timeout_secs: 30,
    background_statement_timeout_secs: 60,
    idle_in_transaction_timeout_secs: 60,
    maintenance_statement_timeout_secs: 600,
    require_ssl: false,
  },
  urls: {
    runtime: url,
    identity: url,
    listener: url,
    auth: url,
    control: url,
    async: url,
    maintenance: url,
  },
  plane: 'async',
  log,
})
const random = systemRandom(clock)
const sealer = createSealer({ database, kms: ephemeralKms({ random }), random, clock })
const sender = createSender({
  clock,
  settings: {
    max_age_secs: 300,
    timeout_secs: 15,
    allow_private_networks: true,
    nonStandardPorts: true,
    ca_pem_path: caPath,
  },
})
const bare = new Pool(origin, {
  connections: IN_FLIGHT,
  pipelining: 1,
  connect: { ca: LOCALHOST_CERT },
})

const tenantId = random.uuid()
const organizationId = random.uuid()
const createdAt = clock.now()
const named = { name: 'bench', slug: 'bench', createdAt }
const secret = `whsec_${randomBytes(32).toString('base64')}`
await database.system(async (tx) => {
  await insertOrganization(tx, { id: organizationId, ...named })
  await insertTenant(tx, {
    id: tenantId,
    organizationId,
    ...named,
    environment: 'sandbox',
    status: 'active',
    admitAgents: true,
  } as Parameters<typeof insertTenant>[1])
})
for (let at = 0; at < SUBSCRIPTIONS; at += 1) {
  const id = random.uuid()
  const sealed = await sealer.seal(tenantId, webhookSecretContext(id), Buffer.from(secret))
  await database.tenant(tenantId, (tx) =>
    insertWebhook(
      tx,
      {
        id,
        tenantId,
        url: `${origin}/`,
        eventTypes: [TYPE],
        description: '',
        active: true,
        createdAt,
        secret: sealed,
      },
      SUBSCRIPTIONS,
    ),
  )
}

const data = { charge_id: random.uuid(), note: 'x'.repeat(400) }
const body = JSON.stringify({ event_id: random.uuid(), type: TYPE, data })

async function request(): Promise<void> {
  const answer = await bare.request({ method: 'POST', path: '/', body })
  await answer.body.dump()
}

const never = new AbortController().signal
setMaxListeners(0, never)
async function send(): Promise<void> {
  const outgoing = { url: `${origin}/`, secret, previousSecret: null, eventType: TYPE, body }
  const { error } = await sender.send({ ...outgoing, deliveryId: random.uuid() }, never)
  if (error !== null) throw new Error(error)
}

const attempts = () =>
  database.tenant(tenantId, async (tx) => {
    const text = 'select count(*)::int as count from webhook_attempts'
    const { rows } = await tx.query<{ count: number }>({ name: 'bench.attempts', text })
    return rows[0]!.count
  })

/** Commits events until the time is over and waits until the last attempt is written down. */
async function deliver(ms: number) {
  const before = await attempts()
  const endMs = performance.now() + ms
  let written = 0
  let ahead = 0
  while (performance.now() < endMs) {
    const events = Array.from({ length: 20 }, () => ({
      id: random.uuid(),
      tenantId,
      type: TYPE,
      data,
      occurredAt: clock.now(),
    }))
    await database.tenant(tenantId, (tx) => appendEvents(tx, events))
    written += events.length * SUBSCRIPTIONS
    // Not more in front of the workers than they take in a moment.
    do {
      ahead = written - ((await attempts()) - before)
      if (ahead > 4_000) await new Promise((resolve) => setTimeout(resolve, 5))
    } while (ahead > 4_000)
  }
  while ((await attempts()) - before < written) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return { operations: written }
}

const working = new AbortController()
const worker = createDeliveryWorker({
  database,
  listener: database.listener,
  sealer,
  sender,
  clock,
  random,
  outcomes: deliveryOutcomes(new Registry()),
  schedule: SCHEDULE,
})

try {
  await publish(
    await compare({
      name: 'webhook deliveries to loopback over TLS',
      reference: {
        name: 'undici request, bare',
        run: (ms) => saturate(ms, IN_FLIGHT, request),
      },
      contenders: [
        {
          name: 'signed and sent, no database',
          target: 0.4,
          run: (ms) => saturate(ms, IN_FLIGHT, send),
        },
        {
          name: 'from the outbox, every attempt written down',
          target: 0.12,
          setUp: async () => worker.start({ signal: working.signal, log }),
          run: deliver,
        },
      ],
    }),
  )
} finally {
  working.abort()
  await worker.settled()
  await sender.close()
  await bare.close()
  await database.close()
  await postgres.stop()
  await receiver.terminate()
  await rm(dataDir, { recursive: true, force: true })
}
