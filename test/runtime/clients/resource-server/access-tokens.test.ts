/** The resource-server kit: access tokens, scopes, challenges and metadata, with tokens that a test signs. */
import { createHmac, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import {
  createResourceServer,
  type Refusal,
  type ResourceServerOptions,
} from '../../../../runtime/clients/resource-server/exports.js'
import { heldClock } from '../../../support/held-clock.js'
import { localIssuer, signed, testKey } from '../../../support/oauth/local-issuer.js'

const RESOURCE = 'https://files.example.com/mcp'
type Claims = Readonly<Record<string, unknown>>
const NOW = new Date('2026-03-01T12:00:00Z')
const nowSecs = NOW.getTime() / 1000

async function setUp(t: ExecutionContext, more: Partial<ResourceServerOptions> = {}, path = '') {
  const as = await localIssuer(path)
  t.teardown(() => as.close())
  const key = await testKey('ES256', 'first')
  as.setKeys(key)
  const clock = heldClock(NOW)
  const { issuer } = as
  const options = { issuer, resource: RESOURCE, scopes: ['files:read'], clock, ...more }
  const server = createResourceServer(options)
  const claimsOf = (claims: Claims = {}): Claims => ({
    iss: issuer,
    aud: RESOURCE,
    sub: 'ada',
    client_id: 'app',
    jti: randomUUID(),
    iat: nowSecs,
    exp: nowSecs + 300,
    scope: 'files:read',
    ...claims,
  })
  const tokenOf = (claims: Claims = {}, header = {}, by = key) =>
    signed(by, claimsOf(claims), header)
  const bearer = (token: string, scopes?: string[]) =>
    server.authenticate(
      new Request(RESOURCE, { headers: { authorization: `Bearer ${token}` } }),
      scopes === undefined ? {} : { scopes },
    )
  return { as, key, clock, server, claimsOf, tokenOf, bearer }
}

function refusedWith(t: ExecutionContext, outcome: { tag: string }, text: RegExp, status = 401) {
  t.is(outcome.tag, 'refused')
  const { status: actual, description, headers } = outcome as Refusal
  t.is(Number(actual), status)
  t.regex(description, text)
  return headers['www-authenticate'] ?? ''
}

test('a valid token gives its subject, client, scopes and actors, and never itself', async (t) => {
  const { tokenOf, bearer } = await setUp(t)
  const token = await tokenOf({
    aud: ['https://other.example', RESOURCE],
    tenant_id: 'harbour',
    subject_type: 'human',
    act: { sub: 'agent-2', subject_type: 'agent', act: { sub: 'agent-1', subject_type: 'agent' } },
  })
  const outcome = await bearer(token, ['files:read'])
  if (outcome.tag !== 'authenticated') return t.fail(outcome.description)
  t.like(outcome.token, {
    subject: 'ada',
    subjectType: 'human',
    tenantId: 'harbour',
    clientId: 'app',
    scopes: ['files:read'],
    jkt: null,
  })
  t.deepEqual(
    outcome.token.actors.map(({ sub }) => sub),
    ['agent-2', 'agent-1'],
  )
  t.deepEqual(outcome.token.expiresAt, new Date(NOW.getTime() + 300_000))
  t.false(JSON.stringify(outcome).includes(token.split('.')[2]!))
})

test('tokens that are not valid here are refused with 401 invalid_token', async (t) => {
  const { as, key, tokenOf, claimsOf, bearer, server } = await setUp(t, { tenantId: undefined })
  const forged = await testKey('ES256', 'first')
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const unsigned = `${encoded({ alg: 'none', typ: 'at+jwt' })}.${encoded(claimsOf())}.`
  const confused = `${encoded({ alg: 'HS256', typ: 'at+jwt', kid: 'first' })}.${encoded(claimsOf())}`
  const mac = createHmac('sha256', JSON.stringify(key.jwk)).update(confused).digest('base64url')
  const wrong: Record<string, string> = {
    'not a token': 'AAAA',
    'alg none': unsigned,
    'a MAC with the public key': `${confused}.${mac}`,
    'another key with the same id': await tokenOf({}, {}, forged),
    'an ID token': await tokenOf({}, { typ: 'JWT' }),
    'no typ': await tokenOf({}, { typ: undefined }),
    'another issuer': await tokenOf({ iss: `${as.issuer}/` }),
    'another resource': await tokenOf({ aud: 'https://files.example.com/other' }),
    'a longer path': await tokenOf({ aud: `${RESOURCE}/` }),
    'an upper-case path': await tokenOf({ aud: 'https://files.example.com/MCP' }),
    'no audience': await tokenOf({ aud: undefined }),
    'an audience that is no text': await tokenOf({ aud: [RESOURCE, 7] }),
    expired: await tokenOf({ exp: nowSecs - 11 }),
    'no expiry': await tokenOf({ exp: undefined }),
    'not valid yet': await tokenOf({ nbf: nowSecs + 11 }),
    'from the future': await tokenOf({ iat: nowSecs + 11 }),
    'no client': await tokenOf({ client_id: undefined }),
    'no subject': await tokenOf({ sub: undefined }),
    'scope as a list': await tokenOf({ scope: ['files:read'] }),
    'bound to a certificate': await tokenOf({ cnf: { 'x5t#S256': 'AAAA' } }),
    'bound to a key and a certificate': await tokenOf({
      cnf: { jkt: key.jkt, 'x5t#S256': 'AAAA' },
    }),
    'an unreadable actor': await tokenOf({ act: { subject_type: 'agent' } }),
    'an unreadable status': await tokenOf({ status: { status_list: { idx: -1, uri: 'x' } } }),
    'too long': `${await tokenOf()}${'A'.repeat(17_000)}`,
  }
  for (const [what, token] of Object.entries(wrong)) {
    const outcome = await bearer(token)
    t.is(outcome.tag, 'refused', what)
    t.like(outcome, { status: 401, error: 'invalid_token' }, what)
    const { headers, body } = outcome as Refusal
    t.regex(
      headers['www-authenticate']!,
      /^Bearer error="invalid_token", scope="files:read", resource_metadata=/,
    )
    t.false(body.includes(token.slice(0, 40)) && what !== 'not a token', what)
  }
  t.is((await bearer(await tokenOf({ exp: nowSecs - 9 }))).tag, 'authenticated', 'within tolerance')
  t.is((await bearer(await tokenOf({ aud: 'HTTPS://Files.Example.COM/mcp' }))).tag, 'authenticated')
  const basic = new Request(RESOURCE, { headers: { authorization: 'Basic YTpi' } })
  refusedWith(t, await server.authenticate(basic), /no access token/)
  const inQuery = new Request(`${RESOURCE}?access_token=${await tokenOf()}`)
  const challenge = refusedWith(t, await server.authenticate(inQuery), /needed/)
  t.false(challenge.includes('error='), 'RFC 6750 section 3.1')
})

test('a bare host and one with a slash are one resource', async (t) => {
  for (const [resource, aud] of [
    ['https://mcp.example.com', 'https://mcp.example.com/'],
    ['https://mcp.example.com/', 'https://mcp.example.com'],
  ] as const) {
    const { tokenOf, bearer, server } = await setUp(t, { resource })
    t.is((await bearer(await tokenOf({ aud }))).tag, 'authenticated', aud)
    refusedWith(t, await bearer(await tokenOf({ aud: `${resource}?x=1` })), /another resource/)
    t.is(server.protectedResourceMetadata().resource, resource, 'as it is registered')
    t.is(server.metadataUrl, 'https://mcp.example.com/.well-known/oauth-protected-resource')
  }
})

test('only tokens of the configured tenant and audience are accepted', async (t) => {
  const { tokenOf, bearer } = await setUp(t, { tenantId: 'one', audience: 'urn:api' })
  t.is((await bearer(await tokenOf({ tenant_id: 'one', aud: 'urn:api' }))).tag, 'authenticated')
  refusedWith(
    t,
    await bearer(await tokenOf({ tenant_id: 'two', aud: 'urn:api' })),
    /another tenant/,
  )
  refusedWith(t, await bearer(await tokenOf({ aud: 'urn:api' })), /another tenant/)
  refusedWith(t, await bearer(await tokenOf({ tenant_id: 'one' })), /another resource/)
})

test('a broader scope implies narrower ones, and 403 names all scopes of the operation', async (t) => {
  const implied = { 'files:admin': ['files:write'], 'files:write': ['files:read', 'files:admin'] }
  const { tokenOf, bearer, server } = await setUp(t, { implied })
  t.is((await bearer(await tokenOf({ scope: 'files:admin' }), ['files:read'])).tag, 'authenticated')
  const outcome = await bearer(await tokenOf({ scope: 'files:read' }), [
    'files:read',
    'files:write',
  ])
  const challenge = refusedWith(t, outcome, /files:read files:write/, 403)
  t.regex(
    challenge,
    /^Bearer error="insufficient_scope", scope="files:read files:write", resource_metadata="https:\/\/files\.example\.com\/\.well-known\/oauth-protected-resource\/mcp", error_description="[^"]+"/,
  )
  const read = await bearer(await tokenOf({ scope: '' }))
  if (read.tag !== 'authenticated') return t.fail()
  t.deepEqual(read.token.scopes, [])
  const request = new Request(RESOURCE)
  t.is(server.requireScopes(request, read.token, []), null)
  t.like(server.requireScopes(request, read.token, ['files:read']), { status: 403 })
})

