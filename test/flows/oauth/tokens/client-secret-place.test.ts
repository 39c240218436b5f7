/** A secret is taken in the place that the client's method names. docs/reference/oauth.md, "Applications". */
import test, { type ExecutionContext } from 'ava'
import type { Answer, Json } from '../../../support/api.js'
import { sharedApi } from '../../../support/service.js'
import { ecJwk, signatureTwin, signed } from '../../../support/oauth/es256.js'

const { api, running } = await sharedApi('plain')

const APPLICATIONS = '/api/v1/applications'
const BASIC = 'client_secret_basic'
const POST = 'client_secret_post'
const MEMBERS = { name: 'Shop', grant_types: ['client_credentials'], scopes: ['users:read'] }

type Client = { readonly id: string; readonly secret: string }
const clientIn = ({ body }: Answer, secret = String(body['client_secret'])): Client => ({
  id: String(body['client_id']),
  secret,
})

const inHeader = ({ id, secret }: Client, path: string, form: Record<string, string>) =>
  api.form(path, form, {
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  })
const inForm = ({ id, secret }: Client, path: string, form: Record<string, string>) =>
  api.form(path, { ...form, client_id: id, client_secret: secret })

/** Every endpoint at which a client authenticates. */
const ENDPOINTS: readonly (readonly [string, Record<string, string>])[] = [
  ['/oauth/token', { grant_type: 'client_credentials' }],
  ['/oauth/introspect', { token: 'x' }],
  ['/oauth/revoke', { token: 'x' }],
  ['/oauth/par', { response_type: 'code' }],
  ['/oauth/device/code', {}],
  ['/bc-authorize', {}],
]

async function takes(t: ExecutionContext, client: Client, places: readonly string[]) {
  for (const [path, form] of ENDPOINTS) {
    for (const [place, send] of [
      [BASIC, inHeader],
      [POST, inForm],
    ] as const) {
      const { status, body } = await send(client, path, form)
      const isRefused = status === 401 && body['error'] === 'invalid_client'
      t.is(
        !isRefused,
        places.includes(place),
        `${path} ${place}: ${status} ${String(body['error'])}`,
      )
    }
  }
}

const put = (id: string, token: string, json: Json) => api.put(`${APPLICATIONS}/${id}`, token, json)

test('a secret in the place of the other method is refused', async (t) => {
  const { token } = await api.workspace()
  for (const method of [BASIC, POST]) {
    const json = { ...MEMBERS, token_endpoint_auth_method: method }
    const client = clientIn(await api.call('POST', APPLICATIONS, { token, json }))
    await takes(t, client, [method])
    const other = method === BASIC ? POST : BASIC
    await put(client.id, token, { ...json, token_endpoint_auth_method: other })
    await takes(t, client, [other])
    await put(client.id, token, { ...json, token_endpoint_auth_method: other, name: 'Stays' })
    await takes(t, client, [other])
  }
})

test('a client whose creator names no method may send the secret in both', async (t) => {
  const { token } = await api.workspace()
  const client = clientIn(await api.call('POST', APPLICATIONS, { token, json: MEMBERS }))
  await takes(t, client, [BASIC, POST])
  // Who writes back what was read names the method without a change.
  const { body } = await api.get(`${APPLICATIONS}/${client.id}`, token)
  t.is(
    (
      await put(client.id, token, {
        ...MEMBERS,
        token_endpoint_auth_method: body['token_endpoint_auth_method']!,
      })
    ).status,
    200,
  )
  await takes(t, client, [BASIC, POST])
})

test('a second spelling of an ES256 signature is no second use', async (t) => {
  const { token } = await api.workspace()
  const key = ecJwk()
  const json = {
    ...MEMBERS,
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [key.jwk] },
  }
  const { body } = await api.call('POST', APPLICATIONS, { token, json })
  const id = String(body['client_id'])
  const nowSecs = Math.floor(Date.now() / 1000)
  const claims = { iss: id, sub: id, aud: running.baseUrl, iat: nowSecs, exp: nowSecs + 60 }
  const ask = (assertion: string) =>
    api.form('/oauth/token', {
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: assertion,
    })
  const assertion = signed(key, { ...claims, jti: crypto.randomUUID() })
  const got = await ask(assertion).gives(200)
  t.is((await ask(signatureTwin(assertion))).body['error'], 'invalid_client')

  // A revoked token is revoked in both spellings.
  const access = String(got.body['access_token'])
  const users = (bearer: string) => api.get('/api/v1/tenant-users', bearer)
  t.is((await users(access)).status, 200)
  await ask(signed(key, { ...claims, jti: crypto.randomUUID() })).gives(200)
  const revoke = signed(key, { ...claims, jti: crypto.randomUUID() })
  const answer = await api.form('/oauth/revoke', {
    token: access,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: revoke,
  })
  t.is(answer.status, 200)
  for (const spelling of [access, signatureTwin(access)]) t.is((await users(spelling)).status, 401)
})
