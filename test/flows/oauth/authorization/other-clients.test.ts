/** Requests of client libraries other than openid-client, word for word where it matters. */
import test from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { registering } from '../../../support/identity/registering.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'
import { tenantAgent } from '../../../support/identity/tenant-agent.js'

const running = await sharedService('clients')
const person = await bootstrapped(running)
const agent = await tenantAgent(running.baseUrl)

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

async function asked(path: string, authorization: string, fields: Record<string, string>) {
  const answer = await fetch(running.baseUrl + path, {
    method: 'POST',
    headers: { authorization },
    body: new URLSearchParams(fields),
  })
  const text = await answer.text()
  const body = (text === '' ? {} : JSON.parse(text)) as Record<string, string>
  return { status: answer.status, headers: answer.headers, body }
}

/** Takes a browser through the code flow and returns what the application redeems. */
async function codeFor(party: RelyingParty): Promise<Record<string, string>> {
  const { url, verifier } = await party.journey()
  const browser = openBrowser(running)

  const code = callbackOf(await authorized(browser, person, url)).searchParams.get('code')!
  return {
    grant_type: 'authorization_code',
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  }
}

test('a public client that sends a Basic header with an empty secret', async (t) => {
  const party = await relyingParty(running, person, { clientType: 'public' })
  const named = basic(party.clientId, '')
  const redeemed = await asked('/oauth/token', named, await codeFor(party))
  t.is(redeemed.status, 200, JSON.stringify(redeemed.body))
  const refreshed = await asked('/oauth/token', named, {
    grant_type: 'refresh_token',
    refresh_token: redeemed.body['refresh_token']!,
    client_id: party.clientId,
  })
  t.is(refreshed.status, 200, JSON.stringify(refreshed.body))
  const token = refreshed.body['refresh_token']!
  t.is((await asked('/oauth/revoke', named, { token })).status, 200)
  const ended = await asked('/oauth/token', named, {
    grant_type: 'refresh_token',
    refresh_token: token,
  })
  t.is(ended.body['error'], 'invalid_grant')
  t.is((await asked('/oauth/introspect', named, { token })).body['error'], 'invalid_client')
})

test('an empty secret does not authenticate a client that has one', async (t) => {
  const party = await relyingParty(running, person)
  const code = await codeFor(party)
  const refused = await asked('/oauth/token', basic(party.clientId, ''), code)
  t.like(refused, { status: 401, body: { error: 'invalid_client' } })
  t.regex(refused.headers.get('www-authenticate') ?? '', /^Basic /)
  // The attempt does not use up the code: libraries try one method, then the other.
  t.is((await asked('/oauth/token', basic(party.clientId, party.secret), code)).status, 200)
  const open = await relyingParty(running, person, { clientType: 'public' })
  const twice = await asked('/oauth/token', basic(open.clientId, ''), {
    grant_type: 'refresh_token',
    refresh_token: 'x',
    client_secret: 'x',
  })
  t.is(twice.body['error'], 'invalid_request')
})

/** The registration of mod_auth_openidc, with every flow that it supports. */
const APACHE = {
  client_name: 'OpenID Connect Apache Module (mod_auth_openidc)',
  redirect_uris: [CALLBACK],
  response_types: [
    'code',
    'id_token',
    'id_token token',
    'code id_token',
    'code token',
    'code id_token token',
  ],
  grant_types: ['authorization_code', 'implicit', 'refresh_token'],
  token_endpoint_auth_method: 'client_secret_basic',
  initiate_login_uri: CALLBACK,
  frontchannel_logout_uri: `${CALLBACK}?logout=get`,
  backchannel_logout_uri: `${CALLBACK}?logout=backchannel`,
  id_token_token_binding_cnf: 'tbh',
  post_logout_redirect_uris: ['https://app.example/bye'],
}

test('a client that registers everything it supports gets what the service supports', async (t) => {
  const client = registering(running.baseUrl, agent)
  const { body, path, token } = await client.registered(APACHE)
  const granted = {
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  }
  t.like(body, granted)
  const { client_id } = body
  const replaced = await client.send('PUT', path, token, { ...APACHE, client_id })
  t.is(replaced.status, 200, replaced.text)
  t.like(replaced.body, granted)
  const kept = await agent.ask('GET', `/api/v1/applications/${String(client_id)}`)
  t.like(kept.body, granted)
  // The two members must be consistent after unsupported values are left out.
  for (const apart of [
    { grant_types: ['implicit', 'client_credentials'], response_types: ['code', 'token'] },
    { grant_types: ['authorization_code', 'implicit'], response_types: ['id_token'] },
    { grant_types: ['implicit'], response_types: ['code'] },
  ]) {
    const refused = await client.send('PUT', path, token, { ...APACHE, client_id, ...apart })
    t.is(refused.body['error'], 'invalid_client_metadata', JSON.stringify(apart))
  }
})

test('a web page may send headers that its tracing or framework adds to every request', async (t) => {
  const origin = 'https://spa.example'
  await relyingParty(running, person, { clientType: 'public', allowedOrigins: [origin] })
  const asks = async (path: string, method: string, from: string) => {
    const answer = await fetch(running.baseUrl + path, {
      method: 'OPTIONS',
      headers: {
        origin: from,
        'access-control-request-method': method,
        'access-control-request-headers': 'authorization,traceparent,x-requested-with',
      },
    })
    const allowed = answer.headers.get('access-control-allow-headers')?.split(/, */) ?? []
    t.is(answer.headers.get('access-control-allow-credentials'), null, path)
    return allowed
  }
  for (const [path, method] of [
    ['/.well-known/openid-configuration', 'GET'],
    ['/.well-known/jwks.json', 'GET'],
    ['/oauth/token', 'POST'],
    ['/oauth/revoke', 'POST'],
    ['/userinfo', 'GET'],
  ] as const) {
    const allowed = await asks(path, method, origin)
    t.true(allowed.includes('*'), path)
    t.true(allowed.includes('authorization'), path)
  }
  t.deepEqual(await asks('/oauth/token', 'POST', 'https://other.example'), [])
})
