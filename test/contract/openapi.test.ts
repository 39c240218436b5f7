/** Own service: the answers of its process are counted. */
/**
 * Compares tables of the public API with the OpenAPI document of a running service. All answers of flow tests are compared
 * with that document too (test/support/contract.ts).
 */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'ava'
import { routes } from '../../gateway/route-table.js'
import { openapiDocument } from '../../gateway/apps/openapi/openapi.js'
import { answersSeen, contractFault } from '../support/contract.js'
import { BOOTSTRAP, callerOf, demand } from '../support/agents/journey.js'
import { ownService } from '../support/service/own-service.js'

type Operations = Record<string, { responses: Record<string, unknown>; security?: object[] }>
type Document = { paths: Record<string, Operations> }

/** With all optional features. */
const running = await ownService({
  environment: {
    SVC_PASSKEY__ENABLED: 'true',
    SVC_COMMERCE__ENABLED: 'true',
    SVC_COMMERCE__X402_ENABLED: 'true',
    SVC_COMMERCE__X402_FACILITATOR_URL: 'https://facilitator.example',
    SVC_OIDC__DYNAMIC_REGISTRATION_ENABLED: 'true',
    SVC_ACCESS_CONTROL__ENABLED: 'true',
    SVC_API_KEYS__ENABLED: 'true',
    SVC_BILLING__ENABLED: 'true',
    SVC_WALLET__ENABLED: 'true',
    SVC_SCIM__ENABLED: 'true',
    SVC_SCIM__GROUPS_ENABLED: 'true',
    SVC_TENANT_ASSETS__ENABLED: 'true',
    SVC_TENANT_ASSETS__FOLDER: join(tmpdir(), 'svc-openapi-assets'),
  },
})
const http = callerOf(running.baseUrl)
const document = demand(await http.call('/openapi.json'), 200).body as unknown as Document
const served = () => document
test.after.always(() => running.end())

// biome-ignore format: a table
const PROMISED = [
  // Discovery and keys
  ['get',  '/.well-known/jwks.json',                                                          [200, 500]],
  ['get',  '/.well-known/jwt-vc-issuer',                                                      [200]],
  ['get',  '/.well-known/jwt-vc-issuer/credential-issuers/{tenant_slug}',                     [200, 404]],
  ['get',  '/.well-known/oauth-authorization-server',                                         [200]],
  ['get',  '/.well-known/oauth-protected-resource',                                           [200]],
  ['get',  '/.well-known/openid-configuration',                                               [200]],
  ['get',  '/.well-known/passkey-endpoints',                                                  [200]],
  ['get',  '/.well-known/webauthn',                                                           [200]],
  ['get',  '/.well-known/openid-credential-issuer',                                           [200]],
  ['get',  '/.well-known/openid-credential-issuer/credential-issuers/{tenant_slug}',          [200, 404]],
  ['get',  '/credential-issuers/{tenant_slug}/.well-known/jwks.json',                         [200, 404]],
  ['get',  '/status-lists',                                                                   [200]],
  ['get',  '/status-lists/{status_list_id}',                                                  [200, 404, 501]],
  ['get',  '/.well-known/http-message-signatures-directory',                                  [200, 404]],
  ['get',  '/ssh/{credential_id}/krl',                                                        [200, 404]],
  ['get',  '/ssh/{credential_id}/{file}',                                                     [200, 404]],
  ['post', '/nonce',                                                                          [200, 404]],
  ['post', '/credential-issuers/{tenant_slug}/nonce',                                         [200, 404]],
  ['get',  '/credential-issuers/{tenant_slug}/credential-offers/{offer_handle}',              [200, 404]],
  ['get',  '/credential-types/{credential_type}',                                             [200, 404]],
  ['get',  '/api/v1/capabilities',                                                            [200]],
  // MCP discovery
  ['post', '/mcp',                                                        [200, 202, 400, 401, 403, 405, 406, 408, 413, 415]],
  // Health
  ['get',  '/health/live',                                                                    [200]],
  ['get',  '/health/startup',                                                                 [200, 503]],
  ['get',  '/health/ready',                                                                   [200, 503]],
  // Agent authentication and registration
  ['post', '/api/v1/agents/auth/challenge',                                                   [200, 400]],
  ['post', '/api/v1/agents/auth/register/pow',                                                [200, 400, 403, 409, 429, 501]],
  ['post', '/api/v1/agents/auth/register/pow/complete',                                       [200, 400, 425, 501]],
  ['post', '/api/v1/agents/auth/verify',                                                      [200, 400]],
  ['post', '/api/v1/agents/auth/register',                                                    []],
  ['get',  '/api/v1/agents/workspace/bootstrap',                                              [200]],
  ['post', '/api/v1/agents/workspace/bootstrap/pow',                                          [200, 400, 403, 409, 429, 501]],
  ['post', '/api/v1/agents/workspace/bootstrap/pow/complete',                                 [201, 400, 425, 501]],
] as const satisfies readonly (readonly [string, string, readonly number[]])[]

