/** The tenant that a host names: agents register there, and tokens of others are refused there. */
import test from 'ava'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { apiOf } from '../../support/api.js'
import { fixtureOf, ownToken, present } from '../../support/agents/delegation.js'
import { nonceFor } from '../../support/identity/nonce.js'
import { sharedService } from '../../support/service.js'

const REGISTER = '/api/v1/agents/auth/register/pow'

test("a host below the base domain names the tenant; another tenant's token is refused there", async (t) => {
  const running = await sharedService('hosts', { transport: 'plain_http' })
  const api = apiOf(running)
  t.teardown(() => api.end())
  const [workspace, other] = [await api.workspace('Here'), await api.workspace('There')]
  const { tenantId, token, body } = workspace
  const headers = { host: `${String(body['tenant_slug'])}.svc.example` }
  const key = createAgentKey('es256')
  const registration = key.registration({ issuer: running.issuer, tenantId })
  const json = { name: 'By host', ...registration }
  const started = await api.call('POST', REGISTER, { json, headers }).gives(200)
  const nonce = nonceFor({
    challengeToken: String(started.body['challenge_token']),
    difficultyBits: Number(started.body['difficulty_bits']),
  })
  const proof = { challenge_id: started.body['challenge_id'], nonce }
  const done = await api.call('POST', `${REGISTER}/complete`, { json: proof, headers })
  t.is(done.body['tenant_id'], tenantId)
  // A proof for one tenant is invalid at the host of another.
  const elsewhere = { host: `${String(other.body['tenant_slug'])}.svc.example` }
  t.is((await api.call('POST', REGISTER, { json, headers: elsewhere })).status, 400)
  t.is(
    (await api.call('POST', REGISTER, { json, headers: { host: 'no-such.svc.example' } })).status,
    404,
  )

  const statusOf = async (host: string | undefined, path = '/api/v1/agents', by = token) =>
    (
      await api.call('GET', path, {
        token: by,
        ...(host === undefined ? {} : { headers: { host } }),
      })
    ).status
  for (const host of [undefined, headers.host, 'svc.example', 'unknown.svc.example'])
    t.is(await statusOf(host), 200, host ?? 'the address of the service')
  for (const path of ['/api/v1/agents', '/api/v1/applications', '/api/v1/webhooks']) {
    t.is(await statusOf(elsewhere.host, path), 403, path)
    t.is(await statusOf(elsewhere.host, path, other.token), 200, path)
  }
  // Operator tokens belong to the control plane.
  const organizations = '/api/v1/control-plane/organizations'
  t.is(await statusOf(headers.host, organizations, workspace.operator), 403)
  t.is(await statusOf('control-plane.svc.example', organizations, workspace.operator), 200)
  t.is(await statusOf('control-plane.svc.example'), 403)
  const person = await present(api, fixtureOf(workspace))
  const own = await ownToken(api, workspace, person, 'openid org:read')
  for (const host of [undefined, headers.host, 'svc.example', 'unknown.svc.example'])
    t.is(await statusOf(host, '/userinfo', own), 200, host ?? 'the address of the service')
  t.is(await statusOf(elsewhere.host, '/userinfo', own), 403)
  t.is(await statusOf(headers.host, organizations, own), 200)
  t.is(await statusOf(elsewhere.host, organizations, own), 403)
  const refused = await api.call('GET', '/api/v1/agents', { token, headers: elsewhere })
  t.true(String(refused.body['type']).endsWith('/forbidden'), JSON.stringify(refused.body))
})

test('with a default tenant the host does not count', async (t) => {
  const running = await sharedService('single', { transport: 'plain_http' })
  const api = apiOf(running)
  t.teardown(() => api.end())
  const [here, there] = [await api.workspace('Here'), await api.workspace('There')]
  const headers = { host: `${String(there.body['tenant_slug'])}.svc.example` }
  t.is((await api.call('GET', '/api/v1/agents', { token: here.token, headers })).status, 200)
})
