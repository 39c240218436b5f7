/** The OAuth endpoints over HTTP with an independent client library. */
import test from 'ava'
import * as oidc from 'openid-client'
import { type Dispatcher, request } from 'undici'
import { z } from 'zod'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { applicationsActor } from '../../../../actors/oauth/clients/registered/actor.js'
import { type Gateway, type GatewayOptions, openGateway } from '../../../../gateway/gateway.js'
import { applicationRoutes } from '../../../../gateway/routes/oauth/clients.js'
import { discoveryRoutes } from '../../../../gateway/routes/oauth/discovery.js'
import { oauthRoutes } from '../../../../gateway/routes/oauth/oauth.js'
import { openapiSettings, serverSettings } from '../../../../gateway/settings.js'
import { spawnInline } from '../../../../runtime/kernel/inline.js'
import { silentLogger } from '../../../../runtime/kernel/log.js'
import { createMetrics } from '../../../../runtime/kernel/metrics/metrics.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { watchContract } from '../../../support/contract.js'
import {
  buildTokensFixture,
  DPOP_DEFAULT,
  publishing,
  ISSUER,
  type TokensFixture,
} from '../../../actors/oauth/tokens/tokens-fixture.js'

let fixture: TokensFixture
let gateway: Gateway
let nonceGateway: Gateway
let [base, nonceBase] = ['', '']
let tenantId: string
const stops: (() => Promise<unknown>)[] = []

test.before(async () => {
  watchContract()
  fixture = await buildTokensFixture()
  tenantId = await fixture.tenant('flows')
  const { tenants, discovery } = publishing(fixture)
  const applications = spawnInline(applicationsActor, {
    ...fixture,
    tenants: tenants.ref,
    isOwnAddress: () => false,
    urlFaultOf: () => undefined,
  })
  const strict = fixture.spawnTokens({ ...DPOP_DEFAULT, require_nonce: true })
  stops.push(discovery.stop, applications.stop, tenants.stop, strict.stop)
  const open = (tokens: unknown) =>
    openGateway({
      server: z.object(serverSettings.shape).parse({
        egress_url: ISSUER,
        drain_secs: 0,
        errors_base_url: ISSUER,
        port: 0,
        endpoint_throttle: { enabled: false },
      }) as GatewayOptions['server'],
      openapi: z
        .object(openapiSettings.shape)
        .parse({ exposure: 'public' }) as GatewayOptions['openapi'],
      issuer: ISSUER,
      routes: [...oauthRoutes, ...discoveryRoutes, ...applicationRoutes],
      refs: new Map([
        ['tokens', tokens],
        ['discovery', discovery.ref],
        ['applications', applications.ref],
      ]) as unknown as GatewayOptions['refs'],
      plane: 'all',
      log: silentLogger,
      metrics: createMetrics(),
      clock: fixture.clock,
      random: systemRandom(systemClock),
    })
  gateway = open(fixture.tokens)
  nonceGateway = open(strict.ref)
  base = (await gateway.listen()).url
  nonceBase = (await nonceGateway.listen()).url
  for (const each of [gateway, nonceGateway]) each.started()
})
test.after.always(async () => {
  await Promise.all([gateway?.close(), nonceGateway?.close()])
  for (const stop of stops) await stop()
  await fixture?.close()
})

/** The issuer's public name connects to the test socket and stays the Host of the request. */
const through =
  (url: string): oidc.CustomFetch =>
  async (target, { method, headers, body }) => {
    const answer = await request(target.replace(ISSUER, url), {
      method: method as Dispatcher.HttpMethod,
      headers: { ...headers, host: new URL(ISSUER).host },
      body: body === undefined || body === null ? null : String(body as string),
    })
    const text = await answer.body.text()
    return new Response(text === '' ? null : text, {
      status: answer.statusCode,
      headers: answer.headers as Record<string, string>,
    })
  }

function discover(clientId: string, authentication: oidc.ClientAuth, url = base) {
  return oidc.discovery(new URL(ISSUER), clientId, undefined, authentication, {
    [oidc.customFetch]: through(url),
  })
}

const post = (path: string, form: Record<string, string> | string, headers = {}) =>
  fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
  })

for (const [title, authenticate] of [
  ['client_secret_basic', oidc.ClientSecretBasic],
  ['client_secret_post', oidc.ClientSecretPost],
] as const) {
  test(`openid-client gets and introspects a token with ${title}`, async (t) => {
    const app = await fixture.application(tenantId)
    const client = await discover(app.clientId, authenticate(app.secret))
    const tokens = await oidc.clientCredentialsGrant(client, { scope: 'users:read' })
    t.is(tokens.token_type, 'bearer')
    t.is(tokens.expires_in, 300)
    t.is(tokens.scope, 'users:read')
    const told = await oidc.tokenIntrospection(client, tokens.access_token)
    t.like(told, { active: true, client_id: app.clientId, iss: ISSUER, tenant_id: tenantId })
  })
}

