/**
 * Modules of fapi2-security-profile-final-test-plan and oidcc-dynamic-certification-test-plan on
 * audiences, proofs, redirect URIs and the shape of requests, under their names.
 */
import { createHash } from 'node:crypto'
import test from 'ava'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'
import * as oidc from 'openid-client'
import { openBrowser } from '../../support/pages/browser.js'
import { callerOf } from '../../support/agents/journey.js'
import { bootstrapped } from '../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  pathOf,
  relyingParty,
} from '../../support/oauth/relying-party.js'
import { sharedService } from '../../support/service.js'
import { sql } from '../../support/storage/sql.js'

const QUERY = `${CALLBACK}?foo=bar`
const RESOURCE = '/api/v1/applications'
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
/** Authenticates with `key`. */
const running = await sharedService('plain')
const person = await bootstrapped(running)
const party = await relyingParty(running, person, {
  redirectUris: [CALLBACK, QUERY],
  scopes: ['openid', 'profile', 'email', 'applications:read'],
  grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
})
const pair = await generateKeyPair('ES256')
const key = pair.privateKey
const keyed = await relyingParty(running, person, {
  tokenEndpointAuthMethod: 'private_key_jwt',
  secretSha256: null,
  jwks: { keys: [{ ...(await exportJWK(pair.publicKey)) }] },
})
const browser = (await party.signedIn(person)).browser

const nowSecs = () => Math.floor(Date.now() / 1000)
const basic = () => `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`

/** A client assertion with changed claims. */
async function asserted(changed: Readonly<Record<string, unknown>> = {}, alg = 'ES256') {
  const { clientId } = keyed
  const claims = { iss: clientId, sub: clientId, aud: running.baseUrl, jti: crypto.randomUUID() }
  const times = { iat: nowSecs(), exp: nowSecs() + 60 }
  const signer = alg === 'ES256' ? key : (await generateKeyPair(alg)).privateKey
  const client_assertion = await new SignJWT({ ...claims, ...times, ...changed })
    .setProtectedHeader({ alg })
    .sign(signer)
  return { client_assertion_type: ASSERTION, client_assertion }
}

const push = async (aud: string | string[]) => pushAsserted({ aud })
const pushAsserted = async (changed: Readonly<Record<string, unknown>>) =>
  callerOf(running.baseUrl).form('/oauth/par', {
    ...Object.fromEntries((await keyed.journey()).url.searchParams),
    ...(await asserted(changed)),
  })

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

test('par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted, over-60-seconds fails', async (t) => {
  const soon = nowSecs() + 8
  t.is((await pushAsserted({ iat: soon, nbf: soon })).status, 201)
  const late = nowSecs() + 70
  const refused = await pushAsserted({ iat: late, nbf: late, exp: late + 60 })
  t.like(refused, { status: 401, body: { error: 'invalid_client' } })
})

/** A code of `keyed`, and its redemption with this authentication. */
async function redeemable() {
  const own = openBrowser(running)
  const begun = await keyed.journey()
  const callback = callbackOf(await authorized(own, person, begun.url))
  const form = {
    grant_type: 'authorization_code',
    code: callback.searchParams.get('code')!,
    redirect_uri: CALLBACK,
    code_verifier: begun.verifier,
    client_id: keyed.clientId,
  }
  return (authentication: Record<string, string>, headers: Record<string, string> = {}) =>
    callerOf(running.baseUrl).form('/oauth/token', { ...form, ...authentication }, headers)
}

test('client assertions at the token endpoint: what the modules refuse, and the issuer as audience', async (t) => {
  const redeem = await redeemable()
  const cases: [string, Record<string, string>][] = [
    ['ensure-client-assertion-in-token-endpoint', {}],
    [
      'ensure-client-assertion-with-exp-is-5-minutes-in-past-fails',
      await asserted({ iat: nowSecs() - 360, exp: nowSecs() - 300 }),
    ],
    ['ensure-client-assertion-with-no-sub-fails', await asserted({ sub: undefined })],
    [
      'ensure-client-assertion-with-wrong-aud-fails',
      await asserted({ aud: 'https://other.example' }),
    ],
    ['ensure-signed-client-assertion-with-RS256-fails', await asserted({}, 'RS256')],
    ['ensure-client-id-in-token-endpoint', { ...(await asserted()), client_id: party.clientId }],
  ]
  for (const [title, authentication] of cases) {
    const answer = await redeem(authentication)
    t.true([400, 401].includes(answer.status), title)
    t.regex(String(answer.body['error']), /^invalid_(?:client|request)$/, title)
  }
  t.is(
    (await redeem(await asserted())).status,
    200,
    'oidcc-ensure-client-assertion-with-iss-aud-succeeds',
  )
})

