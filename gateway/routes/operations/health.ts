/**
 * Health probes (docs/reference/operations.md, Health): not rate limited, not cached, no details. And what runs in the
 * process, for operators of the deployment.
 */
import { z } from 'zod'
import { health } from '../../../actors/operations/health/protocol.js'
import { constant, problem, reply, type Route, route } from '../../route.js'
import { deployment } from '../identity/organization-records.js'

const status = <const Value extends string>(value: Value) =>
  z.object({ status: z.literal(value) }).meta({ description: `The status "${value}".` })

const ok = constant(200, status('ok'), { status: 'ok' })

const Seen = z
  .object({
    host: z.string().meta({ description: 'The Host header.' }),
    origin: z.string().meta({ description: 'Scheme and host that the service derives.' }),
    client_address: z.string().meta({ description: 'The address that rate limits use.' }),
    forwarded_for: z.string().nullable().meta({ description: 'The X-Forwarded-For header.' }),
    forwarded_proto: z.string().nullable().meta({ description: 'The X-Forwarded-Proto header.' }),
  })
  .meta({ id: 'RequestAsSeen' })

const field = () => z.string().max(2048).optional()

const probe = {
  method: 'GET',
  tags: ['Health'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle: 'none',
} as const

const Plane = z
  .object({
    name: z.enum(['auth', 'control', 'async']),
    here: z.boolean().meta({ description: 'The process that answers serves the plane' }),
    actors: z.int().meta({ description: 'How many actors run in the plane' }),
  })
  .meta({ id: 'DeploymentPlane', description: 'A plane of the deployment.' })

const Actor = z
  .object({
    name: z.string(),
    place: z.string().meta({
      description: '`inline`, or `pool` or `thread` with its name',
      example: 'pool passwords',
    }),
    planes: z.array(z.string()),
    ready: z.boolean(),
    waiting: z.int().meta({ description: 'Messages in the mailbox' }),
    running: z.int().meta({ description: 'Messages that have begun' }),
    capacity: z.int().meta({ description: 'Most messages that may wait' }),
    running_max: z.int().meta({ description: 'Most messages that run concurrently' }),
    accepted: z.int().meta({ description: 'Messages since the start of the process' }),
    completed: z.int(),
    failed: z.int().meta({ description: 'Without an outcome: refused, late, cancelled or failed' }),
    restarts: z.int(),
  })
  .meta({ id: 'DeploymentActor', description: 'An actor of the process with its mailbox.' })

const operators = {
  method: 'GET',
  tags: ['Control plane'],
  exposure: 'internal',
  security: deployment,
} as const

export const healthRoutes: readonly Route[] = [
  route(health, 'healthLive', {
    ...probe,
    path: '/health/live',
    summary: 'Liveness probe: the process runs',
    message: () => null,
    replies: { ok },
  }),
  route(health, 'healthStartup', {
    ...probe,
    path: '/health/startup',
    summary: 'Startup probe: migrations ran and signing keys are loaded',
    message: () => null,
    replies: { ok, starting: constant(503, status('starting'), { status: 'starting' }) },
  }),
  route(health, 'healthReady', {
    ...probe,
    path: '/health/ready',
    summary: 'Readiness probe: requests can be served',
    message: () => null,
    replies: { ok, unavailable: constant(503, status('unavailable'), { status: 'unavailable' }) },
  }),
  route(health, 'healthRequest', {
    method: 'GET',
    tags: ['Health'],
    exposure: 'internal',
    security: { scheme: 'anonymous' },
    path: '/health/request',
    summary: 'The request as the service sees it behind its proxies',
    description:
      'For `svc doctor`, which writes a ticket that is valid for one minute into the coordination backend and ' +
      'sends it in svc-doctor. Without a valid ticket the answer is 404.',
    headers: z.object({
      'svc-doctor': z.string().max(128).optional(),
      'x-forwarded-for': field(),
      'x-forwarded-proto': field(),
    }),
    message: ({ headers, host, credentials, clientAddress }) => ({
      ticket: headers['svc-doctor'] ?? null,
      seen: {
        host,
        origin: new URL(credentials.httpUrl).origin,
        clientAddress,
        forwardedFor: headers['x-forwarded-for'] ?? null,
        forwardedProto: headers['x-forwarded-proto'] ?? null,
      },
    }),
    replies: {
      described: reply(200, Seen, ({ seen }) => ({
        host: seen.host,
        origin: seen.origin,
        client_address: seen.clientAddress,
        forwarded_for: seen.forwardedFor,
        forwarded_proto: seen.forwardedProto,
      })),
      not_admitted: problem(404, 'not-found', { detail: 'There is no resource at this path.' }),
    },
  }),
  route(health, 'listDeploymentPlanes', {
    ...operators,
    path: '/api/v1/deployment/planes',
    summary: 'List the planes of the deployment',
    message: () => null,
    replies: {
      planes: reply(200, z.array(Plane), ({ planes }) =>
        planes.map((plane) => ({ ...plane, name: plane.name as z.input<typeof Plane>['name'] })),
      ),
    },
  }),
  route(health, 'listDeploymentActors', {
    ...operators,
    path: '/api/v1/deployment/actors',
    summary: 'List the actors of the process that answers, with their mailboxes',
    description:
      'Other processes of the deployment have their own actors. GET /metrics has the same figures over time.',
    message: () => null,
    replies: {
      actors: reply(200, z.array(Actor), ({ actors }) =>
        actors.map(({ runningMax, planes, ...actor }) => ({
          ...actor,
          planes: [...planes],
          running_max: runningMax,
        })),
      ),
    },
  }),
]
