/** A UUID is one id in any case (RFC 9562 section 4), wherever a client may write one. */
import { setTimeout as wait } from 'node:timers/promises'
import test from 'ava'
import type { Json } from '../../../support/api.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('commerce')

const upper = (id: unknown) => String(id).toUpperCase()
const basic = (id: unknown, secret: unknown) => ({
  authorization: `Basic ${Buffer.from(`${String(id)}:${String(secret)}`).toString('base64')}`,
})

test('in paths', async (t) => {
  const { token, operator, organizationId, tenantId, body } = await api.workspace()
  const webhook = await api.post('/api/v1/webhooks', token, {
    url: 'https://hooks.example.com/in',
    event_types: ['auth.login.success'],
  })
  const credential = await api.post('/api/v1/vault/credentials', token, {
    provider: 'example',
    credential_type: 'api_key',
    label: 'key',
    auth_scheme: 'bearer',
    allowed_hosts: ['api.example.com'],
    secret: 'the secret of a test',
  })
  const product = await api.post('/api/v1/commerce/products', token, { name: 'Tea' })
  const paths: readonly (readonly [string, unknown, string])[] = [
    ['/api/v1/tenant-users/', (body['fixture_end_user'] as Json)['id'], token],
    ['/api/v1/applications/', body['application_id'], token],
    ['/api/v1/webhooks/', webhook.body['id'], token],
    ['/api/v1/vault/credentials/', credential.body['id'], token],
    ['/api/v1/commerce/products/', product.body['id'], token],
  ]
  for (const [path, id, bearer] of paths) {
    const read = await api.get(`${path}${upper(id)}`, bearer)
    t.is(read.status, 200, path)
    t.is(read.body['id'], id, path)
  }
  const control = `/api/v1/control-plane/organizations/${upper(organizationId)}`
  t.is((await api.post(`${control}/token`, operator)).status, 200)
  const switched = await api.post(`${control}/tenants/${upper(tenantId)}/switch`, operator)
  t.is(switched.body['tenant_id'], tenantId)
  const { agentId: other } = await api.register(tenantId)
  const suspended = await api.post(`/api/v1/agents/${upper(other)}/suspend`, token)
  t.like(suspended, { status: 200, body: { id: other } })
})

test('in JSON bodies', async (t) => {
  const { token, tenantId, agentId, key } = await api.workspace()
  const login = await api.login(key, { agent_id: upper(agentId), tenant_id: upper(tenantId) })
  t.like(login, { status: 200, body: { agent_id: agentId } })

  const product = await api.post('/api/v1/commerce/products', token, { name: 'Tea' })
  const price = await api.post('/api/v1/commerce/prices', token, {
    product_id: upper(product.body['id']),
    amount_minor: 300,
    currency: 'EUR',
  })
  t.is(price.status, 201)
  t.is(price.body['product_id'], product.body['id'])

  const made = { provider: 'example', credential_type: 'api_key', label: 'key' }
  const credential = await api.post('/api/v1/vault/credentials', token, {
    ...made,
    auth_scheme: 'bearer',
    allowed_hosts: ['api.example.com'],
    secret: 'the secret of a test',
    // Free-form: an id in it is the caller's own text.
    metadata: { theirs: upper(agentId) },
  })
  t.deepEqual(credential.body['metadata'], { theirs: upper(agentId) })
  const grant = await api.post(
    `/api/v1/vault/credentials/${String(credential.body['id'])}/grants`,
    token,
    { grantee_type: 'agent', grantee_id: upper(agentId), capabilities: ['use'] },
  )
  t.like(grant, { status: 201, body: { grantee_id: agentId } })
  const answer = await api.post('/auth/check-sso', undefined, {
    email: 'someone@example.com',
    tenant_id: upper(tenantId),
  })
  t.is(answer.status, 200)
})

test('in forms, in Basic credentials and in queries', async (t) => {
  const { token, tenantId, body } = await api.workspace()
  const { client_id: clientId, client_secret: secret } = body
  const fields = { grant_type: 'client_credentials' }
  for (const answer of [
    await api.form('/oauth/token', fields, basic(upper(clientId), secret)),
    await api.form('/oauth/token', {
      ...fields,
      client_id: upper(clientId),
      client_secret: String(secret),
    }),
    // One spelling in the header, another in the form: the same client.
    await api.form(
      '/oauth/token',
      { ...fields, client_id: upper(clientId) },
      basic(clientId, secret),
    ),
  ]) {
    t.is(answer.status, 200, JSON.stringify(answer.body))
    t.is(typeof answer.body['access_token'], 'string')
  }

  const name = `redirect-${upper(tenantId)}`
  const redirect = `https://app.example/${name}`
  await api.put(`/api/v1/applications/${String(body['application_id'])}`, token, {
    name: 'Shop',
    redirect_uris: [redirect],
    client_type: 'public',
  })
  // The state looks like an id but is opaque: it is returned unchanged.
  const state = upper(tenantId)
  const parameters = new URLSearchParams({
    response_type: 'code',
    client_id: upper(clientId),
    tenant_id: upper(tenantId),
    redirect_uri: redirect,
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    prompt: 'none',
    state,
  })
  const authorized = await api.get(`/oauth/authorize?${parameters}`).gives(302)
  const back = new URL(String(authorized.headers['location']))
  t.is(back.pathname, `/${name}`)
  t.is(back.searchParams.get('error'), 'login_required')
  t.is(back.searchParams.get('state'), state)

  await api.post('/api/v1/commerce/products', token, { name: 'Tea' })
  await wait(5)
  await api.post('/api/v1/commerce/products', token, { name: 'Coffee' })
  const first = await api.list('/api/v1/commerce/products?limit=1', token)
  const next = new URL(first.next!, running.baseUrl)
  next.searchParams.set('cursor_id', upper(next.searchParams.get('cursor_id')))
  const second = await api.list(`${next.pathname}${next.search}`, token)
  t.deepEqual(
    second.rows.map((row) => row['name']),
    ['Tea'],
  )
})

test('of a dynamically registered client', async (t) => {
  const { token, tenantId } = await api.workspace()
  const made = await api.post('/api/v1/oauth/registration-tokens', token, {}).gives(201)
  const metadata = { redirect_uris: ['https://app.example/back'], client_name: 'Registered' }
  const registered = await api.post('/oauth/register', String(made.body['token']), {
    ...metadata,
    tenant: upper(tenantId),
  })
  t.is(registered.status, 201)
  const path = `/oauth/register/${upper(registered.body['client_id'])}`
  const manager = String(registered.body['registration_access_token'])
  t.is((await api.get(path, manager)).status, 200)
  const replaced = await api.put(path, manager, {
    ...metadata,
    client_id: upper(registered.body['client_id']),
  })
  t.is(replaced.status, 200)
  t.is(replaced.body['client_id'], registered.body['client_id'])
})
