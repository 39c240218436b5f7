/**
 * Downscoping: a token request may ask for less than the grant, for one token (RFC 8707 section 2.2, RFC
 * 9396 sections 6 and 9.2.
 */
import test from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import { type Answer, claimsOf } from '../../../support/api.js'
import { bootstrapped } from '../../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const CIBA = 'urn:openid:params:grant-type:ciba'
const grantTypes = [
  'authorization_code',
  'refresh_token',
  'client_credentials',
  DEVICE,
  EXCHANGE,
  CIBA,
]
const { api, running } = await sharedApi('plain')
const person = await bootstrapped(running)
const party = await relyingParty(running, person, {
  grantTypes,
  authorizationDetailsTypes: ['payment'],
})
const archive = await relyingParty(running, person, { name: 'Archive' })
const browser = openBrowser(running)

type Fields = Readonly<Record<string, string>>
const ask = (path: string, fields: Fields) =>
  api.form(path, fields, {
    authorization: `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`,
  })
const token = (fields: Fields) => ask('/oauth/token', fields)
const refresh = (of: Answer, fields: Fields = {}) =>
  token({ grant_type: 'refresh_token', refresh_token: String(of.body['refresh_token']), ...fields })
const audienceOf = ({ body }: Answer) => claimsOf(body['access_token'])['aud']

/** A code of the user, and its redemption. */
async function allowed(parameters: Fields, resources: readonly string[] = []) {
  const { url, verifier } = await party.journey(parameters)
  for (const resource of resources) url.searchParams.append('resource', resource)
  const code = callbackOf(await authorized(browser, person, url)).searchParams.get('code')!
  return (fields: Fields = {}) =>
    token({
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      redirect_uri: CALLBACK,
      ...fields,
    })
}

test.serial(
  'a code for two resources gives a token for one, and the next token is for the other',
  async (t) => {
    const both = [party.audience, archive.audience]
    const redeem = await allowed({ scope: 'openid profile' }, both)
    const first = await redeem({ resource: archive.audience })
    t.is(audienceOf(first), archive.audience)
    const second = await refresh(first, { audience: party.audience })
    t.is(audienceOf(second), party.audience)
    t.deepEqual(audienceOf(await refresh(second)), both, 'the grant is for both all the time')
  },
)

test.serial('a resource that was not granted is refused, and the code stays valid', async (t) => {
  const redeem = await allowed({ scope: 'openid profile', resource: party.audience })
  for (const fields of [
    { resource: archive.audience },
    { resource: 'https://unknown.example' },
    { resource: 'no address' },
    { audience: party.audience, resource: archive.audience },
  ]) {
    const answer = await redeem(fields)
    t.like(answer, { status: 400, body: { error: 'invalid_target' } })
  }
  t.is(audienceOf(await redeem({ resource: party.audience, audience: '' })), party.audience)
})

test.serial('a token with service scopes keeps the issuer in its audience', async (t) => {
  const redeem = await allowed({ scope: 'openid vault:list', resource: party.audience })
  const first = await redeem({ resource: party.audience })
  t.deepEqual(audienceOf(first), [party.audience, running.issuer])
  const next = await refresh(first, { resource: party.audience })
  t.deepEqual(audienceOf(next), [party.audience, running.issuer])
  const less = await refresh(next, { resource: party.audience, scope: 'openid' })
  t.is(audienceOf(less), party.audience)
})

test.serial(
  'authorization_details: some of the granted ones, and introspection returns them',
  async (t) => {
    const details = [
      { type: 'payment', amount: '1.00', to: { name: 'Harbour', iban: 'X' } },
      { type: 'payment', amount: '2.00' },
    ]
    const redeem = await allowed({
      scope: 'openid profile',
      authorization_details: JSON.stringify(details),
    })
    // The same with its members in another order.
    const one = [{ to: { iban: 'X', name: 'Harbour' }, amount: '1.00', type: 'payment' }]
    const wrong = [
      [{ type: 'payment', amount: '1.01' }],
      [{ type: 'payment' }],
      [...one, { type: 'payment', amount: '3.00' }],
      [],
      {},
      null,
    ].map((value) => JSON.stringify(value))
    for (const authorization_details of [...wrong, 'no JSON', `["${'x'.repeat(9000)}"]`]) {
      const answer = await redeem({ authorization_details })
      t.is(answer.status, 400, authorization_details)
      t.is(answer.body['error'], 'invalid_authorization_details')
    }
    const first = await redeem({ authorization_details: JSON.stringify(one) })
    t.deepEqual(first.body['authorization_details'], [details[0]])
    t.deepEqual(claimsOf(first.body['access_token'])['authorization_details'], [details[0]])
    const seen = await ask('/oauth/introspect', { token: String(first.body['access_token']) })
    t.deepEqual(seen.body['authorization_details'], [details[0]])
    const whole = await ask('/oauth/introspect', { token: String(first.body['refresh_token']) })
    t.deepEqual(whole.body['authorization_details'], details)

    const second = await refresh(first, { authorization_details: JSON.stringify([details[1]]) })
    t.deepEqual(second.body['authorization_details'], [details[1]])
    t.is((await refresh(second, { authorization_details: '[{"type":"payment"}]' })).status, 400)
    t.deepEqual((await refresh(second)).body['authorization_details'], details)
  },
)

