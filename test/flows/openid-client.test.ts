/** openid-client against the whole service, knowing nothing but its address and a client's secret. */
import test from 'ava'
import * as oidc from 'openid-client'
import { systemClock } from '../../runtime/kernel/clock.js'
import { systemRandom } from '../../runtime/kernel/random.js'
import { insertApplication, newClientSecret } from '../../storage/applications.js'
import { findControlPlane } from '../../storage/tenants.js'
import { testService } from '../support/service.js'

const running = await testService()
test.after.always(() => running.end())
const random = systemRandom(systemClock)
const ORIGIN = 'https://shop.example'

async function application(scopes: string[]) {
  const { secret, sha256 } = newClientSecret(random)
  const row = await running.db.database.system(async (tx) => {
    const controlPlane = await findControlPlane(tx)
    return insertApplication(tx, {
      id: random.uuid(),
      tenantId: controlPlane!.id,
      name: 'openid-client',
      redirectUris: [],
      allowedOrigins: [ORIGIN],
      grantTypes: ['client_credentials'],
      scopes,
      createdAt: systemClock.now(),
      secretSha256: sha256,
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

test('a token that is bound to a key works with it and not without', async (t) => {
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

test('the token endpoint answers the origins of the application that asks, and no other', async (t) => {
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
