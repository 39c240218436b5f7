/** Modules of fapi2-message-signing-final-test-plan on signed requests and responses, under their names. */
import test from 'ava'
import {
  createRemoteJWKSet,
  exportJWK,
  generateKeyPair,
  jwtVerify,
  SignJWT,
  UnsecuredJWT,
} from 'jose'
import * as oidc from 'openid-client'
import { callerOf } from '../../support/agents/journey.js'
import { bootstrapped } from '../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  journey,
  pathOf,
  relyingParty,
} from '../../support/oauth/relying-party.js'
import { openBrowser } from '../../support/pages/browser.js'
import { sharedService } from '../../support/service.js'

const running = await sharedService('plain')
const person = await bootstrapped(running)
const [own, foreign] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')]
const rsa = await generateKeyPair('RS256')
const jwks = { keys: [{ ...(await exportJWK(own.publicKey)) }] }
const party = await relyingParty(running, person, { jwks, requireSignedRequestObject: true })
const nowSecs = () => Math.floor(Date.now() / 1000)

type Claims = Readonly<Record<string, unknown>>
const parametersOf = async () => Object.fromEntries((await party.journey()).url.searchParams)
const claimsOf = async (changed: Claims = {}) => {
  const times = { nbf: nowSecs(), exp: nowSecs() + 300 }
  const all = { ...(await parametersOf()), iss: party.clientId, aud: running.baseUrl, ...times }
  return Object.fromEntries(
    Object.entries({ ...all, ...changed }).filter(([, value]) => value !== undefined),
  )
}
const signed = async (changed: Claims = {}, header: Claims = {}, key = own.privateKey) =>
  new SignJWT(await claimsOf(changed)).setProtectedHeader({ alg: 'ES256', ...header }).sign(key)
const push = (fields: Readonly<Record<string, string>>) =>
  callerOf(running.baseUrl).form('/oauth/par', {
    client_id: party.clientId,
    client_secret: party.secret,
    ...fields,
  })

/** The response to a pushed request, as the application gets it. */
async function answered(requestUri: unknown, more: Readonly<Record<string, string>> = {}) {
  const query = { client_id: party.clientId, request_uri: String(requestUri), ...more }
  const url = new URL(`/oauth/authorize?${new URLSearchParams(query)}`, running.baseUrl)
  return callbackOf(await authorized(openBrowser(running), person, pathOf(url))).searchParams
}

const ACCEPTED: Readonly<Record<string, () => Promise<string>>> = {
  'happy-flow': () => signed({}, { typ: 'oauth-authz-req+jwt' }),
  'ensure-request-object-with-multiple-aud-succeeds': () =>
    signed({ aud: ['https://other.example', running.baseUrl] }),
  'ensure-request-object-with-nbf-8-seconds-in-the-future-is-accepted': () =>
    signed({ nbf: nowSecs() + 8 }),
  'objects and numbers as parameters': () =>
    signed({ max_age: 3600, claims: { userinfo: { email: null } } }),
}
for (const [module, object] of Object.entries(ACCEPTED))
  test(module, async (t) => {
    const { status, body } = await push({ request: await object() })
    t.is(status, 201, JSON.stringify(body))
    t.truthy((await answered(body['request_uri'])).get('code'))
  })

