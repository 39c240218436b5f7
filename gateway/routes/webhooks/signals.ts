/** Shared Signals: streams of security events (SSF 1.0, RFC 8935, RFC 8936). docs/guides/webhooks/shared-signals.md. */
import { z } from 'zod'
import { STREAM_STATUSES } from '../../../actors/domain/webhooks/signals.js'
import {
  EVENTS_MAX,
  type EventsPolled,
  signals,
  type StatusFound,
  type StreamDraft,
  type StreamFound,
} from '../../../actors/webhooks/signals/protocol.js'
import { callerOf } from '../../request/caller.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { presenter } from '../../response/presenter.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'
import { invalidMember } from '../operations/invalid-member.js'

/** Acknowledgements of one poll. */
const ACKNOWLEDGED_MAX = 1_000

const shared = { tags: ['Shared signals'], exposure: 'public' } as const
const receivers = {
  scheme: 'bearer',
  subjects: ['service', 'agent'],
  direct: 'required',
} as const
const managers = { ...shared, security: { ...receivers, scopes: ['ssf.manage'] } } as const
const readers = {
  ...shared,
  security: { ...receivers, scopes: ['ssf.read', 'ssf.manage'] },
} as const

const streamId = z.string().max(64)
const Delivery = z
  .object({
    method: z
      .string()
      .max(64)
      .meta({ description: '`urn:ietf:rfc:8935`: push. `urn:ietf:rfc:8936`: poll, the default.' }),
    endpoint_url: z.string().max(2_048).optional(),
    authorization_header: z.string().max(4_096).optional(),
  })
  .meta({ id: 'SignalDeliveryDraft' })
const receiverMembers = {
  delivery: Delivery.optional(),
  events_requested: z
    .array(z.string().max(255))
    .max(100)
    .optional()
    .meta({ description: 'Types. Without it: all. Unknown types are ignored.' }),
  description: z.string().max(255).optional(),
}
const CreateStream = z.object(receiverMembers).meta({ id: 'CreateSignalStream' })
const ChangeStream = z
  .object({
    stream_id: streamId,
    ...receiverMembers,
    iss: z.string().max(2_048).optional(),
    aud: z.union([z.string(), z.array(z.string()).max(10)]).optional(),
    events_supported: z.array(z.string()).max(100).optional(),
    events_delivered: z.array(z.string()).max(100).optional(),
    min_verification_interval: z.int().optional(),
  })
  .meta({
    id: 'ChangeSignalStream',
    description: 'Members that the service sets may be repeated as they are.',
  })
const Stream = z
  .object({
    stream_id: z.uuid(),
    iss: z.string(),
    aud: z.string().meta({ description: 'The client id of the receiver.' }),
    delivery: z.object({ method: z.string(), endpoint_url: z.string() }),
    events_supported: z.array(z.string()),
    events_requested: z.array(z.string()).optional(),
    events_delivered: z.array(z.string()),
    min_verification_interval: z.int().meta({ description: 'Seconds.' }),
    description: z.string().optional(),
  })
  .meta({ id: 'SignalStream' })
const TenantStream = Stream.extend({
  receiver_type: z.enum(['agent', 'application']),
  status: z.enum(STREAM_STATUSES),
  reason: z.string().optional(),
  created_at: z.iso.datetime(),
}).meta({ id: 'TenantSignalStream' })
const Streams = z.union([Stream, z.array(Stream)])
const Status = z
  .object({
    stream_id: z.uuid(),
    status: z.enum(STREAM_STATUSES),
    reason: z.string().optional(),
  })
  .meta({ id: 'SignalStreamStatus' })
const ChangeStatus = z
  .object({
    stream_id: streamId,
    status: z.enum(STREAM_STATUSES),
    reason: z.string().max(255).optional(),
  })
  .meta({ id: 'ChangeSignalStreamStatus' })
const Subject = z
  .record(z.string().max(64), z.unknown())
  .meta({ description: 'A subject identifier (RFC 9493): iss_sub, email, opaque or complex.' })
const AddSubject = z
  .object({ stream_id: streamId, subject: Subject, verified: z.boolean().optional() })
  .meta({ id: 'AddSignalSubject' })
const RemoveSubject = z
  .object({ stream_id: streamId, subject: Subject })
  .meta({ id: 'RemoveSignalSubject' })
const Verify = z
  .object({ stream_id: streamId, state: z.string().max(1_024).optional() })
  .meta({ id: 'VerifySignalStream' })
