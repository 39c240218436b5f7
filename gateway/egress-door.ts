/**
 * The egress address: a listener of the egress thread, which serves the egress proxy without a second crossing of threads
 * (docs/concepts/gateway.md, The egress address).
 */
import { I18N_DEFAULTS } from '../actors/domain/i18n/settings.js'
import { type FrontDoor, type FrontDoorOptions, openFrontDoor } from './front-door.js'
import { browserReader } from './request/browser.js'
import type { Route } from './route.js'
import { healthRoutes } from './routes/operations/health.js'
import { approvalRoutes } from './routes/vault/approvals.js'
import { egressRoutes, type EgressSizes, withEgressSizes } from './routes/vault/egress.js'
import { egressListener } from './settings.js'

/** The files whose routes are served at the egress address. */
const ROUTES: readonly Route[] = [...egressRoutes, ...approvalRoutes, ...healthRoutes]

/** Paths, and beginnings of paths, that are served at the egress address. */
const PATHS = ['/v1/proxy', '/v1/proxy/body']
const BELOW = [
  '/health/',
  '/v1/approvals/',
  '/v1/mcp/',
  '/.well-known/oauth-protected-resource/v1/mcp/',
]

/** Whether a route is served at the egress address too. The main address serves all routes. */
export function isAtEgress({ path }: Pick<Route, 'path'>): boolean {
  return PATHS.includes(path) || BELOW.some((above) => path.startsWith(above))
}

/** The routes of the egress address. */
export const egressAddressRoutes: readonly Route[] = ROUTES.filter(isAtEgress)

type EgressDoorOptions = Omit<FrontDoorOptions, 'name' | 'shared' | 'open'> & {
  /** `server.egress_port`. */
  readonly port: number
  readonly sizes: EgressSizes
}

/** It does not listen yet. */
export function openEgressDoor({ port, sizes, ...options }: EgressDoorOptions): FrontDoor {
  const { issuer, server, random, i18n = I18N_DEFAULTS } = options
  const secure = issuer.startsWith('https:')
  return openFrontDoor(
    { ...options, name: 'egress', server: egressListener(server, port) },
    {
      routes: withEgressSizes(egressAddressRoutes, sizes),
      browsers: browserReader({ secure, keptSecs: null }, i18n, random),
    },
  )
}
