/** Clients that sign in with the URL of their metadata document (Client ID Metadata Documents). */
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'
import {
  arrived,
  begin,
  codeOf,
  DEFAULT_SLUG,
  makeDefault,
  post,
} from '../../../support/oauth/documented-client.js'
import { CLIENT_CALLBACK, documentServer } from '../../../support/oauth/document-server.js'
import { isConsent } from '../../../support/oauth/relying-party.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { SERVING_PROCESSES } from '../../../support/fleet/through.js'
import { LOOPBACK, REACHES_LOOPBACK } from '../../../support/fleet/loopback.js'
import { testService } from '../../../support/service.js'

const SPECIAL = {
  'loop4.example': '127.0.0.1',
  'loop6.example': '::1',
  'cloud.example': '169.254.169.254',
  'mapped.example': '::ffff:10.0.0.1',
  'carrier.example': '100.64.0.1',
}

const host = await documentServer()
const slug = { SVC_TENANT__DEFAULT_TENANT_SLUG: DEFAULT_SLUG }
const running = await testService({
  transport: 'plain_http',
  environment: { ...REACHES_LOOPBACK, ...slug },
})
const strict = await testService({
  transport: 'plain_http',
  environment: {
    ...slug,
    SVC_VAULT__EGRESS_CA_PEM_PATH: LOOPBACK.certPath,
    SVC_VAULT__EGRESS_DNS_OVERRIDES: `{ ${Object.entries(SPECIAL)
      .map(([name, address]) => `"${name}" = "${address}"`)
      .join(', ')} }`,
  },
})
const person = await bootstrapped(running)
await makeDefault(running, person)
const stranger = await bootstrapped(strict)
await makeDefault(strict, stranger)