test('ensure-authorization-code-is-bound-to-client', async (t) => {
  const redeem = await redeemable()
  const other = { client_id: party.clientId }
  const answer = await redeem(other, { authorization: basic() })
  t.like(answer, { status: 400, body: { error: 'invalid_grant' } })
  t.is((await redeem(await asserted())).status, 200, 'the code still belongs to its client')
})

type Change = {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  /** Changes the signed proof. */
  readonly text?: (proof: string) => string
}

/** One key, and its requests at the token endpoint, at PAR and at a resource, with a proof that is changed. */
async function prover() {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  const at = callerOf(running.baseUrl)
  const proof = async (htm: string, path: string, own: JWTPayload, change: Change) => {
    const claims = { htm, htu: running.baseUrl + path, iat: nowSecs(), jti: crypto.randomUUID() }
    const signed = await new SignJWT({ ...claims, ...own, ...change.claims })
      .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk, ...change.header })
      .sign(privateKey)
    return change.text?.(signed) ?? signed
  }
  const form = { grant_type: 'client_credentials' }
  const token = async (change: Change = {}) =>
    at.form('/oauth/token', form, {
      authorization: basic(),
      dpop: await proof('POST', '/oauth/token', {}, change),
    })
  return {
    token,
    async push(change: Change) {
      const fields = Object.fromEntries((await party.journey()).url.searchParams)
      const dpop = await proof('POST', '/oauth/par', {}, change)
      return at.form('/oauth/par', fields, { authorization: basic(), dpop })
    },
    async resource(access: string, change: Change = {}, scheme = 'DPoP') {
      const ath = createHash('sha256').update(access).digest('base64url')
      const dpop = await proof('GET', RESOURCE, { ath }, change)
      const headers = { authorization: `${scheme} ${access}`, dpop }
      return at.call(RESOURCE, { headers })
    },
  }
}

for (const [title, claims] of [
  ['ensure-dpopproof-with-iat-10seconds-before-succeeds', () => ({ iat: nowSecs() - 10 })],
  ['ensure-dpopproof-with-iat-10seconds-after-succeeds', () => ({ iat: nowSecs() + 10 })],
  ['check-dpop-proof-nbf-exp', () => ({ nbf: nowSecs(), exp: nowSecs() + 300 })],
] as const) {
  test(`${title}: at PAR, token endpoint and resource`, async (t) => {
    const { token, push, resource } = await prover()
    t.is((await push({ claims: claims() })).status, 201)
    const granted = await token({ claims: claims() })
    t.is(granted.status, 200)
    t.is((await resource(String(granted.body['access_token']), { claims: claims() })).status, 200)
  })
}

const invalidated = (proof: string) => {
  const [head, payload, signature = ''] = proof.split('.')
  return [head, payload, [...signature].toReversed().join('')].join('.')
}
const unsigned = (proof: string) => {
  const [head = '', payload] = proof.split('.')
  const read = JSON.parse(Buffer.from(head, 'base64url').toString()) as object
  const none = Buffer.from(JSON.stringify({ ...read, alg: 'none' })).toString('base64url')
  return `${none}.${payload}.`
}

test('refresh-token of a client that keeps it: the same one each time, with the client and a proof', async (t) => {
  const kept = await relyingParty(running, person, {
    dpopBoundAccessTokens: true,
    rotateRefreshTokens: false,
  })
  const DPoP = oidc.getDPoPHandle(kept.config, await oidc.randomDPoPKeyPair('ES256'))
  const { tokens } = await kept.signedIn(person, {}, { DPoP })
  const token = tokens.refresh_token!
  const first = await oidc.refreshTokenGrant(kept.config, token, undefined, { DPoP })
  t.is(first.refresh_token, token)
  await sql(running)`
    update refresh_tokens set issued_at = issued_at - interval '1 hour'
    where family_id in (select id from refresh_families where client_id = ${kept.clientId})`
  const second = await oidc.refreshTokenGrant(kept.config, token, undefined, { DPoP })
  t.is(second.refresh_token, token)
  t.not(second.access_token, first.access_token)
  await t.throwsAsync(oidc.refreshTokenGrant(kept.config, token), undefined, 'no proof')
  const { status } = await callerOf(running.baseUrl).form('/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: token,
    client_id: kept.clientId,
  })
  t.is(status, 401)
  await oidc.tokenRevocation(kept.config, token)
  await t.throwsAsync(oidc.refreshTokenGrant(kept.config, token, undefined, { DPoP }))
})

