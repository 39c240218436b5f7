/**
 * Overhead of the gateway over HTTP/2 without TLS, compared with a bare node:http2 stream handler in the
 * same run. Needs h2load.
 *
 *     node dist/bench/gateway/http2.js
 */
import { compare, publish } from '../harness.js'
import { contender } from './generator.js'

const http2 = { protocol: 'http2' } as const

await publish(
  await compare({
    name: 'Light public route over HTTP/2 without TLS, h2load -c8 -m16',
    ms: 3_000,
    reference: contender({ ...http2, name: 'bare node:http2 stream', server: 'http2', path: '/' }),
    contenders: [
      contender({
        ...http2,
        name: 'gateway, /health/live',
        server: 'gateway-http2',
        path: '/health/live',
        target: 0.6,
        by: 'cpu',
      }),
    ],
  }),
)
