/** A listener and the pipeline behind it: what the gateway and the egress address have in common. */
import type { ScimProtocol } from '../actors/identity/scim/protocol.js'
import type { BrowserSessionsProtocol } from '../actors/identity/sign-in/sessions/protocol.js'
import type { TenantsProtocol } from '../actors/identity/users/tenants/protocol.js'
import { type I18nSettings, I18N_DEFAULTS } from '../actors/domain/i18n/settings.js'
import type { Tenant } from '../actors/domain/tenants/tenancy.js'
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
import { type CompiledRoute, compileRoute, HeaderBlocks, type Refs } from './compile-route.js'
import { Pipeline, type PipelineNeeds } from './dispatch.js'
import { type ApplicationOrigins, corsOf } from './headers/cors.js'
import type { HttpExchangeHandler } from './http-exchange.js'
import { listen } from './listen.js'
import { metricsTokenCheck } from './metrics/exposition.js'
import { httpMetrics } from './metrics/http-metrics.js'
import { administration } from './request/administration.js'
import { authenticator, scimAuthenticator } from './request/authenticate.js'
import { billingCheck } from './request/billing.js'
import { BrowserSessionGuard } from './request/browser-session-guard.js'
import type { BrowserReader } from './request/browser.js'
import { clientAddresses } from './request/client-address.js'
import { controlPlaneCheck } from './request/control-plane-tokens.js'
import { hostPolicy } from './request/hosts.js'
import { InputReader } from './request/input.js'
import { openQuotas } from './request/quotas.js'
import { requestOrigin } from './request/request-origin.js'
import { tokenHostCheck } from './request/tenant-hosts.js'
import { Responder } from './response/respond.js'
import type { Route } from './route.js'
import { Router } from './router.js'
import type { AdminSettings, ServerSettings } from './settings.js'
import { ConnectionBounds } from './transports/bounds.js'
import type { Listener } from './transports/open.js'

export interface FrontDoorOptions {
  /** Where it listens, among others. */
  readonly server: ServerSettings
  /** oidc.issuer_url without a trailing slash: the public base URL. */
  readonly issuer: string
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
  /** Looks up allowed_origins of applications. Without it those routes use cors_allowed_origins. */
  readonly applicationOrigins?: ApplicationOrigins | undefined
  /** `[admin]`. Default: on, from everywhere. */
  readonly admin?: AdminSettings | undefined
  /** `billing.enabled`: whether plans decide features. Default: no. */
  readonly billing?: boolean | undefined
  /** `[i18n]`. Default: `I18N_DEFAULTS`. */
  readonly i18n?: I18nSettings | undefined
  /** Origin of the images of tenants, if the service does not serve them. Default: none. */
  readonly imageOrigin?: string | undefined
  /** Default: `POLICIES`. */
  readonly policies?: Policies | undefined
  /** Replaces the table of pinned hashes. A table without this platform forces node:http. */
  readonly nativePins?: Readonly<Record<string, string>> | undefined
  /** Time that a request waits for the start. Default: `START_WAIT_MS`. */
  readonly startWaitMs?: number | undefined
  /** Time that a client may leave its answer unread. Default: `UNREAD_MS_MAX`. */
  readonly unreadMs?: number | undefined
  /** Set where several threads of the process share the port. */
  readonly shared?: SharedPort | undefined
  /** Its name in metrics and the log. Default: `main`. */
  readonly name?: ListenerName | undefined
  /** Opens the listener in place of [server], for benches. */
  readonly open?: ((handler: HttpExchangeHandler) => Promise<Listener>) | undefined
}

/** The listeners of a process: `server.port` and `server.egress_port`. */
type ListenerName = 'main' | 'egress'

/** One of several gateway threads (docs/concepts/actor-runtime.md). */
interface SharedPort {
  /** The name of the thread, for its count of requests. */
  readonly thread: string
  readonly port: number
}

export interface FrontDoor {
  /**
   * Opens the listener. Until `started` is called, only health probes are answered. Other requests wait, and get 503
   * after `START_WAIT_MS`.
   * @throws {ListenFailed} with a message for the operator, such as a port in use.
   */
  listen(): Promise<{ readonly url: string; readonly port: number; readonly transport: string }>
  /** Accepts requests. */
  started(): void
  /** Stops accepting and waits for open requests. @returns false at the time limit. */
  drain(withinMs: number): Promise<boolean>
  close(): Promise<void>
  /** Handles a request that the process makes itself. */
  readonly handle: HttpExchangeHandler
}

const START_WAIT_MS = 10_000

const ADMIN_DEFAULTS: AdminSettings = { enabled: true, allowed_addresses: [] }

const isSandbox = ({ environment, controlPlane }: Tenant): boolean =>
  environment === 'sandbox' && !controlPlane

/** The origins of the service's own pages. */
export function appOriginsOf(server: ServerSettings, issuer: string): ReadonlySet<string> {
  return new Set(
    [issuer, server.identity_app_origin, server.dashboard_app_origin]
      .filter((url) => url !== '')
      .map((url) => new URL(url).origin),
  )
}

