/** Own service: it has its actor sign tokens of each kind. */
/** Each kind of token in the place of another, all of them real and fresh (RFC 8725 section 3.11). */
import test from 'ava'
import { decodeJwt, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { signingKeys } from '../../../actors/oauth/signing-keys/protocol.js'
import { bootstrap, callerOf } from '../../support/agents/journey.js'
import { bootstrapped } from '../../support/identity/person.js'
import { relyingParty } from '../../support/oauth/relying-party.js'
import { ownService } from '../../support/service/own-service.js'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const running = await ownService()
const person = await bootstrapped(running)
const party = await relyingParty(running, person, {
  scopes: ['openid', 'profile', 'email'],
  grantTypes: ['authorization_code', 'refresh_token', EXCHANGE],
})
const { browser, tokens: given } = await party.signedIn(person)
await browser.close()
const { publicKey, privateKey } = await generateKeyPair('ES256')
const jwk = await exportJWK(publicKey)
const { clientId } = await relyingParty(running, person, {
  tokenEndpointAuthMethod: 'private_key_jwt',
  secretSha256: null,
  jwks: { keys: [{ ...jwk }] },
})
const htu = `${running.baseUrl}/userinfo`
const tokens = {
  access: given.access_token,
  id: given.id_token!,
  refresh: given.refresh_token!,
  assertion: await new SignJWT({ jti: crypto.randomUUID() })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(running.baseUrl)
    .setIssuedAt()
    .setExpirationTime('60s')
    .sign(privateKey),
  proof: await new SignJWT({ htm: 'GET', htu, jti: crypto.randomUUID() })
    .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk })
    .setIssuedAt()
    .sign(privateKey),
}
test.after.always(() => running?.end())

const basic = () => `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`
const form = (path: string, fields: Record<string, string>, headers = {}) =>
  callerOf(running.baseUrl).form(path, fields, headers)
const others = (...own: string[]) => Object.entries(tokens).filter(([name]) => !own.includes(name))

test('only an access token is accepted by an API', async (t) => {
  const ask = (token: string) =>
    callerOf(running.baseUrl).call('/userinfo', { headers: { authorization: `Bearer ${token}` } })
  t.is((await ask(tokens.access)).status, 200)
  for (const [name, token] of others('access')) t.is((await ask(token)).status, 401, name)
})

test('JWTs of other kinds signed with our own key are not access tokens', async (t) => {
  const ask = (token: string) =>
    callerOf(running.baseUrl).call('/userinfo', { headers: { authorization: `Bearer ${token}` } })
  const claims = JSON.stringify(decodeJwt(tokens.access))
  const signed = async (typ: string) => {
    const made = await running.service.ref(signingKeys).sign({ typ, claims })
    if (made.tag !== 'signed') throw new Error(made.tag)
    return made.token
  }
  t.is((await ask(await signed('at+jwt'))).status, 200)
  for (const typ of ['dc+sd-jwt', 'vc+sd-jwt', 'logout+jwt', 'secevent+jwt', 'JWT', 'dpop+jwt']) {
    const token = await signed(typ)
    t.is((await ask(token)).status, 401, typ)
    t.is((await ask(`${token}~`)).status, 401, `${typ} with a disclosure`)
    const { body } = await form('/oauth/introspect', { token }, { authorization: basic() })
    t.deepEqual(body, { active: false }, typ)
  }
})

test('a webhook secret is not a token', async (t) => {
  const http = callerOf(running.baseUrl)
  const space = await bootstrap(http)
  const headers = { authorization: `Bearer ${space.accessToken}` }
  const hook = { url: 'https://receiver.example/', event_types: ['*'] }
  const made = await http.post('/api/v1/webhooks', hook, headers)
  const secret = String(made.body['secret'])
  t.is(made.status, 201)
  const own = { client_id: space.clientId, client_secret: space.clientSecret }
  const authorization = `Bearer ${secret}`
  for (const path of ['/userinfo', '/api/v1/webhooks', '/api/v1/applications', '/scim/v2/Users'])
    t.true(
      [401, 404].includes((await http.call(path, { headers: { authorization } })).status),
      path,
    )
  t.deepEqual((await http.form('/oauth/introspect', { token: secret, ...own })).body, {
    active: false,
  })
  for (const fields of [
    { grant_type: 'client_credentials', client_id: space.clientId, client_secret: secret },
    { grant_type: 'refresh_token', refresh_token: secret, ...own },
    { grant_type: EXCHANGE, subject_token: secret, subject_token_type: ACCESS, ...own },
    {
      grant_type: 'client_credentials',
      client_assertion_type: ASSERTION,
      client_assertion: secret,
    },
  ]) {
    const { status } = await http.form('/oauth/token', fields)
    t.true(status === 400 || status === 401, `${fields.grant_type}: ${status}`)
  }
  // Conversely, a token cannot sign a delivery or a fulfillment.
  const looked = await http.call(`/api/v1/public/commerce/fulfillment/${crypto.randomUUID()}`, {
    headers: { 'x-svc-fulfillment-secret': space.accessToken },
  })
  t.true([401, 404].includes(looked.status), String(looked.status))
})

test('only access and refresh tokens are active', async (t) => {
  const ask = (token: string) =>
    form('/oauth/introspect', { token }, { authorization: basic() }).then(({ body }) => body)
  t.is((await ask(tokens.access))['active'], true)
  t.is((await ask(tokens.refresh))['active'], true)
  for (const [name, token] of others('access', 'refresh'))
    t.deepEqual(await ask(token), { active: false }, name)
})

test('only an access token can be exchanged, and only a refresh token refreshes', async (t) => {
  const headers = { authorization: basic() }
  const exchange = (subject_token: string) =>
    form(
      '/oauth/token',
      { grant_type: EXCHANGE, subject_token, subject_token_type: ACCESS },
      headers,
    )
  t.is((await exchange(tokens.access)).status, 200)
  for (const [name, token] of others('access')) t.is((await exchange(token)).status, 400, name)
  for (const [name, refresh_token] of others('refresh')) {
    const fields = { grant_type: 'refresh_token', refresh_token }
    t.is((await form('/oauth/token', fields, headers)).status, 400, name)
  }
})

test('our tokens are not client assertions, and only a proof is a proof', async (t) => {
  for (const [name, client_assertion] of others('assertion')) {
    const fields = { client_assertion_type: ASSERTION, client_assertion }
    const answer = await form('/oauth/token', { grant_type: 'client_credentials', ...fields })
    t.is(answer.status, 401, name)
    t.is(answer.body['error'], 'invalid_client', name)
  }
  for (const [name, dpop] of others()) {
    const fields = { grant_type: 'refresh_token', refresh_token: tokens.refresh }
    const answer = await form('/oauth/token', fields, { authorization: basic(), dpop })
    t.is(answer.body['error'], 'invalid_dpop_proof', name)
  }
})

test('a challenge that is not a SHA-256 in base64url is refused', async (t) => {
  const parameters = Object.fromEntries((await party.journey()).url.searchParams)
  const right = parameters['code_challenge']!
  const push = (code_challenge: string) =>
    form('/oauth/par', { ...parameters, code_challenge }, { authorization: basic() })
  t.is((await push(right)).status, 201)
  for (const wrong of [
    right.slice(1),
    'x'.repeat(129),
    `${right}=`,
    `${right.slice(1)}+`,
    `${right.slice(1)} `,
  ]) {
    const answer = await push(wrong)
    t.is(answer.status, 400, wrong)
    t.is(answer.body['error'], 'invalid_request', wrong)
  }
})