async function authorize(clientId: string, more: Record<string, string> = {}, at = running) {
  const answer = await fetch(at.baseUrl + begin(clientId, more).path, { redirect: 'manual' })
  const text = await answer.text()
  const body = (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, unknown>
  return { status: answer.status, headers: answer.headers, body }
}

const formOf = ({ path }: { readonly path: string }) =>
  Object.fromEntries(new URL(path, running.baseUrl).searchParams)

/** The document is fetched again at the next use. */
async function forgetFreshness(url: string) {
  const text = `update remote_documents set fresh_until = now() - interval '1 minute' where url = $1`
  await sql(running.db.database, text, [url])
}

async function settings(policy: unknown) {
  const stored = JSON.stringify({ client_id_metadata: policy })
  const text = 'update tenants set settings = settings || $2::jsonb where id = $1'
  await sql(running.db.database, text, [person.tenantId, stored])
}

test.serial('a client signs in with its URL, and its tokens name it by that URL', async (t) => {
  const url = host.client()
  const { page, form, callback } = await codeOf(running, person, url)
  t.true(isConsent(page))
  t.is(callback.searchParams.get('iss'), running.issuer)
  const clientHost = new URL(url).host
  t.true(page.html.includes(`data-client-host="${clientHost}"`))
  t.true(page.html.includes('data-redirect-host="client.example"'))
  t.true(page.html.includes('data-first-seen="'))
  t.false(page.html.includes('data-loopback-only'))
  t.true(page.html.includes('Wanderer'))

  const issued = await post(running.baseUrl, '/oauth/token', form)
  t.is(issued.status, 200, JSON.stringify(issued.body))
  const claims = (token: unknown) =>
    JSON.parse(Buffer.from(String(token).split('.')[1]!, 'base64url').toString()) as {
      client_id: string
      aud: string
    }
  t.is(claims(issued.body['access_token']).client_id, url)
  t.is(claims(issued.body['id_token']).aud, url)
  const userinfo = await fetch(`${running.baseUrl}/userinfo`, {
    headers: { authorization: `Bearer ${String(issued.body['access_token'])}` },
  })
  t.is(userinfo.status, 200)

  const refreshed = await post(running.baseUrl, '/oauth/token', {
    grant_type: 'refresh_token',
    client_id: url,
    refresh_token: String(issued.body['refresh_token']),
  })
  t.is(refreshed.status, 200, JSON.stringify(refreshed.body))
  t.is(typeof refreshed.body['scope'], 'string')
  const again = await codeOf(running, person, url)
  t.is(host.asked.filter((path) => url.endsWith(path)).length, 1)
  t.false(again.asked, 'the consent is remembered')
  const revoked = await post(running.baseUrl, '/oauth/revoke', {
    client_id: url,
    token: String(refreshed.body['refresh_token']),
  })
  t.is(revoked.status, 200)
})

test.serial('the token endpoint refuses other clients, and the id of the row', async (t) => {
  const url = host.client()
  const other = host.client()
  const { form } = await codeOf(running, person, url)
  await codeOf(running, person, other)
  const stolen = await post(running.baseUrl, '/oauth/token', { ...form, client_id: other })
  t.deepEqual([stolen.status, stolen.body['error']], [400, 'invalid_grant'])
  const [row] = await sql<{ id: string }>(running)`
    select id from observed_clients where client_id = ${url}`
  const byId = await post(running.baseUrl, '/oauth/token', { ...form, client_id: row!.id })
  t.deepEqual([byId.status, byId.body['error']], [401, 'invalid_client'])
  t.is((await authorize(row!.id)).body['error'], 'invalid_client')
  const from = async (origin: string) => {
    const body = new URLSearchParams(form)
    const headers = { origin }
    return fetch(`${running.baseUrl}/oauth/token`, { method: 'POST', headers, body })
  }
  const foreign = await from('https://evil.example')
  t.is(foreign.headers.get('access-control-allow-origin'), null)
  t.is((await authorize(url)).status, 303)
  const { form: next } = await codeOf(running, person, url)
  Object.assign(form, next)
  const own = await from('https://client.example')
  t.is(own.status, 200)
  t.is(own.headers.get('access-control-allow-origin'), 'https://client.example')
})

test.serial('a page on a loopback port redeems the code of its document', async (t) => {
  const url = host.client({ redirect_uris: ['http://localhost/callback'] })
  const origin = 'http://localhost:6274'
  const { form } = await codeOf(running, person, url, { redirect_uri: `${origin}/callback` })
  const from = (page: string) =>
    fetch(`${running.baseUrl}/oauth/token`, {
      method: 'POST',
      headers: { origin: page },
      body: new URLSearchParams(form),
    })
  const redeemed = await from(origin)
  t.is(redeemed.status, 200)
  t.is(redeemed.headers.get('access-control-allow-origin'), origin)
  for (const page of [
    'http://127.0.0.1:6274',
    'https://localhost:6274',
    'http://localhost.evil.example',
  ])
    t.is((await from(page)).headers.get('access-control-allow-origin'), null, page)
})

test.serial('null and an empty string are no members of a document', async (t) => {
  const optional =
    'client_name client_uri logo_uri policy_uri tos_uri jwks_uri jwks scope contacts grant_types response_types ' +
    'token_endpoint_auth_method backchannel_logout_uri post_logout_redirect_uris id_token_signed_response_alg'
  for (const nothing of [null, '']) {
    const members = Object.fromEntries(optional.split(' ').map((name) => [name, nothing]))
    t.is((await authorize(host.client(members))).status, 303, String(nothing))
  }
})

const KEY = { kty: 'EC', crv: 'P-256', x: 'a', y: 'b' }

test.serial('documents that break a rule are refused on a page, never redirected', async (t) => {
  const document = (url: string, more: object = {}) =>
    JSON.stringify({ client_id: url, redirect_uris: [CLIENT_CALLBACK], ...more })
  const serve = (name: string, body: (url: string) => string | Buffer, more: object = {}) =>
    host.serve(`/bad/${name}`, { body: body(`${host.origin}/bad/${name}`), ...more })
  const bad: Record<string, string> = {
    'another client_id, by a slash': serve('slash', (url) => document(`${url}/`)),
    'a redirect': serve('moved', (url) => document(url), {
      status: 301,
      headers: { location: `${host.origin}/client-1.json` },
    }),
    'no content': serve('empty', () => '', { status: 204 }),
    'not found': `${host.origin}/bad/unknown`,
    '6 KiB': serve('long', (url) => document(url, { x: 'x'.repeat(6 * 1024) })),
    'a text': serve('text', (url) => document(url), { headers: { 'content-type': 'text/plain' } }),
    'a secret': serve('secret', (url) => document(url, { client_secret: 'x' })),
    'the expiry of a secret': serve('expiry', (url) =>
      document(url, { client_secret_expires_at: 0 }),
    ),
    'a method with a secret': serve('method', (url) =>
      document(url, { token_endpoint_auth_method: 'client_secret_post' }),
    ),
    'a private key': serve('private', (url) =>
      document(url, { jwks: { keys: [{ ...KEY, d: 'c' }] } }),
    ),
    'a symmetric key': serve('symmetric', (url) =>
      document(url, { jwks: { keys: [{ kty: 'oct', k: 'c' }] } }),
    ),
    'authentication without keys': serve('keyless', (url) =>
      document(url, { token_endpoint_auth_method: 'private_key_jwt' }),
    ),
    'authentication with an empty key set': serve('no-keys', (url) =>
      document(url, { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] } }),
    ),
    'a plain jwks_uri': serve('plain', (url) =>
      document(url, { jwks_uri: 'http://client.example/jwks.json' }),
    ),
    'no redirect URI': serve('nowhere', (url) => JSON.stringify({ client_id: url })),
    'an array': serve('array', (url) => `[${document(url)}]`),
    'a number': serve('number', () => '7'),
    null: serve('null', () => 'null'),
    'duplicate members': serve('twice', (url) => `{"client_id":"${url}",${document(url).slice(1)}`),
    'invalid UTF-8': serve('utf8', (url) =>
      Buffer.concat([
        Buffer.from(document(url).slice(0, -1)),
        Buffer.from([0x2c, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      ]),
    ),
    'dot segments': `${host.origin}/bad/%2e%2e/client-1.json`,
    'a user': host.client().replace('https://', 'https://user@'),
    'a fragment': `${host.client()}#part`,
    'no path': host.origin,
    'a space': `${host.origin}/bad/a b`,
    'a backslash': `${host.origin}/bad\\a`,
  }
  for (const [name, url] of Object.entries(bad)) {
    const { status, body, headers } = await authorize(url)
    t.deepEqual(
      [status, body['error']],
      [400, 'invalid_client'],
      `${name}: ${JSON.stringify(body)}`,
    )
    t.is(headers.get('location'), null, name)
  }
  const browser = openBrowser(running)
  const page = await browser.get(begin(bad['a secret']!).path).gives(400)
  t.regex(page.html, /client_secret/)
})

test.serial('a document is read no longer than five seconds', async (t) => {
  const url = host.serve('/slow', (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write('{')
  })
  const { status, body } = await authorize(url)
  t.deepEqual([status, body['error']], [400, 'invalid_client'])
  t.regex(String(body['error_description']), /timeout/)
})

test.serial('documents and key sets on private addresses are refused', async (t) => {
  for (const name of [...Object.keys(SPECIAL), '10.0.0.1', '[::1]', 'localhost', '2130706433']) {
    const { status, body } = await authorize(`https://${name}/client.json`, {}, strict)
    t.deepEqual([status, body['error']], [400, 'invalid_client'], name)
  }
  t.is(host.asked.includes('/client.json'), false)
})

test.serial('redirect URIs are exact, apart from the port of a loopback one', async (t) => {
  const url = host.client({
    redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback?a=b'],
  })
  const refused = [
    'https://client.example/callback',
    'http://localhost:58135/other',
    'http://localhost:58135/callback?a=b',
    'http://localhost:58135/callback/',
    'http://[::1]:58135/callback',
    'http://127.0.0.1:58135/callback',
    'https://localhost:58135/callback',
    'http://localhost.evil.example:80/callback',
    'http://user@localhost:80/callback',
  ]
  for (const uri of refused) {
    const { status, body } = await authorize(url, { redirect_uri: uri })
    t.deepEqual([status, body['error']], [400, 'invalid_redirect_uri'], uri)
  }
  t.is((await authorize(url, { redirect_uri: 'http://127.0.0.1:9/callback?a=b' })).status, 303)
  const redirect_uri = 'http://localhost:58135/callback'
  const { page, form, callback } = await codeOf(running, person, url, { redirect_uri })
  t.true(page.html.includes('data-loopback-only'))
  t.is(callback.origin, 'http://localhost:58135')
  const port = await post(running.baseUrl, '/oauth/token', {
    ...form,
    redirect_uri: 'http://localhost:58136/callback',
  })
  t.is(port.body['error'], 'invalid_grant', 'the redirect URI of this request, exactly')
  t.is((await post(running.baseUrl, '/oauth/token', form)).status, 200)
})

test.serial(
  'PKCE is required, and client_credentials is not a grant of such a client',
  async (t) => {
    const url = host.client({ grant_types: ['authorization_code', 'client_credentials'] })
    const query = new URLSearchParams({
      client_id: url,
      response_type: 'code',
      redirect_uri: CLIENT_CALLBACK,
    })
    const answer = await fetch(`${running.baseUrl}/oauth/authorize?${query}`, {
      redirect: 'manual',
    })
    t.is(((await answer.json()) as { error: string }).error, 'pkce_required')
    const { status, body } = await post(running.baseUrl, '/oauth/token', {
      grant_type: 'client_credentials',
      client_id: url,
    })
    t.deepEqual([status, body['error']], [403, 'unauthorized_client'])
  },
)

test.serial('a document that changes after the decision does not change it', async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k1' }] }
  const path = '/swapped.json'
  const strong = { token_endpoint_auth_method: 'private_key_jwt', jwks }
  const url = host.client(strong, path)
  const { form } = await codeOf(running, person, url)
  host.client({}, path)
  await forgetFreshness(url)
  const open = await post(running.baseUrl, '/oauth/token', form)
  t.deepEqual([open.status, open.body['error']], [401, 'invalid_client'])
  const assertion = () =>
    new SignJWT({})
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setIssuer(url)
      .setSubject(url)
      .setAudience(running.issuer)
      .setJti(crypto.randomUUID())
      .setIssuedAt()
      .setExpirationTime('2m')
      .sign(privateKey)
  const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
  const signed = { client_assertion_type, client_assertion: await assertion() }
  const issued = await post(running.baseUrl, '/oauth/token', { ...form, ...signed })
  t.is(issued.status, 200, JSON.stringify(issued.body))
  t.is((await post(running.baseUrl, '/oauth/token', { ...form, ...signed })).status, 401)

  // A refresh follows the current document, and the next authorization asks again.
  const browser = openBrowser(running)
  t.true((await codeOf(running, person, url, {}, browser)).asked)
  t.false((await codeOf(running, person, url, {}, browser)).asked)
  host.client(strong, path)
  await forgetFreshness(url)
  const refresh = {
    grant_type: 'refresh_token',
    client_id: url,
    refresh_token: String(issued.body['refresh_token']),
  }
  const unsigned = await post(running.baseUrl, '/oauth/token', refresh)
  t.deepEqual([unsigned.status, unsigned.body['error']], [401, 'invalid_client'])
  const refreshed = await post(running.baseUrl, '/oauth/token', {
    ...refresh,
    client_assertion_type,
    client_assertion: await assertion(),
  })
  t.is(refreshed.status, 200, JSON.stringify(refreshed.body))
  t.true((await codeOf(running, person, url, {}, browser)).asked)
  const events = await sql<{ data: { client_id: string } }>(running)`
    select data from all_events where type = 'security.client.metadata_changed'
    and data ->> 'client_id' = ${url}`
  t.is(events.length, 2)
})