const REFUSED: Readonly<Record<string, () => string | Promise<string>>> = {
  'ensure-request-object-without-exp-fails': () => signed({ exp: undefined }),
  'ensure-request-object-without-nbf-fails': () => signed({ nbf: undefined }),
  'ensure-expired-request-object-fails': () => signed({ exp: nowSecs() - 5 }),
  'ensure-request-object-with-bad-aud-fails': () => signed({ aud: `${running.baseUrl}/oauth/par` }),
  'ensure-request-object-with-exp-over-60-fails': () => signed({ exp: nowSecs() + 70 * 60 }),
  'ensure-request-object-with-nbf-over-60-fails': () => signed({ nbf: nowSecs() - 70 * 60 }),
  'nbf more than a minute ahead': () => signed({ nbf: nowSecs() + 90 }),
  'ensure-signed-request-object-with-RS256-fails': () =>
    signed({}, { alg: 'RS256' }, rsa.privateKey),
  'ensure-request-object-signature-algorithm-is-not-none': async () =>
    new UnsecuredJWT(await claimsOf()).encode(),
  'ensure-request-object-with-invalid-signature-fails': async () => {
    const object = await signed()
    return object.slice(0, -10) + (object.at(-10) === 'A' ? 'B' : 'A') + object.slice(-9)
  },
  'ensure-matching-key-in-authorization-request': () => signed({}, {}, foreign.privateKey),
  'another issuer': () => signed({ iss: 'another' }),
  'another client_id': () => signed({ client_id: 'another' }),
  'request_uri in the object': () => signed({ request_uri: 'urn:example:1' }),
  'another type': () => signed({}, { typ: 'client-authentication+jwt' }),
}
for (const [module, object] of Object.entries(REFUSED))
  test(module, async (t) => {
    const { status, body } = await push({ ...(await parametersOf()), request: await object() })
    t.is(status, 400)
    t.is(body['error'], 'invalid_request_object', JSON.stringify(body))
  })

test('ensure-unsigned-request-at-par-endpoint-fails', async (t) => {
  const { status, body } = await push(await parametersOf())
  t.is(status, 400)
  t.is(body['error'], 'invalid_request')
})

test('ensure-request-object-without-redirect-uri-fails: parameters outside the object count for nothing', async (t) => {
  const request = await signed({ redirect_uri: undefined })
  const { status, body } = await push({ ...(await parametersOf()), request })
  t.is(status, 400)
  t.is(body['error'], 'invalid_request')
})

test('ensure-different-state-inside-and-outside-request-object, state-only-outside-request-object-not-used', async (t) => {
  const both = await push({ state: 'outside', request: await signed({ state: 'inside' }) })
  t.is((await answered(both.body['request_uri'], { state: 'outside' })).get('state'), 'inside')
  const outside = await push({ state: 'outside', request: await signed({ state: undefined }) })
  t.is((await answered(outside.body['request_uri'], { state: 'outside' })).get('state'), null)
})

test('a client with request_object_signing_alg takes that algorithm alone', async (t) => {
  const edwards = await relyingParty(running, person, { jwks, requestObjectSigningAlg: 'EdDSA' })
  const request = await signed({ iss: edwards.clientId, client_id: edwards.clientId })
  const secret = { client_id: edwards.clientId, client_secret: edwards.secret }
  const { status, body } = await callerOf(running.baseUrl).form('/oauth/par', {
    ...secret,
    request,
  })
  t.is(status, 400)
  t.is(body['error'], 'invalid_request_object')
})

test('happy-flow with JARM: openid-client verifies the response, with RS256 and ES256', async (t) => {
  for (const alg of [undefined, 'ES256'] as const) {
    const signing = await relyingParty(running, person, {
      authorizationSignedResponseAlg: alg ?? null,
    })
    const config = await oidc.discovery(
      new URL(running.baseUrl),
      signing.clientId,
      { id_token_signed_response_alg: 'ES256', authorization_signed_response_alg: alg ?? 'RS256' },
      oidc.ClientSecretBasic(signing.secret),
      { execute: [oidc.allowInsecureRequests, oidc.useJwtResponseMode] },
    )
    const { url, checks } = await journey({ config })
    t.is(url.searchParams.get('response_mode'), 'jwt')
    const callback = callbackOf(await authorized(openBrowser(running), person, pathOf(url)))
    t.deepEqual([...callback.searchParams.keys()], ['response'])
    const tokens = await oidc.authorizationCodeGrant(config, callback, checks)
    t.is(tokens.claims()!.aud, signing.clientId)
  }
})

