/**
 * Refusals that every operation has by its declaration, a row for each operation: credentials, methods, media types and
 * lengths of bodies, JSON, repeated parameters, keys of idempotency. A new operation is in the table without a change here.
 */
import { request } from 'node:http'
import { routes } from '../../../gateway/route-table.js'
import {
  PROBLEM_TYPES,
  hasOauthForm,
  oauthCode,
  problemCode,
  type ProblemName,
} from '../../../gateway/response/problems.js'
import type { Route } from '../../../gateway/route.js'
import { type Answer, callerOf } from '../../support/agents/journey.js'
import { ownToken } from '../../support/agents/delegation.js'
import { bearer, type Fields, paths, type Row, type Scene, UNKNOWN_ID } from './scene.js'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const FORM = 'application/x-www-form-urlencoded'
const METADATA = String.raw`resource_metadata="http[^"]+/\.well-known/oauth-protected-resource"`
const WORDS = String.raw`[a-z_]+[:.][a-z_.]+( [a-z_]+[:.][a-z_.]+)*`
const NO_TOKEN = new RegExp(`^Bearer ${METADATA}(?:, scope="${WORDS}")?$`)
const BAD_TOKEN = new RegExp(
  `^Bearer error="invalid_token", error_description="[^"]+", ${METADATA}(?:, scope="${WORDS}")?$`,
)

/** SCIM, pages and MCP have other forms, which their own tests compare. */
const served = routes.filter(
  ({ path, errors = 'problem' }) => path in paths && (errors === 'problem' || errors === 'oauth'),
)
const at = ({ path }: Pick<Route, 'path'>) => path.replaceAll(/\{[a-z_]+\}/g, UNKNOWN_ID)

const TOKENS = new Set(['bearer', 'person', 'metrics', 'page_call'])
/** Operations of people. Their own token has the scopes of these. */
let person: Promise<string> | undefined
const PERSON = 'openid delegations:manage users:manage'

/** Operations that refuse the callers of the scene before they read a request, or answer in other words. */
const OTHER_CALLERS: Readonly<Record<string, string>> = {
  'POST /api/v1/signing-keys/rotate': 'for operators of the deployment',
  'POST /api/v1/tenant/activate': 'for owners, as people',
  'POST /v1/proxy': 'for agents that a person has lent a credential',
  'POST /userinfo': 'has the codes of RFC 6750',
}

/** Sends with the first token that the operation accepts. */
async function asCaller(
  scene: Scene,
  { security, path }: Route,
  send: (headers: Fields) => Promise<Answer>,
): Promise<Answer> {
  if (!TOKENS.has(security.scheme)) return send({})
  const { api, here, ada } = scene
  const isOfPlane = /^\/api\/v1\/(?:control-plane|organizations|tenants)\b/.test(path)
  const first = await send(bearer(isOfPlane ? here.operator : here.token))
  if (first.status !== 401 && first.status !== 403) return first
  person ??= ownToken(api, here, ada, PERSON)
  return send(bearer(await person))
}

function rowOf(
  route: Route,
  name: ProblemName,
  when: string,
  provoke: Row['provoke'],
  headers?: Row['headers'],
): Row {
  const { status } = PROBLEM_TYPES[name]
  const isOauth = route.errors === 'oauth' && hasOauthForm(status)
  return {
    form: isOauth ? 'oauth' : 'problem',
    status,
    code: isOauth ? oauthCode(name) : problemCode(name),
    name,
    when: `${when} at ${route.method} ${route.path}`,
    provoke,
    headers,
  }
}

/** A request that declares a body and sends none of it. */
function declares(url: string, method: string, headers: Fields): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      answer.on('end', () => {
        const given = new Headers(answer.headers as Record<string, string>)
        const body = JSON.parse(text) as Answer['body']
        resolve({ status: answer.statusCode ?? 0, headers: given, text, body })
        asked.destroy()
      })
    })
    asked.on('error', reject).flushHeaders()
  })
}

