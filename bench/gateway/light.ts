/**
 * What the gateway adds to a light public route: health and a key set, against a bare uWebSockets
 * handler and node:http in the same run. Needs wrk.
 *
 *     node dist/bench/gateway/light.js
 */
import { compare, publish } from '../harness.js'
import { contender } from './generator.js'

const http1 = { protocol: 'http1' } as const

await publish(
  await compare({
    name: 'Light public route over HTTP/1.1, wrk -c32',
    ms: 3_000,
    reference: contender({ ...http1, name: 'bare uWebSockets', server: 'uws', path: '/' }),
    contenders: [
      contender({ ...http1, name: 'bare node:http', server: 'http1', path: '/' }),
      contender({
        ...http1,
        name: 'gateway, /health/live',
        server: 'gateway',
        path: '/health/live',
        target: 0.5,
        by: 'cpu',
      }),
      contender({
        ...http1,
        name: 'gateway, /health/live, server.http1_parser = "node"',
        server: 'gateway-node',
        path: '/health/live',
      }),
      contender({
        ...http1,
        name: 'gateway, key set',
        server: 'gateway',
        path: '/.well-known/jwks.json',
        target: 0.5,
        by: 'cpu',
      }),
    ],
  }),
)
