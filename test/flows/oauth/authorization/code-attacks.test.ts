/** Attacks on the authorization and token endpoints (RFC 9700). */
import test from 'ava'
import * as oidc from 'openid-client'
import { openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { type ProofKey, proofKey } from '../../../support/identity/proof.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  isConsent,
  pathOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedPair } from '../../../support/service.js'
import { tenantAgent } from '../../../support/identity/tenant-agent.js'
import { RACERS, ROUNDS } from '../../../support/racers.js'

const [running, peer] = await sharedPair('clients')
const person = await bootstrapped(running)
const party = await relyingParty(running, person)
const first = await party.signedIn(person)
const browser = first.browser

type Parameters = Readonly<Record<string, string>>
/** The response to a browser that is signed in and has consented. */
const silently = async (parameters: Parameters = {}, of = browser) => {
  const begun = await party.journey(parameters)
  return { ...begun, callback: callbackOf(await authorized(of, person, begun.url)) }
}
const redeem = ({ callback, checks }: Awaited<ReturnType<typeof silently>>) =>
  oidc.authorizationCodeGrant(party.config, callback, checks)
const errorOf = async (parameters: Parameters, of = browser) => {
  const { url } = await party.journey(parameters)
  return callbackOf(await of.get(pathOf(url))).searchParams.get('error')
}
const tokenForm = (fields: Parameters, at = running, more: Parameters = {}) =>
  fetch(`${at.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`,
      ...more,
    },
    body: new URLSearchParams(fields),
  })
const userinfo = (init: RequestInit) => fetch(`${running.baseUrl}/userinfo`, init)

for (const [title, change] of [
  ['another redirect URI', { redirect_uri: 'https://app.example/other' }],
  ['another verifier', { code_verifier: 'x'.repeat(43) }],
  ['no verifier', { code_verifier: '' }],
  ['a verifier of 42 characters', { code_verifier: 'x'.repeat(42) }],
  ['a verifier of 129 characters', { code_verifier: 'x'.repeat(129) }],
] as const) {
  test(`a code is not redeemed with ${title}, and stays valid for its owner`, async (t) => {
    const begun = await silently()
    const right = {
      grant_type: 'authorization_code',
      code: begun.callback.searchParams.get('code')!,
      redirect_uri: CALLBACK,
      code_verifier: begun.verifier,
    }
    const answer = await tokenForm({ ...right, ...change })
    t.is(answer.status, 400)
    t.like(await answer.json(), { error: 'invalid_grant' })
    t.is((await tokenForm(right)).status, 200)
  })
}

test('with PKCE a token request needs no redirect URI', async (t) => {
  const begun = await silently()
  const form = {
    grant_type: 'authorization_code',
    code: begun.callback.searchParams.get('code')!,
    code_verifier: begun.verifier,
  }
  t.is((await tokenForm({ ...form, code_verifier: 'x'.repeat(43) })).status, 400)
  t.is((await tokenForm(form)).status, 200)
})

test('a state of 8 KiB comes back with codes and errors, a longer one with an error', async (t) => {
  for (const length of [2049, 8192]) {
    const state = 's'.repeat(length)
    const { url } = await party.journey({ state })
    t.is(callbackOf(await browser.get(pathOf(url))).searchParams.get('state'), state)
    const { url: faulty } = await party.journey({ state, prompt: 'unknown' })
    const { searchParams } = callbackOf(await browser.get(pathOf(faulty)))
    t.is(searchParams.get('state'), state)
    t.truthy(searchParams.get('error'))
  }
  const state = 's'.repeat(8193)
  const { url } = await party.journey({ state })
  const { searchParams } = callbackOf(await browser.get(pathOf(url)))
  t.is(searchParams.get('error'), 'invalid_request')
  t.is(searchParams.get('state'), state)
})

