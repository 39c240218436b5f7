/**
 * The `webhooks` of the OpenAPI document: all event types of the deployment, with the schema of the payload and an
 * example.
 */
import { z } from 'zod'
import type { ZodOpenApiPathItemObject } from 'zod-openapi'
import { DelegationIntent } from '../actors/domain/agents/delegation-intent.js'
import {
  EVENT_CATALOGUE,
  EXAMPLE_ID,
  EXAMPLE_OTHER,
  EXAMPLE_TIME,
  type Fields,
  Party,
} from '../actors/domain/event-catalogue.js'
import type { EventType } from '../actors/domain/events.js'

const EXAMPLE_TENANT = '11111111-2222-4333-8444-555555555555'

const COMMON = {
  actor: [Party, { type: 'agent', id: EXAMPLE_ID }],
  resource: [Party, { type: 'resource', id: EXAMPLE_OTHER }],
  request_id: [z.string().nullable(), EXAMPLE_OTHER],
} satisfies Fields
const FIELDS: Readonly<Record<EventType, Fields>> = Object.assign(
  {},
  ...Object.values(EVENT_CATALOGUE),
)

/** The payload schema of an event type, with an example. */
export function eventDocument(type: EventType): { schema: z.ZodType; example: object } {
  // Payment events have no actor. Merchants correlate them by metadata.
  const common = type.startsWith('commerce.payment.') ? {} : COMMON
  const fields = Object.entries<Fields[string]>({ ...common, ...FIELDS[type] })
  const members = fields.filter(([, [, example]]) => example !== undefined)
  const data = z
    .looseObject({
      ...Object.fromEntries(members.map(([name, [schema]]) => [name, schema])),
      delegation: DelegationIntent.optional(),
    })
    .describe('More members may be added.')
  const schema = z.object({
    event_id: z.uuid(),
    type: z.literal(type),
    tenant_id: z.uuid(),
    timestamp: z.iso.datetime().describe('Time of the event.'),
    data,
  })
  const example = {
    event_id: EXAMPLE_ID,
    type,
    tenant_id: EXAMPLE_TENANT,
    timestamp: EXAMPLE_TIME,
    data: Object.fromEntries(members.map(([name, [, value]]) => [name, value])),
  }
  return { schema, example }
}

const header = (description: string) => z.string().meta({ description })

const DeliveryHeaders = z.object({
  'x-svc-signature-suite': header('`svc-webhook-v1`.'),
  'x-svc-signature-256': header('`sha256=` and lower-case hex.'),
  'x-svc-signature-max-age': header('Replay window of the sender, in seconds.'),
  'x-svc-timestamp': header('Unix time at signing.'),
  'x-svc-event': header('The type of the event.'),
  'x-svc-delivery': header('Identifies the delivery. All attempts have the same value.'),
  'webhook-id': header('Same as x-svc-delivery (Standard Webhooks).'),
  'webhook-timestamp': header('Same as x-svc-timestamp (Standard Webhooks).'),
  'webhook-signature': header('`v1,` and base64, one for each active secret (Standard Webhooks).'),
})

/** Path items of the offered types, by name. */
export function eventDocuments(
  offered: readonly EventType[],
): Record<string, ZodOpenApiPathItemObject> {
  const documents: Record<string, ZodOpenApiPathItemObject> = {}
  for (const [category, types] of Object.entries(EVENT_CATALOGUE)) {
    for (const type of Object.keys(types) as EventType[]) {
      if (offered.includes(type)) documents[type] = pathItem(category, type)
    }
  }
  return documents
}

function pathItem(category: string, type: EventType): ZodOpenApiPathItemObject {
  const { schema, example } = eventDocument(type)
  return {
    post: {
      operationId: `on.${type}`,
      summary: `${category}: ${type}`,
      tags: ['Events'],
      security: [],
      requestParams: { header: DeliveryHeaders },
      requestBody: { required: true, content: { 'application/json': { schema, example } } },
      responses: {
        '2XX': { description: 'Accepted. Answer after the event is stored.' },
        '4XX': {
          description:
            'Refused: no further attempt, except for 408, 425 and 429. 410 disables the subscription.',
        },
        '5XX': { description: 'Temporary failure: retried later. Retry-After is respected.' },
      },
    },
  } as ZodOpenApiPathItemObject
}
