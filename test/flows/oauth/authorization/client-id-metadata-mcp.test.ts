/** Clients without registration: the SDK of MCP, the tenant that `resource` names, and what administrators see. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { auth, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import type { OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js'
import test from 'ava'
import { fixtureOf } from '../../../support/agents/delegation.js'
import type { Json } from '../../../support/api.js'
import {
  arrived,
  begin,
  codeOf,
  post,
  protectedResource,
} from '../../../support/oauth/documented-client.js'
import { documentServer } from '../../../support/oauth/document-server.js'
import { isConsent, pathOf } from '../../../support/oauth/relying-party.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedApi } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'

const host = await documentServer()
const { api, running } = await sharedApi('hosts', { transport: 'plain_http' })
const mine = await api.workspace('Mine')
const mcp = createServer(({ url }, response) => {
  if (url !== '/.well-known/oauth-protected-resource/mcp') return response.writeHead(404).end()
  const metadata = {
    resource,
    authorization_servers: [running.issuer],
    scopes_supported: ['files:read'],
  }
  return response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify(metadata))
})
mcp.listen(0, '127.0.0.1')
await once(mcp, 'listening')
const resource = `http://127.0.0.1:${(mcp.address() as AddressInfo).port}/mcp`
await protectedResource(running, mine.tenantId, resource)
test.after.always(async () => {
  mcp?.close()
})

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Json

test.serial(
  'the SDK of MCP signs in by a metadata document and a free loopback port',
  async (t) => {
    const clientMetadataUrl = host.client({
      redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
    })
    const stored: { verifier?: string; tokens?: OAuthTokens; url?: URL; client?: Json } = {}
    const provider: OAuthClientProvider = {
      clientMetadataUrl,
      redirectUrl: 'http://localhost:58135/callback',
      clientMetadata: {
        redirect_uris: ['http://localhost:58135/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
      },
      clientInformation: () => stored.client as never,
      saveClientInformation: (client) => void (stored.client = client as never),
      tokens: () => stored.tokens,
      saveTokens: (tokens) => void (stored.tokens = tokens),
      saveCodeVerifier: (verifier) => void (stored.verifier = verifier),
      codeVerifier: () => stored.verifier!,
      redirectToAuthorization: (url) => void (stored.url = url),
    }
    t.is(await auth(provider, { serverUrl: resource }), 'REDIRECT')
    t.is(stored.url!.searchParams.get('client_id'), clientMetadataUrl)
    const browser = openBrowser(running)
    const page = await arrived(browser, fixtureOf(mine), pathOf(stored.url!))
    t.true(isConsent(page), `${page.status} ${page.location} ${page.html}`)
    t.true(page.html.includes(`data-resource="${resource}"`))
    t.true(page.html.includes('data-loopback-only'))
    const answered = await browser.submit(page, { action: 'allow' })
    const authorizationCode = new URL(answered.location!).searchParams.get('code')!
    t.is(await auth(provider, { serverUrl: resource, authorizationCode }), 'AUTHORIZED')
    const first = stored.tokens!
    t.like(claimsOf(first.access_token), { client_id: clientMetadataUrl, aud: resource })
    t.is(await auth(provider, { serverUrl: resource }), 'AUTHORIZED', 'by refresh')
    t.not(stored.tokens!.access_token, first.access_token)
  },
)

test.serial('an editor may list an https and a loopback redirect URI', async (t) => {
  const url = host.client({
    client_name: 'Editor',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1:33418/', 'https://editor.example/redirect'],
    grant_types: [
      'authorization_code',
      'refresh_token',
      'urn:ietf:params:oauth:grant-type:device_code',
    ],
    response_types: ['code'],
  })
  const more = { resource, scope: 'files:read', redirect_uri: 'http://127.0.0.1:50001/' }
  const { page, form } = await codeOf(running, fixtureOf(mine) as never, url, more)
  t.false(page.html.includes('data-loopback-only'))
  t.is((await post(running.baseUrl, '/oauth/token', { ...form, resource })).status, 200)
})

test.serial('without a tenant the page says that resource is missing', async (t) => {
  const url = host.client()
  const ask = async (more: Record<string, string>) => {
    const at = running.baseUrl + begin(url, more).path
    const answer = await fetch(at, { redirect: 'manual' })
    return { status: answer.status, ...((await answer.json()) as Json) } as Json
  }
  const missing = await ask({})
  t.deepEqual([missing['status'], missing['error']], [400, 'invalid_request'])
  t.regex(String(missing['error_description']), /resource/)
  const unknown = await ask({ resource: 'https://unknown.example/api' })
  t.deepEqual([unknown['status'], unknown['error']], [400, 'invalid_target'])
  const another = await api.workspace('Another')
  const other = await ask({ resource, tenant_id: another.tenantId })
  t.deepEqual([other['status'], other['error']], [400, 'invalid_request'])
  t.false(
    host.asked.some((path) => url.endsWith(path)),
    'nothing was fetched',
  )
})

test.serial('administrators see such clients, and end their grants and tokens', async (t) => {
  const url = host.client()
  const more = { resource, scope: 'openid files:read' }
  const { form } = await codeOf(running, fixtureOf(mine) as never, url, more)
  const issued = await post(running.baseUrl, '/oauth/token', { ...form, resource })
  t.is(issued.status, 200, JSON.stringify(issued.body))
  const listed = async () => {
    const { body } = await api.get('/api/v1/observed-clients', mine.token).gives(200)
    return (body as unknown as Json[]).find(({ client_id: id }) => id === url)
  }
  const client = (await listed())!
  t.is(client['client_name'], 'Wanderer')
  t.is(client['live_grants'], 1)
  t.regex(String(client['document_sha256']), /^[0-9a-f]{64}$/)
  const applications = await api.get('/api/v1/applications', mine.token)
  t.false(JSON.stringify(applications.body).includes(url))
  await api.get(`/api/v1/applications/${String(client['id'])}`, mine.token).gives(404)
  const userinfo = async () => {
    const authorization = `Bearer ${String(issued.body['access_token'])}`
    const answer = await fetch(`${running.baseUrl}/userinfo`, { headers: { authorization } })
    return ((await answer.json()) as Json)['error']
  }
  t.is(await userinfo(), 'unauthorized', 'the token is for the resource alone')
  const at = `/api/v1/observed-clients/${String(client['id'])}`
  t.is((await api.delete(at, mine.token)).status, 204)
  t.is((await api.delete(at, mine.token)).status, 404)
  await until('the token is refused', async () => (await userinfo()) === 'token_revoked')
  t.is(await listed(), undefined)
  const refreshed = await post(running.baseUrl, '/oauth/token', {
    grant_type: 'refresh_token',
    client_id: url,
    resource,
    refresh_token: String(issued.body['refresh_token']),
  })
  t.deepEqual([refreshed.status, refreshed.body['error']], [400, 'invalid_grant'])
})

test.serial('tenant settings replace the policy as a whole', async (t) => {
  const path = '/api/v1/tenant/settings'
  const { token } = mine
  const read = async () => (await api.get(path, token)).body['client_id_metadata'] as Json
  const defaults = {
    enabled: true,
    allow: ['*'],
    deny: [],
    require_auth: false,
    max_new_clients_per_hour: 100,
  }
  t.deepEqual(await read(), defaults)
  const patch = (client_id_metadata: unknown) => api.patch(path, token, { client_id_metadata })
  await patch({ deny: ['LOCALHOST', '*.evil.example'] }).gives(200)
  t.deepEqual(await read(), { ...defaults, deny: ['localhost', '*.evil.example'] })
  const url = host.client()
  const answer = await fetch(running.baseUrl + begin(url, { resource }).path)
  t.is(answer.status, 400)
  t.is((await patch({ max_new_clients_per_hour: 7 })).status, 200)
  t.deepEqual(await read(), { ...defaults, max_new_clients_per_hour: 7 })
  for (const bad of [
    { allow: ['https://client.example'] },
    { max_new_clients_per_hour: 100_001 },
    { max_new_clients_per_hour: -1 },
  ])
    t.is((await patch(bad)).status, 400, JSON.stringify(bad))
})
