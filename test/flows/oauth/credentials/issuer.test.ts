/** What a credential issuer publishes, the root issuer, the page of an offer, and the switch. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import * as oidc from 'openid-client'
import test from 'ava'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { apiOf, type Json } from '../../../support/api.js'
import { fixtureOf } from '../../../support/agents/delegation.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedApi, sharedService, testService } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'
import { sql } from '../../../support/storage/sql.js'
import {
  credentialsOf,
  issuingTenant,
  nonceOf,
  offer,
  offeredToken,
  partsOf,
  proofOf,
  redeem,
  requestCredential,
  walletKey,
} from '../../../support/oauth/wallet.js'

const { api, running } = await sharedApi('plain')
const tenant = await issuingTenant(api)

const issuerAt = (path: string) => `/.well-known/openid-credential-issuer${path}`

test('the metadata of a tenant names endpoints that exist', async (t) => {
  const { body } = await api.get(issuerAt(tenant.at))
  t.like(body, {
    credential_issuer: tenant.identifier,
    authorization_servers: [running.issuer],
    credential_endpoint: `${tenant.identifier}/credential`,
    nonce_endpoint: `${tenant.identifier}/nonce`,
    notification_endpoint: `${tenant.identifier}/notification`,
    batch_credential_issuance: { batch_size: 10 },
  })
  t.false('deferred_credential_endpoint' in body)
  const configurations = body['credential_configurations_supported'] as Record<string, Json>
  t.deepEqual(Object.keys(configurations), ['TenantMembership', 'VerifiedEmail', 'AgentDelegation'])
  for (const [id, configuration] of Object.entries(configurations)) {
    t.like(configuration, {
      format: 'dc+sd-jwt',
      scope: id,
      cryptographic_binding_methods_supported: ['jwk'],
      credential_signing_alg_values_supported: ['ES256'],
      proof_types_supported: { jwt: { proof_signing_alg_values_supported: ['ES256', 'EdDSA'] } },
    })
    const type = await fetch(String(configuration['vct']).replace(running.issuer, running.baseUrl))
    t.is(type.status, 200)
    const metadata = (await type.json()) as Json
    t.is(metadata['vct'], configuration['vct'])
  }
  t.is((await api.get('/credential-types/Passport')).status, 404)
  for (const path of ['nonce', 'credential', 'notification'])
    t.is((await api.post(`/credential-issuers/unknown-slug/${path}`)).status, 404, path)
})

test('oid4vci-1_0-issuer-metadata-test-signed: the metadata as a signed JWT', async (t) => {
  const get = (accept: string) =>
    fetch(running.baseUrl + issuerAt(tenant.at), { headers: { accept } })
  const signed = await get('application/jwt')
  t.regex(String(signed.headers.get('content-type')), /^application\/jwt/)
  const keys = createRemoteJWKSet(new URL(`${running.baseUrl}${tenant.at}/.well-known/jwks.json`))
  const { payload } = await jwtVerify(await signed.text(), keys, {
    typ: 'openidvci-issuer-metadata+jwt',
    algorithms: ['ES256'],
    subject: tenant.identifier,
  })
  const { iss, sub, iat, ...metadata } = payload
  t.is(iss, sub)
  t.true(Math.abs(Number(iat) - Date.now() / 1000) < 60)
  for (const accept of ['application/json', '*/*', 'application/json, application/jwt;q=0.5']) {
    const plain = await get(accept)
    t.regex(String(plain.headers.get('content-type')), /^application\/json/, accept)
    t.deepEqual(await plain.json(), metadata)
  }
})

test('the authorization server offers the grant, the details and the scopes', async (t) => {
  const { body } = await api.get('/.well-known/oauth-authorization-server')
  const has = (member: string, value: string) => (body[member] as string[]).includes(value)
  t.true(has('grant_types_supported', 'urn:ietf:params:oauth:grant-type:pre-authorized_code'))
  t.true(has('authorization_details_types_supported', 'openid_credential'))
  t.true(has('scopes_supported', 'TenantMembership'))
  t.false(has('scopes_supported', 'credentials:issue'), 'a scope of administrators')
  t.is(body['pre-authorized_grant_anonymous_access_supported'], true)
  const { body: capabilities } = await api.get('/api/v1/capabilities')
  t.true((capabilities['capabilities'] as string[]).includes('credential_issuer'))
})

test('the root issuer without a tenant has true metadata: its endpoints exist and offer nothing', async (t) => {
  const { body } = await api.get(issuerAt(''))
  t.deepEqual(body['credential_configurations_supported'], {})
  const at = (endpoint: string) => String(body[endpoint]).replace(running.issuer, '')
  t.is((await api.post(at('nonce_endpoint'))).status, 200)
  const endpoint = at('credential_endpoint')
  for (const token of [undefined, 'x.y.z']) {
    const refused = await api.post(endpoint, token, {}).gives(401, 'invalid_token')
    t.regex(String(refused.headers['www-authenticate']), /^Bearer /)
  }
  const token = await offeredToken(api, tenant)
  for (const json of [{}, { credential_configuration_id: 'TenantMembership' }]) {
    await api.post(endpoint, token, json).gives(400, 'unknown_credential_configuration')
  }
})

