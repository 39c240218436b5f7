/** openid-client against the whole service, with only the base URL and a client secret. */
import { KeyObject, sign } from 'node:crypto'
import test from 'ava'
import { exportJWK, generateKeyPair } from 'jose'
import * as oidc from 'openid-client'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import {
  insertApplication,
  type NewApplication,
  newClientSecret,
} from '../../../../storage/oauth/applications.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain')
let tenantId = ''
test.before(async () => {
  ;({ tenantId } = await api.workspace())
})
const random = systemRandom(systemClock)
const ORIGIN = 'https://shop.example'

async function application(scopes: string[], more: Partial<NewApplication> = {}) {
  const { secret, sha256 } = newClientSecret(random)
  const row = await running.db.database.system(async (tx) => {
    return insertApplication(tx, {
      id: random.uuid(),
      tenantId,
      name: 'openid-client',
      redirectUris: [],
      allowedOrigins: [ORIGIN],
      grantTypes: ['client_credentials'],
      scopes,
      createdAt: systemClock.now(),
      secretSha256: sha256,
      ...more,
    })
  })
  return { ...row, secret }
}

const discover = ({ id, secret }: { id: string; secret: string }) =>
  oidc.discovery(new URL(running.baseUrl), id, secret, undefined, {
    execute: [oidc.allowInsecureRequests],
  })

test('discovery, a token, its use and its introspection', async (t) => {
  const app = await application(['applications:read'])
  const client = await discover(app)
  t.is(client.serverMetadata().issuer, running.baseUrl)
  const tokens = await oidc.clientCredentialsGrant(client)
  t.is(tokens.scope, 'applications:read')
  const url = new URL(`${running.baseUrl}/api/v1/applications`)
  const listed = await oidc.fetchProtectedResource(client, tokens.access_token, url, 'GET')
  t.true(((await listed.json()) as { id: string }[]).some(({ id }) => id === app.id))
  t.is((await oidc.tokenIntrospection(client, tokens.access_token)).active, true)
  t.is((await oidc.tokenIntrospection(client, `${tokens.access_token}x`)).active, false)
})

test('a bound token works with its key and not without', async (t) => {
  const client = await discover(await application(['applications:read']))
  const DPoP = oidc.getDPoPHandle(client, await oidc.randomDPoPKeyPair('ES256'))
  const tokens = await oidc.clientCredentialsGrant(client, undefined, { DPoP })
  t.is(tokens.token_type, 'dpop')
  const url = new URL(`${running.baseUrl}/api/v1/applications`)
  const args = [client, tokens.access_token, url, 'GET', null, undefined, { DPoP }] as const
  t.is((await oidc.fetchProtectedResource(...args)).status, 200)
  const bare = await fetch(url, { headers: { authorization: `Bearer ${tokens.access_token}` } })
  t.is(bare.status, 401)
})

test('the token endpoint allows the origins of the requesting application, and no others', async (t) => {
  const app = await application([])
  const ask = async (origin: string) => {
    const answer = await fetch(`${running.baseUrl}/oauth/token`, {
      method: 'POST',
      headers: {
        origin,
        authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
      },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    })
    t.is(answer.status, 200)
    return answer.headers.get('access-control-allow-origin')
  }
  t.is(await ask(ORIGIN), ORIGIN)
  t.is(await ask('https://evil.example'), null)
})

test('cacheable responses are the same for every Origin, or vary by it', async (t) => {
  const { baseUrl } = running
  for (const name of ['openid-configuration', 'oauth-authorization-server', 'jwks.json']) {
    const { headers } = await fetch(`${baseUrl}/.well-known/${name}`)
    t.regex(headers.get('cache-control') ?? '', /^public/)
    t.is(headers.get('access-control-allow-origin'), '*', name)
    const same = await fetch(`${baseUrl}/.well-known/${name}`, {
      headers: { 'if-none-match': headers.get('etag')! },
    })
    t.is(same.status, 304)
    t.is(same.headers.get('access-control-allow-origin'), '*', name)
  }
  const metadata = await fetch(`${baseUrl}/api/v1/agents/workspace/bootstrap`)
  t.regex(metadata.headers.get('cache-control') ?? '', /^public/)
  t.is(metadata.headers.get('access-control-allow-origin'), null)
  t.is(metadata.headers.get('vary'), 'origin')
})

test('a client that signs its assertion and its proofs with the alg name Ed25519', async (t) => {
  const { publicKey, privateKey } = await generateKeyPair('Ed25519', { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), alg: 'Ed25519', use: 'sig', kid: 'mine' }
  const app = await application(['applications:read'], {
    tokenEndpointAuthMethod: 'private_key_jwt',
    secretSha256: null,
    jwks: { keys: [jwk] },
  })
  const sent: string[] = []
  const client = await oidc.discovery(
    new URL(running.baseUrl),
    app.id,
    undefined,
    oidc.PrivateKeyJwt(
      { key: privateKey, kid: 'mine' },
      { [oidc.modifyAssertion]: (header) => sent.push(String(header['alg'])) },
    ),
    { execute: [oidc.allowInsecureRequests] },
  )
  t.true(
    client.serverMetadata().token_endpoint_auth_signing_alg_values_supported?.includes('Ed25519'),
  )
  const DPoP = oidc.getDPoPHandle(client, await oidc.randomDPoPKeyPair('Ed25519'))
  const tokens = await oidc.clientCredentialsGrant(client, undefined, { DPoP })
  t.deepEqual(sent, ['Ed25519'])
  t.is(tokens.token_type, 'dpop')
  const url = new URL(`${running.baseUrl}/api/v1/applications`)
  const args = [client, tokens.access_token, url, 'GET', null, undefined, { DPoP }] as const
  t.is((await oidc.fetchProtectedResource(...args)).status, 200)
})

test('the alg name Ed25519 does not make a key of another type valid', async (t) => {
  const { publicKey } = await generateKeyPair('Ed25519')
  const other = await generateKeyPair('ES256', { extractable: true })
  const app = await application([], {
    tokenEndpointAuthMethod: 'private_key_jwt',
    secretSha256: null,
    jwks: { keys: [await exportJWK(publicKey), await exportJWK(other.publicKey)] },
  })
  for (const alg of ['Ed25519', 'EdDSA', 'none', 'HS256']) {
    const nowSecs = Math.floor(Date.now() / 1000)
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const claims = { iss: app.id, sub: app.id, aud: running.baseUrl, jti: alg, exp: nowSecs + 60 }
    const input = `${part({ alg })}.${part(claims)}`
    const signature = sign('sha256', Buffer.from(input), {
      key: KeyObject.from(other.privateKey as never),
      dsaEncoding: 'ieee-p1363',
    })
    const answer = await fetch(`${running.baseUrl}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: `${input}.${signature.toString('base64url')}`,
      }),
    })
    t.is(answer.status, 401, alg)
    t.is(((await answer.json()) as { error: string }).error, 'invalid_client')
  }
})
