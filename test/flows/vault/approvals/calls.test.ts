/** Approval of calls through the egress proxy. */
import { createHash } from 'node:crypto'
import test from 'ava'
import { delegate, ownToken } from '../../../support/agents/delegation.js'
import { approvalScene, personOf } from '../../../support/vault/approvals.js'
import {
  bodyCall,
  CREDENTIALS,
  egressPair,
  settingOf,
  UPSTREAM_NAME,
} from '../../../support/vault/egress.js'
import { docsPage, testCommands } from '../../../support/pages/docs-page.js'
import { sql } from '../../../support/storage/sql.js'
import { until } from '../../../support/service/watch.js'

const [resources, second] = await egressPair()
const { api, upstream, running, send } = resources
const POST = {
  method: 'POST',
  body: '{"amount":5}',
  headers: [['content-type', 'application/json']],
}
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

test.serial(
  'a call that needs an approval waits, and its repeat is the same approval',
  async (t) => {
    const { call, state, setting } = await approvalScene(resources)
    const before = upstream.requests.length
    const { status, body, headers } = await call(POST)
    t.is(status, 202)
    const id = String(body['approval_id'])
    t.like(body, { status: 'pending', poll_after_secs: 5 })
    t.true(Date.parse(String(body['expires_at'])) > Date.now() + 590_000)
    t.is(headers['location'], `/v1/approvals/${id}`)
    t.is(headers['x-svc-approval'], id)
    t.is(body['approval_url'], `${running.issuer}/vault/approvals/${id}`)
    const repeated = await Promise.all([call(POST), call(POST)])
    t.deepEqual(
      repeated.map((one) => one.body['approval_id']),
      [id, id],
    )
    t.not((await call({ ...POST, body: '{"amount":6}' })).body['approval_id'], id)
    t.is(upstream.requests.length, before)
    t.like((await state(id)).body, { approval_id: id, status: 'pending' })
    // Not approved yet.
    t.is((await call(POST, id)).status, 403)
    const other = await api.register(setting.tenantId)
    const selector = { tenant_id: setting.tenantId, agent_id: other.agentId }
    const { body: login } = await api.login(other.key, selector, 'vault:read')
    t.is((await state(id, String(login['access_token']))).status, 404)
    t.is((await state('4f9d2a4e-6c0c-4c54-9a3c-1f2a3b4c5d6e')).status, 404)
  },
)

test.serial('an approved call passes once, and only the same call', async (t) => {
  const { call, waiting, answer, state, owner, setting } = await approvalScene(resources)
  const id = await waiting(POST)
  const listed = await api.get('/api/v1/approvals?status=pending', owner)
  t.like((listed.body as unknown as object[])[0], {
    id,
    kind: 'egress',
    status: 'pending',
    approval: 'each',
    method: 'POST',
    host: UPSTREAM_NAME,
    path: '/echo',
    body_sha256: sha256('{"amount":5}'),
    body_bytes: 12,
    agent_id: setting.agentId,
    grant_id: setting.grantId,
  })
  const approved = await answer(id, 'approve')
  t.is(approved.status, 200)
  t.like(approved.body, { id, status: 'approved' })
  t.is((await answer(id, 'approve')).status, 409)
  t.is((await answer(id, 'deny')).status, 409)
  t.like((await state(id)).body, { status: 'approved' })
  // Without the id it waits still: the same approval, to be repeated with its id.
  t.like((await call(POST)).body, { approval_id: id, status: 'approved' })
  const before = upstream.requests.length
  for (const more of [
    { body: '{"amount":50}' },
    { method: 'PUT' },
    { url: `${upstream.origin}/echo?admin=1` },
    { headers: [['content-type', 'text/plain']] },
    { headers: [...POST.headers, ['x-more', '1']] },
  ]) {
    const { status, body } = await call({ ...POST, ...more }, id)
    t.is(status, 403)
    t.is(body['error'], 'policy_denied')
  }
  t.is(upstream.requests.length, before)
  t.is((await call(POST, id)).status, 200)
  t.is(upstream.requests.length, before + 1)
  t.is((await call(POST, id)).status, 403)
  t.is((await call(POST, 'not-an-id')).status, 403)
  t.like((await state(id)).body, { status: 'used' })
  const events = await sql<{ type: string; data: Record<string, unknown> }>(running)`
    select type, data from all_events where tenant_id = ${setting.tenantId}
    and (type like 'vault.approval.%' or type = 'vault.credential.accessed') order by sequence`
  t.deepEqual(
    events.map(({ type }) => type),
    [
      'vault.approval.requested',
      'vault.approval.approved',
      'vault.credential.accessed',
      'vault.approval.used',
    ],
  )
  t.is(events[2]!.data['approval_id'], id)
})

