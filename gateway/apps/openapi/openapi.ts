/** Generates the OpenAPI 3.1 document from the route declarations. */
import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi'
import { POLICIES, type Policies } from '../../../actors/operations/rate-limits/protocol.js'
import { demandsOf } from '../../request/authenticate.js'
import { controlPlaneTokensOf } from '../../request/control-plane-tokens.js'
import { INTERFACE_VERSION, RELEASE_VERSION } from '../../request/interface-version.js'
import { EVENT_TYPES, type EventType } from '../../../actors/domain/events.js'
import { eventDocuments } from '../../event-documents.js'
import { addExamples } from './examples.js'
import {
  PROBLEM_MEDIA_TYPE,
  PROBLEM_TYPES,
  problemCode,
  type ProblemName,
} from '../../response/problems.js'
import { pipelineDocs } from '../../response/pipeline-docs.js'
import type {
  BodyRule,
  ControlPlaneTokens,
  Deprecated,
  ResponseDoc,
  Route,
  Security,
} from '../../route.js'

type Exposure = 'public' | 'internal'

type OpenapiOptions = {
  readonly issuer: string
  /** `public` leaves out internal routes. */
  readonly exposure: Exposure
  readonly routes: readonly Route[]
  /** Default: `POLICIES`. */
  readonly policies?: Policies | undefined
  /** Event types of the deployment. Default: all. */
  readonly events?: readonly EventType[] | undefined
  /** `server.egress_url`: the server of the egress operations. Default: the issuer. */
  readonly egressUrl?: string | undefined
}

const ErrorLocation = z.object({
  pointer: z
    .string()
    .describe('JSON pointer into the body (`#/name`), or `query:`, `path:`, `header:` and a name.'),
  detail: z.string(),
})

const ProblemSchema = z
  .looseObject({
    type: z.string().describe('URI of the problem type.'),
    title: z.string(),
    status: z.int(),
    detail: z.string().optional(),
    instance: z.string().optional().describe('Path of the request.'),
    error: z.string().describe('The error code, in snake_case.'),
    error_description: z.string().optional(),
    request_id: z.string().describe('Same as the x-request-id header.'),
    retry_after: z.int().optional().describe('Seconds.'),
    errors: z.array(ErrorLocation).optional(),
    'violated-policies': z.array(z.string()).optional(),
  })
  .meta({ id: 'Problem', description: 'Problem details (RFC 9457).' })

const OAuthErrorSchema = z
  .object({
    error: z.string(),
    error_description: z.string().optional(),
    error_uri: z
      .url()
      .optional()
      .describe(
        'The page of the error. Its anchor is the reason: one word for the check that failed.',
      ),
    request_id: z.string().optional().describe('Same as the x-request-id header.'),
  })
  .meta({ id: 'OAuthError', description: 'Error response (RFC 6749 section 5.2).' })

const header = (description: string, schema: object = { type: 'string' }) => ({
  description,
  schema,
})

const HEADERS = {
  'x-request-id': header('Identifies the request. Quote it in support requests.'),
  ratelimit: header('Remaining quota of each rate limit: `"default";r=599;t=42`.'),
  'ratelimit-policy': header('The rate limits of this operation: `"default";q=600;w=60`.'),
  'retry-after': header('Seconds to wait.', { type: 'integer', minimum: 0 }),
  'www-authenticate': header('The expected authentication scheme (RFC 9110 section 11.6.1).'),
  'idempotency-replayed': header(
    '`true` if the response repeats the response to an earlier request.',
  ),
  'svc-warnings': header(
    'In sandbox tenants: at most ten unknown members of the request body, as ' +
      '`unknown-member;pointer="#/name"`.',
  ),
  etag: header('Entity tag for If-None-Match.'),
  deprecation: header('Since when the operation is deprecated: `@` and Unix seconds (RFC 9745).'),
  sunset: header('When the operation may end, as an HTTP date (RFC 8594).'),
  link: header('`rel="deprecation"`: where the migration is described.'),
}
type HeaderName = keyof typeof HEADERS

