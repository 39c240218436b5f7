/** URLs that the service calls are judged when they are stored, not at the first call. */
import test from 'ava'
import { sharedApi } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'

const { api, running } = await sharedApi('clients')

const PRIVATE = [
  'https://10.0.0.1/a',
  'https://[fd00::1]/a',
  'https://169.254.169.254/latest',
  'https://localhost/a',
  'https://keys.internal/a',
  'https://keys/a',
  'https://keys.example.com:8443/a',
]

for (const member of ['jwks_uri', 'backchannel_logout_uri'])
  test(`${member} at an address that is not called is refused`, async (t) => {
    const { token } = await api.workspace()
    const { body } = await api.post('/api/v1/oauth/registration-tokens', token, {}).gives(201)
    const initial = String(body['token'])
    const redirect_uris = ['https://app.example/callback']
    const of = (url: string) => ({ redirect_uris, [member]: url })
    const applications = '/api/v1/applications'
    for (const url of PRIVATE) {
      const made = await api.post(applications, token, { name: 'A', ...of(url) }).gives(400)
      t.like((made.body['errors'] as object[])[0], { pointer: `#/${member}` }, url)
      const registered = await api.post('/oauth/register', initial, of(url)).gives(400)
      t.is(registered.body['error'], 'invalid_client_metadata', url)
    }
    const url = 'https://keys.example.com/a?b=c'
    const made = await api.post(applications, token, { name: 'A', ...of(url) }).gives(201)
    const path = `${applications}/${String(made.body['id'])}`
    const json = { name: 'A', ...of(PRIVATE[0]!) }
    await api.call('PUT', path, { token, json }).gives(400)
    t.is((await api.post('/oauth/register', initial, of(url))).status, 201)
  })

test('a URL of older rules stays until it is changed', async (t) => {
  const { token } = await api.workspace()
  const redirect_uris = ['https://app.example/callback']
  const [old, other] = ['https://keys.internal/a', 'https://keys.internal/b']
  const made = await api
    .post('/api/v1/applications', token, { name: 'A', redirect_uris })
    .gives(201)
  const id = String(made.body['id'])
  await sql(running)`update applications set backchannel_logout_uri = ${old} where id = ${id}`
  const put = (backchannel_logout_uri: string) => {
    const json = { name: 'B', redirect_uris, backchannel_logout_uri }
    return api.call('PUT', `/api/v1/applications/${id}`, { token, json })
  }
  t.is((await put(old).gives(200)).body['name'], 'B')
  await put(other).gives(400)
})

test('a token endpoint at an address that is not called is refused', async (t) => {
  const { token } = await api.workspace()
  const at = (token_url: string) =>
    api.post('/api/v1/vault/credentials', token, {
      provider: 'harbour',
      credential_type: 'oauth2',
      label: 'Harbour',
      allowed_hosts: ['api.example.com'],
      auth_scheme: 'bearer',
      secret: JSON.stringify({ token_url, client_id: 'c' }),
    })
  for (const url of PRIVATE) {
    const { body } = await at(url).gives(400)
    t.like((body['errors'] as object[])[0], { pointer: '#/secret' }, url)
  }
  t.is((await at('https://id.example.com/token')).status, 201)
})
