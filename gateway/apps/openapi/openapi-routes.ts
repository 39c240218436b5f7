/** GET /openapi.json, and the API page, which loads no resources from other hosts. */
import { z } from 'zod'
import type { Policies } from '../../../actors/operations/rate-limits/protocol.js'
import type { EventType } from '../../../actors/domain/events.js'
import { type SharedBody, sharedBody, sharedOnce } from '../../response/shared-body.js'
import { openapiDocument } from './openapi.js'
import { PAGE_FILES, referencePage } from './reference-page.js'
import { type OwnRouteSpec, ownRoute, type Rendered, type Route } from '../../route.js'
import { OPENAPI_PATH, type OpenapiSettings } from '../../settings.js'

type DocumentRoutesOptions = {
  readonly openapi: OpenapiSettings
  readonly issuer: string
  /** The described routes. */
  readonly routes: readonly Route[]
  readonly policies: Policies
  /** Event types of the deployment. Default: all. */
  readonly events?: readonly EventType[] | undefined
  /** `server.egress_url`. */
  readonly egressUrl: string
}

type DocumentRoutes = {
  /** Empty if openapi.enabled is false. */
  readonly routes: Route[]
  /** The text of the document, which is made once: that takes most of a second. Null if openapi.enabled is false. */
  readonly text: () => string | null
}

export function documentRoutes({
  openapi,
  issuer,
  routes,
  policies,
  events,
  egressUrl,
}: DocumentRoutesOptions): DocumentRoutes {
  if (!openapi.enabled) return { routes: [], text: () => null }
  const { docs_path: docsPath, exposure } = openapi
  const facts = {
    method: 'GET',
    tags: ['Operations'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
  } as const
  const described: Route[] = []
  let made: { readonly json: SharedBody; readonly page: SharedBody } | null = null
  const make = () => {
    const given = openapiDocument({
      issuer,
      exposure,
      routes: described,
      policies,
      events,
      egressUrl,
    })
    const json = sharedBody(JSON.stringify(given))
    return { json, page: sharedBody(referencePage(given, issuer, docsPath)) }
  }
  const documents = () => (made ??= make())
  const files = new Map(
    Object.entries(PAGE_FILES).map(([name, { type, text }]) => [
      name,
      { type, body: sharedOnce(text) },
    ]),
  )

  const json: OwnRouteSpec = {
    ...facts,
    path: OPENAPI_PATH,
    operationId: 'getOpenapi',
    summary: 'Read the description of this API',
    cors: 'public',
    responses: [{ status: 200, contentType: 'application/json', schema: z.looseObject({}) }],
    answer: () => ready('application/json', documents().json, 'public, max-age=60'),
  }
  const own = [
    ownRoute(json),
    ownRoute({
      ...facts,
      path: docsPath,
      operationId: 'getApiPage',
      summary: 'Browse the description of this API',
      responses: [{ status: 200, contentType: 'text/html', schema: null }],
      answer: () => ready('text/html; charset=utf-8', documents().page, 'no-cache'),
    }),
    ownRoute({
      ...facts,
      path: `${docsPath}/{file}`,
      operationId: 'getApiPageFile',
      summary: 'Fetch a file of the API page',
      params: z.object({ file: z.string().max(64) }),
      responses: [
        { status: 200, contentType: '*/*', schema: null },
        {
          status: 404,
          contentType: 'application/problem+json',
          schema: null,
          problem: 'not-found',
        },
      ],
      answer: ({ params }) => {
        const { file } = params as { file: string }
        const found = files.get(file)
        if (found === undefined) return { form: 'problem', problem: { name: 'not-found' } }
        return ready(found.type, found.body(), 'public, max-age=3600')
      },
    }),
  ]
  described.push(...routes, own[0]!)
  return { routes: own, text: () => String(documents().json.body) }
}

function ready(contentType: string, { body, etag }: SharedBody, cacheControl: string): Rendered {
  return { form: 'body', status: 200, contentType, body, etag, cacheControl }
}
