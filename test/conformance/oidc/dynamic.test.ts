/**
 * Modules of oidcc-dynamic-certification-test-plan in which a client changes its keys, and the
 * metadata module of oid4vci-1_0, under their names.
 */
import test from 'ava'
import { type CryptoKey, decodeProtectedHeader, exportJWK, generateKeyPair, type JWK } from 'jose'
import * as oidc from 'openid-client'
import type { Json } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import { fixtureOf } from '../../support/agents/delegation.js'
import { authorized, CALLBACK, callbackOf, journey } from '../../support/oauth/relying-party.js'
import { sharedApi } from '../../support/service.js'

const allow = { execute: [oidc.allowInsecureRequests] }
const { api, running } = await sharedApi('clients')
const here = await api.workspace()

type Pair = { readonly key: CryptoKey; readonly kid: string; readonly jwk: JWK }
async function pairOf(kid: string): Promise<Pair> {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  return { key: privateKey, kid, jwk: { ...(await exportJWK(publicKey)), kid } }
}

test.serial('oidcc-refresh-token-rp-key-rotation', async (t) => {
  t.timeout(180_000)
  const [first, second] = [await pairOf('first'), await pairOf('second')]
  const made = await api.post('/api/v1/oauth/registration-tokens', here.token, {})
  const metadata = {
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: 'private_key_jwt',
    id_token_signed_response_alg: 'ES256',
    scope: 'openid email',
  }
  const registered = await api.post('/oauth/register', String(made.body['token']), {
    ...metadata,
    jwks: { keys: [first.jwk] },
  })
  t.is(registered.status, 201)
  const clientId = String(registered.body['client_id'])
  const configOf = ({ key, kid }: Pair) =>
    oidc.discovery(
      new URL(running.baseUrl),
      clientId,
      { id_token_signed_response_alg: 'ES256' },
      oidc.PrivateKeyJwt({ key, kid }),
      allow,
    )
  const config = await configOf(first)
  const browser = openBrowser(running)
  const begun = await journey({ config }, { scope: 'openid' })
  const callback = callbackOf(await authorized(browser, fixtureOf(here), begun.url))
  const tokens = await oidc.authorizationCodeGrant(config, callback, begun.checks)
  const answer = await api.put(
    new URL(String(registered.body['registration_client_uri'])).pathname,
    String(registered.body['registration_access_token']),
    { client_id: clientId, ...metadata, jwks: { keys: [second.jwk] } },
  )
  t.is(answer.status, 200)
  const refused = await t.throwsAsync<oidc.ResponseBodyError>(
    oidc.refreshTokenGrant(config, tokens.refresh_token!),
  )
  t.is(refused?.error, 'invalid_client')
  const next = await oidc.refreshTokenGrant(await configOf(second), tokens.refresh_token!)
  t.is(next.claims()!.sub, tokens.claims()!.sub)
})

test.serial('oidcc-idtoken-rs256', async (t) => {
  const { key, kid, jwk } = await pairOf('rs256')
  const made = await api.post('/api/v1/oauth/registration-tokens', here.token, {})
  const registered = await api
    .post('/oauth/register', String(made.body['token']), {
      redirect_uris: [CALLBACK],
      token_endpoint_auth_method: 'private_key_jwt',
      id_token_signed_response_alg: 'RS256',
      scope: 'openid',
      jwks: { keys: [jwk] },
    })
    .gives(201)
  t.is(registered.body['id_token_signed_response_alg'], 'RS256')
  // openid-client expects RS256, and verifies the signature with the key set.
  const config = await oidc.discovery(
    new URL(running.baseUrl),
    String(registered.body['client_id']),
    {},
    oidc.PrivateKeyJwt({ key, kid }),
    { execute: [...allow.execute, oidc.enableNonRepudiationChecks] },
  )
  t.true(config.serverMetadata().id_token_signing_alg_values_supported?.includes('RS256'))
  const begun = await journey({ config }, { scope: 'openid' })
  const browser = openBrowser(running)
  const callback = callbackOf(await authorized(browser, fixtureOf(here), begun.url))
  const { id_token: idToken } = await oidc.authorizationCodeGrant(config, callback, begun.checks)
  const header = decodeProtectedHeader(idToken!)
  t.is(header.alg, 'RS256')
  const { body } = await api.get('/.well-known/jwks.json')
  t.like(
    (body['keys'] as Json[]).find((each) => each['kid'] === header.kid),
    { kty: 'RSA', alg: 'RS256', use: 'sig', d: undefined },
  )
})

test.serial('oidcc-registration-logo-uri, -policy-uri and -tos-uri', async (t) => {
  const made = await api.post('/api/v1/oauth/registration-tokens', here.token, { max_uses: 20 })
  const register = (addresses: Json) =>
    api.post('/oauth/register', String(made.body['token']), {
      redirect_uris: [CALLBACK],
      ...addresses,
    })
  const addresses = {
    logo_uri: 'https://app.example/logo.png',
    policy_uri: 'https://app.example/policy',
    tos_uri: 'https://app.example/terms',
  }
  const registered = await register(addresses).gives(201)
  t.like(registered.body, addresses)
  const { pathname } = new URL(String(registered.body['registration_client_uri']))
  const read = await api.get(pathname, String(registered.body['registration_access_token']))
  t.like(read.body, addresses)
  for (const name of Object.keys(addresses)) {
    // A plain http address is left out (docs/guides/oauth/client-registration.md).
    const left = await register({ [name]: 'http://app.example/x' }).gives(201)
    t.false(name in left.body, name)
    for (const wrong of ['ftp://app.example/x', 'javascript:alert(1)', 'data:text/html,x', 7]) {
      const refused = await register({ [name]: wrong })
      t.is(refused.status, 400, `${name} ${wrong}`)
      t.is(refused.body['error'], 'invalid_client_metadata', `${name} ${wrong}`)
    }
  }
})

test.serial('oid4vci-1_0-issuer-metadata-test', async (t) => {
  const slug = String(here.body['tenant_slug'])
  const answer = await api.patch('/api/v1/tenant/settings', here.token, {
    credential_issuer_enabled: true,
  })
  t.is(answer.status, 200)
  for (const [path, issuer, configurations] of [
    ['/.well-known/openid-credential-issuer', running.issuer, []],
    [
      `/.well-known/openid-credential-issuer/credential-issuers/${slug}`,
      `${running.issuer}/credential-issuers/${slug}`,
      ['TenantMembership', 'VerifiedEmail', 'AgentDelegation'],
    ],
  ] as const) {
    const { headers, body } = await api.get(path).gives(200)
    t.regex(headers['content-type']!, /^application\/json/)
    t.like(body, {
      credential_issuer: issuer,
      authorization_servers: [running.issuer],
      credential_endpoint: `${issuer}/credential`,
    })
    t.deepEqual(Object.keys(body['credential_configurations_supported'] as Json), [
      ...configurations,
    ])
    for (const { name, locale } of body['display'] as Json[])
      t.true(typeof name === 'string' && typeof locale === 'string')
  }
})
