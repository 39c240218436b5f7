/** The audit chain. docs/reference/operations.md, Audit. */
import { z } from 'zod'
import {
  ACTIVITY_KINDS,
  ACTIVITY_PERIODS,
  audit,
} from '../../../actors/operations/audit/protocol.js'
import { asId } from '../../../actors/domain/ids.js'
import { pageReply, PageQuery, readPage } from '../../request/paging.js'
import { bytes, type ReplyContext, type Route, reply, route } from '../../route.js'
import { Moment } from '../../request/moment.js'

const PATH = '/api/v1/audit-events'
const EXPORT_SIZE_DEFAULT = 1_000
const EXPORT_SIZE_MAX = 5_000
const VERIFY_SIZE_MAX = 20_000

const tags = ['Audit'] as const
const security = {
  scheme: 'bearer',
  controlPlaneTokens: 'operator',
  scopes: ['audit:read'],
} as const

const Party = z.object({ sub: z.string(), subject_type: z.string() })
const AuditEvent = z
  .object({
    id: z.uuid(),
    sequence: z.int().meta({ description: '1, 2, 3, ... per tenant, without gaps' }),
    tenant_id: z.uuid(),
    type: z.string(),
    occurred_at: z.iso.datetime(),
    subject: Party.nullable(),
    actors: z.array(Party).meta({ description: 'Outermost first' }),
    client_id: z.string().nullable(),
    delegation_id: z.string().nullable(),
    grant_id: z.string().nullable(),
    resource: z.object({ type: z.string(), id: z.string() }).nullable(),
    outcome: z.enum(['success', 'failure', 'denied']),
    request_id: z.string().nullable(),
    ip: z.string().nullable(),
    data: z.record(z.string(), z.unknown()),
    previous_hash: z.string().meta({ description: '64 hexadecimal digits; zeros for the first' }),
    hash: z.string().meta({ description: '64 hexadecimal digits' }),
  })
  .meta({ id: 'AuditEvent' })

const Verification = z
  .object({
    valid: z.boolean(),
    events: z.int().meta({ description: 'Number of valid events' }),
    after_sequence: z.int(),
    last_sequence: z.int().nullable(),
    last_hash: z.string().nullable(),
    broken_at: z
      .object({ sequence: z.int(), reason: z.string() })
      .nullable()
      .meta({ description: 'The first invalid event' }),
    next_after_sequence: z
      .int()
      .nullable()
      .meta({ description: 'Where to continue. Null at the end of the chain' }),
    unnumbered_events: z.int().meta({
      description: 'Events of committed changes that get their number within milliseconds',
    }),
  })
  .meta({ id: 'AuditVerification' })

const whole = (most: number) =>
  z
    .string()
    .regex(/^[0-9]{1,15}$/)
    .transform(Number)
    .transform((value) => Math.min(value, most))

/** A filter value: any text that the database can store. */
const Term = z.string().regex(/^[^\p{Cc}\p{Cs}]{1,255}$/u)

const About = {
  resource_type: Term.optional().meta({ description: 'Type of the object, such as application' }),
  resource_id: Term.optional().meta({ description: 'Id of the object' }),
  request_id: Term.optional().meta({ description: 'Id of the request that caused the event' }),
}

const aboutOf = (query: z.output<z.ZodObject<typeof About>>) => ({
  resourceType: query.resource_type ?? null,
  resourceId: query.resource_id ?? null,
  requestId: query.request_id ?? null,
})

const NAMES_MAX = 200
const NamesQuery = z.object({
  ids: z
    .string()
    .regex(/^[^\p{Cc}\p{Cs}]{1,16384}$/u)
    .transform((text) => text.split(','))
    .refine((ids) => ids.length <= NAMES_MAX)
    .optional()
    .meta({
      description: `Ids and subjects of events, with commas between; at most ${NAMES_MAX}`,
      example: '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e',
    }),
})
const AuditName = z
  .object({
    id: z.string().meta({ description: 'As in the event: an id, or the sub of a person' }),
    type: z.string(),
    object_id: z.uuid().meta({ description: 'Id of the object: of the user for a sub' }),
    name: z.string(),
  })
  .meta({ id: 'AuditName' })

const figures = {
  total: z.int(),
  failed: z.int().meta({ description: 'How many of them were refused or failed' }),
}
const Activity = z
  .object({
    from: z.iso.datetime(),
    step_secs: z.int().meta({ description: 'Length of a point' }),
    series: z.array(
      z.object({
        kind: z.enum(ACTIVITY_KINDS),
        ...figures,
        points: z.array(z.object({ at: z.iso.datetime(), ...figures })),
      }),
    ),
  })
  .meta({ id: 'Activity' })

const Stretch = z.object({
  after_sequence: whole(Number.MAX_SAFE_INTEGER)
    .optional()
    .meta({ description: 'The last sequence already processed. Default 0' }),
})
const ExportQuery = Stretch.extend({
  ...About,
  limit: whole(EXPORT_SIZE_MAX)
    .refine((limit) => limit >= 1)
    .optional()
    .meta({ description: `1 to ${EXPORT_SIZE_MAX}; default ${EXPORT_SIZE_DEFAULT}.` }),
})

