/**
 * Modules of fapi2-security-profile-final-test-plan and oidcc-dynamic-certification-test-plan on
 * audiences, proofs, redirect URIs and the shape of requests, under their names.
 */
import test from 'ava'
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import * as oidc from 'openid-client'
import { openBrowser, type TestBrowser } from '../../support/pages/browser.js'
import { callerOf } from '../../support/agents/journey.js'
import { bootstrapped, type Workspace } from '../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  journey,
  pathOf,
  type RelyingParty,
  relyingParty,
  signedIn,
} from '../../support/oauth/relying-party.js'
import { sharedService, type TestService } from '../../support/service.js'

const QUERY = `${CALLBACK}?foo=bar`
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

let running: TestService
let person: Workspace
let party: RelyingParty
/** Authenticates with `key`. */
let keyed: RelyingParty
let key: CryptoKey
let browser: TestBrowser
test.before(async () => {
  running = await sharedService('plain')
  person = await bootstrapped(running)
  party = await relyingParty(running, person, {
    redirectUris: [CALLBACK, QUERY],
    scopes: ['openid', 'profile', 'email', 'applications:read'],
    grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
  })
  const pair = await generateKeyPair('ES256')
  key = pair.privateKey
  keyed = await relyingParty(running, person, {
    tokenEndpointAuthMethod: 'private_key_jwt',
    secretSha256: null,
    jwks: { keys: [{ ...(await exportJWK(pair.publicKey)) }] },
  })
  browser = (await signedIn(running, party, person)).browser
})
test.after.always(async () => {
  await browser?.close()
  await running?.end()
})

const nowSecs = () => Math.floor(Date.now() / 1000)
const basic = () => `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`

async function push(aud: string | string[]) {
  const client_assertion = await new SignJWT({ jti: crypto.randomUUID(), aud })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer(keyed.clientId)
    .setSubject(keyed.clientId)
    .setIssuedAt()
    .setExpirationTime('60s')
    .sign(key)
  return callerOf(running.baseUrl).form('/oauth/par', {
    ...Object.fromEntries((await journey(keyed)).url.searchParams),
    client_assertion_type: ASSERTION,
    client_assertion,
  })
}

test('par-test-array-as-audience-fails, -token-endpoint-url-, -par-endpoint-url-as-audience-fails', async (t) => {
  t.is((await push(running.baseUrl)).status, 201)
  for (const aud of [
    [running.baseUrl],
    [running.baseUrl, 'https://other.example'],
    `${running.baseUrl}/oauth/token`,
    `${running.baseUrl}/oauth/par`,
    `${running.baseUrl}/`,
  ]) {
    const answer = await push(aud)
    t.is(answer.status, 401, String(aud))
    t.is(answer.body['error'], 'invalid_client')
  }
})

/** A token request with a proof that has these claims. */
async function proven(changed: JWTPayload, header: Record<string, unknown> = {}) {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const htu = `${running.baseUrl}/oauth/token`
  const dpop = await new SignJWT({
    htm: 'POST',
    htu,
    iat: nowSecs(),
    jti: crypto.randomUUID(),
    ...changed,
  })
    .setProtectedHeader({
      typ: 'dpop+jwt',
      alg: 'ES256',
      jwk: await exportJWK(publicKey),
      ...header,
    })
    .sign(privateKey)
  const form = { grant_type: 'client_credentials' }
  return callerOf(running.baseUrl).form('/oauth/token', form, { authorization: basic(), dpop })
}

test('ensure-dpopproof-with-iat-10seconds-before-succeeds and -after-succeeds', async (t) => {
  t.is((await proven({ iat: nowSecs() - 10 })).status, 200)
  t.is((await proven({ iat: nowSecs() + 10 })).status, 200)
})

test('dpop-negative-tests', async (t) => {
  for (const [title, changed, header] of [
    ['another method', { htm: 'GET' }],
    ['the method in lower case', { htm: 'post' }],
    ['another URL', { htu: `${running.baseUrl}/oauth/par` }],
    ['too old', { iat: nowSecs() - 3600 }],
    ['in the future', { iat: nowSecs() + 3600 }],
    ['without iat', { iat: undefined }],
    ['without jti', { jti: undefined }],
    ['another typ', {}, { typ: 'jwt' }],
    ['another key', {}, { jwk: await exportJWK((await generateKeyPair('ES256')).publicKey) }],
    ['without its key', {}, { jwk: undefined }],
  ] as [string, JWTPayload, Record<string, unknown>?][]) {
    const answer = await proven(changed, header)
    t.is(answer.status, 401, title)
    t.is(answer.body['error'], 'invalid_dpop_proof', title)
  }
})

