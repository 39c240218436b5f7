/** Builds the HTTP side of a process from routes and actor references. */
import type { EventType } from '../actors/domain/events.js'
import { type I18nSettings, I18N_DEFAULTS } from '../actors/domain/i18n/settings.js'
import type { ConsoleSessionsProtocol } from '../actors/identity/console-sessions/protocol.js'
import type { BrowserSessionsProtocol } from '../actors/identity/sessions/protocol.js'
import type { Tenant } from '../actors/domain/tenants/tenancy.js'
import type { ScimProtocol } from '../actors/identity/scim/protocol.js'
import type { TenantsProtocol } from '../actors/identity/tenants/protocol.js'
import type { TokensProtocol } from '../actors/oauth/tokens/protocol.js'
import {
  POLICIES,
  type Policies,
  type RateLimitsProtocol,
} from '../actors/operations/rate-limits/protocol.js'
import type { ActorRef } from '../runtime/kernel/actor.js'
import type { Clock } from '../runtime/kernel/clock.js'
import type { Logger } from '../runtime/kernel/log.js'
import type { Metrics } from '../runtime/kernel/metrics/metrics.js'
import { registerPlain } from '../runtime/kernel/metrics/plain-metrics.js'
import type { Random } from '../runtime/kernel/random.js'
import { consoleApi } from './console/api.js'
import { consoleRoutes } from './console/routes.js'
import { Site } from './console/site.js'
import { Responder } from './response/respond.js'
import { administration } from './request/administration.js'
import { authenticator, scimAuthenticator } from './request/authenticate.js'
import { billingCheck } from './request/billing.js'
import { controlPlaneCheck } from './request/control-plane-tokens.js'
import { browserReader } from './request/browser.js'
import {
  type CapabilitiesOptions,
  capabilitiesDocument,
  capabilitiesRoute,
} from './capabilities.js'
import { clientAddresses } from './request/client-address.js'
import { type CompiledRoute, compileRoute, HeaderBlocks, type Refs } from './compile-route.js'
import { Pipeline } from './dispatch.js'
import type { HttpExchangeHandler } from './http-exchange.js'
import { metricsRoute, metricsTokenCheck } from './metrics/exposition.js'
import { type ApplicationOrigins, corsOf } from './headers/cors.js'
import { hostPolicy } from './request/hosts.js'
import { Documents } from './mcp/documents.js'
import { TOOL_PATHS } from './mcp/tools.js'
import { httpMetrics } from './metrics/http-metrics.js'
import { InputReader } from './request/input.js'
import { listen } from './listen.js'
import { documentRoutes, OPENAPI_PATH } from './openapi/openapi-routes.js'
import { openQuotas } from './request/quotas.js'
import { BrowserSessionGuard } from './request/browser-session-guard.js'
import { scriptRoutes } from './pages/platform/script.js'
import { fontRoutes } from './pages/platform/fonts.js'
import { styleRoutes } from './pages/platform/style.js'
import { requestOrigin } from './request/request-origin.js'
import type { Route } from './route.js'
import type { DevMailbox } from './site/dev-mail.js'
import { siteRoutes } from './site/site.js'
import { Router } from './router.js'
import { mcpRoute } from './routes/operations/mcp.js'
import type { AdminSettings, OpenapiSettings, ServerSettings } from './settings.js'
import { tokenHostCheck } from './request/tenant-hosts.js'
import { ConnectionBounds } from './transports/bounds.js'
import type { Listener } from './transports/open.js'

