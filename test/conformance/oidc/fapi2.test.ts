/** Modules of fapi2-security-profile-final-test-plan that apply, under their names. */
import test from 'ava'
import * as oidc from 'openid-client'
import { openBrowser } from '../../support/pages/browser.js'
import { bootstrapped } from '../../support/identity/person.js'
import { proofFor, proofKey } from '../../support/identity/proof.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../support/oauth/relying-party.js'
import { sharedService } from '../../support/service.js'

const running = await sharedService('fleeting')
const person = await bootstrapped(running)
const party = await relyingParty(running, person)

const basic = () => `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`
const par = (fields: [string, string][] | Record<string, string>, headers = {}) =>
  fetch(`${running.baseUrl}/oauth/par`, {
    method: 'POST',
    headers: { authorization: basic(), ...headers },
    body: new URLSearchParams(fields),
  })
const parameters = async (more: Record<string, string> = {}) =>
  Object.fromEntries((await party.journey(more)).url.searchParams)
const errorOf = async (answer: Response) => ((await answer.json()) as { error: string }).error
const open = (requestUri: string) => {
  const query = new URLSearchParams({ client_id: party.clientId, request_uri: requestUri })
  return `/oauth/authorize?${query.toString()}`
}
async function pushed(): Promise<string> {
  const answer = await par(await parameters())
  return ((await answer.json()) as { request_uri: string }).request_uri
}

test('happy-flow: 201, a request_uri with the documented format, never cached', async (t) => {
  const answer = await par(await parameters())
  t.is(answer.status, 201)
  t.is(answer.headers.get('cache-control'), 'no-store')
  const body = (await answer.json()) as { request_uri: string; expires_in: number }
  t.regex(body.request_uri, /^urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]{43}$/)
  t.is(body.expires_in, 5)
})

test('par-ensure-reused-request-uri-prior-to-auth-completion-succeeds, par-attempt-reuse-request_uri', async (t) => {
  const browser = openBrowser(running)
  const path = open(await pushed())
  t.is((await browser.get(path)).status, 303)
  t.is((await browser.get(path)).status, 303, 'a reload before the sign-in')
  const other = openBrowser(running)
  const [one, two] = await Promise.all([
    authorized(browser, person, path),
    authorized(other, person, path),
  ])
  const codes = [one, two].filter(({ status }) => status === 302)
  t.is(codes.length, 1, 'two browsers, one code')
  t.is((await browser.get(path)).status, 400)
})

test('par-attempt-to-use-expired-request_uri', async (t) => {
  const path = open(await pushed())
  await new Promise((resolve) => setTimeout(resolve, 5_100))
  const answer = await fetch(running.baseUrl + path, { redirect: 'manual' })
  t.is(answer.status, 400)
  t.is(await errorOf(answer), 'invalid_request_uri')
})

test('a client cannot use the request_uri of another one', async (t) => {
  const stranger = await relyingParty(running, person)
  const path = open(await pushed()).replace(party.clientId, stranger.clientId)
  t.is((await fetch(running.baseUrl + path, { redirect: 'manual' })).status, 400)
})

test('a public client gets pkce_required', async (t) => {
  const open = await relyingParty(running, person, { clientType: 'public' })
  const { code_challenge: _, code_challenge_method: __, ...without } = await parameters()
  const post = (fields: Record<string, string>) =>
    fetch(`${running.baseUrl}/oauth/par`, {
      method: 'POST',
      body: new URLSearchParams({ ...fields, client_id: open.clientId }),
    })
  const missing = await post(without)
  t.is(missing.status, 400)
  t.is(await errorOf(missing), 'pkce_required')
})

test('par-ensure-pkce-required and par-plain-pkce-rejected, of a client with pushed requests and bound tokens', async (t) => {
  const bound = { requirePushedAuthorizationRequests: true, dpopBoundAccessTokens: true }
  const fapi = await relyingParty(running, person, bound)
  const { code_challenge: _, code_challenge_method: __, ...without } = await parameters()
  const push = async (fields: Record<string, string>, of: RelyingParty) => {
    const dpop = await proofFor('POST', `${running.baseUrl}/oauth/par`)
    const secret = { client_id: of.clientId, client_secret: of.secret }
    const body = new URLSearchParams({ ...fields, ...secret })
    return fetch(`${running.baseUrl}/oauth/par`, { method: 'POST', headers: { dpop }, body })
  }
  const refused = await push(without, fapi)
  t.is(refused.status, 400)
  t.is(await errorOf(refused), 'invalid_request')
  const { redirect_uri: ___, ...nowhere } = await parameters()
  for (const wrong of [
    { ...(await parameters()), redirect_uri: 'https://evil.example/' },
    nowhere as Record<string, string>,
    { ...(await parameters()), code_challenge_method: 'plain' },
    { ...(await parameters()), code_challenge_method: '' },
    { ...(await parameters()), code_challenge: 'short' },
  ]) {
    const misled = await push(wrong, fapi)
    t.is(misled.status, 400)
    t.is(await errorOf(misled), 'invalid_request', JSON.stringify(wrong))
  }
  t.is((await push(await parameters(), fapi)).status, 201)
  const required = await relyingParty(running, person, { requirePkce: true })
  const unproved = await push(without, required)
  t.is(unproved.status, 400)
  t.is(await errorOf(unproved), 'invalid_request')
  // With only one of the two, require_pkce decides.
  for (const one of ['requirePushedAuthorizationRequests', 'dpopBoundAccessTokens'] as const) {
    const plain = await relyingParty(running, person, { [one]: true })
    t.is((await push(without, plain)).status, 201, one)
  }
})