export const auditRoutes: readonly Route[] = [
  route(audit, 'listAuditEvents', {
    method: 'GET',
    path: PATH,
    summary: 'List audit events of the tenant, newest first',
    description:
      'Filters are combined with AND. cursor_ts is the occurred_at of the last event seen.',
    tags,
    exposure: 'internal',
    security,
    query: PageQuery.safeExtend({
      type: Term.optional(),
      actor: Term.overwrite(asId)
        .optional()
        .meta({ description: 'sub of the subject or of an actor' }),
      since: Moment.optional(),
      until: Moment.optional().meta({ description: 'Exclusive' }),
      ...About,
    }),
    message: ({ query, principal }) => ({
      tenantId: principal.tenantId,
      type: query.type ?? null,
      actor: query.actor ?? null,
      since: query.since === undefined ? null : new Date(query.since),
      until: query.until === undefined ? null : new Date(query.until),
      ...aboutOf(query),
      ...readPage(query),
    }),
    replies: {
      listed: pageReply(AuditEvent, ({ events }) =>
        events.map((event) => ({ ...event, actors: [...event.actors] })),
      ),
    },
  }),
  route(audit, 'exportAuditEvents', {
    method: 'GET',
    path: `${PATH}/export`,
    summary: 'Export audit events as JSON lines, in the order of the chain',
    description:
      'Input of `svc audit verify`. Link names the next range. The last line of one range ' +
      'directly precedes the first line of the next, unless a filter leaves events out.',
    tags,
    exposure: 'internal',
    security,
    query: ExportQuery,
    message: ({ query, principal }) => ({
      tenantId: principal.tenantId,
      afterSequence: query.after_sequence ?? 0,
      limit: query.limit ?? EXPORT_SIZE_DEFAULT,
      ...aboutOf(query),
    }),
    replies: {
      listed: bytes(200, 'application/x-ndjson', ({ events, nextSequence }, context) => ({
        body: events.map((event) => `${JSON.stringify(event)}\n`).join(''),
        headers: onwards(nextSequence, context),
      })),
    },
  }),
  route(audit, 'listAuditNames', {
    method: 'GET',
    path: `${PATH}/names`,
    summary: 'Name the people and things that audit events mention',
    description:
      'What no longer exists has no name. People are named to tokens with users:read or users:manage.',
    tags,
    exposure: 'internal',
    security,
    query: NamesQuery,
    message: ({ query, principal }) => ({
      tenantId: principal.tenantId,
      ids: query.ids ?? [],
      namesPeople: ['users:read', 'users:manage'].some((scope) => principal.scopes.includes(scope)),
    }),
    replies: {
      named: reply(200, z.array(AuditName), ({ names }) =>
        names.map(({ id, type, objectId, name }) => ({ id, type, object_id: objectId, name })),
      ),
    },
  }),
  route(audit, 'readActivity', {
    method: 'GET',
    path: '/api/v1/activity',
    summary: 'Read how much happened in the tenant lately',
    description:
      'Sign-ins, issued tokens, ended egress calls, and attempts to deliver webhooks, from hourly counts. 24 points of an ' +
      'hour, 28 of six hours or 30 of a day, in UTC. The last one is not over.',
    tags,
    exposure: 'internal',
    security,
    query: z.object({
      period: z.enum(ACTIVITY_PERIODS).optional().meta({ description: 'Default 24h' }),
    }),
    message: ({ query, principal }) => ({
      tenantId: principal.tenantId,
      period: query.period ?? '24h',
    }),
    replies: {
      activity: reply(200, Activity, ({ from, stepSecs, series }) => ({
        from: from.toISOString(),
        step_secs: stepSecs,
        series: series.map(({ points, ...one }) => ({
          ...one,
          points: points.map(({ at, ...counted }) => ({ at: at.toISOString(), ...counted })),
        })),
      })),
    },
  }),
  route(audit, 'verifyAuditEvents', {
    method: 'GET',
    path: `${PATH}/verify`,
    summary: 'Verify the audit chain of the tenant',
    description: `At most ${VERIFY_SIZE_MAX} events per call. next_after_sequence says where to continue.`,
    tags,
    exposure: 'internal',
    security,
    query: Stretch,
    message: ({ query, principal }) => ({
      tenantId: principal.tenantId,
      afterSequence: query.after_sequence ?? 0,
      limit: VERIFY_SIZE_MAX,
    }),
    replies: {
      verified: reply(200, Verification, (verified) => ({
        valid: verified.valid,
        events: verified.events,
        after_sequence: verified.afterSequence,
        last_sequence: verified.last?.sequence ?? null,
        last_hash: verified.last?.hash ?? null,
        broken_at: verified.broken,
        next_after_sequence: verified.nextSequence,
        unnumbered_events: verified.unnumbered,
      })),
    },
  }),
]

/** The Link header to the next range (RFC 8288 section 3), unless this is the last. */
function onwards(
  nextSequence: number | null,
  { baseUrl, path, query }: ReplyContext,
): Record<string, string> {
  if (nextSequence === null) return {}
  const parameters = new URLSearchParams(query)
  parameters.set('after_sequence', String(nextSequence))
  return { link: `<${baseUrl}${path}?${parameters}>; rel="next"` }
}
