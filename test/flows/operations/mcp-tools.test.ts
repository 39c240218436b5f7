/** The tools of POST /mcp: each returns what the service serves by HTTP. */
import { readdirSync, readFileSync } from 'node:fs'
import { OAUTH_ERRORS } from '../../../actors/domain/oauth-reasons.js'
import test, { type ExecutionContext } from 'ava'
import { CREDENTIAL_SCOPES } from '../../../actors/domain/credentials/catalogue.js'
import { SCOPES } from '../../../actors/domain/scopes.js'
import { routes } from '../../../gateway/route-table.js'
import { FINER_CODES, PROBLEM_TYPES, type ProblemName } from '../../../gateway/response/problems.js'
import { GUIDES } from '../../../gateway/apps/mcp/guides.js'
import { callerOf, demand } from '../../support/agents/journey.js'
import { mcpOf } from '../../support/operations/mcp.js'
import { sharedService } from '../../support/service.js'

const running = await sharedService('mcp')
const http = callerOf(running.baseUrl)
const mcp = mcpOf(running.baseUrl)

type Tool = {
  name: string
  annotations: object
  inputSchema: { type: string; additionalProperties: boolean }
}

test('tools/list has nine tools, sorted by name, on one page', async (t) => {
  for (const answer of [await mcp.legacy('tools/list'), await mcp.modern('tools/list')]) {
    const tools = answer.rpc.result!['tools'] as Tool[]
    t.deepEqual(
      tools.map(({ name }) => name),
      [
        'get_bootstrap_metadata',
        'get_capabilities',
        'get_discovery_document',
        'get_guide',
        'get_operation',
        'list_error_codes',
        'list_event_types',
        'list_operations',
        'list_scopes',
      ],
    )
    for (const { name, annotations, inputSchema } of tools) {
      t.like(annotations, {
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false,
      })
      t.is(inputSchema.type, 'object', name)
      t.is(inputSchema.additionalProperties, false, name)
    }
    t.false('nextCursor' in answer.rpc.result!)
  }
  t.is((await mcp.legacy('tools/list', { cursor: 'x' })).rpc.error?.code, -32602)
})

/** Structured content: the members that the tests read. */
type Content = {
  readonly items: readonly Item[]
  readonly operation: object
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>
  readonly topic: string
  readonly text: string
  readonly capability: string | null
  readonly operations: readonly string[]
}
type Item = Readonly<
  Record<
    | 'operation_id'
    | 'method'
    | 'path'
    | 'summary'
    | 'auth'
    | 'scope'
    | 'meaning'
    | 'type'
    | 'code'
    | 'title',
    string
  >
> & { readonly status: number; readonly operations: readonly string[] }
type Operation = {
  operationId: string
  summary: string
  tags: string[]
  responses: object
  security?: object[]
}
type Openapi = {
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, object>>
}
type Capabilities = { capabilities: string[]; features: Record<string, object> }

/** Calls a tool in both eras, and checks that the text is the structured content. */
async function called(t: ExecutionContext, name: string, args?: object): Promise<Content> {
  const params = { name, ...(args === undefined ? {} : { arguments: args }) }
  const legacy = await mcp.legacy('tools/call', params)
  const modern = await mcp.modern('tools/call', params)
  for (const { status, rpc, text } of [legacy, modern]) {
    t.is(status, 200, text)
    t.is(rpc.result!['isError'], false, text)
    const [content] = rpc.result!['content'] as { type: string; text: string }[]
    t.is(content!.type, 'text')
    t.deepEqual(JSON.parse(content!.text), rpc.result!['structuredContent'])
  }
  t.deepEqual(modern.rpc.result!['structuredContent'], legacy.rpc.result!['structuredContent'])
  t.is(modern.rpc.result!['resultType'], 'complete')
  t.is(modern.rpc.result!['cacheScope'], 'public')
  t.false('resultType' in legacy.rpc.result!)
  return legacy.rpc.result!['structuredContent'] as Content
}