test('keys are discovered, kept, and read again for a rotated key', async (t) => {
  const { as, key, clock, tokenOf, bearer } = await setUp(t, {}, '/t1')
  for (let n = 0; n < 5; n += 1) t.is((await bearer(await tokenOf())).tag, 'authenticated')
  const paths = () => as.requests.map(({ path }) => path)
  t.deepEqual(paths(), ['/.well-known/oauth-authorization-server/t1', '/jwks'])
  const next = await testKey('ES256', 'second')
  as.setKeys(key, next)
  clock.advance(6_000)
  t.is((await bearer(await tokenOf({}, {}, next))).tag, 'authenticated')
  t.is(paths().length, 3)
  // Invented key ids cause at most one request in five seconds.
  const stranger = await testKey('ES256', 'invented')
  const answers = await Promise.all(
    Array.from({ length: 20 }, async () => bearer(await tokenOf({}, {}, stranger))),
  )
  for (const answer of answers) refusedWith(t, answer, /not a JWT/)
  t.is(paths().length, 3)

  // The authorization server is away: the keys stay in use, but not forever.
  as.pages.set('/jwks', { status: 500, body: '' })
  clock.advance(3_000_000)
  const again = async () =>
    bearer(await tokenOf({ iat: clock.nowSecs(), exp: clock.nowSecs() + 300 }))
  t.is((await again()).tag, 'authenticated')
  clock.advance(1_200_000)
  const away = await again()
  t.is(refusedWith(t, away, /at the moment/, 503), '', 'no challenge: the client keeps its token')
  t.is((away as Refusal).headers['retry-after'], '2')
  as.setKeys(key)
  clock.advance(6_000)
  t.is((await again()).tag, 'authenticated')
})