const Poll = z
  .object({
    maxEvents: z.int().min(0).max(1_000_000).optional(),
    returnImmediately: z.boolean().optional(),
    ack: z.array(z.string().max(64)).max(ACKNOWLEDGED_MAX).optional(),
    setErrs: z
      .record(
        z.string().max(64),
        z.object({ err: z.string().max(255), description: z.string().max(1_024).optional() }),
      )
      .refine((errors) => Object.keys(errors).length <= ACKNOWLEDGED_MAX)
      .optional(),
  })
  .meta({ id: 'PollSignalEvents' })
const Polled = z
  .object({
    sets: z
      .record(z.string(), z.string())
      .meta({ description: 'Security event tokens by their jti.' }),
    moreAvailable: z.boolean().optional(),
  })
  .meta({ id: 'PolledSignalEvents' })

type ReceiverMembers = z.output<typeof CreateStream>
const draftOf = ({ delivery, events_requested, description }: ReceiverMembers): StreamDraft => ({
  delivery: delivery && {
    method: delivery.method,
    endpointUrl: delivery.endpoint_url,
    authorizationHeader: delivery.authorization_header,
  },
  eventsRequested: events_requested,
  description,
})

const present = presenter(Stream)
const presentTenantStream = presenter(TenantStream)
const presentStatus = presenter(Status)
const found = reply(200, Stream, ({ stream }: StreamFound) => present(stream))
const status = reply(200, Status, (outcome: StatusFound) => presentStatus(outcome))
const unknown = problem(404, 'not-found', { detail: 'The receiver has no such stream.' })

const streamQuery = z.object({ stream_id: streamId })