export interface GatewayOptions {
  readonly server: ServerSettings
  readonly openapi: OpenapiSettings
  /** oidc.issuer_url without a trailing slash: the public base URL. */
  readonly issuer: string
  /** All routes. Those whose actor has no reference in `refs` are left out. */
  readonly routes: readonly Route[]
  /**
   * The routes of all planes of the deployment, which OpenAPI and capabilities describe. Default: the routes that
   * this process serves.
   */
  readonly described?: readonly Route[] | undefined
  /** Actors of this plane, by the name of their address. */
  readonly refs: Refs
  /** Name of the plane, for the log. */
  readonly plane: string
  /** `telemetry.sample_ratio`. Default 1. */
  readonly sampleRatio?: number | undefined
  readonly log: Logger
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  /** Names that settings add to the capabilities document. */
  readonly capabilities?: readonly string[] | undefined
  /** Details of features for the capabilities document. */
  readonly featureDetails?: CapabilitiesOptions['details']
  /** Looks up allowed_origins of applications. Without it those routes use cors_allowed_origins. */
  readonly applicationOrigins?: ApplicationOrigins | undefined
  /** Max-Age of session cookies. Without it they end with the browser session. */
  readonly sessionCookieSecs?: number | undefined
  /** `[admin]`. Default: on, from everywhere. */
  readonly admin?: AdminSettings | undefined
  /** `billing.enabled`: whether plans decide features. Default: no. */
  readonly billing?: boolean | undefined
  /** `[i18n]`. Default: `I18N_DEFAULTS`. */
  readonly i18n?: I18nSettings | undefined
  /** Keeps the browser cookie beyond the browser session. Default: no. */
  readonly keepsBrowserCookie?: boolean | undefined
  /** `tenant.default_tenant_slug` is set. Default: no. */
  readonly hasDefaultTenant?: boolean | undefined
  /** Origin of the images of tenants, where it is not that of the service. Default: none. */
  readonly imageOrigin?: string | undefined
  /** Event types of this deployment. Default: all. */
  readonly events?: readonly EventType[] | undefined
  /** Default: `POLICIES`. */
  readonly policies?: Policies | undefined
  /** Replaces the table of pinned hashes. A table without this platform forces node:http. */
  readonly nativePins?: Readonly<Record<string, string>> | undefined
  /** Time that a request waits for the start. Default: `START_WAIT_MS`. */
  readonly startWaitMs?: number | undefined
  /** Time that a client may leave its answer unread. Default: `UNREAD_MS_MAX`. */
  readonly unreadMs?: number | undefined
  /** The mail of a development service, for /dev/mail. Absent: the page is not served. */
  readonly devMailbox?: DevMailbox | undefined
  /** Set where several threads of the process share the port. */
  readonly shared?: SharedPort | undefined
  /** Opens the listener in place of [server], for benches. */
  readonly open?: ((handler: HttpExchangeHandler) => Promise<Listener>) | undefined
}

/** One of several gateway threads (docs/concepts/actor-runtime.md). */
export interface SharedPort {
  /** The name of the thread, for its count of requests. */
  readonly thread: string
  readonly port: number
}

export interface Gateway {
  /**
   * Opens the listener. Until `started` is called, only health probes are answered. Other requests wait, and get 503
   * after `START_WAIT_MS`.
   * @throws {ListenFailed} with a message for the operator, such as a port in use.
   */
  listen(): Promise<{ readonly url: string; readonly port: number; readonly transport: string }>
  /** Makes the long documents, so that no request waits for them. Takes about a second. */
  warm(): void
  /** Accepts requests. */
  started(): void
  /** Stops accepting and waits for open requests. @returns false at the time limit. */
  drain(withinMs: number): Promise<boolean>
  close(): Promise<void>
  /** The routes that this process serves, including those of the gateway. */
  readonly routes: readonly Route[]
}

const START_WAIT_MS = 10_000

const ADMIN_DEFAULTS: AdminSettings = { enabled: true, allowed_addresses: [] }

const isSandbox = ({ environment, controlPlane }: Tenant): boolean =>
  environment === 'sandbox' && !controlPlane

