/** Access policies: where they refuse, that they raise the level of sign-ins, and that no author is locked out. */
import test from 'ava'
import type { Json, Workspace } from '../../../support/api.js'
import { newFixture } from '../../../support/agents/delegation.js'
import { authorized, callbackOf, relyingParty } from '../../../support/oauth/relying-party.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { notBehindNginx } from '../../../support/fleet/through.js'
import { sharedApi } from '../../../support/service.js'

notBehindNginx()
const { api, running } = await sharedApi('enterprise')

const POLICIES = '/api/v1/access-policies'
const OFFICE = ['192.0.2.0/24']
const from = (address: string) => ({ 'x-forwarded-for': address })

async function made({ token }: Pick<Workspace, 'token'>, json: Json): Promise<string> {
  const { body } = await api.post(POLICIES, token, { name: 'Policy', ...json }).gives(201)
  return String(body['id'])
}

/** A confidential application of the workspace, and its token requests from an address. */
async function application({ token }: Workspace) {
  const { body } = await api
    .post('/api/v1/applications', token, {
      name: 'Service',
      grant_types: ['client_credentials'],
      response_types: [],
      scopes: ['users:read', 'vault:list'],
    })
    .gives(201)
  const clientId = String(body['client_id'])
  const basic = Buffer.from(`${clientId}:${String(body['client_secret'])}`).toString('base64')
  const ask = (address: string, scope = 'users:read') =>
    api.form(
      '/oauth/token',
      { grant_type: 'client_credentials', scope },
      { authorization: `Basic ${basic}`, ...from(address) },
    )
  return { clientId, ask }
}