/** It does not listen yet. */
export function openFrontDoor(
  options: FrontDoorOptions,
  { routes, browsers }: { readonly routes: readonly Route[]; readonly browsers: BrowserReader },
): FrontDoor {
  const { server, log, metrics, clock, name = 'main', shared } = options
  const addresses = clientAddresses(server.trusted_proxies)
  const quotas = openQuotas({
    enabled: server.endpoint_throttle.enabled,
    throttle: options.refs.get('rate-limits') as ActorRef<RateLimitsProtocol> | undefined,
    clock,
    log,
  })
  const start = startGate(options.startWaitMs ?? START_WAIT_MS)
  const pipeline = pipelineOf(options, routes, {
    browsers,
    addresses,
    quotas,
    started: () => start.isOpen || start.wait(),
  })
  const handle: HttpExchangeHandler = (exchange) => pipeline.handle(exchange)
  const bounds = new ConnectionBounds(addresses.trusts)
  registerBounds(metrics.registry, bounds)
  const thread = shared?.thread ?? (name === 'main' ? undefined : name)
  const accept = thread === undefined ? handle : counted(handle, thread, metrics.registry)

  let listener: Listener | null = null
  registerListener(metrics.registry, name, server, () => listener)
  return {
    handle,
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
      const { url, port, transport, parser, keepAliveSecs } = listener
      log.info(
        {
          url,
          listener: name,
          transport,
          parser,
          keep_alive_secs: keepAliveSecs,
          plane: options.plane,
          routes: routes.length,
        },
        'listening',
      )
      return { url, port, transport }
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

type PipelineParts = Pick<PipelineNeeds, 'addresses' | 'quotas' | 'started'> & {
  readonly browsers: BrowserReader
}

function pipelineOf(
  options: FrontDoorOptions,
  routes: readonly Route[],
  { browsers, addresses, quotas, started }: PipelineParts,
): Pipeline {
  const { server, issuer, refs, log, metrics, clock, random } = options
  const { policies = POLICIES, i18n = I18N_DEFAULTS, admin = ADMIN_DEFAULTS } = options
  const http = httpMetrics(metrics.registry)
  const router = new Router<CompiledRoute>()
  for (const route of routes) {
    const compiled = compileRoute(route, refs, http, policies)
    if (compiled !== null) router.add(route.method, route.path, compiled)
  }
  const tokens = refs.get('tokens') as ActorRef<TokensProtocol> | undefined
  const tenants = refs.get('tenants') as ActorRef<TenantsProtocol> | undefined
  const scim = refs.get('scim') as ActorRef<ScimProtocol> | undefined
  const sessions = refs.get('browser-sessions') as ActorRef<BrowserSessionsProtocol> | undefined
  const checkTokenHost = tokenHostCheck(tenants, server.base_domain)
  const unrouted = http.meter({ method: 'ANY', route: 'none' })
  const egress = new URL(server.egress_url)
  // Empty allows all hosts.
  const servedHosts =
    server.allowed_hosts.length === 0 ? [] : [...server.allowed_hosts, egress.host]
  return new Pipeline({
    router,
    respond: new Responder({
      blocks: new HeaderBlocks(issuer.startsWith('https:'), options.imageOrigin),
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
      appOrigins: appOriginsOf(server, issuer),
      applications: options.applicationOrigins,
    }),
    quotas,
    authenticator: authenticator(tokens, issuer, checkTokenHost),
    scimAuthenticator: scimAuthenticator(scim, checkTokenHost),
    administration: administration(admin),
    controlPlane: tenants === undefined ? null : controlPlaneCheck(tenants),
    billing: options.billing === true && tenants !== undefined ? billingCheck(tenants) : null,
    sessionGuard: new BrowserSessionGuard({ browsers, sessions }),
    input: new InputReader(addresses),
    originOf: requestOrigin({
      issuer: new URL(issuer),
      egress,
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
    started,
    clock,
    random,
    log,
  })
}

/** What serves a listener. Gateway threads that share a port are one listener. */
function registerListener(
  registry: Metrics['registry'],
  listener: ListenerName,
  { transport }: ServerSettings,
  find: () => Listener | null,
): void {
  registerPlain(registry, {
    name: 'svc_gateway_listener_info',
    help: 'Listeners of the process, with the parser that serves them and how long idle connections are kept.',
    type: 'gauge',
    aggregator: 'max',
    read: () => {
      const open = find()
      if (open === null) return []
      const { parser, keepAliveSecs } = open
      const labels = { listener, transport, parser, keep_alive_secs: keepAliveSecs }
      return [{ labels, value: 1 }]
    },
  })
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
    help: 'Requests by gateway thread and by the egress thread. Absent in a process with one listening thread.',
    type: 'counter',
    read: () => [{ labels: { thread }, value: requests }],
  })
  return (exchange) => {
    requests += 1
    handler(exchange)
  }
}
