/** The measured servers, each in a separate process: `node servers.js <name>`. */
import { once } from 'node:events'
import { createServer as createHttp1 } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import { z } from 'zod'
import { discovery, type DiscoveryProtocol } from '../../actors/oauth/discovery/protocol.js'
import { health, type HealthProtocol } from '../../actors/operations/health/protocol.js'
import type { TenantId } from '../../actors/domain/ids.js'
import { workspaces, type WorkspacesProtocol } from '../../actors/agents/workspaces/protocol.js'
import { type GatewayOptions, openGateway } from '../../gateway/gateway.js'
import { resultText } from '../../gateway/apps/mcp/json-rpc.js'
import { TOOL_LIST } from '../../gateway/apps/mcp/tools.js'
import { workspaceRoutes } from '../../gateway/routes/agents/workspaces.js'
import { discoveryRoutes } from '../../gateway/routes/oauth/discovery.js'
import { healthRoutes } from '../../gateway/routes/operations/health.js'
import { openapiSettings, serverSettings } from '../../gateway/settings.js'
import { loadNative } from '../../gateway/transports/native.js'
import { openHttp2 } from '../../gateway/transports/http2.js'
import { type ActorRef, defineActor } from '../../runtime/kernel/actor.js'
import { systemClock } from '../../runtime/kernel/clock.js'
import { spawnInline } from '../../runtime/kernel/inline.js'
import { createLogger } from '../../runtime/kernel/log.js'
import { createMetrics } from '../../runtime/kernel/metrics/metrics.js'
import { systemRandom } from '../../runtime/kernel/random.js'

const OK = '{"status":"ok"}'

const healthActor = defineActor<HealthProtocol, Record<string, never>>({
  address: health,
  asks: {},
  mailbox: { capacity: 4096, inflightMax: 256 },
  create: () => ({
    healthLive: async () => ({ tag: 'ok' }),
    healthRequest: async () => ({ tag: 'not_admitted' }),
    healthStartup: async () => ({ tag: 'ok' }),
    healthReady: async () => ({ tag: 'ok' }),
    listDeploymentPlanes: async () => ({ tag: 'planes', planes: [] }),
    listDeploymentActors: async () => ({ tag: 'actors', actors: [] }),
  }),
})

/** A JWKS with the size of two ES256 keys. */
const KEY_SET = new TextEncoder().encode(
  JSON.stringify({ keys: ['k'.repeat(230), 'k'.repeat(230)] }),
)

const discoveryActor = defineActor<DiscoveryProtocol, Record<string, never>>({
  address: discovery,
  asks: {},
  mailbox: { capacity: 4096, inflightMax: 256 },
  create: () => ({
    serviceDocument: async () => ({
      tag: 'published',
      body: KEY_SET,
      etag: '"k1"',
      maxAgeSecs: 300,
    }),
    documentAtPath: async () => ({ tag: 'not_enabled' }),
    tenantDocument: async () => ({ tag: 'not_enabled' }),
    getCredentialIssuerMetadata: async () => ({ tag: 'not_enabled' }),
  }),
})

const workspacesActor = defineActor<
  Pick<WorkspacesProtocol, 'readWorkspaceBootstrap'>,
  Record<string, never>
>({
  address: { ...workspaces, idempotent: [] } as never,
  asks: {},
  mailbox: { capacity: 4096, inflightMax: 256 },
  create: () => ({
    readWorkspaceBootstrap: async () => ({
      tag: 'metadata',
      issuer: '',
      controlPlaneTenantId: '' as TenantId,
      anchorTypes: [],
    }),
  }),
})

/** The answer to a tools/list with the id 1, as the gateway sends it. */
const TOOLS = resultText(1, JSON.stringify({ tools: TOOL_LIST }))

function gatewayOptions(parser: 'uwebsockets' | 'node' = 'uwebsockets'): GatewayOptions {
  const issuer = 'https://id.example.com'
  const server = z.object(serverSettings.shape).parse({
    port: 0,
    http1_parser: parser,
    // Quotas stay on, as in production; only the limit of the generator's one address is lifted.
    endpoint_throttle: { enabled: process.argv[3] !== 'unlimited' },
    egress_url: issuer,
    drain_secs: 0,
    errors_base_url: issuer,
  })
  const openapi = z.object(openapiSettings.shape).parse({ exposure: 'public' })
  const refs = new Map<string, ActorRef<never>>([
    ['health', spawnInline(healthActor, {}).ref as unknown as ActorRef<never>],
    ['workspaces', spawnInline(workspacesActor, {}).ref as unknown as ActorRef<never>],
    ['discovery', spawnInline(discoveryActor, {}).ref as unknown as ActorRef<never>],
  ])
  return {
    server: server as GatewayOptions['server'],
    openapi: openapi as GatewayOptions['openapi'],
    issuer,
    routes: [...healthRoutes, ...discoveryRoutes, ...workspaceRoutes],
    refs,
    plane: 'all',
    log: createLogger({ level: 'info', destination: { write: () => undefined } }),
    metrics: createMetrics(),
    clock: systemClock,
    random: systemRandom(systemClock),
  }
}

const servers: Record<string, () => Promise<number>> = {
  async uws() {
    const native = loadNative()
    if (native.tag === 'refused') throw new Error(native.reason)
    const app = native.uws.App().get('/*', (res) => {
      res.end(OK)
    })
    return new Promise((resolve) => {
      app.listen('127.0.0.1', 0, (socket) => {
        if (socket) resolve(native.uws.us_socket_local_port(socket))
      })
    })
  },
  async 'uws-threads'() {
    const port = await servers['uws']!()
    const second = new Worker(new URL('./bare-uws-thread.js', import.meta.url), {
      workerData: port,
    })
    await once(second, 'message')
    return port
  },
  async 'uws-mcp'() {
    const native = loadNative()
    if (native.tag === 'refused') throw new Error(native.reason)
    const app = native.uws.App().post('/mcp', (res) => {
      res.onAborted(() => undefined)
      res.onData((_, isLast) => {
        if (isLast) res.end(TOOLS)
      })
    })
    return new Promise((resolve) => {
      app.listen('127.0.0.1', 0, (socket) => {
        if (socket) resolve(native.uws.us_socket_local_port(socket))
      })
    })
  },
  http1: () =>
    new Promise((resolve) => {
      const server = createHttp1((_, response) => response.end(OK))
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    }),
  http2: () =>
    new Promise((resolve) => {
      const server = createHttp2()
      server.on('stream', (stream) => {
        stream.respond({ ':status': 200, 'content-type': 'application/json' })
        stream.end(OK)
      })
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    }),
  async gateway() {
    const gateway = openGateway(gatewayOptions())
    const { port } = await gateway.listen()
    gateway.started()
    return port
  },
  async 'gateway-node'() {
    const gateway = openGateway(gatewayOptions('node'))
    const { port } = await gateway.listen()
    gateway.started()
    return port
  },
  async 'gateway-http2'() {
    const gateway = openGateway({
      ...gatewayOptions(),
      open: (handler) =>
        openHttp2({
          host: '127.0.0.1',
          port: 0,
          tls: null,
          handler,
          monotonicMs: () => systemClock.monotonicMs(),
        }),
    })
    const { port } = await gateway.listen()
    gateway.started()
    return port
  },
}

const name = process.argv[2] ?? ''
const port = await servers[name]!()
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuSeconds: (user + system) / 1e6 })
})
process.on('disconnect', () => process.exit(0))
process.send?.({ port })