test('openid-client authenticates with its own key', async (t) => {
  const { privateKey, publicKey } = await crypto.subtle.generateKey(
    { name: 'ECDSA', namedCurve: 'P-256' },
    true,
    ['sign', 'verify'],
  )
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', publicKey)
  const app = await fixture.application(tenantId, {
    tokenEndpointAuthMethod: 'private_key_jwt',
    secretSha256: null,
    jwks: { keys: [{ kty, crv, x, y }] },
  })
  const client = await discover(app.clientId, oidc.PrivateKeyJwt(privateKey))
  const tokens = await oidc.clientCredentialsGrant(client)
  t.is((await oidc.tokenIntrospection(client, tokens.access_token)).active, true)
})

for (const required of [false, true]) {
  test(`openid-client binds a token by DPoP and uses it${required ? ', with nonces' : ''}`, async (t) => {
    const app = await fixture.application(tenantId, { dpopBoundAccessTokens: true })
    const url = required ? nonceBase : base
    const client = await discover(app.clientId, oidc.ClientSecretBasic(app.secret), url)
    const pair = await oidc.randomDPoPKeyPair('ES256')
    const DPoP = oidc.getDPoPHandle(client, pair)
    const tokens = await oidc.clientCredentialsGrant(client, undefined, { DPoP })
    t.is(tokens.token_type, 'dpop')
    const resource = new URL(`${ISSUER}/api/v1/applications`)
    const read = () =>
      oidc.fetchProtectedResource(client, tokens.access_token, resource, 'GET', null, undefined, {
        DPoP,
      })
    t.is((await read()).status, 200)
    const bare = await fetch(`${url}/api/v1/applications`, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    })
    t.is(bare.status, 401)
    t.is(((await bare.json()) as { error: string }).error, 'invalid_dpop_proof')
  })
}

test('applications are created, listed in pages and read over HTTP', async (t) => {
  const own = await fixture.tenant('http-applications')
  const agent = await fixture.agent(own)
  const granted = await fixture.tokens.grantAgent({
    tenantId: own,
    organizationId: null,
    agentId: agent.id,
    scopes: ['applications:manage'],
    keyFingerprint: agent.fingerprint,
    jkt: null,
    challengeId: null,
    address: null,
  })
  if (granted.tag !== 'granted') return t.fail(granted.tag)
  const authorization = `Bearer ${granted.accessToken}`
  const create = (body: unknown, more = {}) =>
    fetch(`${base}/api/v1/applications`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', ...more },
      body: JSON.stringify(body),
    })
  const body = { name: 'shop', redirect_uris: ['https://shop.example/cb'], unknown: 1 }
  const first = await create(body, { 'idempotency-key': 'one' })
  t.is(first.status, 201)
  const record = (await first.json()) as Record<string, unknown>
  t.is(first.headers.get('location'), `/api/v1/applications/${record['id']}`)
  t.regex(String(record['client_secret']), /^svcs_/)
  t.false(first.headers.has('idempotency-replayed'))
  const again = await create(body, { 'idempotency-key': 'one' })
  t.is(again.status, 201)
  t.is(again.headers.get('idempotency-replayed'), 'true')
  const { client_secret: _, ...withoutSecret } = record
  t.deepEqual(await again.json(), withoutSecret)
  t.is((await create({ ...body, name: 'x' }, { 'idempotency-key': 'one' })).status, 422)
  for (const name of ['shop\u202E', 'sh\u2068op', 'sh\u0007op'])
    t.is((await create({ ...body, name })).status, 400, JSON.stringify(name))
  const bad = await create({ ...body, redirect_uris: ['http://shop.example'] })
  t.is(bad.status, 400)
  t.like(await bad.json(), {
    error: 'invalid_redirect_uri',
    errors: [{ pointer: '#/redirect_uris/0' }],
  })
  t.is((await create({ ...body, scopes: ['vault:manage'] })).status, 403)

  const read = await fetch(`${base}${first.headers.get('location')}`, {
    headers: { authorization },
  })
  t.deepEqual(await read.json(), withoutSecret)

  fixture.clock.advance(1)
  await create({ name: 'second' })
  const page = await fetch(`${base}/api/v1/applications?limit=1`, { headers: { authorization } })
  t.like(await page.json(), [{ name: 'second' }])
  const next = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1]
  const rest = await fetch(next!.replace(ISSUER, base), { headers: { authorization } })
  t.like(await rest.json(), [{ name: 'shop' }])
  t.false(rest.headers.has('link'))
  for (const query of [
    'limit=0',
    'limit=-1',
    'limit=x',
    'cursor_id=x',
    `cursor_ts=2026-01-01T00:00:00Z`,
  ]) {
    const answer = await fetch(`${base}/api/v1/applications?${query}`, {
      headers: { authorization },
    })
    t.is(answer.status, 400, query)
    const { detail } = (await answer.json()) as { detail: string }
    if (query.startsWith('limit')) t.is(detail, 'query:limit: A whole number of 1 or more.')
  }
  for (const limit of ['9999', '99999999999999999999', '0200']) {
    const answer = await fetch(`${base}/api/v1/applications?limit=${limit}`, {
      headers: { authorization },
    })
    t.is(answer.status, 200, limit)
  }
  const app = await fixture.application(own, { scopes: ['applications:manage'] })
  const client = await discover(app.clientId, oidc.ClientSecretBasic(app.secret))
  const service = await oidc.clientCredentialsGrant(client, { scope: 'applications:manage' })
  const byService = await fetch(`${base}/api/v1/applications`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.access_token}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  })
  t.is(byService.status, 403, 'only a direct agent token creates')
})