test.serial('a client with keys must authenticate, and its key set may be elsewhere', async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' })
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k2' }] }
  const jwks_uri = host.serve('/keys.json', {
    body: JSON.stringify(keys),
    headers: { 'content-type': 'application/jwk-set+json' },
  })
  const url = host.client({ token_endpoint_auth_method: 'private_key_jwt', jwks_uri })
  const { form } = await codeOf(running, person, url)
  const none = await post(running.baseUrl, '/oauth/token', form)
  t.deepEqual([none.status, none.body['error']], [401, 'invalid_client'])
  const assertion = await new SignJWT({})
    .setProtectedHeader({ alg: 'EdDSA', kid: 'k2' })
    .setIssuer(url)
    .setSubject(url)
    .setAudience(running.issuer)
    .setJti('once')
    .setIssuedAt()
    .setExpirationTime('2m')
    .sign(privateKey)
  const { client_id: _, ...rest } = form
  const issued = await post(running.baseUrl, '/oauth/token', {
    ...rest,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  })
  t.is(issued.status, 200, JSON.stringify(issued.body))
  const secret = await post(running.baseUrl, '/oauth/token', { ...form, client_secret: 'x' })
  t.is(secret.status, 401)
})

test.serial('while the host is away, live grants go on and new requests do not', async (t) => {
  const path = '/away.json'
  const url = host.client({}, path)
  const { form } = await codeOf(running, person, url)
  const issued = await post(running.baseUrl, '/oauth/token', form)
  host.serve(path, { body: 'away', status: 503 })
  await forgetFreshness(url)
  const { status, body } = await authorize(url)
  t.deepEqual([status, body['error']], [400, 'invalid_client'])
  const refreshed = await post(running.baseUrl, '/oauth/token', {
    grant_type: 'refresh_token',
    client_id: url,
    refresh_token: String(issued.body['refresh_token']),
  })
  t.is(refreshed.status, 200, JSON.stringify(refreshed.body))
  await sql(running)`
    update remote_documents set fresh_until = now() - interval '25 hours' where url = ${url}`
  const stale = await post(running.baseUrl, '/oauth/token', {
    grant_type: 'refresh_token',
    client_id: url,
    refresh_token: String(refreshed.body['refresh_token']),
  })
  t.deepEqual([stale.status, stale.body['error']], [503, 'temporarily_unavailable'])
  t.truthy(stale.headers.get('retry-after'))
  const unknown = await post(running.baseUrl, '/oauth/token', {
    ...form,
    client_id: `${host.origin}/never.json`,
  })
  t.is(unknown.body['error'], 'temporarily_unavailable')
})