function refusedCredentials(route: Route): readonly Row[] {
  if (!TOKENS.has(route.security.scheme)) return []
  const { method } = route
  const ask = (headers: Fields) => (scene: Scene) =>
    callerOf(scene.running.baseUrl).call(at(route), { method, headers })
  const wrong = ask({ authorization: 'Bearer x.y.z' })
  return [
    rowOf(route, 'unauthorized', 'no credentials', ask({}), { 'www-authenticate': NO_TOKEN }),
    rowOf(route, 'unauthorized', 'a malformed token', wrong, { 'www-authenticate': BAD_TOKEN }),
  ]
}

/** Inputs that no operation reads. */
const INPUTS: readonly ((route: Route) => Row | undefined)[] = [
  (route) => {
    const { method, body } = route
    if (body === undefined || body.kind === 'stream') return undefined
    if (body.kind === 'raw' && body.contentTypes.length === 0) return undefined
    return rowOf(route, 'unsupported-media-type', 'another media type', (scene) =>
      asCaller(scene, route, (headers) =>
        callerOf(scene.running.baseUrl).call(at(route), {
          method,
          headers: { ...headers, 'content-type': 'font/woff2' },
          body: 'x',
        }),
      ),
    )
  },
  (route) => {
    const { method, body } = route
    if (body === undefined || body.kind === 'stream') return undefined
    const type = body.kind === 'json' ? 'application/json' : FORM
    const [declared = type] = body.kind === 'raw' ? body.contentTypes : []
    // More than the service reads and drops, so that it answers immediately.
    const size = { 'content-type': declared, 'content-length': String(65 * 1024 * 1024) }
    return rowOf(route, 'payload-too-large', 'a body that is too long', (scene) =>
      asCaller(scene, route, (headers) =>
        declares(scene.running.baseUrl + at(route), method, { ...headers, ...size }),
      ),
    )
  },
  (route) => {
    const { method, body } = route
    if (body?.kind !== 'json') return undefined
    return rowOf(route, 'bad-request', 'half of a JSON object', (scene) =>
      asCaller(scene, route, (headers) =>
        callerOf(scene.running.baseUrl).call(at(route), {
          method,
          headers: { ...headers, 'content-type': 'application/json' },
          body: '{',
        }),
      ),
    )
  },
  (route) => {
    const { method, body } = route
    if (body?.kind !== 'form' && body?.kind !== 'fields') return undefined
    return rowOf(route, 'bad-request', 'a repeated parameter', (scene) =>
      asCaller(scene, route, (headers) =>
        callerOf(scene.running.baseUrl).call(at(route), {
          method,
          headers: { ...headers, 'content-type': FORM },
          body: 'unknown=x&unknown=x',
        }),
      ),
    )
  },
  (route) => {
    const { method, idempotent } = route
    if (idempotent !== true) return undefined
    return rowOf(route, 'bad-request', 'a key of idempotency that is too long', (scene) =>
      asCaller(scene, route, (headers) =>
        callerOf(scene.running.baseUrl).call(at(route), {
          method,
          headers: {
            ...headers,
            'idempotency-key': 'x'.repeat(256),
            'content-type': 'application/json',
          },
          body: '{}',
        }),
      ),
    )
  },
]

/** One row for each path: a method that it does not have. */
const OTHER_METHODS: readonly Row[] = [...new Set(served.map(({ path }) => path))].flatMap(
  (path) => {
    const has = routes.filter((route) => route.path === path).map(({ method }) => method)
    const method = METHODS.find((one) => !has.includes(one as Route['method']))
    if (method === undefined) return []
    const allow = new RegExp(`^(?=.*\\b${has.join('\\b)(?=.*\\b')}\\b)(?!.*\\b${method}\\b)`)
    const row: Row = {
      form: 'problem',
      status: 405,
      code: 'method_not_allowed',
      name: 'method-not-allowed',
      when: `${method} ${path}`,
      provoke: ({ running }) => callerOf(running.baseUrl).call(at({ path }), { method }),
      headers: { allow },
    }
    return [row]
  },
)

export const PIPELINE: readonly Row[] = [
  ...served.flatMap(refusedCredentials),
  ...served
    .filter(({ method, path }) => !(`${method} ${path}` in OTHER_CALLERS))
    .flatMap((route) => INPUTS.flatMap((make) => make(route) ?? [])),
  ...OTHER_METHODS,
]
