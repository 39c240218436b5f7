/** Dynamic client registration over HTTP with openid-client (RFC 7591, RFC 7592). */
import { createServer, type Server } from 'node:https'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import test from 'ava'
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import * as oidc from 'openid-client'
import { REFUSED_URLS } from '../../../actors/platform/outbound-http/address-corpus.js'
import { LOOPBACK } from '../../../support/fleet/loopback.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { authorized, CALLBACK, callbackOf, journey } from '../../../support/oauth/relying-party.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { ONLY_SLUG } from '../../../support/fleet/profiles.js'
import { onlyTenant } from '../../../support/identity/only-tenant.js'
import { registering } from '../../../support/identity/registering.js'
import { sharedService } from '../../../support/service.js'
import { callAt, type Json, tenantAgent } from '../../../support/identity/tenant-agent.js'

const running = await sharedService('hosts')
const agent = await tenantAgent(running.baseUrl)
const client = registering(running.baseUrl, agent)

/** Serves documents over TLS on loopback. */
async function served(documents: Record<string, () => unknown>) {
  const options = { key: readFileSync(LOOPBACK.keyPath), cert: LOOPBACK.pem }
  const server: Server = createServer(options, (request, response) => {
    const document = documents[request.url ?? '']
    if (document === undefined) return response.writeHead(404).end()
    return response.setHeader('content-type', 'application/json').end(JSON.stringify(document()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    at: (path: string) => `https://localhost:${(server.address() as AddressInfo).port}${path}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(resolve)
      }),
  }
}

test('openid-client registers itself and signs a user in', async (t) => {
  const person = await bootstrapped(running)
  // A token of that user's tenant, as its operator would create it.
  const { token } = await operatorToken(person.tenantId)
  const config = await oidc.dynamicClientRegistration(
    new URL(running.baseUrl),
    {
      client_name: 'Registered',
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
      scope: 'openid email',
      id_token_signed_response_alg: 'ES256',
    },
    undefined,
    { initialAccessToken: token, execute: [oidc.allowInsecureRequests] },
  )
  const { client_id: clientId, client_secret: secret } = config.clientMetadata()
  t.is(typeof secret, 'string')
  t.is(config.serverMetadata().registration_endpoint, `${running.baseUrl}/oauth/register`)

  const browser = openBrowser(running)
  const begun = await journey({ config }, { scope: 'openid email' })
  const callback = callbackOf(await authorized(browser, person, begun.url))
  const tokens = await oidc.authorizationCodeGrant(config, callback, begun.checks)
  t.is(tokens.claims()!.aud, clientId)
  t.is((await oidc.refreshTokenGrant(config, tokens.refresh_token!)).token_type, 'bearer')
})

/** An initial access token of any tenant, stored as the service does. */
async function operatorToken(tenantId: string) {
  const token = `test-${Math.random()}`
  await sql(running)`
    insert into registration_tokens (tenant_id, id, token_sha256, scopes, max_uses, created_at,
    expires_at)
    values (${tenantId}, gen_random_uuid(), sha256(${Buffer.from(token)}::bytea), '{}', 1, now(),
    now() + interval '1 hour')`
  return { token }
}

test('the response contains the metadata in force', async (t) => {
  const { body, headers, path } = await client.registered({
    client_name: 'Shop',
    redirect_uris: [CALLBACK],
    contacts: ['ops@shop.example'],
    client_uri: 'https://shop.example',
    logo_uri: 'https://shop.example/logo.png',
    policy_uri: 'https://shop.example/policy',
    tos_uri: 'https://shop.example/terms',
    software_id: 'shop',
    software_version: '1',
    unheard_of: 'passed over',
  })
  t.is(headers.get('cache-control'), 'no-store')
  t.like(body, {
    client_name: 'Shop',
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['authorization_code'],
    response_types: ['code'],
    scope: 'openid profile email',
    application_type: 'web',
    contacts: ['ops@shop.example'],
    policy_uri: 'https://shop.example/policy',
    software_id: 'shop',
    subject_type: 'pairwise',
    id_token_signed_response_alg: 'ES256',
    client_secret_expires_at: 0,
  })
  t.false('unheard_of' in body)
  t.is(body['registration_client_uri'], `${running.baseUrl}${path}`)
  t.true(Math.abs(Number(body['client_id_issued_at']) - Date.now() / 1000) < 60)
  const app = await agent.ask('GET', `/api/v1/applications/${String(body['client_id'])}`)
  t.like(app.body, { name: 'Shop', tenant_id: agent.tenantId, redirect_uris: [CALLBACK] })
})

test('a registration is read, replaced and deleted with its own token', async (t) => {
  const { body, path, token } = await client.registered({
    client_name: 'Before',
    contacts: ['a@b.c'],
  })
  const clientId = String(body['client_id'])
  const read = await client.send('GET', path, token)
  t.is(read.status, 200)
  t.false('client_secret' in read.body, 'shown once')
  t.like(read.body, { client_name: 'Before', registration_access_token: token })

  const replaced = await client.send('PUT', path, token, {
    client_id: clientId,
    client_secret: body['client_secret'],
    client_name: 'After',
    redirect_uris: ['https://app.example/other'],
    token_endpoint_auth_method: 'none',
  })
  t.is(replaced.status, 200, replaced.text)
  t.like(replaced.body, { client_name: 'After', redirect_uris: ['https://app.example/other'] })
  t.false('contacts' in replaced.body, 'what is left out is gone')
  t.false('client_secret' in replaced.body)
  const again = await client.send('PUT', path, token, {
    client_id: clientId,
    redirect_uris: [CALLBACK],
  })
  t.is(typeof again.body['client_secret'], 'string', 'it needs one again')
  t.not(again.body['client_secret'], body['client_secret'])

  t.is((await client.send('DELETE', path, token)).status, 204)
  for (const method of ['GET', 'DELETE'])
    t.is((await client.send(method, path, token)).status, 401, `${method} afterwards`)
  const used = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa(`${clientId}:${String(again.body['client_secret'])}`)}`,
    },
    body: new URLSearchParams({ grant_type: 'authorization_code', code: 'x' }),
  })
  t.is(used.status, 401)
})