test('a request whose connection breaks is sent once more', async (t) => {
  const { as, tokenOf, bearer } = await setUp(t)
  as.breakNext(1)
  t.is((await bearer(await tokenOf())).tag, 'authenticated')
  const paths = as.requests.map(({ path }) => path)
  t.is(paths.filter((path) => path === paths[0]).length, 2)
  const away = await setUp(t)
  away.as.breakNext(2)
  refusedWith(t, await away.bearer(await away.tokenOf()), /at the moment/, 503)
  t.is(away.as.requests.length, 2)
})

test('metadata of another issuer, redirects and documents that are too large are refused', async (t) => {
  for (const [path, page] of [
    [
      '/.well-known/oauth-authorization-server',
      { body: '{"issuer":"https://evil.example","jwks_uri":"https://evil.example/jwks"}' },
    ],
    ['/.well-known/oauth-authorization-server', { body: 'null' }],
    ['/jwks', { status: 302, headers: { location: '/elsewhere' }, body: '' }],
    ['/jwks', { body: `{"keys":[],"pad":"${'x'.repeat(300_000)}"}` }],
    ['/jwks', { body: '{"keys":7}' }],
  ] as const) {
    const { as, tokenOf, bearer } = await setUp(t)
    const token = await tokenOf()
    as.pages.set(path, page)
    refusedWith(t, await bearer(token), /cannot be verified at the moment/, 503)
    t.false(as.requests.some((one) => one.path === '/elsewhere'))
  }
})

test('options that would weaken the checks are refused', (t) => {
  const good = { issuer: 'https://as.example', resource: RESOURCE, scopes: ['files:read'] }
  t.notThrows(() => createResourceServer(good))
  for (const [name, wrong] of Object.entries({
    issuer: { issuer: 'http://as.example' },
    resource: { resource: `${RESOURCE}#part` },
    'resource must have no query': { resource: `${RESOURCE}?x=1` },
    jwksUri: { jwksUri: 'http://as.example/jwks' },
    scopes: { scopes: ['files:read files:write'] },
    offline_access: { scopes: ['offline_access'] },
    algorithms: { algorithms: ['HS256'] },
    'algorithms must': { algorithms: ['none'] },
    clockToleranceSecs: { clockToleranceSecs: 3600 },
    'dpop.maxAgeSecs': { dpop: { maxAgeSecs: 0 } },
    'dpop.nonceSecret': { dpop: { nonceSecret: new Uint8Array(8) } },
  }))
    t.throws(() => createResourceServer({ ...good, ...wrong }), { message: new RegExp(name) })
})

