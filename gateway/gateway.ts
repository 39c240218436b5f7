/** Builds the HTTP side of a process from routes and actor references. */
import type { EventType } from '../actors/domain/events.js'
import { I18N_DEFAULTS } from '../actors/domain/i18n/settings.js'
import type { BrowserSessionsProtocol } from '../actors/identity/sign-in/sessions/protocol.js'
import type { ConsoleSessionsProtocol } from '../actors/identity/console-sessions/protocol.js'
import type { TenantsProtocol } from '../actors/identity/users/tenants/protocol.js'
import { POLICIES } from '../actors/operations/rate-limits/protocol.js'
import type { ActorRef } from '../runtime/kernel/actor.js'
import { consoleApi } from './apps/console/api.js'
import { consoleRoutes } from './apps/console/routes.js'
import { Site } from './apps/console/site.js'
import { browserReader } from './request/browser.js'
import {
  type CapabilitiesOptions,
  capabilitiesDocument,
  capabilitiesRoute,
} from './capabilities.js'
import { appOriginsOf, type FrontDoor, type FrontDoorOptions, openFrontDoor } from './front-door.js'
import type { HttpExchangeHandler } from './http-exchange.js'
import { metricsRoute } from './metrics/exposition.js'
import { Documents } from './apps/mcp/documents.js'
import { TOOL_PATHS } from './apps/mcp/tools.js'
import { openapiDocument } from './apps/openapi/openapi.js'
import { documentRoutes } from './apps/openapi/openapi-routes.js'
import { scriptRoutes } from './pages/platform/script.js'
import { fontRoutes } from './pages/platform/fonts.js'
import { styleRoutes } from './pages/platform/style.js'
import type { Route } from './route.js'
import type { DevMailbox } from './apps/site/dev-mail.js'
import { documentationPages } from './apps/site/markdown.js'
import { siteRoutes } from './apps/site/site.js'
import { mcpRoute } from './apps/mcp/routes.js'
import { OPENAPI_PATH, type OpenapiSettings } from './settings.js'

export interface GatewayOptions extends FrontDoorOptions {
  readonly openapi: OpenapiSettings
  /** All routes. Those whose actor has no reference in `refs` are left out. */
  readonly routes: readonly Route[]
  /**
   * The routes of all planes of the deployment, which OpenAPI and capabilities describe. Default: the routes that
   * this process serves.
   */
  readonly described?: readonly Route[] | undefined
  /** Names that settings add to the capabilities document. */
  readonly capabilities?: readonly string[] | undefined
  /** Details of features for the capabilities document. */
  readonly featureDetails?: CapabilitiesOptions['details']
  /** Max-Age of session cookies. Without it they end with the browser session. */
  readonly sessionCookieSecs?: number | undefined
  /** `security.production`. Default: yes. */
  readonly isProduction?: boolean | undefined
  /** `tenant.default_tenant_slug` is set. Default: no. */
  readonly hasDefaultTenant?: boolean | undefined
  /** Event types of this deployment. Default: all. */
  readonly events?: readonly EventType[] | undefined
  /** The mail of a development service, for /dev/mail. Absent: the page is not served. */
  readonly devMailbox?: DevMailbox | undefined
}

export interface Gateway extends Omit<FrontDoor, 'handle'> {
  /** Makes the long documents, so that no request waits for them. Takes about a second. */
  warm(): void
  /** The routes that this process serves, including the gateway's. */
  readonly routes: readonly Route[]
}

export function openGateway(options: GatewayOptions): Gateway {
  const { server, openapi, issuer, refs, clock, random } = options
  const { policies = POLICIES, i18n = I18N_DEFAULTS, sessionCookieSecs = null } = options
  const present = options.routes.filter(
    ({ target }) => target.via === 'gateway' || refs.has(target.address.name),
  )
  const files = [metricsRoute(options.metrics), ...styleRoutes, ...fontRoutes, ...scriptRoutes]
  const appOrigins = appOriginsOf(server, issuer)
  const secure = issuer.startsWith('https:')
  const browsers = browserReader({ secure, keptSecs: sessionCookieSecs }, i18n, random)
  // The pipeline is complete only after the routes that call it.
  const inner: { handle: HttpExchangeHandler | null } = { handle: null }
  const consoleSessions = refs.get('console-sessions') as
    | ActorRef<ConsoleSessionsProtocol>
    | undefined
  const tenants = refs.get('tenants') as ActorRef<TenantsProtocol> | undefined
  const consoleOwn =
    consoleSessions === undefined || tenants === undefined
      ? []
      : consoleRoutes({
          api: consoleApi(() => inner.handle!, secure),
          site: new Site(
            present,
            options.capabilities ?? [],
            openapi.enabled ? documentationPages() : [],
          ),
          sessions: consoleSessions,
          browserSessions: refs.get('browser-sessions') as
            | ActorRef<BrowserSessionsProtocol>
            | undefined,
          tenants,
          browsers,
          clock,
          random,
          issuer,
        })
  const own = [...files, ...consoleOwn]
  const described = [...(options.described ?? present), ...own]
  // The list grows below: the tools describe all routes, their own included.
  const documented: Route[] = []
  const { events } = options
  const documents = new Documents({
    routes: documented,
    refs,
    events,
    document() {
      const published = openapi.exposure === 'public' ? text() : null
      return published === null
        ? openapiDocument({ issuer, routes: documented, policies, events, exposure: 'public' })
        : (JSON.parse(published) as object)
    },
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
    egressUrl: server.egress_url,
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
    isProduction: options.isProduction !== false,
    hasDefaultTenant: options.hasDefaultTenant === true,
    tenants,
    clock,
    i18n,
  })
  documented.push(...described, ...mcpRoutes, capabilities, ...site)
  const { routes: descriptions, text } = documentRoutes({
    openapi,
    issuer,
    routes: documented,
    policies,
    events,
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

  const { handle, ...door } = openFrontDoor(options, { routes, browsers })
  inner.handle = handle
  return {
    ...door,
    routes,
    warm() {
      text()
      if (servesMcp && mcpRoutes.length > 0) void documents.operations
    },
  }
}
