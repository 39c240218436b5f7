/** Schemas of the webhook routes. docs/reference/webhooks.md. */
import { z } from 'zod'
import type { TenantEvent } from '../../../actors/webhooks/subscriptions/protocol.js'
import { DeliveryRecord, WebhookRecord } from '../../../actors/domain/entities/webhooks.js'
import { presenter } from '../../response/presenter.js'

const DESCRIPTION_MAX = 500
const OVERLAP_SECS = 86_400
const OVERLAP_SECS_MAX = 7 * 86_400

const url = z.string().max(2048).meta({ description: 'HTTPS, port 443, a public host.' })
const eventTypes = z
  .array(z.string().max(64))
  .min(1)
  .max(100)
  .meta({ description: 'Exact names, `prefix.*` at a dot, or `*`.' })
const description = z.string().max(DESCRIPTION_MAX)
const secret = z.string().max(256).meta({
  description: '16 to 256 UTF-8 bytes. Use at least 32 random bytes. Never returned.',
})

export const CreateWebhook = z
  .object({
    url,
    event_types: eventTypes,
    secret: secret.optional(),
    description: description.default(''),
    active: z.boolean().default(true),
  })
  .meta({ id: 'CreateWebhook' })

export const ReplaceWebhook = z
  .object({
    url,
    event_types: eventTypes,
    description: description.default(''),
    active: z.boolean().default(true),
  })
  .meta({ id: 'ReplaceWebhook' })

export const RotateSecret = z
  .object({
    secret: secret.optional(),
    overlap_secs: z.int().min(0).max(OVERLAP_SECS_MAX).default(OVERLAP_SECS),
  })
  .meta({ id: 'RotateWebhookSecret' })

export function draftOf(body: z.output<typeof ReplaceWebhook>) {
  const { url, event_types: eventTypes, description, active } = body
  return { url, eventTypes, description, active }
}

export const webhookRecord = presenter(WebhookRecord)
export const deliveryRecord = presenter(DeliveryRecord)

/** An event in the envelope that subscriptions receive, with its number. */
export const EventRecord = z.object({
  sequence: z.int(),
  event_id: z.uuid(),
  type: z.string(),
  tenant_id: z.uuid(),
  timestamp: z.iso.datetime(),
  data: z.record(z.string(), z.unknown()),
})

export function eventRecord(event: TenantEvent): z.input<typeof EventRecord> {
  return {
    sequence: event.sequence,
    event_id: event.id,
    type: event.type,
    tenant_id: event.tenantId,
    timestamp: event.occurredAt.toISOString(),
    data: { ...event.data },
  }
}
