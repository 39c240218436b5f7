/** MCP clients with the official SDKs against the service (MCP authorization, revision 2026-07-28). */
import test, { type ExecutionContext } from 'ava'
import { decodeJwt } from 'jose'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { TOKENS } from '../../../support/identity/registering.js'
import { callAt, type Json } from '../../../support/identity/tenant-agent.js'
import { mcpClient, mcpServer, SDKS, type SdkName } from '../../../support/oauth/mcp-client.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedService, testService } from '../../../support/service.js'

const SCOPES = [
  { name: 'files:read', description: 'Read your files', kind: 'read' },
  { name: 'files:write', description: 'Change your files', kind: 'write' },
]
const NATIVE = {
  redirect_uris: ['http://localhost:1/cb'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
  application_type: 'native',
  software_statement_of_tomorrow: { unknown: true },
}
const running = await sharedService('clients')
const person = await bootstrapped(running)

async function admin(method: string, path: string, body?: unknown) {
  const fields = { grant_type: 'client_credentials', scope: 'applications:manage' }
  const credentials = Buffer.from(`${person.clientId}:${person.clientSecret}`).toString('base64')
  const { body: token } = await callAt(running.baseUrl, '/oauth/token', {
    method: 'POST',
    headers: { authorization: `Basic ${credentials}` },
    body: new URLSearchParams(fields),
  })
  const answer = await callAt(running.baseUrl, path, {
    method,
    headers: {
      authorization: `Bearer ${String(token['access_token'])}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (answer.status >= 300) throw new Error(answer.text)
  return answer.body
}

const initialToken = async () => String((await admin('POST', TOKENS, {}))['token'])
function clientOf(sdk: SdkName) {
  const client = mcpClient(running, sdk, NATIVE, initialToken)
  return client
}

/** An MCP server whose resource is registered, and which serves the document of the service. */
async function serverOf(t: ExecutionContext, form: 'path' | 'root' = 'path', spelling = '') {
  const server = await mcpServer(running, form)
  t.teardown(() => server.close())
  const resource = (form === 'root' ? new URL(server.url).origin : server.url) + spelling
  const made = await admin('POST', '/api/v1/api-resources', {
    resource,
    name: 'Files',
    scopes: SCOPES,
  })
  const path = `/api/v1/api-resources/${String(made['id'])}`
  const document = await admin('GET', `${path}/protected-resource-metadata`)
  server.serve({ ...document, scopes_supported: ['files:read'] })
  return { server, resource, path }
}

/** The whole flow of a client: registration, consent of the user, code, tokens. */
async function connected(
  t: ExecutionContext,
  client: ReturnType<typeof clientOf>,
  { server }: Awaited<ReturnType<typeof serverOf>>,
  more: Json = {},
) {
  t.is(await client.run(server, more), 'REDIRECT')
  const callback = await client.allow(person)
  t.is(callback.searchParams.get('iss'), running.issuer)
  const answer = { authorizationCode: callback.searchParams.get('code'), iss: running.issuer }
  t.is(await client.run(server, { ...more, ...answer }), 'AUTHORIZED')
  return String(client.kept.tokens?.access_token)
}

for (const sdk of Object.keys(SDKS) as SdkName[]) {
  test(`${sdk} finds the path form, registers itself, gets a token and refreshes it`, async (t) => {
    const target = await serverOf(t)
    const client = clientOf(sdk)
    const token = await connected(t, client, target)
    const claims = await target.server.verify(token)
    t.is(claims.aud, target.resource)
    t.is(client.kept.tokens?.scope?.includes('files:read'), true)
    t.is(client.kept.tokens?.scope, String(claims['scope']))
    t.is(await client.run(target.server), 'AUTHORIZED')
    const refreshed = String(client.kept.tokens?.access_token)
    t.not(refreshed, token)
    t.is((await target.server.verify(refreshed)).aud, target.resource)
    t.is(client.kept.registrations, 1)
  })

  test(`${sdk} finds the root form, and the slash of the resource does not matter`, async (t) => {
    const target = await serverOf(t, 'root', '/')
    const token = await connected(t, clientOf(sdk), target)
    t.is(decodeJwt(token).aud, target.resource)
  })

  test(`${sdk} asks for more scopes without losing the first ones`, async (t) => {
    const target = await serverOf(t)
    const client = clientOf(sdk)
    await connected(t, client, target)
    const before = String(client.kept.tokens?.scope)
    delete client.kept.tokens
    const token = await connected(t, client, target, { scope: `${before} files:write` })
    const scopes = String(decodeJwt(token)['scope']).split(' ')
    t.true([...before.split(' '), 'files:write'].every((scope) => scopes.includes(scope)))
    t.is(client.kept.registrations, 1)
  })

  test(`${sdk} registers again after its registration was deleted`, async (t) => {
    const target = await serverOf(t)
    const client = clientOf(sdk)
    await connected(t, client, target)
    const id = String(client.kept.information?.client_id)
    await sql(running)`delete from applications where id = ${id}`
    t.is(await client.run(target.server), 'REDIRECT')
    t.is(client.kept.registrations, 2)
    t.not(client.kept.information?.client_id, id)
  })
}

test('a token for one server is refused at another', async (t) => {
  const one = await serverOf(t)
  const two = await serverOf(t)
  const token = await connected(t, clientOf('SDK 2'), one)
  t.is((await one.server.verify(token)).aud, one.resource)
  await t.throwsAsync(two.server.verify(token), { code: 'ERR_JWT_CLAIM_VALIDATION_FAILED' })
})

test('a native client uses any port of its loopback host, and no other host', async (t) => {
  const target = await serverOf(t)
  const client = clientOf('SDK 1')
  await client.run(target.server)
  const callback = await client.allow(person, (url) =>
    url.searchParams.set('redirect_uri', 'http://localhost:58135/cb'),
  )
  t.is(callback.origin, 'http://localhost:58135')
  for (const other of [
    'http://127.0.0.1:58135/cb',
    'http://localhost:58135/cb/',
    'http://localhost:58135/cb?more',
    'http://localhost:99999/cb',
    'https://localhost:58135/cb',
    'http://localhost.evil.test:1/cb',
    'http://localhost:1@evil.test/cb',
  ]) {
    const url = new URL(client.kept.url!)
    url.searchParams.set('redirect_uri', other)
    const page = await openBrowser(running).get(url.pathname + url.search)
    t.is(page.status, 400, other)
    t.true(page.html.includes('invalid_redirect_uri'), other)
  }
  // The code belongs to the redirect URI of its request.
  const grant = {
    grant_type: 'authorization_code',
    client_id: String(client.kept.information?.client_id),
    code: callback.searchParams.get('code')!,
    code_verifier: client.kept.verifier,
  }
  const redeem = (redirect_uri: string) =>
    callAt(running.baseUrl, '/oauth/token', {
      method: 'POST',
      body: new URLSearchParams({ ...grant, redirect_uri }),
    })
  t.is((await redeem('http://localhost:1/cb')).body['error'], 'invalid_grant')
  t.is((await redeem('http://localhost:58135/cb')).status, 200)
})

test('the page of a self-registered loopback client says so', async (t) => {
  const target = await serverOf(t)
  const client = clientOf('SDK 2')
  await client.run(target.server)
  const { browser } = client
  const url = client.kept.url!
  let page = await browser.follow(await browser.get(url.pathname + url.search))
  page = await browser.follow(
    await browser.submit(page, { email: person.email, password: person.password }),
  )
  t.regex(page.html, /data-loopback-only/)
  t.regex(page.html, /data-first-seen="\d{4}-/)
  t.true(page.html.includes(`data-resource="${target.resource}"`))
})

test('a registration is native if every redirect URI is one of a loopback host', async (t) => {
  const token = initialToken
  const register = async (body: Json) =>
    callAt(running.baseUrl, '/oauth/register', {
      method: 'POST',
      headers: { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const typeOf = async (body: Json) => (await register(body)).body['application_type']
  const { application_type: _, ...rest } = NATIVE
  t.is(await typeOf(rest), 'native')
  t.is(await typeOf({ ...rest, application_type: 'web' }), 'web')
  t.is(await typeOf({ ...rest, redirect_uris: ['https://app.example/cb'] }), 'web')
  await serverOf(t)
  const scoped = await register({ ...rest, scope: 'files:read offline_access' })
  t.deepEqual([scoped.status, scoped.body['scope']], [201, 'files:read offline_access'])
  const narrowed = await register({ ...rest, scope: 'files:burn' })
  t.deepEqual([narrowed.status, narrowed.body['scope']], [201, 'openid'])
})

test('a client that registered itself gets no token without a user', async (t) => {
  const { resource } = await serverOf(t)
  const token = await initialToken()
  const { body } = await callAt(running.baseUrl, '/oauth/register', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ grant_types: ['client_credentials'], scope: 'files:read' }),
  })
  const client = `${String(body['client_id'])}:${String(body['client_secret'])}`
  const answer = await callAt(running.baseUrl, '/oauth/token', {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(client).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource }),
  })
  t.deepEqual([answer.status, answer.body['error']], [400, 'invalid_scope'])
})

test('an error on the redirect has the issuer too', async (t) => {
  const target = await serverOf(t)
  const client = clientOf('SDK 1')
  await client.run(target.server)
  const callback = await client.allow(person, (url) => url.searchParams.set('prompt', 'none'))
  t.is(callback.searchParams.get('error'), 'login_required')
  t.is(callback.searchParams.get('iss'), running.issuer)
})

test('preflights allow MCP-Protocol-Version', async (t) => {
  const origin = 'https://inspector.example'
  await relyingParty(running, person, { allowedOrigins: [origin] })
  for (const [path, method] of [
    ['/.well-known/oauth-authorization-server', 'GET'],
    ['/.well-known/openid-configuration', 'GET'],
    ['/.well-known/oauth-protected-resource', 'GET'],
    ['/.well-known/jwks.json', 'GET'],
    ['/oauth/token', 'POST'],
    ['/oauth/register', 'POST'],
  ]) {
    const { status, headers } = await callAt(running.baseUrl, path!, {
      method: 'OPTIONS',
      headers: {
        origin: path === '/oauth/register' ? running.issuer : origin,
        'access-control-request-method': method!,
        'access-control-request-headers': 'mcp-protocol-version',
      },
    })
    t.is(status, 204, path)
    const allowed = headers.get('access-control-allow-headers') ?? ''
    t.true(allowed.split(', ').includes('mcp-protocol-version'), path)
  }
})

test('an issuer with a path has its metadata at the addresses that clients try', async (t) => {
  const issuer = 'http://localhost:8099/t1'
  const service = await testService({ environment: { SVC_OIDC__ISSUER_URL: issuer } })
  t.teardown(() => service.end())
  for (const path of [
    '/.well-known/oauth-authorization-server/t1',
    '/.well-known/openid-configuration/t1',
    '/t1/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server',
  ]) {
    const { status, body } = await callAt(service.baseUrl, path)
    t.deepEqual([status, body['issuer']], [200, issuer], path)
  }
  for (const path of [
    '/.well-known/oauth-authorization-server/t2',
    '/t2/.well-known/openid-configuration',
  ])
    t.is((await callAt(service.baseUrl, path)).status, 404, path)
  const here = '/.well-known/oauth-authorization-server/t1'
  t.is((await callAt(running.baseUrl, here)).status, 404)
})

test('the service lists the feature', async (t) => {
  const { body } = await callAt(running.baseUrl, '/api/v1/capabilities')
  t.true((body['capabilities'] as string[]).includes('oauth.api_resources'))
})