test('a client with jwks_uri signs its assertions with its keys', async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  const kid = await calculateJwkThumbprint(jwk)
  const other = { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'not for us' }
  const host = await served({ '/jwks.json': () => ({ keys: [other, { ...jwk, kid }] }) })
  t.teardown(host.close)
  const { body } = await client.registered({
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    token_endpoint_auth_method: 'private_key_jwt',
    jwks_uri: host.at('/jwks.json'),
    scope: 'users:read',
  })
  t.false('client_secret' in body)
  const discover = (key: typeof privateKey) =>
    oidc.discovery(
      new URL(running.baseUrl),
      String(body['client_id']),
      undefined,
      oidc.PrivateKeyJwt({ key, kid }),
      { execute: [oidc.allowInsecureRequests] },
    )
  const tokens = await oidc.clientCredentialsGrant(await discover(privateKey))
  t.is(tokens.scope, 'users:read')
  const stranger = await generateKeyPair('ES256')
  const refused = await t.throwsAsync(
    oidc.clientCredentialsGrant(await discover(stranger.privateKey)),
  )
  t.is((refused as { status?: number }).status, 401)
})

test('a client rotates its keys: the new one works, the removed one is refused', async (t) => {
  t.timeout(120_000)
  const keyOf = async () => {
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const jwk = await exportJWK(publicKey)
    return { privateKey, jwk: { ...jwk, kid: await calculateJwkThumbprint(jwk) } }
  }
  const [first, second] = [await keyOf(), await keyOf()]
  let keys = [first.jwk]
  const host = await served({ '/jwks.json': () => ({ keys }) })
  t.teardown(host.close)
  const { body } = await client.registered({
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    token_endpoint_auth_method: 'private_key_jwt',
    jwks_uri: host.at('/jwks.json'),
    scope: 'users:read',
  })
  const ask = async ({ privateKey: key, jwk: { kid } }: typeof first) => {
    const authentication = oidc.PrivateKeyJwt({ key, kid })
    const allow = { execute: [oidc.allowInsecureRequests] }
    const id = String(body['client_id'])
    const config = await oidc.discovery(
      new URL(running.baseUrl),
      id,
      undefined,
      authentication,
      allow,
    )
    return oidc.clientCredentialsGrant(config).then(
      () => 200,
      (error: { status?: number }) => error.status,
    )
  }
  t.is(await ask(first), 200)
  keys = [second.jwk]
  // An unknown key causes a new fetch, at most once in 15 seconds.
  let answer = await ask(second)
  for (let tries = 0; answer !== 200 && tries < 60; tries += 1) {
    t.is(answer, 401)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    answer = await ask(second)
  }
  t.is(answer, 200)
  t.is(await ask(first), 401, 'the removed key')
  t.is(await ask(second), 200)
})