test('text that the database cannot store is a protocol error, and its state is not returned', async (t) => {
  for (const [parameters, error] of [
    [{ nonce: 'a\0b' }, 'invalid_request'],
    [{ login_hint: '\0' }, 'invalid_request'],
    [{ ui_locales: 'en\0' }, 'invalid_request'],
    [{ claims: '{"id_token":{"sub":{"value":"\\u0000"}}}' }, 'invalid_request'],
  ] as const) {
    t.is(await errorOf(parameters), error, JSON.stringify(parameters))
  }
  const { url } = await party.journey({ state: 'a\0b' })
  const { searchParams } = callbackOf(await browser.get(pathOf(url)))
  t.deepEqual([searchParams.get('error'), searchParams.get('state')], ['invalid_request', null])
  const pushed = await fetch(`${running.baseUrl}/oauth/par`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`,
    },
    body: new URLSearchParams([...url.searchParams, ['audience', 'a\0b']]),
  })
  t.is(pushed.status, 400)
  t.is(((await pushed.json()) as { error: string }).error, 'invalid_request')
})

test('a redirect URI that no browser can parse is not registered, and an old one breaks no page', async (t) => {
  const unreadable = 'com.example.app://host:99999/'
  const operator = await tenantAgent(running.baseUrl)
  const created = await operator.ask('POST', '/api/v1/applications', {
    name: 'Installed',
    client_type: 'public',
    redirect_uris: [unreadable],
  })
  t.is(created.status, 400, created.text)
  t.is(created.body['error'], 'invalid_redirect_uri')

  const owner = await relyingParty(running, person, { redirectUris: [unreadable] })
  const { url } = await owner.journey({ redirect_uri: unreadable })
  const page = await browser.get(pathOf(url))
  t.true(isConsent(page), page.html)
})

/** An object of type `payment` in JSON text with this nesting depth. */
const nested = (depth: number) =>
  `[{"type":"payment","x":${'['.repeat(depth - 2)}${']'.repeat(depth - 2)}}]`

for (const [title, text] of [
  ['nest too deep for a token', nested(13)],
  ['nest too deep for any parser', nested(2_000)],
  ['have a duplicate member', '[{"type":"payment","amount":"1","amount":"1000"}]'],
  ['have a number that loses digits', '[{"type":"payment","amount":12345678901234567890}]'],
  ['have a number out of range', '[{"type":"payment","amount":1e400}]'],
  ['have a prototype member', '[{"type":"payment","__proto__":{"amount":"1"}}]'],
  ['have half of a surrogate pair', '[{"type":"payment","creditor":"\\ud800"}]'],
  ['have one location', '[{"type":"payment","locations":"https://api.example"}]'],
  ['have an action that is not a string', '[{"type":"payment","actions":["read",1]}]'],
  ['have an identifier that is not a string', '[{"type":"payment","identifier":7}]'],
] as const) {
  test(`authorization details that ${title} are refused (RFC 9396 section 5)`, async (t) => {
    const owner = await relyingParty(running, person, { authorizationDetailsTypes: ['payment'] })
    const { url } = await owner.journey({ authorization_details: text })
    const pushed = await fetch(`${running.baseUrl}/oauth/par`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${owner.clientId}:${owner.secret}`).toString('base64')}`,
      },
      body: url.searchParams,
    })
    t.is(pushed.status, 400)
    const { error } = (await pushed.json()) as { error: string }
    t.is(error, 'invalid_authorization_details')
  })
}

test('authorization details with the maximum depth make a token that works', async (t) => {
  const owner = await relyingParty(running, person, { authorizationDetailsTypes: ['payment'] })
  const details = { authorization_details: nested(12) }
  const { browser: mine, tokens } = await owner.signedIn(person, details)
  await mine.close()
  const answer = await fetch(`${running.baseUrl}/userinfo`, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  })
  t.is(answer.status, 200)
})

test('a verifier without a challenge is refused, so that PKCE cannot be downgraded', async (t) => {
  const { url, verifier } = await party.journey()
  url.searchParams.delete('code_challenge')
  url.searchParams.delete('code_challenge_method')
  const code = callbackOf(await browser.get(pathOf(url))).searchParams.get('code')!
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK }
  t.is((await tokenForm({ ...form, code_verifier: verifier })).status, 400)
  t.is((await tokenForm(form)).status, 200)
})

const asked = async (requestUri: unknown, { clientId }: RelyingParty) => {
  const query = new URLSearchParams({ client_id: clientId, request_uri: String(requestUri) })
  const headers = { accept: 'application/json', cookie: cookies() }
  const init = { headers, redirect: 'manual' } as const
  const answer = await fetch(`${running.baseUrl}/oauth/authorize?${query.toString()}`, init)
  const { error } = answer.status === 302 ? {} : ((await answer.json()) as { error?: string })
  return { status: answer.status, error }
}
const cookies = () => [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')

test('a pushed request is valid for the client that pushed it, and for its current redirect URIs', async (t) => {
  const mine = await relyingParty(running, person, { redirectUris: [CALLBACK, `${CALLBACK}/old`] })
  const thief = await relyingParty(running, person)
  const push = async (redirect_uri: string) => {
    const { url } = await mine.journey({ redirect_uri })
    const authorization = `Basic ${Buffer.from(`${mine.clientId}:${mine.secret}`).toString('base64')}`
    const init = { method: 'POST', headers: { authorization }, body: url.searchParams }
    const answer = await fetch(`${running.baseUrl}/oauth/par`, init)
    return ((await answer.json()) as { request_uri: string }).request_uri
  }
  const [pushed, old] = [await push(CALLBACK), await push(`${CALLBACK}/old`)]
  t.deepEqual(await asked(pushed, thief), { status: 400, error: 'invalid_request_uri' })
  t.is(await isAsked(pushed, mine), true, 'and it is not used up by that')
  await sql(running)`
    update applications set redirect_uris = array[${CALLBACK}] where id = ${mine.clientId}`
  t.deepEqual(await asked(old, mine), { status: 400, error: 'invalid_redirect_uri' })
  t.is(await isAsked(pushed, mine), true)
})
/** Whether the user is asked for consent. */
async function isAsked(requestUri: string, { clientId }: RelyingParty): Promise<boolean> {
  const query = new URLSearchParams({ client_id: clientId, request_uri: requestUri })
  return isConsent(await browser.get(`/oauth/authorize?${query.toString()}`))
}

test('a code that is bound to a key is redeemed only with a proof of it', async (t) => {
  const own = await proofKey()
  const begun = await silently({ dpop_jkt: own.jkt })
  const form = {
    grant_type: 'authorization_code',
    code: begun.callback.searchParams.get('code')!,
    redirect_uri: CALLBACK,
    code_verifier: begun.verifier,
  }
  const proof = (key: ProofKey) => key.proof('POST', `${running.issuer}/oauth/token`)
  const refused = async (dpop?: string) => {
    const answer = await tokenForm(form, running, dpop === undefined ? {} : { dpop })
    return { status: answer.status, error: ((await answer.json()) as { error: string }).error }
  }
  t.deepEqual(await refused(), { status: 401, error: 'invalid_dpop_proof' })
  const stolen = await refused(await proof(await proofKey()))
  t.deepEqual(stolen, { status: 400, error: 'invalid_grant' })
  const given = await tokenForm(form, running, { dpop: await proof(own) })
  t.is(((await given.json()) as { token_type: string }).token_type, 'DPoP')
})

test('a token without openid gets no user claims', async (t) => {
  const { url, verifier } = await party.journey({ scope: 'profile email vault:list' })
  const callback = callbackOf(await authorized(browser, person, url))
  const given = await tokenForm({
    grant_type: 'authorization_code',
    code: callback.searchParams.get('code')!,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  })
  const { access_token } = (await given.json()) as { access_token: string }
  const answer = await userinfo({ headers: { authorization: `Bearer ${access_token}` } })
  t.is(answer.status, 403)
  t.is(((await answer.json()) as { error: string }).error, 'insufficient_scope')
  t.regex(answer.headers.get('www-authenticate') ?? '', /^Bearer error="insufficient_scope"/)
})

test('another client cannot redeem the code, nor revoke its tokens', async (t) => {
  const begun = await silently()
  const thief = await relyingParty(running, person)
  const checks = { pkceCodeVerifier: begun.verifier, expectedState: begun.state }
  await t.throwsAsync(oidc.authorizationCodeGrant(thief.config, begun.callback, checks))
  const { access_token } = await redeem(begun)
  await t.throwsAsync(oidc.authorizationCodeGrant(thief.config, begun.callback, checks))
  const authorization = `Bearer ${access_token}`
  t.is((await userinfo({ headers: { authorization } })).status, 200)
})

const redeemable = async () => {
  const begun = await silently()
  return {
    grant_type: 'authorization_code',
    code: begun.callback.searchParams.get('code')!,
    redirect_uri: CALLBACK,
    code_verifier: begun.verifier,
  }
}

// Uses of one code are serialised within a process, so two processes race for the row.
test.serial('of two processes that redeem a code at the same moment one succeeds', async (t) => {
  t.timeout(120_000)
  for (let round = 0; round < ROUNDS; round += 1) {
    const form = await redeemable()
    const answers = await Promise.all([tokenForm(form), tokenForm(form, peer)])
    t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400])
  }
})

test.serial(
  'of concurrent redemptions of one code one succeeds, and the others revoke its tokens',
  async (t) => {
    t.timeout(120_000)
    const form = await redeemable()
    const answers = await Promise.all(
      Array.from({ length: RACERS }, (_, n) => tokenForm(form, n % 2 ? running : peer)),
    )
    const won = answers.filter(({ status }) => status === 200)
    t.is(won.length, 1)
    t.true(answers.every(({ status }) => status === 200 || status === 400))
    const { access_token, refresh_token } = (await won[0]!.json()) as Record<string, string>
    const authorization = `Bearer ${access_token}`
    t.is((await userinfo({ headers: { authorization } })).status, 401)
    const refreshed = await tokenForm({
      grant_type: 'refresh_token',
      refresh_token: refresh_token!,
    })
    t.is(refreshed.status, 400)
  },
)

test('a scope that the application or the user lacks is left out', async (t) => {
  const own = await relyingParty(running, person, { scopes: ['openid', 'users:manage'] })
  const scope = 'openid users:manage profile'
  const { tokens } = await own.signedIn(person, { scope })
  t.is(tokens.scope, 'openid')
  const nothing = await own.journey({ scope: 'profile' })
  const denied = callbackOf(await browser.get(pathOf(nothing.url)))
  t.is(denied.searchParams.get('error'), 'access_denied')
})

test('a user of another tenant cannot sign in to the application', async (t) => {
  const stranger = await bootstrapped(running)
  const other = openBrowser(running)
  const theirs = await relyingParty(running, stranger)
  await authorized(other, stranger, (await theirs.journey()).url)
  t.is(await errorOf({ prompt: 'none' }, other), 'login_required')
  const asked = await other.follow(await other.get(pathOf((await party.journey()).url)))
  t.true(asked.path.startsWith('/auth/login'))
  t.false(isConsent(asked))
})

for (const [title, change] of [
  ['tenant_id of another tenant', { tenant_id: '01a1fd99-49e0-7a15-913a-026dc5956b10' }],
  ['an unknown tenant_slug', { tenant_slug: 'unknown-slug' }],
  ['an unknown client', { client_id: '01a1fd99-49e0-7a15-913a-026dc5956b10' }],
  ['a client_id that is not a UUID', { client_id: "x' or 1=1" }],
  ['an unknown request_uri', { request_uri: 'urn:ietf:params:oauth:request_uri:x' }],
] as const) {
  test(`${title} is refused on a page`, async (t) => {
    const { url } = await party.journey(change)
    const page = await browser.get(pathOf(url)).gives(400)
    t.is(page.location, null)
  })
}

test('tenant_id together with tenant_slug, and a repeated parameter, are refused on a page', async (t) => {
  const { url } = await party.journey({ tenant_id: person.tenantId })
  t.truthy(callbackOf(await browser.get(pathOf(url))).searchParams.get('code'))
  url.searchParams.set('tenant_slug', person.tenantSlug)
  t.is((await browser.get(pathOf(url))).status, 400)
  const repeated = await party.journey()
  t.is((await browser.get(`${pathOf(repeated.url)}&state=twice`)).status, 400)
  t.is((await browser.get(`${pathOf(repeated.url)}&%zz`)).status, 400)
})

test('a session that ends between the code and its redemption invalidates the code', async (t) => {
  const other = openBrowser(running)
  const begun = await silently({}, other)
  await other.submit(await other.get('/auth/account'), {}, '/auth/logout')
  const refused = await t.throwsAsync<oidc.ResponseBodyError>(redeem(begun))
  t.is(refused?.error, 'invalid_grant')
})
