/** GET /openapi.json, and the pages of the API, which load no resources from other hosts. */
import { z } from 'zod'
import type { Policies } from '../../../actors/operations/rate-limits/protocol.js'
import type { EventType } from '../../../actors/domain/events.js'
import { type SharedBody, sharedBody, sharedOnce } from '../../response/shared-body.js'
import { openapiDocument } from './openapi.js'
import { PAGE_FILES, referencePages } from './reference-page.js'
import { type OwnRouteSpec, ownRoute, type Rendered, type Route } from '../../route.js'
import { OPENAPI_PATH, type OpenapiSettings } from '../../settings.js'

const HTML = 'text/html; charset=utf-8'

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
  let made: {
    readonly json: SharedBody
    readonly pages: ReadonlyMap<string, () => SharedBody>
  } | null = null
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
    const pages = [...referencePages(given, issuer, docsPath)].map(
      ([name, page]) => [name, sharedOnce(page)] as const,
    )
    return { json, pages: new Map(pages) }
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
      answer: () => ready(HTML, documents().pages.get('')!(), 'no-cache'),
    }),
    ownRoute({
      ...facts,
      path: `${docsPath}/{file}`,
      operationId: 'getApiPageFile',
      summary: 'Browse an area of this API, or fetch a file of its pages',
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
        const page = file === '' ? undefined : documents().pages.get(file)
        if (page !== undefined) return ready(HTML, page(), 'no-cache')
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