export function openGateway(options: GatewayOptions): Gateway {
  const { server, openapi, issuer, refs, log, metrics, clock, random } = options
  const { policies = POLICIES, i18n = I18N_DEFAULTS, sessionCookieSecs = null } = options
  const { admin = ADMIN_DEFAULTS } = options
  const http = httpMetrics(metrics.registry)
  const present = options.routes.filter(
    ({ target }) => target.via === 'gateway' || refs.has(target.address.name),
  )
  const files = [metricsRoute(metrics), ...styleRoutes, ...fontRoutes, ...scriptRoutes]
  const appOrigins = new Set(
    [issuer, server.identity_app_origin, server.dashboard_app_origin]
      .filter((url) => url !== '')
      .map((url) => new URL(url).origin),
  )
  const secure = issuer.startsWith('https:')
  const egressHost = new URL(server.egress_url).host
  // Empty allows all hosts.
  const servedHosts = server.allowed_hosts.length === 0 ? [] : [...server.allowed_hosts, egressHost]
  const browsers = browserReader(
    { secure, keptSecs: sessionCookieSecs, keepsBrowser: options.keepsBrowserCookie },
    i18n,
    random,
  )
  // The pipeline is complete only after the routes that call it.
  const inner: { handle: HttpExchangeHandler | null } = { handle: null }
  const consoleSessions = refs.get('console-sessions') as
    | ActorRef<ConsoleSessionsProtocol>
    | undefined
  const consoleTenants = refs.get('tenants') as ActorRef<TenantsProtocol> | undefined
  const consoleOwn =
    consoleSessions === undefined || consoleTenants === undefined
      ? []
      : consoleRoutes({
          api: consoleApi(() => inner.handle!, secure),
          site: new Site(present, options.capabilities ?? []),
          sessions: consoleSessions,
          tenants: consoleTenants,
          browsers,
          clock,
          random,
          issuer,
        })
  const own = [...files, ...consoleOwn]
  const described = [...(options.described ?? present), ...own]
  // The list grows below: the tools describe all routes, their own included.
  const documented: Route[] = []
  const documents = new Documents({
    issuer,
    routes: documented,
    refs,
    policies,
    events: options.events,
    published: () => (openapi.exposure === 'public' ? text() : null),
  })
  const mcp = mcpRoute({
    appOrigins,
    documents,
  })
  const read = described.filter(({ path }) => TOOL_PATHS.includes(path))
  // Capabilities are read too, and their route is always there.
  const mcpRoutes = read.length === TOOL_PATHS.length - 1 ? [mcp] : []
  const servesMcp = read.every(
    ({ target }) => target.via !== 'actor' || refs.has(target.address.name),
  )
  const features = {
    issuer,
    routes: [...described, ...mcpRoutes],
    more: [...(options.capabilities ?? []), ...(openapi.enabled ? ['openapi'] : [])],
    details: options.featureDetails,
  }
  const capabilities = capabilitiesRoute(features)
  const site = siteRoutes({
    issuer,
    openapi,
    served: [...present, ...own, capabilities],
    capabilities: capabilitiesDocument(features).capabilities,
    securityContact: server.security_contact,
    devMailbox: options.devMailbox,
    baseDomain: server.base_domain,
    hasDefaultTenant: options.hasDefaultTenant === true,
    clock,
    i18n,
  })
  documented.push(...described, ...mcpRoutes, capabilities, ...site)
  const { routes: descriptions, text } = documentRoutes({
    openapi,
    issuer,
    routes: documented,
    policies,
    events: options.events,
    egressUrl: server.egress_url,
  })
  // The document describes its own route, but not the files of its page.
  documented.push(...descriptions.filter(({ path }) => path === OPENAPI_PATH))
  const routes = [
    ...present,
    ...own,
    ...(servesMcp ? mcpRoutes : []),
    capabilities,
    ...site,
    ...descriptions,
  ]

  const router = new Router<CompiledRoute>()
  for (const route of routes) {
    const compiled = compileRoute(route, refs, http, policies)
    if (compiled !== null) router.add(route.method, route.path, compiled)
  }
  const throttle = refs.get('throttle') as ActorRef<RateLimitsProtocol> | undefined
  const tokens = refs.get('tokens') as ActorRef<TokensProtocol> | undefined
  const tenants = refs.get('tenants') as ActorRef<TenantsProtocol> | undefined
  const scim = refs.get('scim') as ActorRef<ScimProtocol> | undefined
  const checkTokenHost = tokenHostCheck(tenants, server.base_domain)
  const quotas = openQuotas({ enabled: server.endpoint_throttle.enabled, throttle, clock, log })
  const unrouted = http.meter({ method: 'ANY', route: 'none' })
  const browserSessions = refs.get('browser-sessions') as
    | ActorRef<BrowserSessionsProtocol>
    | undefined
  const addresses = clientAddresses(server.trusted_proxies)
  const start = startGate(options.startWaitMs ?? START_WAIT_MS)
  const pipeline = new Pipeline({
    router,
    respond: new Responder({
      blocks: new HeaderBlocks(secure, options.imageOrigin),
      errorsBaseUrl: server.errors_base_url,
      i18n,
      sessionCookie: (token) => browsers.sessionCookie(token),
      log,
      servesScim: scim !== undefined,
      monotonicMs: () => clock.monotonicMs(),
      observeUnrouted: (status, ms) => unrouted.observe(status, ms),
    }),
    hosts: hostPolicy(servedHosts, server.base_domain),
    addresses,
    cors: corsOf({
      allowedOrigins: server.cors_allowed_origins,
      issuer,
      appOrigins,
      applications: options.applicationOrigins,
    }),
    quotas,
    authenticator: authenticator(tokens, issuer, checkTokenHost),
    scimAuthenticator: scimAuthenticator(scim, checkTokenHost),
    administration: administration(admin),
    controlPlane: tenants === undefined ? null : controlPlaneCheck(tenants),
    billing: options.billing === true && tenants !== undefined ? billingCheck(tenants) : null,
    sessionGuard: new BrowserSessionGuard({ browsers, sessions: browserSessions }),
    input: new InputReader(addresses),
    originOf: requestOrigin({
      issuer: new URL(issuer),
      baseDomain: server.base_domain,
      allowedHosts: servedHosts,
      port: server.port,
      addresses,
    }),
    baseUrl: issuer,
    requestTimeoutMs: server.request_timeout_secs * 1000,
    isSandbox:
      tenants === undefined
        ? undefined
        : async (tenantId, asking) => {
            const named = await tenants.resolve({ tenantId }, asking)
            return named.tag === 'resolved' && isSandbox(named.tenant)
          },
    sampleRatio: options.sampleRatio ?? 1,
    metricsToken: metricsTokenCheck(server.metrics_bearer_token),
    started: () => start.isOpen || start.wait(),
    clock,
    random,
    log,
  })

  const handler: HttpExchangeHandler = (exchange) => pipeline.handle(exchange)
  inner.handle = handler
  const { shared } = options
  const bounds = new ConnectionBounds(addresses.trusts)
  registerBounds(metrics.registry, bounds)
  const accept = shared === undefined ? handler : counted(handler, shared.thread, metrics.registry)

  let listener: Listener | null = null
  return {
    routes,
    async listen() {
      listener =
        options.open === undefined
          ? await listen({ ...server, port: shared?.port ?? server.port }, accept, {
              log,
              clock,
              pins: options.nativePins,
              isShared: shared !== undefined,
              unreadMs: options.unreadMs,
              bounds,
            })
          : await options.open(accept)
      const { url, port, transport } = listener
      log.info({ url, transport, plane: options.plane, routes: routes.length }, 'listening')
      return { url, port, transport }
    },
    warm() {
      text()
      if (servesMcp && mcpRoutes.length > 0) void documents.operations
    },
    started() {
      start.open()
    },
    async drain(withinMs) {
      return (await listener?.drain(withinMs)) ?? true
    },
    async close() {
      quotas.close()
      await listener?.close()
    },
  }
}