/** Waits until a change of the policies is in force. The limit is one second. */
async function becomes(status: number, ask: () => Promise<{ status: number }>): Promise<boolean> {
  for (let turn = 0; turn < 100; turn += 1) {
    if ((await ask()).status === status) return true
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return false
}

test('tokens are issued only where every policy permits', async (t) => {
  const workspace = await api.workspace()
  const { clientId, ask } = await application(workspace)
  t.is((await ask('203.0.113.9')).status, 200)
  const id = await made(workspace, {
    actions: ['token'],
    client_ids: [clientId],
    allowed_networks: OFFICE,
    denied_networks: ['192.0.2.66/32'],
  })
  t.true(await becomes(403, () => ask('203.0.113.9')))
  const refused = await ask('203.0.113.9')
  t.is(refused.body['error'], 'policy_denied')
  t.false(JSON.stringify(refused.body).includes('192.0.2'), 'the conditions stay hidden')
  t.is((await ask('192.0.2.7')).status, 200)
  t.is((await ask('192.0.2.66')).status, 403)
  const { rows } = await api.list('/api/v1/audit-events?type=auth.policy.denied', workspace.token)
  t.like(rows[0], {
    type: 'auth.policy.denied',
    outcome: 'denied',
    client_id: clientId,
    ip: '192.0.2.66',
    resource: { type: 'access_policy', id },
    data: { action: 'token', reason: 'network_denied' },
  })
  const path = `${POLICIES}/${id}`
  const patch = (json: Json) => api.patch(path, workspace.token, json)
  t.is((await patch({ scopes: ['vault:list'] })).status, 200)
  t.true(await becomes(200, () => ask('203.0.113.9')))
  t.is((await ask('203.0.113.9', 'users:read vault:list')).status, 403)
  t.is((await patch({ scopes: [], enabled: false })).status, 200)
  t.true(await becomes(200, () => ask('203.0.113.9', 'vault:list')))
  t.is((await api.delete(path, workspace.token)).status, 204)
  t.is((await api.get(path, workspace.token)).status, 404)
  const types = (await api.list('/api/v1/audit-events?limit=50', workspace.token)).rows
    .map(({ type }) => String(type))
    .filter((type) => type.startsWith('admin.access_policy.'))
  t.deepEqual(
    [...new Set(types)].toSorted(),
    ['created', 'deleted', 'updated'].map((did) => `admin.access_policy.${did}`),
  )
})

test('an agent logs in only from an allowed network', async (t) => {
  const workspace = await api.workspace()
  await made(workspace, { actions: ['token'], allowed_networks: OFFICE, force: true })
  const { agentId, key, tenantId } = workspace
  const login = async (address: string) => {
    const challenged = await api.post('/api/v1/agents/auth/challenge', undefined, {
      agent_id: agentId,
      tenant_id: tenantId,
    })
    const json = {
      challenge_id: challenged.body['challenge_id'],
      signature: key.signChallenge(String(challenged.body['payload'])),
    }
    return api.post('/api/v1/agents/auth/verify', undefined, json, from(address))
  }
  t.true(await becomes(403, () => login('203.0.113.9')))
  t.is((await login('203.0.113.9')).body['error'], 'policy_denied')
  t.is((await login('192.0.2.7')).status, 200)
})

test('a sign-in is refused by network, and reaches the level that a policy requires', async (t) => {
  const workspace = await api.workspace()
  const { tenantId } = workspace
  const party = await relyingParty(running, { tenantId })
  const begin = async () => {
    const { url } = await party.journey()
    const answer = await fetch(url, { redirect: 'manual', headers: from('203.0.113.9') })
    const location = answer.headers.get('location') ?? ''
    return { status: location.includes('error=access_denied') ? 403 : answer.status }
  }
  t.is((await begin()).status, 303)
  const id = await made(workspace, {
    actions: ['sign_in'],
    client_ids: [party.clientId],
    denied_networks: ['203.0.113.0/24'],
  })
  t.true(await becomes(403, begin))
  const human = await newFixture(api, workspace)
  const end = async () => {
    const browser = openBrowser(running)
    const page = await authorized(browser, human, (await party.journey()).url)
    return page
  }
  t.truthy(callbackOf(await end()).searchParams.get('code'), 'other networks')
  const json = { denied_networks: [], required_aal: 'aal2' }
  await api.patch(`${POLICIES}/${id}`, workspace.token, json).gives(200)
  t.true(await becomes(303, begin))
  // The other process may learn it later.
  const asked = async () => ({ status: (await end()).path.startsWith('/auth/mfa') ? 200 : 0 })
  t.true(await becomes(200, asked), 'a second factor is asked for')
})

test('evaluation is a dry run, and a policy that refuses its author needs force', async (t) => {
  const workspace = await api.workspace()
  const { token, agentId } = workspace
  const locked = await api.post(POLICIES, token, { name: 'Office', allowed_networks: OFFICE })
  t.is(locked.status, 409)
  t.regex(String(locked.body['detail']), /network_not_allowed, from 127\.0\.0\.1/)
  const id = await made(workspace, { allowed_networks: OFFICE, required_aal: 'aal2', force: true })
  const evaluate = async (json: Json) => {
    const asked = { action: 'sign_in', client_id: agentId, ...json }
    const { body } = await api.post(`${POLICIES}/evaluate`, token, asked).gives(200)
    return body
  }
  t.deepEqual(await evaluate({ address: '192.0.2.1', aal: 'aal2' }), {
    decision: 'permit',
    denied_by: [],
  })
  t.deepEqual(await evaluate({ address: '203.0.113.1' }), {
    decision: 'deny',
    denied_by: [{ id, name: 'Policy', reason: 'network_not_allowed' }],
  })
  t.like(await evaluate({ address: '192.0.2.1', aal: 'aal1' }), {
    denied_by: [{ id, name: 'Policy', reason: 'level_too_low' }],
  })
  for (const [json, status] of [
    [{}, 400],
    [{ allowed_networks: ['192.0.2.1/24'], force: true }, 400],
    [{ denied_networks: ['everywhere'] }, 400],
    [{ required_aal: 'aal3' }, 400],
    [{ required_aal: 'aal4' }, 400],
    // Every token of the tenant reads every policy.
    [{ client_ids: ['a', 'b', 'c', 'd', 'e'].map((one) => one.repeat(2_000)) }, 400],
  ] as const)
    t.is(
      (await api.post(POLICIES, token, { name: 'Bad', ...json })).status,
      status,
      JSON.stringify(json),
    )
  const more = await Promise.all(
    [1, 2, 3, 4].map(() => api.post(POLICIES, token, { name: 'More', required_aal: 'aal2' })),
  )
  t.deepEqual(more.map(({ status }) => status).toSorted(), [201, 201, 409, 409])
  const stranger = await api.workspace('Elsewhere')
  t.is((await api.get(`${POLICIES}/${id}`, stranger.token)).status, 404)
})
