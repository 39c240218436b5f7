/**
 * Test deliveries: one attempt while the caller waits. The delivery is committed before it is sent
 * and its outcome afterwards, so no transaction stays open during the attempt. A repetition with
 * the same idempotency key finds the delivery, and sends it again only if its first attempt was
 * never finished.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { FairShare, isRefused } from '../../../runtime/kernel/fairness/fair-share.js'
import {
  attemptsOf,
  deliveryBody,
  findDelivery,
  insertTestDelivery,
  recordAttempts,
} from '../../../storage/webhooks/deliveries.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { findWebhook, findWebhookSecrets } from '../../../storage/webhooks/webhooks.js'
import { envelopeOf } from '../../domain/webhooks/envelope.js'
import type { DeliveryTarget } from '../delivery/protocol.js'
import { catalogued } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { toDelivery } from './history.js'
import type { WebhooksNeeds } from './needs.js'
import type {
  IdempotencyRefused,
  TestWebhook,
  WebhooksBusy,
  WebhookTested,
  WebhookUnknown,
} from './protocol.js'
import type { Delivery } from '../../domain/entities/webhooks.js'
import { inTenant } from '../../platform/in-tenant.js'

const TYPE = 'webhook.test'
/**
 * Concurrent tests in this process. Each may last until the timeout of its receiver. A tenant without one takes the place
 * of a tenant that holds several, so there are more places than hostile tenants that hold one.
 */
export const CONCURRENT_MAX = 256
const PER_TENANT_MAX = 4
/** A test without an outcome after this time belongs to a process that died. */
const ABANDONED_MS = 60_000
const POLL_MS = 100
const UNKNOWN: WebhookUnknown = { tag: 'unknown' }

type Begun = { readonly tag: 'begun'; readonly deliveryId: string }
type Body = { readonly eventId: string; readonly text: string; readonly now: Date }

/** The needs of the actor, with the places of its test deliveries. */
export type TestTools = WebhooksNeeds & { readonly places: FairShare }

export function testPlaces({ shares }: WebhooksNeeds): FairShare {
  return new FairShare({
    resource: 'webhook_tests',
    total: CONCURRENT_MAX,
    levels: [{ name: 'tenant', max: PER_TENANT_MAX }],
    counts: shares,
  })
}

export async function testWebhook(
  tools: TestTools,
  message: TestWebhook,
  context: MessageContext,
): Promise<WebhookTested | WebhookUnknown | WebhooksBusy | IdempotencyRefused> {
  if (!isUuid(message.webhookId)) return UNKNOWN
  const { tenantId } = message
  const given = new AbortController()
  const place = tools.places.tryAcquire([tenantId], 1, {
    groups: await tools.groups.of(tenantId),
    giveUp() {
      given.abort()
      return true
    },
  })
  if (isRefused(place)) return { tag: 'busy' }
  try {
    const outcome = await run(tools, message, given.signal, context)
    return given.signal.aborted ? { tag: 'busy' } : outcome
  } finally {
    place()
  }
}

async function run(
  needs: WebhooksNeeds,
  message: TestWebhook,
  given: AbortSignal,
  { signal, requestId }: MessageContext,
) {
  const to = await target(needs, message, signal)
  if (to === undefined) return UNKNOWN
  const { database, clock, random } = needs
  const now = clock.now()
  const eventId = random.uuid()
  const { tenantId, webhookId } = message
  const resource = { type: 'webhook', id: webhookId }
  const test = catalogued(TYPE, { actor: message.actor, resource, requestId }, {})
  const event = { id: eventId, tenantId, occurredAt: now, ...test }
  const text = envelopeOf(event)
  const begun = await begin(needs, message, { eventId, text, now }, signal)
  if (begun.tag !== 'begun') return begun
  const { deliveryId } = begun
  const replayed = 'replayed' in begun
  if (replayed) {
    const delivery = await finished(needs, message, deliveryId, signal)
    if (delivery !== undefined) return { tag: 'tested', delivery, replayed } as const
  }
  const body = replayed
    ? await database.tenant(tenantId, (tx) => deliveryBody(tx, tenantId, deliveryId))
    : text
  await send(needs, message, { ...to, deliveryId, body }, given)
  return { tag: 'tested', delivery: await find(needs, message, deliveryId), replayed } as const
}

/** Commits the delivery, or finds the delivery of this idempotency key. */
function begin(
  { database, random }: WebhooksNeeds,
  { tenantId, webhookId, idempotency }: TestWebhook,
  body: Body,
  signal: AbortSignal,
) {
  return inTenant(database, tenantId, { signal }, (tx) =>
    idempotently(
      tx,
      idempotency,
      async () => {
        const { eventId, text, now } = body
        const id = random.uuid()
        const delivery = { id, tenantId, webhookId, eventId, eventType: TYPE, body: text }
        await insertTestDelivery(tx, delivery, now)
        return { tag: 'begun', deliveryId: id } satisfies Begun
      },
      (begun) => begun,
    ),
  )
}

async function find(
  { database }: WebhooksNeeds,
  { tenantId, webhookId }: TestWebhook,
  id: string,
): Promise<Delivery> {
  return database.tenant(tenantId, async (tx) => {
    const row = await findDelivery(tx, tenantId, webhookId, id)
    if (row === undefined) throw new Error('a test delivery was deleted before its idempotency key')
    return toDelivery(row, (await attemptsOf(tx, tenantId, [id])).get(id))
  })
}

async function send(
  { database, sender, signer }: WebhooksNeeds,
  message: TestWebhook,
  delivery: DeliveryTarget & { readonly deliveryId: string; readonly body: string },
  given: AbortSignal,
) {
  const { tenantId, webhookId } = message
  // Runs to its end even if the caller disconnects, so that the outcome is stored.
  const { retryAfterSecs: _, ...attempt } = await sender.send(
    { ...delivery, tenantId, webhookId, eventType: TYPE },
    signer,
    given,
  )
  const status = attempt.error === null ? 'succeeded' : 'failed'
  const { deliveryId } = delivery
  const record = { ...attempt, status, tenantId, deliveryId, waitSecs: null } as const
  await database.tenant(tenantId, (tx) => recordAttempts(tx, [record]))
}

/** Waits until the process that started the test is done. */
async function finished(
  needs: WebhooksNeeds,
  message: TestWebhook,
  id: string,
  signal: AbortSignal,
) {
  for (;;) {
    const delivery = await find(needs, message, id)
    if (delivery.status !== 'pending') return delivery
    const agedMs = needs.clock.now().getTime() - delivery.createdAt.getTime()
    if (agedMs > ABANDONED_MS) return undefined
    await sleep(POLL_MS, undefined, { signal })
  }
}

async function target(
  { database }: WebhooksNeeds,
  { tenantId, webhookId }: TestWebhook,
  signal: AbortSignal,
): Promise<DeliveryTarget | undefined> {
  const found = await inTenant(database, tenantId, { signal }, async (tx) => ({
    webhook: await findWebhook(tx, tenantId, webhookId),
    secrets: await findWebhookSecrets(tx, tenantId, webhookId),
  }))
  if (found.webhook === undefined || found.secrets === undefined) return undefined
  return { url: found.webhook.url, ...found.secrets }
}