test('a sector identifier document must list every redirect URI', async (t) => {
  const host = await served({
    '/good.json': () => [CALLBACK, 'https://other.example/cb'],
    '/bad.json': () => ['https://other.example/cb'],
    '/object.json': () => ({ uris: [CALLBACK] }),
  })
  t.teardown(host.close)
  const good = await client.registered({ sector_identifier_uri: host.at('/good.json') })
  t.is(good.body['sector_identifier_uri'], host.at('/good.json'))
  const token = await client.initialToken()
  for (const path of ['/bad.json', '/object.json', '/none.json']) {
    const answer = await client.register(token, {
      redirect_uris: [CALLBACK],
      sector_identifier_uri: host.at(path),
    })
    t.like(answer, { status: 400, body: { error: 'invalid_client_metadata' } }, path)
  }
})

test('registration is absent from the API and discovery while it is disabled', async (t) => {
  const off = await sharedService('plain')
  t.teardown(() => off.end())
  const answer = await callAt(off.baseUrl, '/oauth/register', { method: 'POST' })
  t.is(answer.status, 404)
  t.is((await callAt(off.baseUrl, '/oauth/register/x')).status, 404)
  const metadata = await callAt(off.baseUrl, '/.well-known/openid-configuration')
  t.false('registration_endpoint' in metadata.body)
  const { body } = await callAt(off.baseUrl, '/api/v1/capabilities')
  t.false((body['capabilities'] as string[]).includes('oauth.dynamic_client_registration'))
  const on = await callAt(running.baseUrl, '/api/v1/capabilities')
  t.true((on.body['capabilities'] as string[]).includes('oauth.dynamic_client_registration'))
})

test('open registration: one tenant, user scopes only, and no address of the service', async (t) => {
  const open = await sharedService('single')
  t.teardown(() => open.end())
  const { tenantId } = await onlyTenant(open)
  const post = (metadata: Json) =>
    callAt(open.baseUrl, '/oauth/register', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: [CALLBACK], ...metadata }),
    })
  const made = await post({})
  t.like(made, { status: 201, body: { tenant: ONLY_SLUG } })
  t.is((await post({ tenant: tenantId })).status, 201)
  t.is((await post({ tenant: 'control-plane' })).status, 400)
  t.is((await post({ scope: 'openid users:read' })).body['scope'], 'openid')
  t.is((await post({ scope: 'openid offline_access phone' })).status, 201)
  // An empty string is an absent member.
  for (const [url] of REFUSED_URLS.filter(([text]) => text !== '')) {
    for (const member of ['jwks_uri', 'sector_identifier_uri']) {
      const answer = await post({ [member]: url })
      t.is(answer.status, 400, `${member} ${url}`)
    }
  }
})

test('a registered client may keep a stored name that breaks the rule', async (t) => {
  const { body, path, token } = await client.registered({ client_name: 'New' })
  const id = String(body['client_id'])
  const old = 'Pay at https://old.example'
  await sql(running)`update applications set name = ${old} where id = ${id}`
  const put = (name: string) =>
    client.send('PUT', path, token, { client_id: id, redirect_uris: [CALLBACK], client_name: name })
  t.is((await put(old)).body['client_name'], old)
  t.is((await put(`${old}/`)).body['error'], 'invalid_client_metadata')
  t.is((await put('New')).body['client_name'], 'New')
  t.is((await put(old)).body['error'], 'invalid_client_metadata')
})