test('dpop-negative-tests', async (t) => {
  const { token, resource } = await prover()
  const access = String((await token()).body['access_token'])
  t.is((await resource(access)).status, 200)
  const ours = await exportJWK((await generateKeyPair('ES256')).publicKey)
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const cases: [string, Change][] = [
    ['another method', { claims: { htm: 'PUT' } }],
    ['the method in lower case', { claims: { htm: 'post' } }],
    ['another URL', { claims: { htu: `${running.baseUrl}/oauth/par` } }],
    ['an hour old', { claims: { iat: nowSecs() - 3600 } }],
    ['an hour in the future', { claims: { iat: nowSecs() + 3600 } }],
    ['without iat', { claims: { iat: undefined } }],
    ['without jti', { claims: { jti: undefined } }],
    ['without htm', { claims: { htm: undefined } }],
    ['without htu', { claims: { htu: undefined } }],
    ['another typ', { header: { typ: 'jwt' } }],
    ['without typ', { header: { typ: undefined } }],
    ['another key', { header: { jwk: ours } }],
    ['a private key', { header: { jwk: await exportJWK(privateKey) } }],
    ['without its key', { header: { jwk: undefined } }],
    ['a wrong signature', { text: invalidated }],
    ['no signature', { text: unsigned }],
    ['not well-formed', { text: (proof) => proof.slice(0, proof.lastIndexOf('.')) }],
    ['two proofs', { text: (proof) => `${proof}, ${proof}` }],
  ]
  for (const [title, change] of cases) {
    for (const answer of [await token(change), await resource(access, change)]) {
      t.is(answer.status, 401, title)
      t.is(answer.body['error'], 'invalid_dpop_proof', title)
    }
  }
  for (const ath of [undefined, createHash('sha256').update('other').digest('base64url')])
    t.is((await resource(access, { claims: { ath } })).status, 401, `ath ${ath}`)
  const jti = crypto.randomUUID()
  t.is((await resource(access, { claims: { jti } })).status, 200)
  t.is((await resource(access, { claims: { jti } })).status, 401, 'a jti again')
  const { resource: another } = await prover()
  t.is((await another(access)).status, 401, 'the key of another')
  t.is((await resource(access, {}, 'Bearer')).status, 401, 'as a bearer token')
  const more = { claims: { extra: 1 }, header: { extra: 'x' } }
  t.is((await resource(access, more)).status, 200, 'further members')
})

test('ensure-holder-of-key-required', async (t) => {
  const bound = await relyingParty(running, person, { dpopBoundAccessTokens: true })
  const own = openBrowser(running)
  const begun = await bound.journey()
  const callback = callbackOf(await authorized(own, person, begun.url))
  const checks = begun.checks
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
  const { token, resource } = await prover()
  const bound = String((await token()).body['access_token'])
  for (const scheme of ['DPoP', 'dpop', 'DPOP'])
    t.is((await resource(bound, {}, scheme)).status, 200, scheme)
})

const answerTo = async (change: Record<string, string>, without: string[] = []) => {
  const begun = await party.journey(change)
  for (const name of without) begun.url.searchParams.delete(name)
  return { begun, page: await authorized(browser, person, begun.url) }
}

test('ensure-authorization-request-with-64-char-nonce-success', async (t) => {
  const nonce = 'n'.repeat(64)
  const { begun, page } = await answerTo({ nonce })
  const tokens = await oidc.authorizationCodeGrant(party.config, callbackOf(page), begun.checks)
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
  const { url } = await party.journey()
  url.searchParams.delete('redirect_uri')
  const page = await browser.get(pathOf(url)).gives(400)
  t.is(page.location, null)
})

test('user-rejects-authentication', async (t) => {
  const own = await relyingParty(running, person)
  const begun = await own.journey()
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

test('oidcc-redirect-uri-query-mismatch and -query-added, and a fragment', async (t) => {
  for (const redirect_uri of [`${CALLBACK}?foo=baz`, `${QUERY}&a=b`, `${CALLBACK}#x`]) {
    const { url } = await party.journey({ redirect_uri })
    const page = await browser.get(pathOf(url))
    t.is(page.status, 400, redirect_uri)
    t.is(page.location, null)
  }
})