test.serial('a hundred concurrent first uses are one fetch', async (t) => {
  const path = '/crowd.json'
  const url = `${host.origin}${path}`
  const body = JSON.stringify({ client_id: url, redirect_uris: [CLIENT_CALLBACK] })
  host.serve(path, (_, response) => {
    void sleep(100).then(() =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    )
  })
  const answers = await Promise.all(Array.from({ length: 100 }, () => authorize(url)))
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [303])
  const fetches = host.asked.filter((one) => one === path).length
  t.true(fetches >= 1 && fetches <= SERVING_PROCESSES, `${fetches}, of each process at most one`)
  const [row] = await sql<{ count: number }>(running)`
    select count(*)::int as count from observed_clients where client_id = ${url}`
  t.is(row!.count, 1)
})

test.serial('the policy of the tenant decides before any fetch', async (t) => {
  const policy = {
    enabled: true,
    allow: ['*'],
    deny: ['localhost'],
    requireAuth: false,
    maxNewClientsPerHour: 100_000,
  }
  t.teardown(() => settings({ ...policy, deny: [] }))
  const refused = async (more: object, name: string) => {
    await settings({ ...policy, ...more })
    const url = host.client()
    const { status, body } = await authorize(url)
    t.deepEqual([status, body['error']], [400, 'invalid_client'], name)
    return url
  }
  for (const more of [{}, { deny: [], allow: ['*.example'] }, { deny: [], enabled: false }]) {
    const url = await refused(more, JSON.stringify(more))
    t.false(host.asked.some((path) => url.endsWith(path)))
  }
  await refused({ deny: [], requireAuth: true }, 'without authentication')
  await settings({ ...policy, deny: [], allow: ['localhost'] })
  t.is((await authorize(host.client())).status, 303)
})