for (const [method, path, statuses] of PROMISED) {
  test(`${method.toUpperCase()} ${path} is described with its statuses`, async (t) => {
    const operation = served().paths[path]?.[method]
    t.truthy(operation, 'it exists')
    const described = new Set(Object.keys(operation!.responses).map(Number))
    for (const status of statuses) t.true(described.has(status), `it may answer ${status}`)
    t.true((operation!.security ?? []).length === 0, 'it is for everybody')
  })
}

test('every described path without parameters and without credentials is there', async (t) => {
  const { paths } = served()
  let asked = 0
  for (const [path, { get }] of Object.entries(paths)) {
    if (get === undefined || path.includes('{') || (get.security ?? []).length > 0) continue
    const { status } = await http.call(path, { redirect: 'manual' })
    t.true(status in get.responses, `GET ${path} gave ${status}`)
    asked += 1
  }
  t.true(
    asked >= PROMISED.filter(([method, path]) => method === 'get' && !path.includes('{')).length,
  )
})

test('an answer that is not as described is noticed', async (t) => {
  const before = answersSeen()
  demand(await http.call('/health/live'), 200)
  t.true(answersSeen() > before, 'all answers are looked at')

  const route = routes.find(({ path }) => path === BOOTSTRAP)!
  const { text } = await http.call(route.path)
  const good = { status: 200, contentType: 'application/json', body: text }
  const problem = { status: 503, contentType: 'application/problem+json' }
  t.is(contractFault(route, good), null)
  for (const [what, bad] of Object.entries({
    'an undescribed status': { ...good, status: 299 },
    'another media type': { ...good, contentType: 'text/html' },
    'a missing member': { ...good, body: '{}' },
    'a member too many': { ...good, body: JSON.stringify({ ...JSON.parse(text), secret: 'x' }) },
    'a member of another type': { ...good, body: text.replace(/"issuer":"[^"]*"/, '"issuer":7') },
    'no body': { ...good, contentType: null, body: null },
    'a bare 503': { ...problem, body: '{}' },
  })) {
    t.truthy(contractFault(route, bad), what)
  }
})

test('the served document covers the public routes', async (t) => {
  const { paths } = served()
  const document = openapiDocument({
    issuer: running.issuer,
    exposure: 'public',
    routes,
  }) as Document
  for (const path of Object.keys(document.paths)) t.true(path in paths, path)
})

/** The schemas of a part of the document, with those that it names. */
function* schemasOf(part: unknown, named = new Set<string>()): Generator<Record<string, unknown>> {
  if (typeof part !== 'object' || part === null) return
  const node = part as Record<string, unknown>
  if (!Array.isArray(part)) yield node
  const { $ref } = node
  const { schemas } = (document as unknown as { components: { schemas: Record<string, object> } })
    .components
  if (typeof $ref === 'string' && !named.has($ref)) {
    named.add($ref)
    yield* schemasOf(schemas[$ref.replace(/.*\//, '')], named)
  }
  for (const each of Object.values(node)) yield* schemasOf(each, named)
}

test('every time that a client writes may have an offset', (t) => {
  const times = Object.entries(served().paths).flatMap(([path, operations]) =>
    Object.values(operations as Record<string, { parameters?: unknown; requestBody?: unknown }>)
      .flatMap(({ parameters, requestBody }) => [...schemasOf([parameters, requestBody])])
      .filter(({ format }) => format === 'date-time')
      .map(({ pattern }) => ({ path, pattern: String(pattern) })),
  )
  t.true(times.length > 50, String(times.length))
  for (const { path, pattern } of times)
    for (const time of ['2026-01-01T00:00:00Z', '2026-01-01T02:00:00.123456+02:00'])
      t.regex(time, new RegExp(pattern, 'u'), path)
})

test('parameters without which a request is refused are described as required', async (t) => {
  const { paths } = served()
  const at = '/api/v1/public/commerce'
  const x402 = `${at}/payment-links/{payment_link_token}/x402`
  const required = (path: string, method: string) => {
    const { parameters = [] } = paths[path]![method] as unknown as {
      parameters?: { in: string; name: string; required?: boolean }[]
    }
    return parameters
      .filter((one) => one.required === true && one.in !== 'path')
      .map((one) => one.name)
  }
  t.deepEqual(required(x402, 'get'), ['buyer_country', 'buyer_region'])
  t.deepEqual(required(x402, 'post'), ['buyer_country', 'buyer_region'])
  t.deepEqual(required(`${at}/fulfillment/{charge_id}`, 'get'), ['x-svc-fulfillment-secret'])
})