test('tools return the documents of the HTTP routes', async (t) => {
  const of = async (path: string) => demand(await http.call(path), 200).body
  t.deepEqual(await called(t, 'get_capabilities'), await of('/api/v1/capabilities'))
  t.deepEqual(
    await called(t, 'get_bootstrap_metadata', {}),
    await of('/api/v1/agents/workspace/bootstrap'),
  )
  for (const document of [
    'openid-configuration',
    'oauth-authorization-server',
    'oauth-protected-resource',
    'openid-credential-issuer',
    'jwt-vc-issuer',
  ]) {
    const served = await of(`/.well-known/${document}`)
    t.deepEqual(await called(t, 'get_discovery_document', { document }), served, document)
  }
  t.deepEqual(
    await called(t, 'get_discovery_document', { document: 'jwks' }),
    await of('/.well-known/jwks.json'),
  )
})

test('list_operations and get_operation read the public OpenAPI document', async (t) => {
  const { paths, components } = demand(await http.call('/openapi.json'), 200)
    .body as unknown as Openapi
  const all = (await called(t, 'list_operations')).items
  const expected = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`,
    ),
  )
  t.deepEqual(
    all.map(({ operation_id, method, path }) => `${operation_id} ${method} ${path}`),
    expected.toSorted(),
  )
  t.true(all.some(({ operation_id }) => operation_id === 'callMcp'))
  for (const item of all) t.is(item.summary, paths[item.path]![item.method.toLowerCase()]!.summary)
  const authOf = (id: string) => all.find(({ operation_id }) => operation_id === id)?.auth
  t.is(authOf('callMcp'), 'none')
  t.is(authOf('createWebhook'), 'bearer or dpop')

  const tagged = (await called(t, 'list_operations', { tag: 'webhooks' })).items
  t.true(tagged.length > 0 && tagged.length < all.length)
  for (const { path, method } of tagged) {
    t.true(paths[path]![method.toLowerCase()]!.tags.includes('Webhooks'))
  }
  const query = { query: 'Discovery  /MCP' }
  const searched = (await called(t, 'list_operations', query)).items
  t.deepEqual(
    searched.map(({ operation_id }) => operation_id),
    ['callMcp'],
  )
  t.deepEqual(await called(t, 'list_operations', { tag: 'none such' }), { items: [] })

  const one = await called(t, 'get_operation', { operation_id: 'createWebhook' })
  t.deepEqual(one.operation, paths['/api/v1/webhooks']!['post'])
  const referred = [...JSON.stringify(one).matchAll(/#\/components\/(\w+)\/([\w-]+)/g)]
  t.true(referred.length > 0)
  for (const [, kind, name] of referred) {
    t.deepEqual(one.components[kind!]![name!], components[kind!]![name!])
  }
})

test('list_scopes, list_event_types and list_error_codes are the catalogues', async (t) => {
  const listed = (await called(t, 'list_scopes')).items
  t.deepEqual(
    listed.map(({ scope }) => scope),
    [...SCOPES, ...CREDENTIAL_SCOPES],
  )
  t.true(listed.every(({ meaning }) => typeof meaning === 'string' && meaning !== ''))
  const hooks = listed.find(({ scope }) => scope === 'webhooks:manage')
  t.true(hooks!.operations.includes('createWebhook'))

  const { webhooks } = demand(await http.call('/openapi.json'), 200).body as { webhooks: object }
  const events = (await called(t, 'list_event_types')).items
  t.deepEqual(events.map(({ type }) => type).toSorted(), Object.keys(webhooks).toSorted())
  const filter = { category: 'organizations' }
  const organizations = (await called(t, 'list_event_types', filter)).items
  t.true(organizations.length > 0)
  t.true(organizations.every(({ type }) => type.startsWith('org.')))

  const codes = (await called(t, 'list_error_codes')).items
  for (const [name, finer = []] of Object.entries(FINER_CODES)) {
    const { status } = PROBLEM_TYPES[name as ProblemName]
    for (const code of finer)
      t.true(
        codes.some((one) => one.code === code && one.status === status),
        `${status} ${code}`,
      )
  }
  for (const { status, code, title, meaning } of codes) {
    const page = await http.call(`/errors/${code.replaceAll('_', '-')}`)
    // A code that is finer than its problem type has the page of the type.
    if (page.status === 200) t.true(page.text.includes(title), code)
    if (code === 'authorization_pending') t.regex(String(meaning), /Poll again/)
    t.is(typeof status, 'number')
    t.is(typeof meaning, 'string')
  }
  t.true(codes.some(({ status, code }) => status === 429 && code === 'rate_limited'))
  const pairs = codes.map(({ status, code }) => `${status} ${code}`)
  t.is(new Set(pairs).size, pairs.length)
  for (const code of Object.keys(OAUTH_ERRORS))
    t.true(
      pairs.some((pair) => pair.endsWith(` ${code}`)),
      code,
    )
  // Codes that functions make too.
  const files = readdirSync('gateway', { recursive: true, encoding: 'utf8' })
  const made = files
    .filter((file) => /^(?:pages|request|response|routes)\/.*[.]ts$/.test(file))
    .flatMap((file) => [
      ...readFileSync(`gateway/${file}`, 'utf8').matchAll(
        /\b(?:error: |code = |(?:refusal|waiting|bad)\(\s*|oauthError\(\s*\d+,\s*)'([a-z_]+)'/g,
      ),
    ])
    .map(([, code]) => code!)
  t.true(made.length > 60, String(made.length))
  t.deepEqual(
    made.filter((code) => !codes.some((one) => one.code === code)),
    [],
  )
  // What a client of each endpoint meets is among them.
  for (const [path, method] of [
    ['/oauth/token', 'POST'],
    ['/oauth/register', 'POST'],
    ['/userinfo', 'GET'],
  ] as const) {
    const { status, body } = await http.call(path, { method })
    t.true(pairs.includes(`${status} ${(body as { error: string }).error}`), `${path} ${status}`)
  }
})

test('get_guide names operations and capabilities that exist', async (t) => {
  const { capabilities } = demand(await http.call('/api/v1/capabilities'), 200)
    .body as unknown as Capabilities
  const known = new Set(routes.map(({ operationId }) => operationId))
  for (const topic of Object.keys(GUIDES)) {
    const guide = await called(t, 'get_guide', { topic })
    t.is(guide.topic, topic)
    t.true(guide.text.length > 100)
    if (guide.capability !== null) t.true(capabilities.includes(guide.capability), topic)
    for (const id of guide.operations) t.true(known.has(id), id)
  }
  t.is(Object.keys(GUIDES).length, 8)
})

test('a call that cannot succeed says why', async (t) => {
  const unknown = { name: 'toString' }
  for (const answer of [
    await mcp.legacy('tools/call', unknown),
    await mcp.modern('tools/call', unknown),
    await mcp.legacy('tools/call', {}),
    await mcp.legacy('tools/call', { name: 'list_scopes', arguments: [] }),
    await mcp.legacy('tools/call', { name: 'get_guide' }, '2025-06-18'),
  ]) {
    t.is(answer.status, 200)
    t.is(answer.rpc.error?.code, -32602)
    t.is(answer.rpc.id, 1)
  }
  for (const params of [
    { name: 'get_guide' },
    { name: 'get_discovery_document', arguments: { document: 'x' } },
    { name: 'get_capabilities', arguments: { more: 1 } },
    { name: 'list_operations', arguments: { query: 7 } },
    { name: 'get_operation', arguments: { operation_id: 'none' } },
  ]) {
    for (const era of [mcp.legacy, mcp.modern]) {
      const { status, rpc, text } = await era('tools/call', params)
      t.is(status, 200, text)
      t.is(rpc.result?.['isError'], true, text)
    }
  }
})

test('capabilities and OpenAPI name the endpoint', async (t) => {
  const { features } = demand(await http.call('/api/v1/capabilities'), 200)
    .body as unknown as Capabilities
  t.deepEqual(features.mcp, { enabled: true })
  const { paths } = demand(await http.call('/openapi.json'), 200).body as unknown as Openapi
  const { responses, security = [] } = paths['/mcp']!['post']!
  for (const status of [200, 202, 400, 401, 403, 405, 406, 408, 413, 415]) {
    t.true(String(status) in responses, String(status))
  }
  t.deepEqual(security, [])
})