test.serial('a grant without authorization_details refuses them', async (t) => {
  const authorization_details = '[{"type":"payment","amount":"9000.00"}]'
  const redeem = await allowed({ scope: 'openid profile' })
  const code = await redeem({ authorization_details })
  const service = await token({ grant_type: 'client_credentials', authorization_details })
  const plain = await redeem()
  const exchanged = await token({
    grant_type: EXCHANGE,
    subject_token: String(plain.body['access_token']),
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    authorization_details,
  })
  const device = await ask('/oauth/device/code', { scope: 'openid', authorization_details })
  const { email } = person
  const hint = { scope: 'openid', login_hint: email, authorization_details }
  const backchannel = await ask('/bc-authorize', hint)
  for (const answer of [code, service, exchanged, device, backchannel]) {
    t.like(answer, { status: 400, body: { error: 'invalid_authorization_details' } })
  }
})

test.serial('a device requests one of its resources when it fetches the token', async (t) => {
  const begun = await ask('/oauth/device/code', { scope: 'openid', resource: party.audience })
  const page = `/oauth/device/verify?user_code=${String(begun.body['user_code'])}`
  let asked = await browser.follow(await browser.get(page))
  if (asked.path.startsWith('/auth/login'))
    asked = await browser.follow(await browser.submit(asked, person))
  await browser.submit(asked, { action: 'approve' })
  const poll = (fields: Fields) =>
    token({ grant_type: DEVICE, device_code: String(begun.body['device_code']), ...fields })
  await poll({ resource: archive.audience }).gives(400, 'invalid_target')
  t.is(audienceOf(await poll({ resource: party.audience })), party.audience)
})

test.serial('a pushed request for an unknown audience is refused when it is pushed', async (t) => {
  const { url } = await party.journey({ resource: 'https://unknown.example' })
  const answer = await ask('/oauth/par', Object.fromEntries(url.searchParams))
  t.like(answer, { status: 400, body: { error: 'invalid_target' } })
})

test.serial('an origin with and without its slash is one resource', async (t) => {
  // URL parsers write the slash, people do not. The token has the spelling of its application.
  const [bare, rooted] = ['https://bare.example', 'https://rooted.example/']
  for (const audience of [bare, rooted])
    await relyingParty(running, person, { name: audience, audience })
  const whom: readonly [asked: string, named: string][] = [
    [`${bare}/`, bare],
    [bare, bare],
    ['https://rooted.example', rooted],
    [rooted, rooted],
    [`${running.baseUrl}/`, running.baseUrl],
  ]
  const plain = await token({ grant_type: 'client_credentials', scope: 'openid' })
  const exchange = {
    grant_type: EXCHANGE,
    subject_token: String(plain.body['access_token']),
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    scope: 'openid',
  }
  const named = ({ body }: Answer) => [audienceOf({ body } as Answer)].flat()[0]
  for (const [asked, name] of whom) {
    const code = await (await allowed({ scope: 'openid offline_access', resource: asked }))()
    t.is(named(code), name, asked)
    for (const resource of [asked, name])
      t.is(named(await refresh(code, { resource })), name, asked)
    const fields = { scope: 'openid', resource: asked }
    const service = await token({ grant_type: 'client_credentials', ...fields, audience: name })
    t.is(named(service), name, asked)
    t.is(named(await token({ ...exchange, resource: asked })), name, asked)
    const { url } = await party.journey(fields)
    t.is((await ask('/oauth/par', Object.fromEntries(url.searchParams))).status, 201, asked)
    t.is((await ask('/oauth/device/code', fields)).status, 200, asked)
  }
  // A path must match exactly, and duplicates count once.
  for (const resource of [`${bare}//`, `${bare}/x`, 'https://bare.example:8443', `${bare}/?`]) {
    const answer = await token({ grant_type: 'client_credentials', resource })
    t.is(answer.body['error'], 'invalid_target', resource)
  }
  const twice = await (await allowed({ scope: 'openid' }, [bare, `${bare}/`]))()
  t.is(audienceOf(twice), bare)
})
