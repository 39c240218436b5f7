/** The HTTP side of a process: routes and references in, a listener out. */
import type { EventType } from '../actors/domain/events.js'
import type { BrowserSessionsProtocol } from '../actors/identity/sessions/protocol.js'
import type { Tenant } from '../actors/domain/tenants/tenancy.js'
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
import type { Random } from '../runtime/kernel/random.js'
import { Answers } from './response/respond.js'
import { authenticator } from './request/authenticate.js'
import { browserReader } from './request/browser.js'
import { type CapabilitiesOptions, capabilitiesRoute } from './capabilities.js'
import { clientAddresses } from './request/client-address.js'
import { type CompiledRoute, compileRoute, HeaderBlocks, type Refs } from './compile-route.js'
import { Pipeline } from './dispatch.js'
import { errorPagesRoute } from './response/error-pages.js'
import { homePageRoute } from './home-page.js'
import type { ExchangeHandler } from './exchange.js'
import { metricsRoute, metricsTokenCheck } from './metrics/exposition.js'
import { type ApplicationOrigins, corsOf } from './headers/cors.js'
import { hostPolicy } from './request/hosts.js'
import { httpMetrics } from './metrics/http-metrics.js'
import { InputReader } from './request/input.js'
import { listen } from './listen.js'
import { documentRoutes } from './openapi/openapi-routes.js'
import { openQuotas } from './request/quotas.js'
import { PageDoor } from './request/browser-session-guard.js'
import { scriptRoutes } from './pages/platform/script.js'
import { styleRoutes } from './pages/platform/style.js'
import { requestOrigin } from './request/request-origin.js'
import type { Route } from './route.js'
import { Router } from './router.js'
import type { OpenapiSettings, ServerSettings } from './settings.js'
import { hostJudge } from './request/tenant-hosts.js'
import type { Listener } from './transports/open.js'

export interface GatewayOptions {
  readonly server: ServerSettings
  readonly openapi: OpenapiSettings
  /** oidc.issuer_url without a closing slash: the public base address. */
  readonly issuer: string
  /** Every route of the build; those whose actor has no reference here do not exist here. */
  readonly routes: readonly Route[]
  /**
   * Routes that the documents describe: those of the deployment, whichever plane serves them, so that
   * capabilities and OpenAPI are the same everywhere. Default: the routes that exist here.
   */
  readonly described?: readonly Route[] | undefined
  /** Actors of this plane, by the name of their address. */
  readonly refs: Refs
  /** Name of the plane, for the log. */
  readonly plane: string
  readonly log: Logger
  readonly metrics: Metrics
  readonly clock: Clock
  readonly random: Random
  /** Names that settings add to the capabilities document. */
  readonly capabilities?: readonly string[] | undefined
  /** What the capabilities document says of features beside their names. */
  readonly featureDetails?: CapabilitiesOptions['details']
  /** Knows applications' allowed_origins; without it such routes follow cors_allowed_origins. */
  readonly applicationOrigins?: ApplicationOrigins | undefined
  /** How long session cookies outlive the browser window; without it they end with it. */
  readonly sessionCookieSecs?: number | undefined
  /** The types of events that can occur in this deployment; default: all. */
  readonly events?: readonly EventType[] | undefined
  /** Default: those of decisions.md 14. */
  readonly policies?: Policies | undefined
  /** Another table of native hashes; one without our platform forces node:http. */
  readonly nativePins?: Readonly<Record<string, string>> | undefined
  /** How long a client may read nothing of its answer. Default: `UNREAD_MS_MAX`. */
  readonly unreadMs?: number | undefined
  /** Opens the socket in place of what [server] says: for benches. */
  readonly open?: ((handler: ExchangeHandler) => Promise<Listener>) | undefined
}

export interface Gateway {
  /**
   * Opens the socket. Until `started` only health probes answer; everything else is 503.
   * @throws {ListenFailed} with a message for the operator: port taken, certificate unreadable.
   */
  listen(): Promise<{ readonly url: string; readonly port: number; readonly transport: string }>
  /** Lets requests in. */
  started(): void
  /** Stops accepting and waits for open requests; false when that was not long enough. */
  drain(withinMs: number): Promise<boolean>
  close(): Promise<void>
  /** The routes that exist here, the gateway's own included. */
  readonly routes: readonly Route[]
}

