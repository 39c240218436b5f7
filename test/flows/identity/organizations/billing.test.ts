/** Plans of organizations: features, ceilings, and suspension for non-payment. */
import test from 'ava'
import { expected, type Json } from '../../../support/api.js'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import { sharedTwo } from '../../../support/service/two-services.js'

const { first: api, second: elsewhere } = await sharedTwo()

const PLANS = '/api/v1/billing/plans'
const billingOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/billing`

const put = (path: string, token: string, json: Json) => api.put(path, token, json)
async function plan(token: string, json: Json): Promise<string> {
  const body = { name: `Plan ${crypto.randomUUID()}`, features: [], ...json }
  return String((await expected(201, api.post(PLANS, token, body)))['id'])
}

/** Waits until another process answers so. The limit is one second. */
async function becomes(status: number, ask: () => Promise<{ status: number }>): Promise<boolean> {
  for (let turn = 0; turn < 100; turn += 1) {
    if ((await ask()).status === status) return true
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return false
}

test('a plan decides the features of an organization, in every process', async (t) => {
  const { token: ops } = await operatorOfDeployment(api)
  const workspace = await api.workspace()
  const { token, organizationId } = workspace
  const hooks = (at = api) => at.get('/api/v1/webhooks', token)
  t.is((await hooks()).status, 200, 'without a plan')
  const id = await plan(ops, { features: ['api_keys'] })
  const assigned = await expected(200, put(billingOf(organizationId), ops, { plan_id: id }))
  t.like(assigned, { organization_id: organizationId, plan_id: id, suspended_at: null })
  for (const at of [api, elsewhere]) t.true(await becomes(403, () => hooks(at)))
  const refused = await hooks()
  t.is(refused.body['error'], 'billing_feature_disabled')
  t.regex(String(refused.body['detail']), /does not include webhooks/)
  t.is((await api.get('/api/v1/api-keys', token)).status, 200)
  t.is((await api.get('/api/v1/tenant-users', token)).status, 200, 'no feature of the list')
  const stranger = await api.workspace('Elsewhere')
  t.is((await api.get('/api/v1/webhooks', stranger.token)).status, 200)
  const replaced = { name: `A new name ${id}`, features: ['api_keys', 'webhooks'] }
  await expected(200, put(`${PLANS}/${id}`, ops, replaced))
  for (const at of [api, elsewhere]) t.true(await becomes(200, () => hooks(at)))
  t.is((await api.delete(`${PLANS}/${id}`, ops)).status, 409)
  await expected(200, put(billingOf(organizationId), ops, { plan_id: null }))
  t.is((await api.delete(`${PLANS}/${id}`, ops)).status, 204)
  t.is((await api.get(`${PLANS}/${id}`, ops)).status, 404)
})

test('while an organization is suspended for non-payment, reads work and changes are refused', async (t) => {
  const { token: ops } = await operatorOfDeployment(api)
  const workspace = await api.workspace()
  const { token, organizationId } = workspace
  const create = (at = api) =>
    at.post('/api/v1/tenant-users', token, { email: `${crypto.randomUUID()}@harbour.test` })
  t.is((await create()).status, 201)
  const held = await expected(
    200,
    put(billingOf(organizationId), ops, { plan_id: null, suspended: true }),
  )
  t.truthy(held['suspended_at'])
  for (const at of [api, elsewhere]) t.true(await becomes(403, () => create(at)))
  t.is((await create()).body['error'], 'billing_suspended')
  t.is((await api.get('/api/v1/tenant-users', token)).status, 200)
  await expected(200, put(billingOf(organizationId), ops, { plan_id: null }))
  for (const at of [api, elsewhere]) t.true(await becomes(201, () => create(at)))
  const { rows } = await api.list('/api/v1/audit-events?type=org.billing.changed', token)
  t.is(rows.length, 2)
})

test('a plan lowers the limits of an organization and never raises them', async (t) => {
  const { token: ops } = await operatorOfDeployment(api)
  const { operator, organizationId } = await api.workspace()
  const id = await plan(ops, { max_tenants: 1, max_members: 5_000 })
  await expected(200, put(billingOf(organizationId), ops, { plan_id: id }))
  const policy = await expected(
    200,
    api.get(`/api/v1/organizations/${organizationId}/policy`, operator),
  )
  t.like(policy, { max_tenants: 1, max_members: 1_000 })
  const tenants = `/api/v1/control-plane/organizations/${organizationId}/tenants`
  const full = await api.post(tenants, operator, { name: 'Second' }).gives(403)
  t.regex(String(full.body['detail']), /limit of 1 environments/)
})

test('plans are for operators of the deployment', async (t) => {
  const { token: ops } = await operatorOfDeployment(api)
  const { operator, token, organizationId } = await api.workspace()
  for (const each of [operator, token]) {
    t.is((await api.get(PLANS, each)).status, 403)
    t.is((await put(billingOf(organizationId), each, { plan_id: null })).status, 403)
  }
  const name = `Team ${crypto.randomUUID()}`
  await plan(ops, { name })
  t.is((await api.post(PLANS, ops, { name, features: [] })).status, 409)
  t.is((await api.post(PLANS, ops, { name: 'Bad', features: ['flying'] })).status, 400)
  const unknown = crypto.randomUUID()
  t.is((await put(billingOf(organizationId), ops, { plan_id: unknown })).status, 404)
  t.is((await put(billingOf(unknown), ops, { plan_id: null })).status, 404)
})

test('an owner reads the plan and the use of a month, and another organization does not', async (t) => {
  const { token: ops } = await operatorOfDeployment(api)
  const { token, organizationId, key, agentId, controlPlane } = await api.workspace()
  const elsewhereOwner = await api.workspace()
  const name = { name: 'Counted', scopes: ['webhooks:read'] }
  await expected(201, api.post('/api/v1/api-keys', token, name))
  await expected(201, api.post('/api/v1/api-keys', token, { ...name, name: 'Counted too' }))
  await expected(201, api.post('/api/v1/api-keys', elsewhereOwner.token, name))
  const id = await plan(ops, { features: ['api_keys'], max_members: 5 })
  await expected(200, put(billingOf(organizationId), ops, { plan_id: id }))
  const login = async (of: { key: typeof key; agentId: string }) => {
    const answer = await api.login(of.key, { agent_id: of.agentId, tenant_id: controlPlane })
    return String(answer.body['access_token'])
  }
  const owner = await login({ key, agentId })
  const path = `${billingOf(organizationId)}/usage`
  const figureOf = async (at: string, bearer: string, feature: string) => {
    const { usage } = (await expected(200, api.get(at, bearer))) as { usage: Json[] }
    return usage.filter((each) => each['feature'] === feature)
  }
  // The audit log has its events within moments after the commit.
  const keys = [{ feature: 'api_keys', unit: 'keys_created', quantity: 2 }]
  let found: Json[] = []
  for (let turn = 0; turn < 100 && found[0]?.['quantity'] !== 2; turn += 1) {
    found = await figureOf(path, owner, 'api_keys')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.deepEqual(found, keys)
  t.deepEqual(
    await figureOf(path, ops, 'api_keys'),
    keys,
    'operators of the deployment see the same',
  )
  t.deepEqual(await figureOf(path, owner, 'vault.egress'), [
    { feature: 'vault.egress', unit: 'calls', quantity: 0 },
  ])
  t.deepEqual(await figureOf(`${path}?month=2020-01`, owner, 'api_keys'), [
    { feature: 'api_keys', unit: 'keys_created', quantity: 0 },
  ])
  const body = await expected(200, api.get(path, owner))
  t.like(body, { organization_id: organizationId, month: new Date().toISOString().slice(0, 7) })
  t.like(body['plan'] as Json, { id, features: ['api_keys'], max_members: 5 })
  t.is((await api.get(`${path}?month=2026-13`, owner)).status, 400)
  t.is((await api.get(path, await login(elsewhereOwner))).status, 404)
  t.is((await api.get(path, token)).status, 403, 'a token of the tenant is no token of the owner')
})
