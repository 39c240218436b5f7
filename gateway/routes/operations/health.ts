/**
 * Health probes (docs/reference/operations.md, Health). Not rate limited, not cached, no details.
 */
import { z } from 'zod'
import { health } from '../../../actors/operations/health/protocol.js'
import { constant, type Route, route } from '../../route.js'

const status = <const Value extends string>(value: Value) =>
  z.object({ status: z.literal(value) }).meta({ description: `The status "${value}".` })

const ok = constant(200, status('ok'), { status: 'ok' })

const probe = {
  method: 'GET',
  tags: ['Health'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  throttle: 'none',
} as const

export const healthRoutes: readonly Route[] = [
  route(health, 'live', {
    ...probe,
    path: '/health/live',
    operationId: 'healthLive',
    summary: 'Liveness probe: the process runs',
    message: () => null,
    replies: { ok },
  }),
  route(health, 'startup', {
    ...probe,
    path: '/health/startup',
    operationId: 'healthStartup',
    summary: 'Startup probe: migrations ran and signing keys are loaded',
    message: () => null,
    replies: { ok, starting: constant(503, status('starting'), { status: 'starting' }) },
  }),
  route(health, 'ready', {
    ...probe,
    path: '/health/ready',
    operationId: 'healthReady',
    summary: 'Readiness probe: requests can be served',
    message: () => null,
    replies: { ok, unavailable: constant(503, status('unavailable'), { status: 'unavailable' }) },
  }),
]