test('ensure-holder-of-key-required', async (t) => {
  const bound = await relyingParty(running, person, { dpopBoundAccessTokens: true })
  const own = openBrowser(running)
  t.teardown(() => own.close())
  const begun = await journey(bound)
  const callback = callbackOf(await authorized(own, person, begun.url))
  const checks = {
    pkceCodeVerifier: begun.verifier,
    expectedState: begun.state,
    expectedNonce: begun.nonce,
  }
  const without = await t.throwsAsync<oidc.ResponseBodyError>(
    oidc.authorizationCodeGrant(bound.config, callback, checks),
  )
  t.is(without?.status, 401)
  const DPoP = oidc.getDPoPHandle(bound.config, await oidc.randomDPoPKeyPair())
  const tokens = await oidc.authorizationCodeGrant(bound.config, callback, checks, undefined, {
    DPoP,
  })
  t.is(tokens.token_type, 'dpop')
  const { sub } = tokens.claims()!
  await t.throwsAsync(oidc.fetchUserInfo(bound.config, tokens.access_token, sub))
  t.is((await oidc.fetchUserInfo(bound.config, tokens.access_token, sub, { DPoP })).sub, sub)
  await t.throwsAsync(oidc.refreshTokenGrant(bound.config, tokens.refresh_token!))
})

test('access-token-type-header-case-sensitivity', async (t) => {
  const { access_token } = await oidc.clientCredentialsGrant(party.config)
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    const { status } = await callerOf(running.baseUrl).call('/api/v1/applications', {
      headers: { authorization: `${scheme} ${access_token}` },
    })
    t.is(status, 200, scheme)
  }
})

const answerTo = async (change: Record<string, string>, without: string[] = []) => {
  const begun = await journey(party, change)
  for (const name of without) begun.url.searchParams.delete(name)
  return { begun, page: await authorized(browser, person, begun.url) }
}

test('ensure-authorization-request-with-64-char-nonce-success', async (t) => {
  const nonce = 'n'.repeat(64)
  const { begun, page } = await answerTo({ nonce })
  const tokens = await oidc.authorizationCodeGrant(party.config, callbackOf(page), {
    pkceCodeVerifier: begun.verifier,
    expectedState: begun.state,
    expectedNonce: nonce,
  })
  t.is(tokens.claims()!.nonce, nonce)
})

test('ensure-authorization-request-without-state-success', async (t) => {
  const { page } = await answerTo({}, ['state'])
  const { searchParams } = callbackOf(page)
  t.truthy(searchParams.get('code'))
  t.false(searchParams.has('state'))
})

test('ensure-other-scope-order-succeeds', async (t) => {
  const { page } = await answerTo({ scope: 'email openid profile' })
  t.truthy(callbackOf(page).searchParams.get('code'))
})

test('ensure-response-type-token-fails and ensure-response-type-code-idtoken-fails', async (t) => {
  for (const response_type of ['token', 'id_token', 'code id_token', 'code token', 'none']) {
    const { page } = await answerTo({ response_type })
    t.is(callbackOf(page).searchParams.get('error'), 'unsupported_response_type', response_type)
    t.is(callbackOf(page).hash, '')
  }
})

test('ensure-redirect-uri-in-authorization-request', async (t) => {
  const { url } = await journey(party)
  url.searchParams.delete('redirect_uri')
  const page = await browser.get(pathOf(url))
  t.is(page.status, 400)
  t.is(page.location, null)
})

test('user-rejects-authentication', async (t) => {
  const own = await relyingParty(running, person)
  const begun = await journey(own)
  const consent = await browser.follow(await browser.get(pathOf(begun.url)))
  const answer = callbackOf(await browser.submit(consent, { action: 'deny' }))
  t.is(answer.searchParams.get('error'), 'access_denied')
  t.is(answer.searchParams.get('state'), begun.state)
  t.is(answer.searchParams.get('iss'), running.baseUrl)
})

test('oidcc-redirect-uri-query-OK', async (t) => {
  const { page } = await answerTo({ redirect_uri: QUERY })
  const answer = callbackOf(page)
  t.is(answer.searchParams.get('foo'), 'bar')
  t.truthy(answer.searchParams.get('code'))
})

test('oidcc-redirect-uri-query-mismatch, -query-added and -regfrag', async (t) => {
  for (const redirect_uri of [`${CALLBACK}?foo=baz`, `${QUERY}&a=b`, `${CALLBACK}#x`]) {
    const { url } = await journey(party, { redirect_uri })
    const page = await browser.get(pathOf(url))
    t.is(page.status, 400, redirect_uri)
    t.is(page.location, null)
  }
})