const isSandbox = ({ environment, controlPlane }: Tenant): boolean =>
  environment === 'sandbox' && !controlPlane

export function openGateway(options: GatewayOptions): Gateway {
  const { server, openapi, issuer, refs, log, metrics, clock, random } = options
  const { policies = POLICIES } = options
  const http = httpMetrics(metrics.registry)
  const present = options.routes.filter(
    ({ target }) => target.via === 'gateway' || refs.has(target.address.name),
  )
  const own = [metricsRoute(metrics), errorPagesRoute(), ...styleRoutes, ...scriptRoutes]
  const described = [...(options.described ?? present), ...own]
  const capabilities = capabilitiesRoute({
    issuer,
    routes: described,
    more: [...(options.capabilities ?? []), ...(openapi.enabled ? ['openapi'] : [])],
    details: options.featureDetails,
  })
  const home = homePageRoute({
    issuer,
    docsPath: openapi.enabled ? openapi.docs_path : null,
    paths: new Set([...present, ...own, capabilities].map(({ path }) => path)),
  })
  const documented = [...described, capabilities, home]
  const routes = [
    ...present,
    ...own,
    capabilities,
    home,
    ...documentRoutes({ openapi, issuer, routes: documented, policies, events: options.events }),
  ]

  const router = new Router<CompiledRoute>()
  for (const route of routes) {
    const compiled = compileRoute(route, refs, http, policies)
    if (compiled !== null) router.add(route.method, route.path, compiled)
  }
  const throttle = refs.get('throttle') as ActorRef<RateLimitsProtocol> | undefined
  const tokens = refs.get('tokens') as ActorRef<TokensProtocol> | undefined
  const tenants = refs.get('tenants') as ActorRef<TenantsProtocol> | undefined
  const quotas = openQuotas({ enabled: server.endpoint_throttle.enabled, throttle, clock, log })
  const unrouted = http.meter({ method: 'ANY', route: 'none' })
  const browserSessions = refs.get('browser-sessions') as
    | ActorRef<BrowserSessionsProtocol>
    | undefined
  const secure = issuer.startsWith('https:')
  const browsers = browserReader({ secure, keptSecs: options.sessionCookieSecs ?? null }, random)
  const addresses = clientAddresses(server.trusted_proxies)
  let isStarted = false
  const pipeline = new Pipeline({
    router,
    answers: new Answers({
      blocks: new HeaderBlocks(secure),
      errorsBaseUrl: server.errors_base_url,
      sessionCookie: (token) => browsers.sessionCookie(token),
      log,
      monotonicMs: () => clock.monotonicMs(),
      observeUnrouted: (status, ms) => unrouted.observe(status, ms),
    }),
    hosts: hostPolicy(server.allowed_hosts, server.base_domain),
    addresses,
    cors: corsOf({
      allowedOrigins: server.cors_allowed_origins,
      issuer,
      applications: options.applicationOrigins,
    }),
    quotas,
    authenticator: authenticator(tokens, issuer, hostJudge(tenants, server.base_domain)),
    pages: new PageDoor({ browsers, sessions: browserSessions }),
    input: new InputReader(addresses),
    originOf: requestOrigin({
      issuer: new URL(issuer),
      baseDomain: server.base_domain,
      allowedHosts: server.allowed_hosts,
      port: server.port,
      addresses,
    }),
    baseUrl: issuer,
    requestTimeoutMs: server.request_timeout_secs * 1000,
    isSandbox:
      tenants === undefined
        ? undefined
        : async (tenantId, asking) => {
            const named = await tenants.ask('resolve', { tenantId }, asking)
            return named.tag === 'resolved' && isSandbox(named.tenant)
          },
    metricsToken: metricsTokenCheck(server.metrics_bearer_token),
    started: () => isStarted,
    clock,
    random,
    log,
  })

  let listener: Listener | null = null
  return {
    routes,
    async listen() {
      const handler: ExchangeHandler = (exchange) => pipeline.handle(exchange)
      listener =
        options.open === undefined
          ? await listen(server, handler, {
              log,
              clock,
              pins: options.nativePins,
              unreadMs: options.unreadMs,
            })
          : await options.open(handler)
      const { url, port, transport } = listener
      log.info({ url, transport, plane: options.plane, routes: routes.length }, 'listening')
      return { url, port, transport }
    },
    started() {
      isStarted = true
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
