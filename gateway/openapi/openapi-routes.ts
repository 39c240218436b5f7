/** GET /openapi.json, and the API page, which loads no resources from other hosts. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { Policies } from '../../actors/operations/rate-limits/protocol.js'
import type { EventType } from '../../actors/domain/events.js'
import { strongTag } from '../capabilities.js'
import { openapiDocument } from './openapi.js'
import { type OwnRouteSpec, ownRoute, type Rendered, type Route } from '../route.js'
import type { OpenapiSettings } from '../settings.js'

export type DocumentRoutesOptions = {
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

export const OPENAPI_PATH = '/openapi.json'

type Ready = { readonly body: string | Uint8Array; readonly etag: string }

/** The files of swagger-ui that the page uses. Other files of the package are not served. */
const FILES: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
  'favicon-16x16.png': 'image/png',
}
const START_FILE = 'start.js'

/** Empty if openapi.enabled is false. */
export function documentRoutes({
  openapi,
  issuer,
  routes,
  policies,
  events,
  egressUrl,
}: DocumentRoutesOptions): Route[] {
  if (!openapi.enabled) return []
  const { docs_path: docsPath, exposure } = openapi
  const facts = {
    method: 'GET',
    tags: ['Operations'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
  } as const
  const described: Route[] = []
  const document = once(() =>
    JSON.stringify(
      openapiDocument({ issuer, exposure, routes: described, policies, events, egressUrl }),
    ),
  )
  const page = once(() => pageOf(docsPath))
  const start = once(() => START_SCRIPT)
  const assets = new Map([[START_FILE, start]])
  for (const name of Object.keys(FILES))
    assets.set(
      name,
      once(() => readFileSync(fileOf(name))),
    )

  const json: OwnRouteSpec = {
    ...facts,
    path: OPENAPI_PATH,
    operationId: 'getOpenapi',
    summary: 'Read the description of this API',
    cors: 'public',
    responses: [{ status: 200, contentType: 'application/json', schema: z.looseObject({}) }],
    answer: () => ready('application/json', document(), 'public, max-age=60'),
  }
  const own = [
    ownRoute(json),
    ownRoute({
      ...facts,
      path: docsPath,
      operationId: 'getApiPage',
      summary: 'Browse the description of this API',
      responses: [{ status: 200, contentType: 'text/html', schema: null }],
      answer: () => ready('text/html; charset=utf-8', page(), 'no-cache'),
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
        const asset = assets.get(file)
        if (asset === undefined) return { form: 'problem', problem: { name: 'not-found' } }
        const type = FILES[file] ?? 'text/javascript; charset=utf-8'
        return ready(type, asset(), 'public, max-age=3600')
      },
    }),
  ]
  described.push(...routes, own[0]!)
  return own
}

/** Computes a body at its first request. */
function once(make: () => string | Uint8Array): () => Ready {
  let cached: Ready | null = null
  return () => {
    if (cached === null) {
      const body = make()
      cached = { body, etag: strongTag(body) }
    }
    return cached
  }
}

function ready(contentType: string, { body, etag }: Ready, cacheControl: string): Rendered {
  return { form: 'body', status: 200, contentType, body, etag, cacheControl }
}

const require = createRequire(import.meta.url)

function fileOf(name: string): string {
  return join(dirname(require.resolve('swagger-ui-dist/package.json')), name)
}

function pageOf(docsPath: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc API</title>
<link rel="stylesheet" href="${docsPath}/swagger-ui.css">
<link rel="icon" type="image/png" href="${docsPath}/favicon-32x32.png" sizes="32x32">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>The OpenAPI document is at <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="${docsPath}/swagger-ui-bundle.js"></script>
<script src="${docsPath}/${START_FILE}"></script>
</body>
</html>
`
}

const START_SCRIPT = `window.ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
})
`