test('authorization_details give identifiers; a wallet needs no offer for its own person', async (t) => {
  const party = await relyingParty(running, tenant, { scopes: ['openid', 'TenantMembership'] })
  const begin = (detail: Json) =>
    party.journey({
      scope: 'openid',
      authorization_details: JSON.stringify([{ type: 'openid_credential', ...detail }]),
    })
  const named = { credential_configuration_id: 'TenantMembership', locations: [tenant.identifier] }
  const browser = openBrowser(running)
  const answerTo = async (detail: Json) =>
    callbackOf(await authorized(browser, fixtureOf(tenant), (await begin(detail)).url))
  for (const wrong of [
    { credential_configuration_id: 'Passport' },
    { credential_configuration_id: 'VerifiedEmail' },
    {},
    { ...named, locations: ['https://elsewhere.example'] },
  ]) {
    const { searchParams } = await answerTo(wrong)
    t.is(searchParams.get('error'), 'invalid_authorization_details', JSON.stringify(wrong))
  }
  const begun = await begin(named)
  const callback = callbackOf(await authorized(browser, fixtureOf(tenant), begun.url))
  const tokens = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
  const [granted] = tokens.authorization_details as unknown as Json[]
  t.like(granted, named)
  const [identifier] = granted!['credential_identifiers'] as string[]
  const answer = await requestCredential(api, tenant, tokens.access_token, {
    credential_configuration_id: undefined,
    credential_identifier: identifier,
  })
  const [credential = ''] = credentialsOf(answer)
  t.is(partsOf(credential).claims['sub'], tokens.claims()!.sub)
  const iss = await proofOf(await walletKey(), tenant, await nonceOf(api, tenant), {
    claims: { iss: 'another' },
  })
  const refused = await api.post(`${tenant.at}/credential`, tokens.access_token, {
    credential_identifier: identifier,
    proofs: { jwt: [iss] },
  })
  t.is(refused.body['error'], 'invalid_proof')
})

test('an offer by URI is the offer by value, until it is used', async (t) => {
  const { code, body } = await offer(api, tenant, { tx_code: true })
  const uri = String(body['credential_offer_uri'])
  t.is(
    body['deep_link'],
    `openid-credential-offer://?credential_offer_uri=${encodeURIComponent(uri)}`,
  )
  const read = () => fetch(uri.replace(running.issuer, running.baseUrl))
  const first = await read()
  t.regex(String(first.headers.get('content-type')), /^application\/json/)
  t.is(first.headers.get('cache-control'), 'no-store')
  t.deepEqual(await first.json(), body['credential_offer'])
  const page = await fetch(String(body['page_url']).replace(running.issuer, running.baseUrl))
  const html = await page.text()
  t.true(html.includes('class="qr"'))
  t.true(html.includes('data-tx-code'))
  t.true(html.includes(`href="${String(body['deep_link'])}"`))
  t.false(html.includes(String(body['tx_code'])), 'the transaction code comes by another way')
  t.is((await redeem(api, code, { tx_code: String(body['tx_code']) })).status, 200)
  t.is((await read()).status, 404)
  const ended = await fetch(String(body['page_url']).replace(running.issuer, running.baseUrl))
  t.is(ended.status, 404)
  const wrong = uri.replace(tenant.slug, 'another-tenant').replace(running.issuer, running.baseUrl)
  t.is((await fetch(wrong)).status, 404)
})

test('an offer is created once per idempotency key, and its secrets are returned once', async (t) => {
  const json = { credential_configuration_id: 'TenantMembership', user_id: tenant.userId }
  const headers = { 'idempotency-key': crypto.randomUUID() }
  const create = () => api.post('/api/v1/credential-offers', tenant.token, json, headers)
  const [first, second] = [await create(), await create()]
  t.is(
    first.headers['location'],
    `${running.issuer}/api/v1/credential-offers/${String(first.body['id'])}`,
  )
  t.is(second.body['id'], first.body['id'])
  const read = await api.get(`/api/v1/credential-offers/${String(first.body['id'])}`, tenant.token)
  const { rows } = await api.list('/api/v1/credential-offers', tenant.token)
  for (const again of [second.body, read.body, rows.find(({ id }) => id === first.body['id'])!])
    for (const secret of [
      'credential_offer',
      'credential_offer_uri',
      'deep_link',
      'page_url',
      'tx_code',
    ])
      t.false(secret in again, secret)
})

