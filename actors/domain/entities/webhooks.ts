/** Webhook subscriptions and their deliveries, as the API shows them. */
import { z } from 'zod'
import type { RecordOf } from './record.js'

export const WebhookRecord = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    url: z.string(),
    event_types: z.array(z.string()),
    description: z.string(),
    active: z.boolean(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    secret_last_rotated_at: z.iso.datetime(),
    secret: z.string().optional().meta({
      description: 'Only in the response to a creation, and only when the service generated it.',
    }),
  })
  .meta({ id: 'Webhook' })

const AttemptRecord = z.object({
  attempted_at: z.iso.datetime(),
  response_status: z.int().nullable(),
  duration_ms: z.int(),
  error: z.string().nullable(),
})

export const deliveryStatus = z.enum(['pending', 'retrying', 'succeeded', 'failed'])

export const DeliveryRecord = z
  .object({
    id: z.uuid().meta({ description: 'Also in X-Svc-Delivery. The same for every attempt.' }),
    webhook_id: z.uuid(),
    event_id: z.uuid(),
    event_type: z.string(),
    status: deliveryStatus,
    attempt_count: z.int(),
    max_attempts: z.int(),
    response_status: z.int().nullable().meta({ description: 'The status of the last attempt.' }),
    error: z
      .string()
      .nullable()
      .meta({
        description:
          'Why the last attempt failed: `timeout`, `unexpected_status`, `redirect`, `gone`, ' +
          '`subscription_inactive`, or an error type of RFC 9209 section 2.3.',
      }),
    duration_ms: z.int().nullable(),
    next_attempt_at: z.iso.datetime().nullable(),
    last_attempt_at: z.iso.datetime().nullable(),
    delivered_at: z.iso.datetime().nullable(),
    created_at: z.iso.datetime(),
    attempts: z.array(AttemptRecord),
  })
  .meta({ id: 'WebhookDelivery' })

export type Webhook = Omit<RecordOf<typeof WebhookRecord.shape>, 'secret'>
export type Attempt = RecordOf<typeof AttemptRecord.shape>
export type Delivery = RecordOf<typeof DeliveryRecord.shape>
export type DeliveryStatus = Delivery['status']
