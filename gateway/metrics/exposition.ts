/** GET /metrics in the Prometheus text format. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Metrics } from '../../runtime/kernel/metrics/metrics.js'
import { ownRoute, type Route } from '../route.js'

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export function metricsRoute(metrics: Metrics): Route {
  return ownRoute({
    method: 'GET',
    path: '/metrics',
    operationId: 'getMetrics',
    summary: 'Read the metrics of this process',
    description:
      'Accepts server.metrics_bearer_token, if it is set, and service tokens with the scope ' +
      'metrics:read.',
    tags: ['Operations'],
    exposure: 'internal',
    security: { scheme: 'metrics' },
    responses: [{ status: 200, contentType: CONTENT_TYPE, schema: null }],
    answer: async () => ({
      form: 'body',
      status: 200,
      contentType: CONTENT_TYPE,
      body: await metrics.exposition(),
    }),
  })
}

/** Compares an Authorization header with the configured token in constant time. */
export function metricsTokenCheck(
  token: string | undefined,
): ((authorization: string) => boolean) | null {
  if (token === undefined) return null
  const expected = digest(token)
  return (authorization) => {
    const presented = /^bearer +(.+)$/i.exec(authorization)?.[1] ?? ''
    return timingSafeEqual(digest(presented.trim()), expected)
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
