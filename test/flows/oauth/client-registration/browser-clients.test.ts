/** Clients that run in a browser: registration and tokens from a web page, with the headers that browsers send. */
import test from 'ava'
import { registering } from '../../../support/identity/registering.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { tenantAgent } from '../../../support/identity/tenant-agent.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('clients')
const client = registering(running.baseUrl, await tenantAgent(running.baseUrl))
const person = await bootstrapped(running)
const party = await relyingParty(running, person)

const readableBy = (answer: Response) => answer.headers.get('access-control-allow-origin')

function preflight(path: string, origin: string, method = 'POST'): Promise<Response> {
  return fetch(running.baseUrl + path, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': method,
      'access-control-request-headers': 'content-type, authorization, mcp-protocol-version',
    },
  })
}

test('a page of any origin registers a client, manages it, and reads why it is refused', async (t) => {
  for (const origin of ['https://inspector.example', 'http://localhost:6274', 'null']) {
    t.is(readableBy(await preflight('/oauth/register', origin)), '*')
    const headers = { origin, 'content-type': 'application/json' }
    const initial = await client.initialToken()
    const register = (uri: string) =>
      fetch(`${running.baseUrl}/oauth/register`, {
        method: 'POST',
        headers: { ...headers, authorization: `Bearer ${initial}` },
        body: JSON.stringify({ redirect_uris: [uri], token_endpoint_auth_method: 'none' }),
      })
    const refused = await register('http://app.example/')
    t.deepEqual([refused.status, readableBy(refused)], [400, '*'])
    const made = await register('http://localhost:6274/oauth/callback')
    t.deepEqual([made.status, readableBy(made)], [201, '*'])
    t.is(made.headers.get('access-control-allow-credentials'), null)
    const body = (await made.json()) as Record<string, string>
    t.is(readableBy(await preflight(`/oauth/register/${body['client_id']}`, origin, 'DELETE')), '*')
    const read = await fetch(body['registration_client_uri']!, {
      headers: { origin, authorization: `Bearer ${body['registration_access_token']}` },
    })
    t.deepEqual([read.status, readableBy(read)], [200, '*'])
  }
})

/** The status of a token request with a made-up code is 400, and the page may read it or not. */
async function tokenFrom(clientId: string, origin: string) {
  const asked = readableBy(await preflight('/oauth/token', origin))
  const answer = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { origin },
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      code: 'made-up',
      code_verifier: 'x'.repeat(43),
    }),
  })
  await answer.text()
  return [asked, readableBy(answer)]
}

test('the token endpoint is for the origins of redirect URIs', async (t) => {
  const { body } = await client.registered({
    token_endpoint_auth_method: 'none',
    redirect_uris: [
      'https://Spa.example:443/callback',
      'https://tools.example:8443/cb?x=1',
      'http://127.0.0.1:6274/oauth/callback',
      'com.example.app://login.example/cb',
    ],
  })
  const { body: native } = await client.registered({
    token_endpoint_auth_method: 'none',
    redirect_uris: ['http://localhost:33418/'],
  })
  const [web, loopback] = [String(body['client_id']), String(native['client_id'])]
  for (const origin of [
    'https://spa.example',
    'https://tools.example:8443',
    'http://127.0.0.1:6274',
  ])
    t.deepEqual(await tokenFrom(web, origin), [origin, origin])
  for (const origin of ['https://tools.example', 'https://login.example', 'http://spa.example'])
    t.deepEqual(await tokenFrom(web, origin), [null, null])
  t.deepEqual((await tokenFrom(web, 'http://127.0.0.1:6275'))[1], null, 'a web client has its port')
  t.deepEqual((await tokenFrom(loopback, 'http://localhost:50123'))[1], 'http://localhost:50123')
  t.is((await tokenFrom(loopback, 'https://spa.example'))[1], null, 'of another client')
})

test('a page reads that its client is gone, and refusals before the client is known', async (t) => {
  const origin = 'https://gone.example'
  const metadata = { token_endpoint_auth_method: 'none', redirect_uris: [`${origin}/cb`] }
  const { path, token, body } = await client.registered(metadata)
  await client.registered(metadata)
  t.is((await client.send('DELETE', path, token)).status, 204)
  t.deepEqual(await tokenFrom(String(body['client_id']), origin), [origin, origin])
  for (const name of ['made-up', '01a2301d-9fe7-7513-b136-90be4da15146', ''])
    t.is((await tokenFrom(name, origin))[1], origin, name)
  const read = (authorization: string, from: string) =>
    fetch(`${running.baseUrl}/userinfo`, { headers: { origin: from, authorization } })
  for (const authorization of ['Bearer made-up', 'Bearer a.b.c', 'Basic !', 'DPoP x']) {
    t.is(readableBy(await read(authorization, origin)), origin, authorization)
    t.is(readableBy(await read(authorization, 'https://stranger.example')), null)
  }
  const faulty = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { origin, 'content-type': 'application/json' },
    body: '{',
  })
  t.deepEqual([Math.floor(faulty.status / 100), readableBy(faulty)], [4, origin])
})

test('the origins of redirect URIs follow their changes', async (t) => {
  const { path, token, body } = await client.registered({
    token_endpoint_auth_method: 'none',
    redirect_uris: ['https://before.example/cb'],
  })
  const id = String(body['client_id'])
  t.is((await tokenFrom(id, 'https://before.example'))[1], 'https://before.example')
  const changed = { ...body, redirect_uris: ['https://after.example/cb'] }
  for (const member of ['registration_access_token', 'registration_client_uri'])
    delete (changed as Record<string, unknown>)[member]
  const put = await client.send('PUT', path, token, changed)
  t.is(put.status, 200, put.text)
  t.is((await tokenFrom(id, 'https://after.example'))[1], 'https://after.example')
})

for (const accept of [
  'text/html,application/xhtml+xml;q=0.9',
  'image/png',
  'text/plain',
  'application/xml;q=0.5',
  'application/json;q=0',
  'application/jwt',
])
  test(`OAuth answers JSON to Accept: ${accept}`, async (t) => {
    const { tokens } = await party.signedIn(person)
    const { clientId: client_id, secret: client_secret } = party
    const token = tokens.access_token
    const form = (path: string, fields: Record<string, string>) =>
      fetch(running.baseUrl + path, {
        method: 'POST',
        headers: { accept },
        body: new URLSearchParams({ client_id, client_secret, ...fields }),
      })
    const answers = [
      await fetch(`${running.baseUrl}/userinfo`, {
        headers: { accept, authorization: `Bearer ${token}` },
      }),
      await form('/oauth/introspect', { token }),
      await form('/oauth/token', {
        grant_type: 'refresh_token',
        refresh_token: tokens.refresh_token!,
      }),
      await form('/oauth/par', {
        response_type: 'code',
        redirect_uri: 'https://app.example/callback',
      }),
    ]
    for (const answer of answers) {
      t.is(Math.floor(answer.status / 100), 2, await answer.clone().text())
      t.regex(answer.headers.get('content-type') ?? '', /^application\/json/)
    }
    t.is((await form('/oauth/revoke', { token })).status, 200)
    t.is((await form('/oauth/token', { grant_type: 'nothing' })).status, 400)
  })