const references = (...names: HeaderName[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** The document, as plain JSON. */
export function openapiDocument(options: OpenapiOptions): object {
  const { issuer, exposure, routes, policies = POLICIES, events = EVENT_TYPES } = options
  const { egressUrl = issuer } = options
  const shown = routes.filter((route) => exposure === 'internal' || route.exposure === 'public')
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const route of shown) {
    paths[route.path] ??= {}
    const operation = operationOf(route, policies)
    if (route.capabilities?.includes('vault.egress') === true && egressUrl !== issuer) {
      operation.servers = [{ url: egressUrl }]
    }
    paths[route.path]![route.method.toLowerCase()] = operation
  }
  const hasWebhooks = shown.some(({ capabilities = [] }) => capabilities.includes('webhooks'))
  const tags = [
    ...new Set([...shown.flatMap(({ tags }) => tags), ...(hasWebhooks ? ['Events'] : [])]),
  ].toSorted()
  const document = createDocument({
    openapi: '3.1.0',
    info: {
      title: 'svc',
      description:
        'Identity and access for humans and software agents.\n\nErrors are problem details (RFC 9457), except on ' +
        'OAuth endpoints, which use the error responses of their standards. All responses have x-request-id. ' +
        'RateLimit-Policy and RateLimit describe rate limits. Unknown request members are ignored. In sandbox ' +
        'tenants the header svc-warnings names them.',
      version: INTERFACE_VERSION,
      // The version of the build helps attackers, so the public document lacks it.
      ...(exposure === 'internal' ? { 'x-release': RELEASE_VERSION } : {}),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: issuer }],
    tags: tags.map((name) => ({ name })),
    paths,
    // Only the control plane has webhook subscriptions, so only its document describes events.
    ...(hasWebhooks ? { webhooks: eventDocuments(events) } : {}),
    components: {
      headers: HEADERS as never,
      responses: Object.fromEntries(
        Object.keys(PROBLEM_TYPES).map((name) => [
          name,
          problemResponse(name as ProblemName, issuer),
        ]),
      ),
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'Access token (RFC 6750).',
        },
        dpop: {
          type: 'http',
          scheme: 'dpop',
          description: 'Access token bound to a key, with a proof in the DPoP header (RFC 9449).',
        },
        client_basic: { type: 'http', scheme: 'basic', description: 'Client id and secret.' },
        metrics: { type: 'http', scheme: 'bearer', description: 'server.metrics_bearer_token.' },
        scim: { type: 'http', scheme: 'bearer', description: 'A SCIM token of the tenant.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: '__Host-svc_session',
          description: 'The session cookie of a browser. Without TLS its name is `svc_session`.',
        },
      },
    },
  })
  addExamples(document, issuer)
  return document
}

function operationOf(route: Route, policies: Policies): ZodOpenApiOperationObject {
  const { target } = route
  const docs =
    target.via === 'gateway'
      ? target.responses
      : Object.values(target.replies).flatMap((r) => r.docs)
  const params = {
    ...(route.params === undefined ? {} : { path: route.params }),
    ...(route.query === undefined ? {} : { query: route.query }),
    ...(route.headers === undefined ? {} : { header: route.headers }),
  }
  return {
    operationId: route.operationId,
    summary: route.summary,
    description: descriptionOf(route, policies),
    tags: [...route.tags],
    ...(route.deprecated === undefined ? {} : { deprecated: true }),
    security: securityOf(route.security),
    requestParams: params as never,
    ...(route.idempotent === true ? { parameters: [IDEMPOTENCY_PARAMETER] as never } : {}),
    ...(route.body === undefined ? {} : { requestBody: requestBodyOf(route.body) }),
    responses: responsesOf(route, docs) as never,
  }
}