test.serial('new clients are limited by the hour, and known ones are not', async (t) => {
  const policy = { enabled: true, allow: ['*'], deny: [], requireAuth: false }
  const known = host.client()
  t.is((await authorize(known)).status, 303)
  await settings({ ...policy, maxNewClientsPerHour: 0 })
  t.teardown(() => settings({ ...policy, maxNewClientsPerHour: 100_000 }))
  const url = host.client()
  const { status, body, headers } = await authorize(url)
  t.deepEqual([status, body['error']], [429, 'rate_limited'])
  t.regex(String(headers.get('retry-after')), /^[1-9]\d*$/)
  t.false(host.asked.some((path) => url.endsWith(path)))
  t.is((await authorize(known)).status, 303)
  const pushed = await post(running.baseUrl, '/oauth/par', formOf(begin(url)))
  t.is(pushed.status, 429)
})

test.serial('a client pushes its request, and needs only request_uri at the page', async (t) => {
  const url = host.client()
  const begun = begin(url)
  const { status, body } = await post(running.baseUrl, '/oauth/par', formOf(begun))
  t.is(status, 201, JSON.stringify(body))
  const query = new URLSearchParams({ client_id: url, request_uri: String(body['request_uri']) })
  const page = await arrived(openBrowser(running), person, `/oauth/authorize?${query}`)
  t.true(isConsent(page))
})

test.serial('the metadata of the server says that it supports these clients', async (t) => {
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    const answer = await fetch(`${running.baseUrl}/.well-known/${name}`)
    const metadata = (await answer.json()) as Record<string, unknown>
    t.is(metadata['client_id_metadata_document_supported'], true)
  }
  const { capabilities } = (await (
    await fetch(`${running.baseUrl}/api/v1/capabilities`)
  ).json()) as { capabilities: string[] }
  t.true(capabilities.includes('oauth.client_id_metadata'))
})