test('a JARM response has iss, aud and exp, errors too, and is posted with form_post.jwt', async (t) => {
  const plain = await relyingParty(running, person)
  const keys = createRemoteJWKSet(new URL(`${running.baseUrl}/.well-known/jwks.json`))
  const verified = (jwt: string) =>
    jwtVerify(jwt, keys, { issuer: running.baseUrl, audience: plain.clientId })
  const begun = await plain.journey({ response_mode: 'query.jwt', prompt: 'none' })
  const refused = callbackOf(await openBrowser(running).get(pathOf(begun.url)))
  const { payload, protectedHeader } = await verified(refused.searchParams.get('response')!)
  t.like(payload, { error: 'login_required', state: begun.state })
  t.is(protectedHeader.alg, 'RS256')
  t.true(payload.exp! - nowSecs() <= 600)
  const posted = await plain.journey({ response_mode: 'form_post.jwt' })
  const page = await authorized(openBrowser(running), person, pathOf(posted.url))
  t.is(page.status, 200)
  const [form] = page.forms
  t.deepEqual(Object.keys(form!.fields), ['response'])
  const answer = await verified(form!.fields['response']!)
  t.is(answer.payload['state'], posted.state)
  t.is(typeof answer.payload['code'], 'string')
})

const JWT_FORM = 'application/token-introspection+jwt'

test('signed introspection: openid-client verifies the response, with RS256 and ES256', async (t) => {
  for (const alg of [undefined, 'ES256'] as const) {
    const signing = await relyingParty(running, person, {
      introspectionSignedResponseAlg: alg ?? null,
    })
    const config = await oidc.discovery(
      new URL(running.baseUrl),
      signing.clientId,
      { id_token_signed_response_alg: 'ES256', introspection_signed_response_alg: alg ?? 'RS256' },
      oidc.ClientSecretBasic(signing.secret),
      { execute: [oidc.allowInsecureRequests] },
    )
    const { tokens } = await signing.signedIn(person)
    t.like(await oidc.tokenIntrospection(config, tokens.access_token), {
      active: true,
      client_id: signing.clientId,
    })
    t.is((await oidc.tokenIntrospection(config, 'unknown')).active, false)
  }
})

test('an introspection JWT has the response for its client, and is no access token', async (t) => {
  const plain = await relyingParty(running, person)
  const token = (await plain.signedIn(person)).tokens.access_token
  const ask = (asked: string, accept: string) =>
    fetch(`${running.baseUrl}/oauth/introspect`, {
      method: 'POST',
      headers: { accept },
      body: new URLSearchParams({
        token: asked,
        client_id: plain.clientId,
        client_secret: plain.secret,
      }),
    })
  const json = await ask(token, 'application/json')
  t.is(json.headers.get('content-type'), 'application/json')
  const answer = await ask(token, JWT_FORM)
  t.is(answer.status, 200)
  t.is(answer.headers.get('content-type'), JWT_FORM)
  t.is(answer.headers.get('cache-control'), 'no-store')
  const jwt = await answer.text()
  const keys = createRemoteJWKSet(new URL(`${running.baseUrl}/.well-known/jwks.json`))
  const { payload } = await jwtVerify(jwt, keys, {
    issuer: running.baseUrl,
    audience: plain.clientId,
    typ: 'token-introspection+jwt',
  })
  t.deepEqual(Object.keys(payload).sort(), ['aud', 'iat', 'iss', 'token_introspection'])
  t.deepEqual(payload['token_introspection'], await json.json())
  const used = await fetch(`${running.baseUrl}/userinfo`, {
    headers: { authorization: `Bearer ${jwt}` },
  })
  t.is(used.status, 401)
  t.deepEqual(await (await ask(jwt, 'application/json')).json(), { active: false })
  const metadata = await fetch(`${running.baseUrl}/.well-known/oauth-authorization-server`)
  const listed = (await metadata.json()) as Record<string, unknown>
  t.deepEqual(listed['introspection_signing_alg_values_supported'], ['ES256', 'EdDSA', 'RS256'])
})