/**
 * Requests during the start. A proxy without health checks sends them as soon as the port is open, and repeats no POST
 * that was answered with 503.
 */
function startGate(waitMs: number) {
  const waiting = new Set<(isOpen: boolean) => void>()
  return {
    isOpen: false,
    open() {
      this.isOpen = true
      for (const enter of waiting) enter(true)
      waiting.clear()
    },
    /** True once the service has started, false after the time. */
    wait(): Promise<boolean> {
      return new Promise((resolve) => {
        const enter = (isOpen: boolean) => {
          clearTimeout(late)
          waiting.delete(enter)
          resolve(isOpen)
        }
        const late = setTimeout(enter, waitMs, false)
        waiting.add(enter)
      })
    },
  }
}

/** What connections hold, and how many were closed for it. */
function registerBounds(registry: Metrics['registry'], bounds: ConnectionBounds): void {
  registerPlain(registry, {
    name: 'svc_gateway_exchanges_in_progress',
    help: 'Requests that are worked on, or whose answer is not written yet.',
    type: 'gauge',
    read: () => [{ labels: {}, value: bounds.inProgress }],
  })
  registerPlain(registry, {
    name: 'svc_gateway_unsent_bytes',
    help: 'Bytes of answers that clients have not read, and of requests that wait for their turn.',
    type: 'gauge',
    read: () => [{ labels: {}, value: bounds.unsentBytes }],
  })
  registerPlain(registry, {
    name: 'svc_gateway_connections_closed_total',
    help: 'Connections closed because they held too much, by bound: connection, address, process.',
    type: 'counter',
    read: () =>
      Object.entries(bounds.closed).map(([bound, value]) => ({ labels: { bound }, value })),
  })
}

/** Counts the requests of one of several gateway threads. */
function counted(
  handler: HttpExchangeHandler,
  thread: string,
  registry: Metrics['registry'],
): HttpExchangeHandler {
  let requests = 0
  registerPlain(registry, {
    name: 'svc_gateway_thread_requests_total',
    help: 'Requests by gateway thread. Absent in a process with one gateway thread.',
    type: 'counter',
    read: () => [{ labels: { thread }, value: requests }],
  })
  return (exchange) => {
    requests += 1
    handler(exchange)
  }
}