export const signalRoutes: readonly Route[] = [
  route(signals, 'createSignalStream', {
    method: 'POST',
    path: '/ssf/streams',
    summary: 'Create a stream of security events',
    description: 'The caller is the receiver. The stream has the events of its tenant from now on.',
    ...managers,
    capabilities: ['shared_signals'],
    idempotent: true,
    body: json(CreateStream, { optional: true }),
    message: (request) => ({
      caller: callerOf(request),
      draft: draftOf(request.body),
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        Stream,
        ({ stream }) => present(stream),
        ({ stream }) => ({ location: `/ssf/streams?stream_id=${stream.streamId}` }),
      ),
      invalid: invalidMember,
      no_receiver: problem(403, 'forbidden', {
        detail: 'An API key is no receiver. Use a token of an application or agent.',
      }),
      too_many: problem(409, 'conflict', ({ most }) => ({
        detail: `A receiver has at most ${most} streams.`,
      })),
      ...idempotencyRefusals,
    },
  }),
  route(signals, 'readSignalStreams', {
    method: 'GET',
    path: '/ssf/streams',
    summary: 'Read a stream, or all streams of the receiver',
    ...readers,
    query: z.object({ stream_id: streamId.optional() }),
    message: (request) => ({
      caller: callerOf(request),
      streamId: request.query.stream_id ?? null,
    }),
    replies: {
      found: reply(200, Streams, ({ stream }) => present(stream)),
      listed: reply(200, Streams, ({ streams }) => streams.map(present)),
      unknown,
    },
  }),
  route(signals, 'listSignalStreams', {
    method: 'GET',
    path: '/api/v1/signal-streams',
    summary: 'List the streams of all receivers of the tenant, newest first',
    description: 'For administrators. A receiver reads its own streams at /ssf/streams.',
    ...shared,
    security: { scheme: 'bearer', scopes: ['webhooks:read'] },
    query: PageQuery,
    message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
    replies: { listed: pageReply(TenantStream, ({ rows }) => rows.map(presentTenantStream)) },
  }),
  route(signals, 'updateSignalStream', {
    method: 'PATCH',
    path: '/ssf/streams',
    summary: 'Change members of a stream',
    ...managers,
    body: json(ChangeStream),
    message: changeOf,
    replies: { found, invalid: invalidMember, unknown },
  }),
  route(signals, 'replaceSignalStream', {
    method: 'PUT',
    path: '/ssf/streams',
    summary: 'Replace the members of a stream',
    description: 'Members of the receiver that the body does not have are deleted.',
    ...managers,
    body: json(ChangeStream),
    message: changeOf,
    replies: { found, invalid: invalidMember, unknown },
  }),
  route(signals, 'deleteSignalStream', {
    method: 'DELETE',
    path: '/ssf/streams',
    summary: 'Delete a stream and its events',
    ...managers,
    query: streamQuery,
    message: (request) => ({ caller: callerOf(request), streamId: request.query.stream_id }),
    replies: { removed: empty(204), unknown },
  }),
  route(signals, 'readSignalStreamStatus', {
    method: 'GET',
    path: '/ssf/status',
    summary: 'Read the status of a stream',
    ...readers,
    query: streamQuery,
    message: (request) => ({ caller: callerOf(request), streamId: request.query.stream_id }),
    replies: { status, unknown },
  }),
  route(signals, 'updateSignalStreamStatus', {
    method: 'POST',
    path: '/ssf/status',
    summary: 'Enable, pause or disable a stream',
    description:
      'A paused stream keeps its events for a day. A disabled stream drops them and gets no new ones.',
    ...managers,
    body: json(ChangeStatus),
    message: (request) => ({
      caller: callerOf(request),
      streamId: request.body.stream_id,
      status: request.body.status,
      reason: request.body.reason ?? null,
    }),
    replies: { status, unknown },
  }),
  route(signals, 'addSignalSubject', {
    method: 'POST',
    path: '/ssf/subjects:add',
    summary: 'Put a subject back into a stream',
    description: 'All subjects of the tenant are in a stream. An unknown subject changes nothing.',
    ...managers,
    body: json(AddSubject),
    message: subjectOf,
    replies: { changed: empty(200), invalid: invalidMember, unknown },
  }),
  route(signals, 'removeSignalSubject', {
    method: 'POST',
    path: '/ssf/subjects:remove',
    summary: 'Take a subject out of a stream',
    ...managers,
    body: json(RemoveSubject),
    message: subjectOf,
    replies: {
      changed: empty(204),
      invalid: invalidMember,
      unknown,
      too_many_subjects: problem(409, 'conflict', ({ most }) => ({
        detail: `At most ${most} subjects can be taken out of a stream.`,
      })),
    },
  }),
  route(signals, 'verifySignalStream', {
    method: 'POST',
    path: '/ssf/verify',
    summary: 'Ask for a verification event',
    ...managers,
    body: json(Verify),
    message: (request) => ({
      caller: callerOf(request),
      streamId: request.body.stream_id,
      state: request.body.state ?? null,
    }),
    replies: {
      begun: empty(204),
      unknown,
      too_often: problem(429, 'rate-limited', ({ retryAfterSecs }) => ({
        detail: 'A stream is verified at most once in min_verification_interval.',
        retryAfterSecs,
      })),
    },
  }),
  route(signals, 'pollSignalEvents', {
    method: 'POST',
    path: '/ssf/poll/{stream_id}',
    summary: 'Acknowledge events of a stream, and get the next ones',
    description: `At most ${EVENTS_MAX} events. Events that are not acknowledged are given again.`,
    ...shared,
    security: { ...receivers, scopes: ['ssf.manage.poll', 'ssf.manage'] },
    params: z.object({ stream_id: streamId }),
    body: json(Poll, { optional: true }),
    message: (request) => ({
      caller: callerOf(request),
      streamId: request.params.stream_id,
      most: request.body.maxEvents ?? EVENTS_MAX,
      acknowledged: request.body.ack ?? [],
      refused: Object.fromEntries(
        Object.entries(request.body.setErrs ?? {}).map(([id, { err }]) => [id, err]),
      ),
      returnImmediately: request.body.returnImmediately ?? false,
    }),
    replies: {
      polled: reply(200, Polled, ({ sets, moreAvailable }: EventsPolled) => ({
        sets: { ...sets },
        ...(moreAvailable ? { moreAvailable } : {}),
      })),
      unknown,
      busy: problem(503, 'service-unavailable', {
        detail: 'Other polls of the stream or of the tenant are being answered.',
        error: 'share_exhausted',
        retryAfterSecs: 1,
      }),
      keys_unavailable: problem(503, 'service-unavailable', {
        detail: 'The database or the kms is unavailable.',
        retryAfterSecs: 5,
      }),
    },
  }),
]

type Sender = Parameters<typeof callerOf>[0]

function changeOf(request: Sender & { readonly body: z.output<typeof ChangeStream> }) {
  const { stream_id: id, delivery: _delivery, ...stated } = request.body
  return { caller: callerOf(request), streamId: id, draft: draftOf(request.body), stated }
}

function subjectOf(request: Sender & { readonly body: z.output<typeof RemoveSubject> }) {
  const { stream_id: id, subject } = request.body
  return { caller: callerOf(request), streamId: id, subject }
}
