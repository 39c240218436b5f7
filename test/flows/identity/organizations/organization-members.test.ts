/** Members of organizations, and records of organizations and environments. */
import test from 'ava'
import { claimsOf, expected, type Json, type Workspace } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { fixtureOf, newFixture, ownToken, present } from '../../../support/agents/delegation.js'
import { sql } from '../../../support/storage/sql.js'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import { owned } from '../../../support/identity/owner.js'
import { signIn } from '../../../support/identity/person.js'
import { SERVING_PROCESSES } from '../../../support/fleet/through.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain')

const membersOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/members`
const rowsOf = async (path: string, token: string) => (await api.list(path, token)).rows

/** An agent of another workspace's control plane, added as a member of this organization. */
async function colleague(workspace: Workspace, role: string) {
  const other = await api.workspace('Elsewhere')
  const path = membersOf(workspace.organizationId)
  const json = { agent_id: other.agentId, role }
  const member = await expected(201, api.post(path, workspace.operator, json))
  return { other, member, id: String(member['id']) }
}

/**
 * A user of the tenant who is not a member of its organization. A fixture user is created as a member, so the
 * membership is removed.
 */
async function outsider(workspace: Workspace) {
  const human = await newFixture(api, workspace)
  const path = membersOf(workspace.organizationId)
  const rows = await rowsOf(path, workspace.operator)
  const { id } = rows.find(({ email }) => email === human.email)!
  await api.delete(`${path}/${String(id)}`, workspace.operator).gives(204)
  return human
}

const operatorToken = async ({ key, agentId, controlPlane }: Workspace) =>
  String(
    (await api.login(key, { agent_id: agentId, tenant_id: controlPlane })).body['access_token'],
  )

test('agents are listed, added, changed and removed, each with its event', async (t) => {
  const workspace = await api.workspace()
  const { operator, organizationId, agentId } = workspace
  const path = membersOf(organizationId)
  const creator = (await rowsOf(path, operator)).find(({ kind }) => kind === 'agent')
  t.like(creator, {
    organization_id: organizationId,
    kind: 'agent',
    agent_id: agentId,
    role: 'owner',
    status: 'active',
    display_name: 'Test agent',
  })
  const before = (await rowsOf(path, operator)).map((row) => row['id'])
  const { other, member, id } = await colleague(workspace, 'owner')
  t.like(member, { kind: 'agent', agent_id: other.agentId, role: 'owner', status: 'active' })
  t.deepEqual(
    (await rowsOf(path, operator)).map((row) => row['id']),
    [id, ...before],
  )
  await api.post(path, operator, { agent_id: other.agentId, role: 'member' }).gives(409)

  // The new role applies immediately, and what the old one granted ends.
  const { tenantId } = workspace
  const inTenant = await api.login(other.key, { agent_id: other.agentId, tenant_id: tenantId })
  const token = String(inTenant.body['access_token'])
  t.is((await api.get('/api/v1/tenant/settings', token)).status, 200)
  const lower = await expected(200, api.patch(`${path}/${id}`, operator, { role: 'member' }))
  t.is(lower['role'], 'member')
  t.is((await api.get('/api/v1/tenant/settings', token)).status, 401)
  t.is((await api.delete(`${path}/${id}`, operator)).status, 204)
  t.is((await api.delete(`${path}/${id}`, operator)).status, 404)
  t.is((await api.get(path, await operatorToken(other))).status, 404)

  const events = await sql<{ type: string; data: Json }>(running)`
    select type, data from all_events where tenant_id = ${tenantId} and type like 'org.member.%'
    order by sequence`
  const told = events.map(({ type, data }) => [type, data['role'], data['member_id']])
  t.deepEqual(told.slice(-3), [
    ['org.member.added', 'owner', id],
    ['org.member.role_changed', 'member', id],
    ['org.member.removed', 'member', id],
  ])
})

test('an invitation does not reveal whether there is an account, and its owner joins by signing in', async (t) => {
  const workspace = await api.workspace()
  const { operator, organizationId, tenantId } = workspace
  const path = membersOf(organizationId)
  const human = await outsider(workspace)
  const stranger = `unknown-${organizationId}@harbour.test`
  const answers = []
  for (const email of [human.email, stranger]) {
    const { status, body } = await api.post(path, operator, { email, role: 'owner' })
    answers.push([status, { ...body, id: '', email: '', created_at: '', expires_at: '' }])
    t.is(body['email'], email)
    // Neither another case nor a second request creates another invitation.
    const upper = email.toUpperCase()
    t.is((await api.post(path, operator, { email: upper, role: 'admin' })).status, 409)
  }
  t.deepEqual(answers[0], answers[1])
  t.like(answers[0]![1], { kind: 'user', role: 'owner', status: 'invited', display_name: '' })

  const browser = openBrowser(running)
  t.is((await signIn(browser, human)).status, 303)
  const rows = await rowsOf(path, operator)
  const joined = rows.find(({ email }) => email === human.email)!
  t.like(joined, { kind: 'user', role: 'owner', status: 'active' })
  const user = await api.get(`/api/v1/tenant-users/${String(joined['user_id'])}`, workspace.token)
  t.is(user.body['email'], human.email)
  t.is(rows.find(({ email }) => email === stranger)?.['status'], 'invited')
  t.is((await api.post(path, operator, { email: human.email, role: 'admin' })).status, 409)

  const [added] = await sql<{ data: Json }>(running)`
    select data from all_events where tenant_id = ${tenantId} and type = 'org.member.added'
    order by sequence desc limit 1`
  t.like(added!.data, { role: 'owner', member_id: joined['id'] })
})

test('an unverified address does not join', async (t) => {
  const workspace = await api.workspace()
  const path = membersOf(workspace.organizationId)
  const human = await outsider(workspace)
  await sql(running)`
    update accounts set email_verified = false where email_key = lower(${human.email})`
  await expected(201, api.post(path, workspace.operator, { email: human.email, role: 'owner' }))
  const browser = openBrowser(running)
  t.is((await signIn(browser, human)).status, 303)
  const rows = await rowsOf(path, workspace.operator)
  t.is(rows.find(({ email }) => email === human.email)?.['status'], 'invited')
})

test('a user who owns the organization manages its members, an admin and a member do not', async (t) => {
  const { token, person } = await owned(api, { factor: false, scope: 'openid org:read org:manage' })
  const organizationId = String(claimsOf(token)['organization_id'])
  const path = membersOf(organizationId)
  const rows = await rowsOf(path, token)
  t.deepEqual(rows.map(({ kind, role }) => [kind, role]).toSorted(), [
    ['agent', 'owner'],
    ['user', 'member'],
    ['user', 'owner'],
  ])
  const self = rows.find(({ email }) => email === person.human.email)!
  t.is(self['role'], 'owner')
  const bound = await expected(
    200,
    api.post(`/api/v1/control-plane/organizations/${organizationId}/token`, token),
  )
  t.regex(String(bound['scope']), /org:manage/)
  t.is((await api.get(path, String(bound['access_token']))).status, 200)
  for (const role of ['admin', 'member']) {
    await sql(running)`update organization_members set role = ${role} where id = ${self['id']}`
    for (const [method, at, json] of [
      ['GET', path, undefined],
      ['POST', path, { email: mailbox('x'), role: 'owner' }],
      ['PATCH', `${path}/${String(self['id'])}`, { role: 'owner' }],
      ['DELETE', `${path}/${String(self['id'])}`, undefined],
    ] as const)
      t.is((await api.call(method, at, { token, json })).status, 403, `${role} ${method}`)
  }
})

test('an outsider gets 404 for organization, member, tenant and agent', async (t) => {
  const mine = await api.workspace()
  const other = await api.workspace()
  const ops = await operatorOfDeployment(api)
  const path = membersOf(mine.organizationId)
  const member = (await rowsOf(path, mine.operator)).find(({ kind }) => kind === 'agent')
  const one = `${path}/${String(member!['id'])}`
  const record = { name: 'Taken over' }
  for (const [method, at, json] of [
    ['GET', path, undefined],
    ['POST', path, { email: mailbox('x'), role: 'owner' }],
    ['PATCH', one, { role: 'member' }],
    ['DELETE', one, undefined],
    ['GET', `/api/v1/organizations/${mine.organizationId}`, undefined],
    ['PATCH', `/api/v1/organizations/${mine.organizationId}`, record],
    ['GET', `/api/v1/tenants/${mine.tenantId}`, undefined],
    ['PATCH', `/api/v1/tenants/${mine.tenantId}`, record],
  ] as const) {
    t.is((await api.call(method, at, { json })).status, 401, `${method} ${at}`)
    const token = other.operator
    t.is((await api.call(method, at, { token, json })).status, 404, `${method} ${at}`)
    t.is((await api.call(method, at, { token: mine.token, json })).status, 403, `${method} ${at}`)
  }
  // A member of one organization has no access to another.
  const theirs = `${membersOf(other.organizationId)}/${String(member!['id'])}`
  t.is((await api.delete(theirs, other.operator)).status, 404)
  // An agent registered in another tenant cannot be added, and its name is not revealed.
  const { agentId } = await api.register(other.tenantId)
  await api.post(path, mine.operator, { agent_id: agentId, role: 'member' }).gives(404)
  const unknown = '00000000-0000-4000-8000-000000000000'
  t.is((await api.post(path, mine.operator, { agent_id: unknown, role: 'member' })).status, 404)
  for (const json of [
    { role: 'owner' },
    { email: mailbox('x'), agent_id: unknown, role: 'owner' },
    { email: mailbox('x'), role: 'king' },
    { email: 'no address', role: 'owner' },
  ])
    t.is((await api.post(path, mine.operator, json)).status, 400)
  // An operator of the deployment has access to every organization.
  t.is((await api.get(path, ops.token)).status, 200)
  const found = await expected(
    200,
    api.get(`/api/v1/organizations/${mine.organizationId}`, ops.token),
  )
  t.false('role' in found)
})

test('the last owner stays, also under concurrent requests', async (t) => {
  const workspace = await api.workspace()
  const { organizationId, operator } = workspace
  const path = membersOf(organizationId)
  const creator = (await rowsOf(path, operator)).find(({ kind }) => kind === 'agent')
  const first = String(creator!['id'])
  const invited = await expected(
    201,
    api.post(path, operator, { email: mailbox('later'), role: 'owner' }),
  )
  const refused = async () => {
    for (const [method, json] of [
      ['PATCH', { role: 'admin' }],
      ['DELETE', undefined],
    ] as const) {
      await api.call(method, `${path}/${first}`, { token: operator, json }).gives(409, 'last_owner')
    }
  }
  await refused()
  // A suspended owner does not count either.
  const suspended = await colleague(workspace, 'owner')
  const { agentId } = suspended.other
  const setStatus = `update agents set status = $2 where id = $1`
  await sql(running.db.database, setStatus, [agentId, 'suspended'])
  await refused()
  const away = `${path}/${suspended.id}`
  t.is((await api.delete(away, operator)).status, 204)
  // An invited owner does not count as an owner, and can be withdrawn.
  const withdraw = `${path}/${String(invited['id'])}`
  t.is((await api.delete(withdraw, operator)).status, 204)

  const owners = async () =>
    (
      await sql(running)`
        select from organization_members where organization_id = ${organizationId}
        and role = 'owner'`
    ).length
  for (let round = 0; round < 6; round += 1) {
    const { other, id } = await colleague(workspace, 'owner')
    const theirs = await operatorToken(other)
    // Each demotes the other, and both demote themselves.
    const answers = await Promise.all(
      [
        [operator, id],
        [theirs, first],
        [operator, first],
        [theirs, id],
      ].map(([token, whom]) =>
        round % 2 === 0
          ? api.patch(`${path}/${whom}`, token, { role: 'member' })
          : api.delete(`${path}/${whom}`, token),
      ),
    )
    t.is(await owners(), 1, JSON.stringify(answers.map(({ status }) => status)))
    // A process may serve a demoted owner for a second, who then changes nothing.
    const done = answers.filter(({ status }) => status === 200 || status === 204).length
    t.true(done >= 1 && done <= SERVING_PROCESSES, `${done} succeeded`)
    await sql(running)`
      delete from organization_members where organization_id = ${organizationId}
      and member_id <> ${workspace.agentId}`
    await sql(running)`
      insert into organization_members (organization_id, member_type, member_id, role, created_at,
      id)
      values (${organizationId}, 'agent', ${workspace.agentId}, 'owner', now(), ${first})
      on conflict (organization_id, member_type, member_id) do update set role = 'owner'`
  }
})

test('an idempotency key repeats an invitation without making a second one', async (t) => {
  const { organizationId, operator } = await api.workspace()
  const path = membersOf(organizationId)
  const key = { 'idempotency-key': 'invite-once' }
  const json = { email: mailbox('once'), role: 'admin' }
  const made = await api.post(path, operator, json, key)
  const again = await api.post(path, operator, json, key)
  t.is(made.status, 201)
  t.is(again.headers['idempotency-replayed'], 'true')
  t.deepEqual(again.body, made.body)
})

test('name and support contact are changed, recorded, and shown on hosted pages', async (t) => {
  const workspace = await api.workspace()
  const { organizationId, tenantId, operator } = workspace
  const organization = `/api/v1/organizations/${organizationId}`
  const tenant = `/api/v1/tenants/${tenantId}`
  const change = (path: string, json: Json) => expected(200, api.patch(path, operator, json))
  const page = async () => {
    const browser = openBrowser(running)
    const slug = String(workspace.body['tenant_slug'])
    const { html } = await browser.get(
      `/auth/login?tenant_slug=${slug}&return_to=%2Fauth%2Faccount`,
    )
    return html
  }
  t.notRegex(await page(), /Need help/)
  const named = await change(organization, {
    name: 'Harbour',
    support_contact: 'help@harbour.test',
  })
  t.like(named, { name: 'Harbour', support_contact: 'help@harbour.test', role: 'owner' })
  t.deepEqual(await expected(200, api.get(organization, operator)), named)
  t.regex(await page(), /Need help\? <bdi class="name">help@harbour\.test<\/bdi>/)
  t.like(await change(tenant, { support_contact: '<b>desk</b>' }), {
    support_contact: '<b>desk</b>',
  })
  t.regex(await page(), /&lt;b&gt;desk&lt;\/b&gt;/)
  t.false('support_contact' in (await change(tenant, { support_contact: null })))
  t.regex(await page(), /help@harbour\.test/)
  await change(organization, { support_contact: null })
  t.notRegex(await page(), /Need help/)
  t.is((await change(tenant, { name: 'Front desk' }))['name'], 'Front desk')
  t.regex(await page(), /Front desk/)
  for (const json of [{ name: '' }, { name: 'a\nb' }, { support_contact: '' }])
    t.is((await api.patch(tenant, operator, json)).status, 400)

  const audit = await sql<{ type: string; data: Json }>(running)`
    select type, data from audit_events where tenant_id = ${workspace.controlPlane}
    and subject ->> 'sub' = ${workspace.agentId}
    and type in ('org.updated', 'org.tenant.updated') order by sequence`
  t.deepEqual(
    audit.map(({ type }) => type),
    [
      'org.updated',
      'org.tenant.updated',
      'org.tenant.updated',
      'org.updated',
      'org.tenant.updated',
    ],
  )
  t.deepEqual(audit[0]!.data, {
    before: { name: 'Acme', support_contact: null },
    after: { name: 'Harbour', support_contact: 'help@harbour.test' },
  })
})

test('neither a plain member nor a user of the tenant reads records', async (t) => {
  const workspace = await api.workspace()
  const person = await present(api, fixtureOf(workspace))
  const token = await ownToken(api, workspace, person, 'openid org:read')
  const { organizationId, tenantId } = workspace
  for (const path of [`/api/v1/organizations/${organizationId}`, `/api/v1/tenants/${tenantId}`])
    t.is((await api.get(path, token)).status, 403)
  const { other } = await colleague(workspace, 'admin')
  // An admin elsewhere: the token was issued for the organization that it owns.
  const theirs = await operatorToken(other)
  t.is((await api.get(`/api/v1/tenants/${tenantId}`, theirs)).status, 200)
})
