/** Webhook subscriptions. docs/reference/webhooks.md. */
import { z } from 'zod'
import { EVENT_TYPES } from '../../../actors/domain/events.js'
import type { Principal } from '../../../actors/domain/principal.js'
import { webhooks } from '../../../actors/webhooks/subscriptions/protocol.js'
import { callerOf } from '../../request/caller.js'
import { pageReply, PageQuery, readPage } from '../../request/paging.js'
import { choice, empty, json, problem, type Route, reply, route } from '../../route.js'
import {
  DeliveryRecord,
  deliveryStatus,
  WebhookRecord,
} from '../../../actors/domain/entities/webhooks.js'
import {
  CreateWebhook,
  deliveryRecord,
  draftOf,
  EventRecord,
  eventRecord,
  ReplaceWebhook,
  RotateSecret,
  webhookRecord,
} from './webhook-shapes.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { invalidMember } from '../operations/invalid-member.js'
import { EVENTS_MAX, eventsQuery } from '../events-query.js'
import { Moment } from '../../request/moment.js'

const tags = ['Webhooks'] as const
const named = z.object({ id: z.string().max(64) })
const namedDelivery = z.object({ id: z.string().max(64), delivery_id: z.string().max(64) })
const readers = {
  tags,
  exposure: 'public',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'operator',
    scopes: ['webhooks:read', 'webhooks:manage'],
  },
} as const
const managers = {
  tags,
  exposure: 'public',
  security: {
    scheme: 'bearer',
    controlPlaneTokens: 'operator',
    scopes: ['webhooks:manage'],
  },
} as const
const capabilities = ['webhooks'] as const

const unknown = problem(404, 'not-found', {
  detail: 'The subscription or delivery does not exist in this tenant.',
})
const conflict = (detail: string) => problem(409, 'conflict', { detail })
const replayRefused = choice(
  ({ reason }: { reason: 'inactive' | 'waiting' | 'test' | 'too_old' }) => reason,
  {
    inactive: conflict('The subscription is not active.'),
    waiting: conflict('The delivery is still being attempted.'),
    test: conflict('A test delivery cannot be replayed. Send another one.'),
    too_old: problem(400, 'bad-request', {
      detail: 'Deliveries of that time have been deleted.',
      errors: [{ pointer: '#/since', detail: 'Before the retention period.' }],
    }),
  },
)