test('par-attempt-invalid-http-method', async (t) => {
  const body = new URLSearchParams(await parameters())
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const headers = { authorization: basic() }
    const answer = await fetch(`${running.baseUrl}/oauth/par`, { method, headers, body })
    t.is(answer.status, 405, method)
  }
  t.is((await fetch(`${running.baseUrl}/oauth/par`)).status, 405)
})

test('par-authorization-request-containing-request_uri-form-param', async (t) => {
  const answer = await par({ ...(await parameters()), request_uri: await pushed() })
  t.is(answer.status, 400)
  t.is(await errorOf(answer), 'invalid_request')
})

test('a repeated parameter at PAR is refused', async (t) => {
  const fields = Object.entries(await parameters())
  for (const repeated of fields) {
    const answer = await par([...fields, repeated])
    t.is(answer.status, 400, repeated[0])
    t.is(await errorOf(answer), 'invalid_request')
  }
})

for (const [title, change, status, error] of [
  [
    'an unlisted redirect URI',
    { redirect_uri: 'https://evil.example' },
    400,
    'invalid_redirect_uri',
  ],
  ['response_type token', { response_type: 'token' }, 400, 'unsupported_response_type'],
  [
    'response_type code id_token',
    { response_type: 'code id_token' },
    400,
    'unsupported_response_type',
  ],
  ['an unknown scope', { scope: 'root' }, 400, 'invalid_scope'],
  [
    'an audience that is a URL with a fragment',
    { resource: 'https://a.example#x' },
    400,
    'invalid_target',
  ],
] as const) {
  test(`a pushed request with ${title} is refused with ${error}`, async (t) => {
    const answer = await par(await parameters(change))
    t.is(answer.status, status)
    t.is(await errorOf(answer), error)
  })
}

test('a client without authentication or without the grant cannot push', async (t) => {
  const wrong = await par(await parameters(), { authorization: `${basic().slice(0, -6)}AAAA==` })
  t.is(wrong.status, 401)
  t.is(await errorOf(wrong), 'invalid_client')
  const service = await relyingParty(running, person, { grantTypes: ['client_credentials'] })
  const answer = await par(
    { ...(await parameters()), client_id: service.clientId },
    {
      authorization: `Basic ${Buffer.from(`${service.clientId}:${service.secret}`).toString('base64')}`,
    },
  )
  t.is(answer.status, 403)
  t.is(await errorOf(answer), 'unauthorized_client')
})

test('ensure-token-endpoint-fails-with-expired-auth-code', async (t) => {
  const browser = openBrowser(running)
  const begun = await party.journey()
  const callback = callbackOf(await authorized(browser, person, begun.url))
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  const checks = { pkceCodeVerifier: begun.verifier, expectedState: begun.state }
  const refused = await t.throwsAsync<oidc.ResponseBodyError>(
    oidc.authorizationCodeGrant(party.config, callback, checks),
  )
  t.is(refused?.error, 'invalid_grant')
})

test('ensure-authorization-request-with-long-state and -long-nonce', async (t) => {
  const browser = openBrowser(running)
  const long = { state: 's'.repeat(1000), nonce: 'n'.repeat(1000) }
  const begun = await party.journey(long)
  const callback = callbackOf(await authorized(browser, person, begun.url))
  const checks = { pkceCodeVerifier: begun.verifier, expectedNonce: long.nonce }
  const tokens = await oidc.authorizationCodeGrant(party.config, callback, {
    ...checks,
    expectedState: long.state,
  })
  t.is(tokens.claims()!.nonce, long.nonce)
  t.is(callback.searchParams.get('state'), long.state)
  t.is(callback.origin + callback.pathname, CALLBACK)
})

test('ensure-mismatched-dpop-jkt-fails', async (t) => {
  const key = await proofKey()
  const push = async (dpop_jkt: string) =>
    par(await parameters({ dpop_jkt }), {
      dpop: await key.proof('POST', `${running.baseUrl}/oauth/par`),
    })
  const refused = await push('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
  t.is(refused.status, 400)
  t.is(await errorOf(refused), 'invalid_request')
  t.is((await push(key.jkt)).status, 201)
})
