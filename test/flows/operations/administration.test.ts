/** [admin]: whether and from where deployment operators may use their scopes. */
import test from 'ava'
import { apiOf, type Json } from '../../support/api.js'
import { operatorOfDeployment } from '../../support/oauth/operator.js'
import { sharedService, testService } from '../../support/service.js'
import { until } from '../../support/service/watch.js'

/** Level of a log line. */
const WARN = 40
const PROXY = { SVC_SERVER__TRUSTED_PROXIES: '127.0.0.1' }
const from = (address: string) => ({ 'x-forwarded-for': address })

test('admin.allowed_addresses limits the scopes of operators and no other ones', async (t) => {
  const lines: Json[] = []
  const running = await testService({
    environment: { ...PROXY, SVC_ADMIN__ALLOWED_ADDRESSES: '192.0.2.0/24,2001:db8::7' },
    onLog: (line) => lines.push(JSON.parse(line) as Json),
  })
  t.teardown(() => running.end())
  const api = apiOf(running)
  const { workspace, token } = await operatorOfDeployment(api)
  const list = (address: string) =>
    api.call('GET', '/api/v1/tenants', { token, headers: from(address) })
  for (const address of ['192.0.2.9', '2001:db8::7', '::ffff:192.0.2.1'])
    t.is((await list(address)).status, 200, address)
  for (const address of ['192.0.3.9', '2001:db8::8']) {
    const { status, body } = await list(address)
    t.is(status, 403, address)
    t.is(body['error'], 'policy_denied')
    const logged = () => lines.find((line) => line['request_id'] === body['request_id'])
    await until('the log entry', () => logged() !== undefined)
    t.like(logged(), {
      level: WARN,
      error: 'policy_denied',
      reason: 'admin_address_not_allowed',
      client_id: workspace.agentId,
      tenant_id: workspace.controlPlane,
    })
  }
  // The organizations of others need the scope of operators. The own organization does not.
  const stranger = await api.workspace('Elsewhere')
  const read = (id: string, address: string) =>
    api.call('GET', `/api/v1/organizations/${id}`, { token, headers: from(address) })
  t.is((await read(stranger.organizationId, '192.0.2.9')).status, 200)
  t.is((await read(stranger.organizationId, '192.0.3.9')).status, 404)
  t.is((await read(workspace.organizationId, '192.0.3.9')).status, 200)
})

test('admin.enabled = false takes the operations of operators away', async (t) => {
  const running = await sharedService('strict')
  t.teardown(() => running.end())
  const api = apiOf(running)
  const { workspace, token } = await operatorOfDeployment(api)
  t.is((await api.get('/api/v1/tenants', token)).status, 404)
  t.is((await api.post('/api/v1/signing-keys/rotate', token)).status, 404)
  const stranger = await api.workspace('Elsewhere')
  t.is((await api.get(`/api/v1/organizations/${stranger.organizationId}`, token)).status, 404)
  t.is((await api.get(`/api/v1/organizations/${workspace.organizationId}`, token)).status, 200)
  const { body } = await api.get('/api/v1/capabilities')
  t.false((body['capabilities'] as string[]).includes('admin'))
  const { body: document } = await api.get('/openapi.json')
  t.false('/api/v1/accounts' in (document['paths'] as object))
})