const IDEMPOTENCY_PARAMETER = {
  name: 'idempotency-key',
  in: 'header',
  required: false,
  description:
    '1 to 255 visible ASCII characters. Repeated requests with the same key take effect once within 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

function descriptionOf(route: Route, policies: Policies): string {
  const { security } = route
  const notes = [route.description]
  if (route.deprecated !== undefined) notes.push(deprecationNote(route.deprecated))
  const demanded = demandsOf(security)
  if (demanded !== null) {
    const { scopes = [], subjects, direct, directScopes = [] } = demanded
    if (scopes.length > 0)
      notes.push(`Requires scope ${scopes.map((s) => `\`${s}\``).join(' or ')}.`)
    if (subjects !== undefined) notes.push(`Subject types: ${subjects.join(', ')}.`)
    if (direct === 'required') notes.push('Delegated tokens are refused.')
    if (direct === 'forbidden') {
      const words = directScopes.map((s) => `\`${s}\``).join(' or ')
      notes.push(
        words === ''
          ? 'Only delegated tokens are accepted.'
          : `Delegated tokens are accepted, and direct ones with scope ${words}.`,
      )
    }
  }
  const accepted = controlPlaneTokensOf(security)
  if (TOKEN_SCHEMES.has(security.scheme)) notes.push(CONTROL_PLANE_NOTES[accepted])
  if (security.scheme === 'page_call') {
    notes.push('Only for pages of the service, with a session. Access tokens are refused.')
  }
  if (route.onceOnly === true) notes.push('The response contains secrets that are shown once.')
  if (route.throttle !== 'none') {
    const named = route.throttle ?? [{ policy: 'default' as const }]
    const quotas = named.flatMap(({ policy }) =>
      policies[policy].map(
        ({ name, limit, windowSecs }) => `\`${name}\` ${limit} per ${windowSecs} s`,
      ),
    )
    notes.push(`Rate limit: ${quotas.join(', ')}.`)
  }
  return notes.filter((note) => note !== undefined).join('\n\n')
}

const TOKEN_SCHEMES: ReadonlySet<string> = new Set(['bearer', 'person', 'metrics'])

/** Which tokens of the control plane an operation accepts. */
const CONTROL_PLANE_NOTES: Readonly<Record<ControlPlaneTokens, string>> = {
  refused: 'Control-plane tokens are refused.',
  operator: 'Only deployment operators may use a control-plane token.',
  owner: 'Control-plane tokens are accepted.',
}

function deprecationNote({ since, sunset, instead, link }: Deprecated): string {
  const day = (date: Date) => date.toISOString().slice(0, 10)
  const end = sunset === undefined ? '' : ` It stays until ${day(sunset)} at least.`
  const guide = link === undefined ? '' : ` Migration: ${link}.`
  return `Deprecated since ${day(since)}.${end} Use \`${instead}\` instead.${guide}`
}

function securityOf(security: Security): Record<string, string[]>[] {
  switch (security.scheme) {
    case 'anonymous':
    case 'browser':
      return []
    case 'session':
    case 'page_call':
      return [{ session: [] }]
    case 'optional':
      return [{}, { bearer: [] }, { dpop: [] }]
    case 'client':
      return [{ client_basic: [] }, {}]
    case 'metrics':
      return [{ metrics: [] }, { bearer: ['metrics:read'] }]
    case 'scim':
      return [{ scim: [] }]
    case 'bearer':
      return tokensWith(security.scopes ?? [])
    case 'person':
      return [{ session: [] }, ...tokensWith(security.scopes)]
  }
}

/** One scope is enough, so each is an alternative requirement. */
function tokensWith(scopes: readonly string[]): Record<string, string[]>[] {
  const each = scopes.length === 0 ? [[]] : scopes.map((scope) => [scope])
  return each.flatMap((requirement) => [{ bearer: requirement }, { dpop: requirement }])
}

function requestBodyOf(body: BodyRule<unknown>) {
  if (body.kind === 'stream') {
    return {
      required: false,
      description: `At most ${body.maxBytes} bytes.`,
      content: { '*/*': {} },
    }
  }
  const content =
    body.kind === 'raw'
      ? Object.fromEntries(
          (body.contentTypes.length === 0 ? ['*/*'] : body.contentTypes).map((type) => [
            type,
            body.schema === undefined ? {} : { schema: body.schema },
          ]),
        )
      : Object.fromEntries(
          (body.kind === 'json'
            ? [...(body.contentTypes ?? []), 'application/json']
            : [body.kind === 'upload' ? 'multipart/form-data' : 'application/x-www-form-urlencoded']
          ).map((type) => [type, { schema: body.schema }]),
        )
  return {
    required: body.kind !== 'json' || body.optional !== true,
    description: `At most ${body.maxBytes} bytes.`,
    content,
  }
}

