/** GET /api/v1/capabilities: the features of this deployment, derived from its routes (docs/reference/http.md). */
import { z } from 'zod'
import { INTERFACE_VERSION } from './request/interface-version.js'
import { NO_CONTEXT } from './response/replies.js'
import { sharedBody } from './response/shared-body.js'
import { bytes, ownRoute, type Route } from './route.js'

const MAX_AGE_SECS = 60

const Capabilities = z
  .object({
    interface_version: z.string().meta({ example: INTERFACE_VERSION }),
    issuer: z.string(),
    egress_url: z
      .string()
      .describe('Base URL of the egress proxy: its own address, or the issuer.'),
    capabilities: z.array(z.string()).describe('Names of what is enabled, sorted.'),
    features: z.record(z.string(), z.looseObject({ enabled: z.boolean() })),
  })
  .meta({ id: 'Capabilities' })

export type CapabilitiesOptions = {
  readonly issuer: string
  /** `server.egress_url`. */
  readonly egressUrl: string
  readonly routes: readonly Route[]
  /** Names that settings add, such as oauth.dpop. */
  readonly more?: readonly string[] | undefined
  /** Members of enabled features, besides `enabled`. */
  readonly details?: Readonly<Record<string, Readonly<Record<string, unknown>>>> | undefined
}

/** The document. Names come from route declarations and from `more`. */
export function capabilitiesDocument(options: CapabilitiesOptions) {
  const { issuer, egressUrl, routes, more = [], details = {} } = options
  const names = [
    ...new Set([...routes.flatMap(({ capabilities = [] }) => capabilities), ...more]),
  ].toSorted()
  return {
    interface_version: INTERFACE_VERSION,
    issuer,
    egress_url: egressUrl,
    capabilities: names,
    features: Object.fromEntries(names.map((name) => [name, { enabled: true, ...details[name] }])),
  }
}

export function capabilitiesRoute(options: CapabilitiesOptions): Route {
  const ready = {
    ...sharedBody(JSON.stringify(capabilitiesDocument(options))),
    maxAgeSecs: MAX_AGE_SECS,
  }
  const rule = bytes(200, 'application/json', () => ready, Capabilities)
  return ownRoute({
    method: 'GET',
    path: '/api/v1/capabilities',
    operationId: 'getCapabilities',
    summary: 'List what this deployment can do',
    tags: ['Operations'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
    cors: 'public',
    responses: rule.docs,
    answer: () => rule.render(null, NO_CONTEXT),
  })
}