test('an application is replaced, gets a new secret and is deleted over HTTP', async (t) => {
  const own = await fixture.tenant('http-managed')
  const agent = await fixture.agent(own)
  const granted = await fixture.tokens.grantAgent({
    tenantId: own,
    organizationId: null,
    agentId: agent.id,
    scopes: ['applications:manage'],
    keyFingerprint: agent.fingerprint,
    jkt: null,
    challengeId: null,
    address: null,
  })
  if (granted.tag !== 'granted') return t.fail(granted.tag)
  const { accessToken } = granted
  const app = await fixture.application(own, {
    scopes: ['openid'],
    allowedOrigins: ['https://a.example'],
  })
  const send = (method: string, path = '', body?: unknown) =>
    fetch(`${base}/api/v1/applications/${app.id}${path}`, {
      method,
      headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const replaced = await send('PUT', '', { name: 'renamed' })
  t.is(replaced.status, 200)
  const record = (await replaced.json()) as Record<string, unknown>
  t.like(record, { name: 'renamed', redirect_uris: [], allowed_origins: [], status: 'active' })
  t.deepEqual(record['grant_types'], ['authorization_code', 'refresh_token'])
  t.false('client_secret' in record, 'the earlier secret is kept')
  t.is((await send('PUT', '', { redirect_uris: [] })).status, 400, 'the name is required')
  t.is((await send('PUT', '', { name: 'x', scopes: ['vault:manage'] })).status, 403)

  const authenticates = async (secret: string) =>
    (await post('/oauth/revoke', { client_id: app.id, client_secret: secret, token: 'x' })).status
  t.is(await authenticates(app.secret), 200)
  const rotated = await send('POST', '/rotate-secret', { overlap_secs: 60 })
  t.is(rotated.status, 200)
  t.is(rotated.headers.get('cache-control'), 'no-store')
  const { client_secret: next, ...told } = (await rotated.json()) as { client_secret: string }
  t.deepEqual(Object.keys(told), ['client_id', 'rotated_at'])
  fixture.tokens.send('invalidate', { ids: [app.id] })
  t.is(await authenticates(app.secret), 200, 'both are valid during the overlap')
  t.is(await authenticates(next), 200)
  for (const body of [{ overlap_secs: -1 }, { overlap_secs: 86_401 }, { overlap_secs: 'x' }])
    t.is((await send('POST', '/rotate-secret', body)).status, 400)

  t.is((await send('DELETE')).status, 204)
  fixture.tokens.send('invalidate', { ids: [app.id] })
  t.is(await authenticates(next), 401)
  t.is((await send('DELETE')).status, 404)
  t.is((await send('PUT', '', { name: 'x' })).status, 404)
})

test('openid-client revokes its tokens', async (t) => {
  const app = await fixture.application(tenantId)
  const client = await discover(app.clientId, oidc.ClientSecretBasic(app.secret))
  const { access_token } = await oidc.clientCredentialsGrant(client)
  t.true((await oidc.tokenIntrospection(client, access_token)).active)
  await oidc.tokenRevocation(client, access_token)
  t.false((await oidc.tokenIntrospection(client, access_token)).active)
  await t.notThrowsAsync(oidc.tokenRevocation(client, access_token), 'once more is no error')
  t.is((await post('/oauth/revoke', {}, { authorization: app.authorization })).status, 400)
  t.is((await post('/oauth/revoke', { token: access_token, client_id: app.id })).status, 401)
  const twice = await post('/oauth/revoke', 'token=a&token=b', { authorization: app.authorization })
  t.is(twice.status, 400)
})

test('discovery documents have an entity tag, and requests with it get 304', async (t) => {
  const first = await fetch(`${base}/.well-known/openid-configuration`)
  t.is(first.status, 200)
  t.is(first.headers.get('cache-control'), 'public, max-age=300')
  const etag = first.headers.get('etag')!
  const second = await fetch(`${base}/.well-known/openid-configuration`, {
    headers: { 'if-none-match': etag },
  })
  t.is(second.status, 304)
  const unknown = await fetch(`${base}/credential-issuers/unknown/.well-known/jwks.json`)
  t.is(unknown.status, 404)
  t.regex(unknown.headers.get('content-type') ?? '', /problem\+json/)
})

test('two keys in one proof header are refused', async (t) => {
  const app = await fixture.application(tenantId)
  const form = {
    grant_type: 'client_credentials',
    client_id: app.clientId,
    client_secret: app.secret,
  }
  const pair = freshKeyPair('ed25519')
  const dpop = `${await fixture.proof(pair)}, ${await fixture.proof(pair)}`
  t.is((await post('/oauth/token', form, { dpop })).status, 401)
})