test('a wallet pushes its request for a credential', async (t) => {
  const push = (more: Record<string, string>) =>
    api.form('/oauth/par', {
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'VerifiedEmail',
      ...more,
    })
  const wallet = await relyingParty(
    running,
    tenant,
    { scopes: ['openid', 'VerifiedEmail'], tokenEndpointAuthMethod: 'client_secret_post' },
    oidc.ClientSecretPost(),
  )
  const own = { client_id: wallet.clientId, client_secret: wallet.secret }
  t.is((await push({ ...own, resource: tenant.identifier })).status, 201)
  t.is((await push({ ...own, issuer_state: 'x'.repeat(3000) })).body['error'], 'invalid_request')
  const elsewhere = { ...own, resource: 'https://elsewhere.example' }
  t.is((await push(elsewhere)).body['error'], 'invalid_target')
  t.is((await push({ ...own, scope: 'Passport' })).body['error'], 'invalid_scope')
})

test.serial('offers and nonces expire', async (t) => {
  const environment = {
    SVC_CREDENTIALS__OFFER_TTL_SECS: '1',
    SVC_CREDENTIALS__NONCE_TTL_SECS: '1',
  }
  const peer = await testService({ peerOf: running, environment })
  const brief = apiOf(peer)
  t.teardown(() => brief.end())
  // First the nonce, so that it expires before the offer.
  const nonce = await nonceOf(brief, tenant)
  const { id, code } = await offer(brief, tenant)
  const status = async () =>
    (await brief.get(`/api/v1/credential-offers/${id}`, tenant.token)).body['status']
  while ((await status()) === 'offered') await sleep(100)
  t.is(await status(), 'expired')
  t.is((await redeem(brief, code)).body['error'], 'invalid_grant')
  const token = await offeredToken(api, tenant)
  const answer = await api.post(`${tenant.at}/credential`, token, {
    credential_configuration_id: 'TenantMembership',
    proofs: { jwt: [await proofOf(await walletKey(), tenant, nonce)] },
  })
  t.is(answer.body['error'], 'invalid_nonce')
})

test.serial('the root issuer issues for the tenant of the root, with its keys', async (t) => {
  // The tenant has that slug later.
  const slug = `root-${randomUUID()}`
  const environment = { SVC_CREDENTIALS__ROOT_TENANT_SLUG: slug }
  const peer = await testService({ peerOf: running, environment })
  const rooted = apiOf(peer)
  t.teardown(() => rooted.end())
  const configurations = async () => {
    const { body } = await rooted.get(issuerAt(''))
    return Object.keys(body['credential_configurations_supported'] as Json)
  }
  t.deepEqual(await configurations(), [])
  t.is((await rooted.post('/nonce')).status, 200)

  const tenant = await issuingTenant(api)
  await sql(running)`update tenants set slug = ${slug} where id = ${tenant.tenantId}`
  await until('the tenant of the root', async () => (await configurations()).length === 3)
  const { body } = await rooted.get(issuerAt(''))
  t.is(body['credential_issuer'], running.issuer)
  const root = { ...tenant, at: '', identifier: running.issuer }
  const { code, body: made } = await offer(rooted, tenant)
  const handle = String(made['credential_offer_uri']).split('/').at(-1)
  t.deepEqual((await rooted.get(`/credential-offers/${handle}`)).body, made['credential_offer'])
  t.is((await api.get(`/credential-offers/${handle}`)).status, 404, 'without a tenant of the root')
  const token = String((await redeem(rooted, code)).body['access_token'])
  const [credential = ''] = credentialsOf(await requestCredential(rooted, root, token))
  t.is(partsOf(credential).payload['iss'], running.issuer)
  const metadata = (await rooted.get('/.well-known/jwt-vc-issuer')).body
  t.is(metadata['issuer'], running.issuer)
  t.is(metadata['jwks_uri'], `${running.issuer}/credential-issuers/${slug}/.well-known/jwks.json`)
})

test.serial('a deployment without credentials offers none', async (t) => {
  const off = await sharedService('single')
  const without = apiOf(off)
  t.teardown(async () => {
    await off.end()
  })
  const tenant = await issuingTenant(without)
  const { body } = await without.get(issuerAt(tenant.at))
  t.deepEqual(body['credential_configurations_supported'], {})
  const server = (await without.get('/.well-known/oauth-authorization-server')).body
  t.false('pre-authorized_grant_anonymous_access_supported' in server)
  const json = { credential_configuration_id: 'TenantMembership', user_id: tenant.userId }
  t.is((await without.post('/api/v1/credential-offers', tenant.token, json)).status, 409)
  t.is((await redeem(without, 'x')).body['error'], 'unsupported_grant_type')
  t.is((await without.post(`${tenant.at}/nonce`)).status, 404)
  const names = (await without.get('/api/v1/capabilities')).body['capabilities'] as string[]
  t.false(names.includes('credential_issuer'))
})