export const webhookRoutes: readonly Route[] = [
  route(webhooks, 'listWebhooks', {
    method: 'GET',
    path: '/api/v1/webhooks',
    summary: 'List the subscriptions of the tenant, newest first',
    ...readers,
    capabilities,
    query: PageQuery,
    message: ({ query, principal }) => ({ tenantId: principal.tenantId, ...readPage(query) }),
    replies: {
      listed: pageReply(WebhookRecord, (listed) => listed.webhooks.map(webhookRecord)),
    },
  }),
  route(webhooks, 'createWebhook', {
    method: 'POST',
    path: '/api/v1/webhooks',
    summary: 'Create a webhook subscription',
    ...managers,
    capabilities,
    idempotent: true,
    onceOnly: true,
    body: json(CreateWebhook),
    message: (request) => ({
      caller: callerOf(request),
      draft: draftOf(request.body),
      secret: request.body.secret ?? null,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        WebhookRecord,
        (created) => ({
          ...webhookRecord(created.webhook),
          ...(created.secret === null ? {} : { secret: created.secret }),
        }),
        ({ webhook }) => ({ location: `/api/v1/webhooks/${webhook.id}` }),
      ),
      invalid: invalidMember,
      too_many: problem(409, 'conflict', ({ max }) => ({
        detail: `A tenant has at most ${max} subscriptions.`,
      })),
      ...idempotencyRefusals,
    },
  }),
  route(webhooks, 'getWebhook', {
    method: 'GET',
    path: '/api/v1/webhooks/{id}',
    summary: 'Read a subscription',
    ...readers,
    params: named,
    message: target,
    replies: { found: reply(200, WebhookRecord, ({ webhook }) => webhookRecord(webhook)), unknown },
  }),
  route(webhooks, 'replaceWebhook', {
    method: 'PUT',
    path: '/api/v1/webhooks/{id}',
    summary: 'Update a subscription',
    description:
      'An omitted description becomes empty, an omitted active true. The secret does not change. ' +
      'Deactivating a subscription cancels its pending deliveries.',
    ...managers,
    params: named,
    body: json(ReplaceWebhook),
    message: (request) => ({ ...managed(request), draft: draftOf(request.body) }),
    replies: {
      replaced: reply(200, WebhookRecord, ({ webhook }) => webhookRecord(webhook)),
      invalid: invalidMember,
      unknown,
    },
  }),
  route(webhooks, 'deleteWebhook', {
    method: 'DELETE',
    path: '/api/v1/webhooks/{id}',
    summary: 'Delete a subscription and cancel its pending deliveries',
    ...managers,
    params: named,
    message: managed,
    replies: { removed: empty(204), unknown },
  }),
  route(webhooks, 'testWebhook', {
    method: 'POST',
    path: '/api/v1/webhooks/{id}/test',
    summary: 'Send a test delivery',
    description:
      'One attempt of an event `webhook.test` while the caller waits, even to an inactive ' +
      'subscription. The response is 200 with the delivery, whatever the receiver returned.',
    ...managers,
    throttle: [
      { policy: 'default', by: 'caller' },
      {
        policy: 'webhook-test',
        by: ({ params, principal }) => `${principal.tenantId}:${params.id}`,
      },
    ],
    idempotent: true,
    params: named,
    message: (request) => ({
      ...target(request),
      actor: { type: request.principal.subjectType, id: request.principal.subject },
      idempotency: request.idempotency,
    }),
    replies: {
      tested: reply(200, DeliveryRecord, ({ delivery }) => deliveryRecord(delivery)),
      unknown,
      busy: problem(503, 'service-unavailable', {
        detail: 'Too many test deliveries are running.',
        error: 'share_exhausted',
        retryAfterSecs: 5,
      }),
      ...idempotencyRefusals,
    },
  }),
  route(webhooks, 'listWebhookDeliveries', {
    method: 'GET',
    path: '/api/v1/webhooks/{id}/deliveries',
    summary: 'List the deliveries of a subscription, newest first',
    ...readers,
    params: named,
    query: PageQuery.safeExtend({
      status: deliveryStatus.optional(),
      event_type: z.enum(EVENT_TYPES).optional(),
    }),
    message: (request) => ({
      ...target(request),
      ...readPage(request.query),
      status: request.query.status ?? null,
      eventType: request.query.event_type ?? null,
    }),
    replies: {
      listed: pageReply(DeliveryRecord, (listed) => listed.deliveries.map(deliveryRecord)),
      unknown,
    },
  }),
  route(webhooks, 'rotateWebhookSecret', {
    method: 'POST',
    path: '/api/v1/webhooks/{id}/rotate-secret',
    summary: 'Rotate the secret of a subscription',
    description:
      'The suite svc-webhook-v1 signs with the new secret from now on; `webhook-signature` carries ' +
      'signatures of both while they overlap. The secret that is in force already changes nothing but ' +
      'the end of the overlap, which it can bring nearer: a rotation to your own secret may be ' +
      'repeated when its answer was lost.',
    ...managers,
    onceOnly: true,
    params: named,
    body: json(RotateSecret, { optional: true }),
    message: (request) => ({
      ...managed(request),
      secret: request.body.secret ?? null,
      overlapSecs: request.body.overlap_secs,
    }),
    replies: {
      rotated: reply(
        200,
        z.object({
          id: z.uuid(),
          secret: z
            .string()
            .optional()
            .meta({ description: 'Present when the service generated it.' }),
          rotated_at: z.iso.datetime(),
          previous_secret_expires_at: z.iso.datetime(),
        }),
        (rotated) => ({
          id: rotated.webhookId,
          ...(rotated.secret === null ? {} : { secret: rotated.secret }),
          rotated_at: rotated.rotatedAt.toISOString(),
          previous_secret_expires_at: rotated.previousExpiresAt.toISOString(),
        }),
      ),
      invalid: invalidMember,
      unknown,
    },
  }),
  route(webhooks, 'replayWebhookDelivery', {
    method: 'POST',
    path: '/api/v1/webhooks/{id}/deliveries/{delivery_id}/replay',
    summary: 'Replay a finished delivery under the same id',
    ...managers,
    exposure: 'internal',
    params: namedDelivery,
    message: (request) => ({ ...target(request), deliveryId: request.params.delivery_id }),
    replies: {
      replayed: reply(200, DeliveryRecord, ({ delivery }) => deliveryRecord(delivery)),
      refused: replayRefused,
      unknown,
    },
  }),
  route(webhooks, 'listEvents', {
    method: 'GET',
    path: '/api/v1/events',
    summary: 'List the events of the tenant in order, for receivers that poll',
    description:
      'For receivers that cannot accept requests. Without `after` the response is empty and `next_after` ' +
      'is the current position: call again with it. Events are stored for the retention period of ' +
      'deliveries. Each event is the envelope that subscriptions receive, with its number.',
    ...readers,
    exposure: 'internal',
    query: eventsQuery('`next_after` of the last answer; 0 is the oldest event kept.'),
    message: ({ query, principal }) => ({
      tenantId: principal.tenantId,
      after: query.after ?? null,
      limit: query.limit ?? EVENTS_MAX,
    }),
    replies: {
      listed: reply(
        200,
        z.object({ items: z.array(EventRecord), next_after: z.int() }),
        ({ events, nextAfter }) => ({ items: events.map(eventRecord), next_after: nextAfter }),
      ),
    },
  }),
  route(webhooks, 'recoverWebhookDeliveries', {
    method: 'POST',
    path: '/api/v1/webhooks/{id}/recover',
    summary: 'Recover failed and missed deliveries since a time',
    description:
      'Failed deliveries restart under their ids. Events that match the subscription and ' +
      'have no delivery get one. While `more` is true, call again.',
    ...managers,
    exposure: 'internal',
    params: named,
    body: json(z.object({ since: Moment })),
    message: (request) => ({ ...target(request), since: new Date(request.body.since) }),
    replies: {
      recovered: reply(
        200,
        z.object({ replayed: z.int(), added: z.int(), more: z.boolean() }),
        ({ replayed, added, more }) => ({ replayed, added, more }),
      ),
      refused: replayRefused,
      unknown,
    },
  }),
]

function managed(request: {
  readonly principal: Principal
  readonly clientAddress: string
  readonly params: { readonly id: string }
}) {
  return { caller: callerOf(request), webhookId: request.params.id }
}

function target(request: {
  readonly principal: { readonly tenantId: string }
  readonly params: { readonly id: string }
}) {
  return { tenantId: request.principal.tenantId, webhookId: request.params.id }
}
