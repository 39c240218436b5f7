/** The control plane is one tenant for all workspaces: only operators configure it. */
import test from 'ava'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import { sharedApi } from '../../../support/service.js'

const { api } = await sharedApi('enterprise')

const PROVIDERS = '/api/v1/sso/providers'
const POLICIES = '/api/v1/access-policies'
const PROVIDER = {
  name: 'Operators',
  protocol: 'oidc',
  issuer: 'https://idp.example',
  authorization_endpoint: 'https://idp.example/authorize',
  token_endpoint: 'https://idp.example/token',
  jwks_uri: 'https://idp.example/jwks',
  client_id: 'svc',
  client_secret: 'a secret of the provider',
}
const REFUSED = { error: 'forbidden', reason: 'control_plane_token' }

test('a workspace cannot configure the sign-in of the control plane', async (t) => {
  const deployment = await operatorOfDeployment(api)
  const provider = await api.post(PROVIDERS, deployment.token, PROVIDER).gives(201)
  const id = String(provider.body['id'])
  const { operator: stranger } = await api.workspace('Stranger')

  for (const [method, path, json] of [
    ['GET', PROVIDERS, undefined],
    ['POST', PROVIDERS, PROVIDER],
    ['POST', PROVIDERS, { nothing: 'valid' }],
    ['PATCH', `${PROVIDERS}/${id}`, { token_endpoint: 'https://attacker.example/token' }],
    ['DELETE', `${PROVIDERS}/${id}`, undefined],
    ['POST', POLICIES, { name: 'Out', enabled: true, required_aal: 'aal3', force: true }],
    ['POST', `${POLICIES}/evaluate`, {}],
    ['GET', '/api/v1/organization/domains', undefined],
    ['GET', '/api/v1/observed-clients', undefined],
    ['GET', '/api/v1/applications', undefined],
    ['POST', '/api/v1/api-keys', { name: 'Key', scopes: [] }],
    ['GET', '/api/v1/vault/credentials', undefined],
    ['POST', '/v1/proxy', {}],
  ] as const) {
    const answer = await api.call(method, path, { token: stranger, json })
    t.is(answer.status, 403, `${method} ${path} ${JSON.stringify(answer.body)}`)
    t.like(answer.body, REFUSED, `${method} ${path}`)
  }
  const { body } = await api.get(`${PROVIDERS}/${id}`, deployment.token)
  t.is(body['token_endpoint'], PROVIDER.token_endpoint)
})

test('an operator of the deployment configures the control plane, and reaches no tenant feature', async (t) => {
  const { token } = await operatorOfDeployment(api)
  const made = await api.post('/api/v1/applications', token, {
    name: 'Status page',
    redirect_uris: [],
    grant_types: ['client_credentials'],
    scopes: [],
  })
  t.is(made.status, 201)
  const answer = await api.get('/api/v1/vault/credentials', token).gives(403)
  t.like(answer.body, REFUSED)
})