test.serial('of concurrent repeats in two processes one passes', async (t) => {
  const { call, waiting, answer, setting } = await approvalScene(resources)
  const id = await waiting(POST)
  await answer(id, 'approve').then(({ status }) => t.is(status, 200))
  const before = upstream.requests.length + second.upstream.requests.length
  const elsewhere = () =>
    second.api.post(
      '/v1/proxy',
      setting.delegated,
      { credential_id: setting.credentialId, url: `${upstream.origin}/echo`, ...POST },
      { 'x-svc-approval': id },
    )
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? call(POST, id) : elsewhere())),
  )
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [
    200,
    ...Array.from({ length: 11 }, () => 403),
  ])
  t.is(upstream.requests.length + second.upstream.requests.length, before + 1)
})

test.serial('a denied call does not pass', async (t) => {
  const { call, waiting, answer, state } = await approvalScene(resources)
  const id = await waiting(POST)
  t.like((await answer(id, 'deny')).body, { status: 'denied' })
  t.like((await state(id)).body, { status: 'denied' })
  t.is((await call(POST, id)).status, 403)
  t.not(await waiting(POST), id)
})

test.serial('first: after one approval the grant needs no more', async (t) => {
  const { call, waiting, answer } = await approvalScene(resources, { approval: 'first' })
  const id = await waiting(POST)
  const other = await waiting()
  t.is((await answer(id, 'approve')).status, 200)
  t.is((await call(POST, id)).status, 200)
  t.is((await call(POST)).status, 200)
  for (let turn = 0; turn < 4; turn += 1) t.is((await call()).status, 200)
  // An answer that is not given admits nothing.
  t.is((await call({}, other)).status, 403)
})

test.serial('first: the person of a delegation answers for its calls alone', async (t) => {
  const { setting, answer } = await approvalScene(resources, { approval: 'first' })
  const { tenantId, credentialId, direct, delegated: agent } = setting
  const call = (token: string, approvalId?: string) =>
    api.post(
      '/v1/proxy',
      token,
      { credential_id: credentialId, url: `${upstream.origin}/echo` },
      approvalId === undefined ? {} : { 'x-svc-approval': approvalId },
    )
  const waiting = async (token: string) =>
    String((await call(token).gives(202)).body['approval_id'])
  const member = await personOf(resources, setting, '{}')
  const own = await ownToken(api, { tenantId }, member, 'openid delegations:manage')
  const { token: first } = await delegate(api, direct, member)
  const { token: second } = await delegate(api, direct, await personOf(resources, setting, '{}'))
  const id = await waiting(first)
  t.is((await answer(id, 'approve', own)).status, 200)
  await call(first, id).gives(200)
  for (let turn = 0; turn < 3; turn += 1) await call(first).gives(200)
  const other = await waiting(agent)
  await waiting(second)
  t.is((await answer(other, 'approve')).status, 200)
  for (const token of [first, second, agent]) await call(token).gives(200)
})

test.serial('a body that is streamed is hashed first', async (t) => {
  const { setting, answer } = await approvalScene(resources)
  const body = Buffer.alloc(300_000, 'a')
  const ask = (more: Record<string, string> = {}, sent = body) =>
    send('/v1/proxy/body', {
      token: setting.delegated,
      headers: bodyCall(setting, `${upstream.origin}/echo`, {
        'x-svc-header-x-kind': 'one',
        ...more,
      }),
      body: sent,
    })
  const asked = await ask()
  t.is(asked.statusCode, 202)
  const { approval_id: id } = (await asked.body.json()) as { approval_id: string }
  const approved = await answer(id, 'approve')
  t.is(approved.body['body_sha256'], createHash('sha256').update(body).digest('hex'))
  const differs = await ask({ 'x-svc-approval': id }, Buffer.alloc(300_000, 'b'))
  t.is(differs.statusCode, 403)
  await differs.body.dump()
  const passed = await ask({ 'x-svc-approval': id })
  t.is(passed.statusCode, 200)
  t.is((await passed.body.text()).length, 300_000)
})

