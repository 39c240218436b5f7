/**
 * MCP discovery: `tools/list` and a `tools/call`, compared with a bare uWebSockets handler that answers the bytes of
 * `tools/list`. Needs wrk.
 *
 *     node dist/bench/gateway/mcp.js
 */
import { compare, publish } from '../harness.js'
import { contender } from './generator.js'

const request = (method: string, params: object = {}) =>
  ({
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  }) as const
const common = { protocol: 'http1', path: '/mcp', request: request('tools/list') } as const

await publish(
  await compare({
    name: 'MCP over HTTP/1.1, wrk -c32',
    ms: 3_000,
    reference: contender({ ...common, name: 'bare uWebSockets', server: 'uws-mcp' }),
    contenders: [
      contender({
        ...common,
        name: 'gateway, tools/list',
        server: 'gateway',
        target: 0.3,
        by: 'cpu',
      }),
      contender({
        ...common,
        name: 'gateway, tools/list, server.http1_parser = "node"',
        server: 'gateway-node',
      }),
      contender({
        ...common,
        name: 'gateway, tools/call of get_guide',
        server: 'gateway',
        request: request('tools/call', { name: 'get_guide', arguments: { topic: 'egress' } }),
      }),
    ],
  }),
)