async function listening(
  t: ExecutionContext,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
) {
  const http = createServer(handle)
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.teardown(() => void http.close())
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}

test('node:http: metadata in path form and at the root, preflights, challenges and CORS', async (t) => {
  const { server, tokenOf } = await setUp(t, {
    name: 'Files',
    documentation: 'https://files.example.com/docs',
    corsOrigins: ['https://inspector.example'],
  })
  const base = await listening(t, (request, response) => {
    if (server.handleNode(request, response)) return
    void server.authenticate(request, { scopes: ['files:read'] }).then((outcome) => {
      if (outcome.tag === 'refused') return server.sendRefusal(response, outcome)
      response.writeHead(200, server.corsHeaders(request)).end(outcome.token.subject)
    })
  })
  for (const path of [
    '/.well-known/oauth-protected-resource/mcp',
    '/.well-known/oauth-protected-resource',
  ]) {
    const answer = await fetch(base + path, { headers: { 'mcp-protocol-version': '2025-11-25' } })
    t.is(answer.status, 200)
    t.is(answer.headers.get('access-control-allow-origin'), '*')
    t.is(answer.headers.get('content-type'), 'application/json')
    t.like(await answer.json(), {
      resource: RESOURCE,
      scopes_supported: ['files:read'],
      bearer_methods_supported: ['header'],
      resource_name: 'Files',
      resource_documentation: 'https://files.example.com/docs',
      dpop_bound_access_tokens_required: false,
    })
    t.is((await fetch(base + path, { method: 'POST' })).status, 405)
  }
  t.is((await fetch(`${base}/.well-known/oauth-protected-resource/other`)).status, 401)
  const asked = {
    method: 'OPTIONS',
    headers: {
      origin: 'https://inspector.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization, mcp-protocol-version, dpop',
    },
  }
  for (const path of ['/mcp', '/.well-known/oauth-protected-resource/mcp']) {
    const preflight = await fetch(base + path, asked)
    t.is(preflight.status, 204)
    const allowed = preflight.headers.get('access-control-allow-headers')!.toLowerCase()
    for (const name of ['authorization', 'mcp-protocol-version', 'dpop'])
      t.true(allowed.includes(name))
  }
  const foreign = await fetch(`${base}/mcp`, {
    ...asked,
    headers: { ...asked.headers, origin: 'https://evil.example' },
  })
  t.is(foreign.headers.get('access-control-allow-origin'), null)

  const bare = await fetch(`${base}/mcp`, {
    method: 'POST',
    headers: { origin: 'https://inspector.example' },
  })
  t.is(bare.status, 401)
  t.is(bare.headers.get('access-control-allow-origin'), 'https://inspector.example')
  t.regex(bare.headers.get('access-control-expose-headers')!, /WWW-Authenticate/)
  t.is(
    bare.headers.get('www-authenticate'),
    'Bearer scope="files:read", resource_metadata="https://files.example.com/.well-known/oauth-protected-resource/mcp", DPoP algs="ES256 EdDSA Ed25519"',
  )
  const good = await fetch(`${base}/mcp`, {
    headers: { authorization: `bearer ${await tokenOf()}` },
  })
  t.is(await good.text(), 'ada')
})

test('the Fetch standard: the same metadata and refusals', async (t) => {
  const { server } = await setUp(t, { metadataAtRoot: false })
  const found = server.handleRequest(new Request(server.metadataUrl))
  t.like(await found!.json(), server.protectedResourceMetadata())
  t.is(
    server.handleRequest(
      new Request('https://files.example.com/.well-known/oauth-protected-resource'),
    ),
    null,
  )
  t.is(server.handleRequest(new Request(RESOURCE)), null)
  const answer = server.refusalResponse(
    server.challenge({
      error: 'insufficient_scope',
      scopes: ['files:write'],
      description: 'a "quoted"\nreason',
    }),
  )
  t.is(answer.status, 403)
  t.true(answer.headers.get('www-authenticate')!.includes(`error_description="a 'quoted''reason"`))
})

test('the kit uses nothing of the server but the clock', (t) => {
  const folder = new URL('../../../../../runtime/clients/resource-server/', import.meta.url)
  const sources = readdirSync(folder).filter((file) => file.endsWith('.ts'))
  const imported = sources.flatMap((file) =>
    [
      ...readFileSync(new URL(file, folder), 'utf8').matchAll(/^(?:import|}).* from '([^']+)'/gm),
    ].map(([, name]) => name!),
  )
  t.true(imported.length > 10)
  const others = imported.filter((name) => !/^(node:|jose$|\.\/)/.test(name))
  t.deepEqual([...new Set(others)], ['../../kernel/clock.js'])
})