test.serial(
  'who answers: the person of the call or an owner, with fresh factors, never an agent',
  async (t) => {
    const { waiting, answer, setting, person } = await approvalScene(resources)
    const id = await waiting(POST)
    const { tenantId } = setting
    const member = await personOf(resources, setting, '{}')
    const scope = 'openid vault:read delegations:manage'
    const token = await ownToken(api, { tenantId }, member, scope)
    t.is((await answer(id, 'approve', token)).status, 404)
    t.deepEqual((await api.get('/api/v1/approvals', token)).body as unknown, [])
    t.is((await api.get(`/api/v1/approvals/${id}`, token)).status, 404)
    t.is((await answer(id, 'approve', setting.operator)).status, 403)
    t.is((await answer(id, 'approve', setting.direct)).status, 403)
    await sql(running)`
    update browser_sessions set auth_time = auth_time - interval '1 hour' where tenant_id = ${tenantId}`
    const old = await ownToken(api, { tenantId }, person, 'openid vault:manage').catch(
      () => undefined,
    )
    if (old !== undefined) {
      const refused = await answer(id, 'approve', old)
      t.is(refused.status, 401)
      t.is(refused.body['error'], 'insufficient_user_authentication')
    }
  },
)

test.serial('what the call would use ends its approval', async (t) => {
  const { waiting, state, setting, answer } = await approvalScene(resources)
  const id = await waiting(POST)
  await api.post(`/api/v1/vault/grants/${setting.grantId}/revoke`, setting.operator, {}).gives(200)
  t.like((await state(id)).body, { status: 'expired' })
  t.is((await answer(id, 'approve')).status, 409)
  await until('the event of the end', async () => {
    const rows = await sql(running)`
      select from all_events where tenant_id = ${setting.tenantId} and type = 'vault.approval.expired'`
    return rows.length === 1
  })
})

test.serial('approvals that wait are bounded per agent', async (t) => {
  const { call } = await approvalScene(resources)
  const answers = await Promise.all(
    Array.from({ length: 25 }, (_, at) => call({ ...POST, body: String(at) })),
  )
  const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length
  t.is(count(202), 20)
  t.is(count(429), 5)
})

test.serial('a grant with approvals allows no export, and other types refuse it', async (t) => {
  const setting = await settingOf(resources)
  const made = await api
    .post(CREDENTIALS, setting.operator, {
      provider: 'p',
      credential_type: 'ssh_ca',
      label: 'CA',
    })
    .gives(201)
  const grant = { grantee_type: 'agent', grantee_id: setting.agentId, approval: 'each' }
  await api
    .post(`${CREDENTIALS}/${String(made.body['id'])}/grants`, setting.operator, grant)
    .gives(400)
  const granted = await api
    .post(`${CREDENTIALS}/${setting.credentialId}/grants`, setting.operator, grant)
    .gives(201)
  t.is(granted.body['approval'], 'each')
})

testCommands('the commands of docs/guides/vault/approvals.md run unchanged', async (t) => {
  const { setting, answer } = await approvalScene(resources)
  const page = docsPage(t, 'guides/vault/approvals')
  const env = {
    BASE: running.baseUrl,
    TOKEN: setting.operator,
    AGENT: setting.agentId,
    AGENT_TOKEN: setting.direct,
    CREDENTIAL: setting.credentialId,
    API: upstream.origin,
  }
  t.like(JSON.parse(await page.run('sh', 0, env)), { approval: 'each' })
  const asked = await page.run('sh', 1, env)
  t.regex(asked, /^HTTP\/1\.1 202/)
  const id = /"approval_id":"([^"]+)"/.exec(asked)![1]!
  const approved = { ...env, APPROVAL: id }
  t.like(JSON.parse(await page.run('sh', 2, approved)), { status: 'pending' })
  t.is((await answer(id, 'approve')).status, 200)
  t.is(await page.run('sh', 3, approved), '{"amount":5}')
  t.is(page.blocks('sh').length, 4)
})