/** One response per status, from the declaration and from the pipeline. */
function responsesOf(route: Route, docs: readonly ResponseDoc[]): Record<string, unknown> {
  const byStatus = new Map<number, ResponseDoc[]>()
  for (const doc of [...docs, ...pipelineDocs(route)]) {
    const same = byStatus.get(doc.status)
    if (same === undefined) byStatus.set(doc.status, [doc])
    else same.push(doc)
  }
  const responses: Record<string, unknown> = {}
  for (const [status, same] of [...byStatus].toSorted(([a], [b]) => a - b)) {
    responses[String(status)] = responseOf(route, status, same)
  }
  return responses
}

function responseOf(
  route: Route,
  status: number,
  docs: readonly ResponseDoc[],
): ZodOpenApiResponseObject | object {
  const problems = [...new Set(docs.flatMap(({ problem }) => problem ?? []))]
  const codes = [...new Set(docs.flatMap(({ oauthError }) => oauthError ?? []))]
  const own = [...new Set(docs.flatMap(({ code }) => code ?? []))]
  const bodies = docs.filter(
    ({ problem, oauthError }) => problem === undefined && oauthError === undefined,
  )
  if (problems.length === 1 && codes.length + own.length + bodies.length === 0) {
    return { $ref: `#/components/responses/${problems[0]}` }
  }
  const content: Record<string, unknown> = {}
  for (const { contentType, schema } of bodies) {
    if (contentType !== null) content[contentType] = schema === null ? {} : { schema }
  }
  if (codes.length > 0) content['application/json'] ??= { schema: OAuthErrorSchema }
  if (problems.length > 0) content[PROBLEM_MEDIA_TYPE] = { schema: ProblemSchema }
  const words = [
    ...bodies.map(({ description }) => description),
    ...problems.map((name) => PROBLEM_TYPES[name].title),
    ...(own.length > 0 ? [`\`error\` may be ${own.map((code) => `\`${code}\``).join(', ')}`] : []),
    ...(codes.length > 0 ? [`\`error\`: ${codes.map((code) => `\`${code}\``).join(', ')}`] : []),
  ].filter((word) => word !== undefined)
  const names: HeaderName[] = ['x-request-id']
  if (route.throttle !== 'none') names.push('ratelimit', 'ratelimit-policy')
  if (status < 300 && route.idempotent === true) names.push('idempotency-replayed')
  if (route.body?.kind === 'json' && demandsOf(route.security) !== null) names.push('svc-warnings')
  if (status === 401) names.push('www-authenticate')
  names.push(...deprecationNames(route))
  return {
    description:
      words.length > 0 ? [...new Set(words)].join('. ') : (REASONS[status] ?? 'Response'),
    headers: references(...names),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  }
}

function deprecationNames({ deprecated }: Route): HeaderName[] {
  if (deprecated === undefined) return []
  const names: HeaderName[] = ['deprecation']
  if (deprecated.sunset !== undefined) names.push('sunset')
  if (deprecated.link !== undefined) names.push('link')
  return names
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'Success',
  201: 'Created',
  202: 'Accepted',
  204: 'Done, no content',
  302: 'Redirect',
  303: 'See other',
  503: 'Not ready',
}

function problemResponse(name: ProblemName, issuer: string): ZodOpenApiResponseObject {
  const { status, title, meaning } = PROBLEM_TYPES[name]
  const names: HeaderName[] = ['x-request-id']
  if (status === 401 || name === 'insufficient-scope') names.push('www-authenticate')
  if (status === 429) names.push('ratelimit', 'ratelimit-policy')
  if ([425, 429, 503].includes(status)) names.push('retry-after')
  const example = {
    type: `${issuer}/errors/${name}`,
    title,
    status,
    error: problemCode(name),
    request_id: '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e',
  }
  return {
    description: meaning,
    headers: references(...names) as never,
    content: { [PROBLEM_MEDIA_TYPE]: { schema: ProblemSchema, example } },
  }
}
