/**
 * Limits of organizations, invitations that expire, transfers of environments, and the last owner: who may change which users
 * of a tenant. docs/guides/identity/organizations-tenants-users.md.
 */
import test, { type ExecutionContext } from 'ava'
import { type Answer, expected, type Json, type Workspace } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { sharedApi } from '../../../support/service.js'
import { owned } from '../../../support/identity/owner.js'

const { api, running } = await sharedApi('plain')

const CONTROL = '/api/v1/control-plane/organizations'
const policyOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/policy`
const membersOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/members`
const transfersOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/transfers`

const patch = (path: string, token: string, json: Json) => api.patch(path, token, json)
const invite = (workspace: Workspace, email: string) =>
  api.post(membersOf(workspace.organizationId), workspace.operator, { email, role: 'member' })

/** A second organization of the owner, and a second environment of the first one. */
async function twoOrganizations() {
  const workspace = await api.workspace()
  const { operator, organizationId } = workspace
  const other = await expected(201, api.post(CONTROL, operator, { name: 'Successor' }))
  const tenant = await expected(
    201,
    api.post(`${CONTROL}/${organizationId}/tenants`, operator, { name: 'Leaving' }),
  )
  const tenantId = String(tenant['id'])
  const start = (json: Json = { organization_id: other['id'] }) =>
    api.post(`/api/v1/tenants/${tenantId}/transfers`, operator, json)
  return { workspace, operator, organizationId, otherId: String(other['id']), tenantId, start }
}

test('an owner lowers the limits of the deployment and cannot raise them', async (t) => {
  const workspace = await api.workspace()
  const { operator, organizationId } = workspace
  const path = policyOf(organizationId)
  const before = await expected(200, api.get(path, operator))
  t.like(before, { max_members: 1_000, max_tenants: 100, invitation_ttl_secs: 604_800, tenants: 1 })
  const changed = await expected(200, patch(path, operator, { max_tenants: 1 }))
  t.like(changed, { max_tenants: 1, max_members: 1_000 })
  const full = await api.post(`${CONTROL}/${organizationId}/tenants`, operator, { name: 'Second' })
  t.like(full, { status: 403, body: { error: 'policy_denied' } })
  t.regex(String(full.body['detail']), /limit of 1 environments/)
  const refused = await patch(path, operator, { max_members: 1_001 }).gives(400)
  t.deepEqual(refused.body['errors'], [
    { pointer: '#/max_members', detail: 'must be at most 1000' },
  ])
  const deployment = await operatorOfDeployment(api)
  t.like(await expected(200, patch(path, deployment.token, { max_members: 5_000 })), {
    max_members: 5_000,
  })
  t.like(await expected(200, patch(path, operator, { max_members: null })), { max_members: 1_000 })
  const stranger = await api.workspace('Elsewhere')
  t.is((await api.get(path, stranger.operator)).status, 404)
})

test('members and open invitations count, and concurrent invitations do not exceed the limit', async (t) => {
  const workspace = await api.workspace()
  const { operator, organizationId } = workspace
  const { members } = await expected(200, api.get(policyOf(organizationId), operator))
  await expected(
    200,
    patch(policyOf(organizationId), operator, { max_members: Number(members) + 2 }),
  )
  const answers = await Promise.all(
    [1, 2, 3, 4, 5].map((number) => invite(workspace, mailbox(`person-${number}`))),
  )
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 201, 403, 403, 403])
})

test('an invitation ends, and its address can be invited again', async (t) => {
  const workspace = await api.workspace()
  const { organizationId, operator } = workspace
  await expected(200, patch(policyOf(organizationId), operator, { invitation_ttl_secs: 60 }))
  const invited = await expected(201, invite(workspace, mailbox('late')))
  const created = Date.parse(String(invited['created_at']))
  t.is(Date.parse(String(invited['expires_at'])), created + 60_000)
  t.is((await invite(workspace, mailbox('late'))).status, 409)
  await sql(running)`
    update organization_members set expires_at = now() - interval '1 second'
    where id = ${String(invited['id'])}`
  const again = await expected(201, invite(workspace, mailbox('late')))
  t.not(again['id'], invited['id'])
})

test('a transfer moves an environment once, when the other organization accepts', async (t) => {
  const { operator, organizationId, otherId, tenantId, start } = await twoOrganizations()
  const offered = await expected(201, start())
  t.like(offered, {
    tenant_id: tenantId,
    from_organization_id: organizationId,
    to_organization_id: otherId,
    status: 'pending',
    decided_at: null,
  })
  const id = String(offered['id'])
  t.is((await start()).status, 409, 'one open transfer at a time')
  const tenants = async (of: string) =>
    (await api.list(`${CONTROL}/${of}/tenants`, operator)).rows.map((row) => row['id'])
  t.true((await tenants(organizationId)).includes(tenantId), 'nothing moves before the acceptance')
  t.is(
    (await api.post(`${transfersOf(organizationId)}/${id}/accept`, operator)).status,
    404,
    'the giving organization cannot accept',
  )
  const accepts = await Promise.all(
    [1, 2, 3].map(() => api.post(`${transfersOf(otherId)}/${id}/accept`, operator)),
  )
  t.deepEqual(accepts.map(({ status }) => status).toSorted(), [200, 409, 409])
  t.false((await tenants(organizationId)).includes(tenantId))
  t.deepEqual(await tenants(otherId), [tenantId])
  for (const of of [organizationId, otherId]) {
    const { rows } = await api.list(transfersOf(of), operator)
    t.like(rows[0], { id, status: 'accepted' })
  }
  const types = await sql<{ type: string }>(
    running.db.database,
    `select type from all_events where tenant_id = $1 and type like 'org.tenant.transfer%'
     union all select type from unnumbered_events where tenant_id = $1 and type like 'org.tenant.transfer%'
     order by 1`,
    [tenantId],
  )
  t.deepEqual(
    types.map(({ type }) => type),
    ['org.tenant.transfer_requested', 'org.tenant.transferred'],
  )
})

test('a transfer is canceled, declined, or expires, and is then closed', async (t) => {
  const { operator, organizationId, otherId, start } = await twoOrganizations()
  const remove = (of: string, id: unknown) =>
    api.delete(`${transfersOf(of)}/${String(id)}`, operator)
  const canceled = await expected(201, start())
  t.is((await remove(organizationId, canceled['id'])).status, 204)
  t.is((await remove(organizationId, canceled['id'])).status, 409)
  const declined = await expected(201, start())
  t.is((await remove(otherId, declined['id'])).status, 204)
  const late = await expected(201, start())
  await sql(running)`
    update tenant_transfers set expires_at = now() - interval '1 second'
    where id = ${String(late['id'])}`
  const refused = await api.post(`${transfersOf(otherId)}/${String(late['id'])}/accept`, operator)
  t.is(refused.status, 409)
  t.regex(String(refused.body['detail']), /expired/)
  await expected(201, start())
  const { rows } = await api.list(transfersOf(organizationId), operator)
  t.deepEqual(
    rows.map(({ status }) => status),
    ['pending', 'expired', 'declined', 'canceled'],
  )
})

test('only an owner of both organizations offers, and suspension cannot be escaped', async (t) => {
  const { operator, organizationId, otherId, tenantId, start } = await twoOrganizations()
  const stranger = await api.workspace('Elsewhere')
  t.is((await start({ organization_id: stranger.organizationId })).status, 404)
  t.is((await start({ organization_id: organizationId })).status, 404)
  const answer = await api.post(`/api/v1/tenants/${tenantId}/transfers`, stranger.operator, {
    organization_id: stranger.organizationId,
  })
  t.is(answer.status, 404)
  const offered = await expected(201, start())
  const deployment = await operatorOfDeployment(api)
  const hold = `/api/v1/organizations/${organizationId}`
  await expected(200, api.post(`${hold}/suspend`, deployment.token))
  const accept = `${transfersOf(otherId)}/${String(offered['id'])}/accept`
  t.is((await api.post(accept, operator)).status, 403)
  await expected(200, api.post(`${hold}/reactivate`, deployment.token))
  await expected(200, api.post(accept, operator))
})

// Who may change which users of a tenant, and the last owner. docs/guides/identity/organizations-tenants-users.md, users.

const USERS = '/api/v1/tenant-users'
const change = (id: unknown, token: string, json: Json) =>
  api.patch(`${USERS}/${String(id)}`, token, json)
const remove = (id: unknown, token: string) => api.delete(`${USERS}/${String(id)}`, token)

/** A token of a tenant with some of its scopes. */
async function narrow(owner: Awaited<ReturnType<typeof api.workspace>>, scope: string) {
  const selector = { agent_id: owner.agentId, tenant_id: owner.tenantId }
  return String((await api.login(owner.key, selector, scope)).body['access_token'])
}

/** Another user who is an owner of the tenant. */
async function anotherOwner({ tenantId, token }: Awaited<ReturnType<typeof api.workspace>>) {
  const email = `other.${tenantId}@example.com`
  const { body } = await api.post(USERS, token, { email, password: 'a password of an owner' })
  await change(body['id'], token, { roles: ['owner'] }).gives(200)
  return String(body['id'])
}

test('the last owner stays: suspended, removed and demoted by no owner, admin or application', async (t) => {
  const owner = await api.workspace()
  const last = await anotherOwner(owner)
  const at = `${USERS}/${last}`
  const attacks = [
    () => api.post(`${at}/suspend`, owner.token),
    () => remove(last, owner.token),
    () => change(last, owner.token, { roles: [] }),
    () => change(last, owner.token, { roles: ['admin'], display_name: 'Gone' }),
  ]
  const refused = async () => {
    const before = (await api.get(at, owner.token)).body
    for (const attack of attacks) {
      const { status, body } = await attack()
      t.is(status, 409)
      t.is(body['error'], 'last_owner')
    }
    t.deepEqual((await api.get(at, owner.token)).body, before)
  }
  await refused()
  // Owners who cannot sign in do not count: one is invited, one suspended.
  const { body: invited } = await api.post(USERS, owner.token, { email: mailbox('invited') })
  t.is((await change(invited['id'], owner.token, { roles: ['owner'] })).status, 200)
  const second = await anotherOwner({ ...owner, tenantId: `s.${owner.tenantId}` })
  t.is((await api.post(`${USERS}/${second}/suspend`, owner.token)).status, 200)
  await refused()
  t.is((await remove(invited['id'], owner.token)).status, 204, 'an invited owner is no last one')
  t.is((await api.post(`${USERS}/${second}/reactivate`, owner.token)).status, 200)
  // The second of two requests that each leave one owner is refused.
  const both = await Promise.all([
    change(last, owner.token, { roles: [] }),
    remove(second, owner.token),
  ])
  const statuses = both.map(({ status }) => status)
  t.is(statuses.filter((status) => status === 409).length, 1, String(statuses))
})

test('an owner neither suspends, removes nor demotes themselves as the last one', async (t) => {
  const { made, person, token } = await owned(api)
  const { rows } = await api.list(USERS, token)
  const { id } = rows.find(({ email }) => email === person.human.email)!
  t.is((await api.post(`${USERS}/${String(id)}/suspend`, token)).body['error'], 'last_owner')
  t.is((await remove(id, token)).body['error'], 'last_owner')
  t.is((await change(id, token, { roles: ['member'] })).body['error'], 'last_owner')
  t.is((await person.browser.get('/auth/account')).status, 200, made.tenantId)
})

test('a token with only users:manage cannot suspend or remove an owner', async (t) => {
  const owner = await api.workspace()
  const manager = await narrow(owner, 'users:manage')
  const { body } = await api.post(USERS, owner.token, {
    email: `owner.${owner.tenantId}@example.com`,
    password: 'a password of an owner',
  })
  const { id } = body
  const to = (what: string, token: string) => api.post(`${USERS}/${String(id)}/${what}`, token)
  t.is((await change(id, owner.token, { roles: ['owner', 'admin'] })).status, 200)
  await anotherOwner(owner)

  const refused = async (answer: Promise<Answer>) => {
    const { status, body: why } = await answer
    t.is(status, 403)
    t.is(why['error'], 'forbidden')
    t.regex(String(why['detail']), /is an owner .* tenant:manage/)
  }
  await refused(change(id, manager, { roles: ['admin'] }))
  await refused(change(id, manager, { roles: [], display_name: 'Gone' }))
  await refused(to('suspend', manager))
  await refused(remove(id, manager))
  const still = (await api.get(`${USERS}/${String(id)}`, manager)).body
  t.is(still['status'], 'pre_provisioned')
  t.deepEqual(still['roles'], ['owner', 'admin'])
  t.not(still['display_name'], 'Gone')
  // Changes that do not touch the owner role need users:manage only.
  t.is((await change(id, manager, { display_name: 'Olga', roles: ['owner'] })).status, 200)

  t.is((await to('suspend', owner.token)).status, 200)
  await refused(to('reactivate', manager))
  t.is((await to('reactivate', owner.token)).status, 200)
  t.is((await change(id, owner.token, { roles: ['admin'] })).status, 200)
  t.is((await to('suspend', manager)).status, 200)
  t.is((await remove(id, manager)).status, 204)
})

// The last owner, where an agent is one, and where the operator of the deployment acts.

const refusedAsLast = async (t: ExecutionContext, attack: Promise<Answer>) => {
  const { status, body } = await attack
  t.deepEqual([status, body['error']], [409, 'last_owner'], JSON.stringify(body))
}

/** Another agent that owns the organization, at home in the tenant. */
async function secondOwner({ organizationId, tenantId, operator }: Workspace) {
  const { agentId, key } = await api.register(tenantId)
  const members = `/api/v1/organizations/${organizationId}/members`
  const added = await api.post(members, operator, { agent_id: agentId, role: 'owner' }).gives(201)
  return { agentId, key, member: `${members}/${String(added.body['id'])}` }
}

/** A workspace whose organization is also owned by an agent of its tenant. */
async function ownedByAgent() {
  const workspace = await api.workspace()
  const { organizationId } = workspace
  const { agentId } = await secondOwner(workspace)
  /** Gives the agent that made the workspace another role. */
  const founder = (role: 'owner' | 'admin') =>
    sql(running)`
      update organization_members set role = ${role} where organization_id = ${organizationId}
      and member_id = ${workspace.agentId}`
  return { ...workspace, agentId, founder }
}

test('an agent that is the last owner of an organization is neither suspended nor deleted', async (t) => {
  const { agentId, token, founder } = await ownedByAgent()
  const path = `/api/v1/agents/${agentId}`
  await founder('admin')
  for (const attack of [() => api.post(`${path}/suspend`, token), () => api.delete(path, token)])
    await refusedAsLast(t, attack())
  t.is((await api.get(path, token)).body['status'], 'active')
  await founder('owner')
  t.is((await api.post(`${path}/suspend`, token)).status, 200)
  t.is((await api.delete(path, token)).status, 204)
})

test('of two owner agents that are deleted together, one stays', async (t) => {
  const first = await ownedByAgent()
  const { token } = first
  const { agentId } = await secondOwner(first)
  await first.founder('admin')
  const answers = await Promise.all(
    [first.agentId, agentId].map((id) => api.delete(`/api/v1/agents/${id}`, token)),
  )
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [204, 409])
})

test('the operator of the deployment suspends the last owner, and deletes none', async (t) => {
  const { token: operator } = await operatorOfDeployment(api)
  const workspace = await api.workspace()
  const path = `/api/v1/agents/${workspace.agentId}`
  const suspended = await api.post(`${path}/suspend`, operator).gives(200)
  t.is(suspended.body['status'], 'suspended')
  t.is((await api.post(`${path}/activate`, operator)).status, 200)
  t.is((await api.delete(path, operator)).body['error'], 'last_owner')
})

test('the agent that founded a workspace does not suspend itself as its last owner', async (t) => {
  const workspace = await api.workspace()
  const { agentId, token, key, tenantId } = workspace
  const path = `/api/v1/agents/${agentId}`
  await refusedAsLast(t, api.post(`${path}/suspend`, token))
  t.is((await api.get(path, token)).body['status'], 'active')
  t.is((await api.login(key, { agent_id: agentId, tenant_id: tenantId })).status, 200)

  // An owner whom the tenant suspended does not count, in the tenant and in the organization.
  const second = await secondOwner(workspace)
  t.is((await api.post(`${path}/suspend`, token)).status, 200)
  const selector = { agent_id: second.agentId, tenant_id: tenantId }
  const other = String((await api.login(second.key, selector)).body['access_token'])
  await refusedAsLast(t, api.post(`/api/v1/agents/${second.agentId}/suspend`, other))
  await refusedAsLast(t, api.delete(`/api/v1/agents/${second.agentId}`, other))
  await refusedAsLast(t, api.delete(second.member, workspace.operator))
  const role = { token: workspace.operator, json: { role: 'admin' } }
  await refusedAsLast(t, api.call('PATCH', second.member, role))
  t.is((await api.post(`${path}/activate`, other)).status, 200)
  t.is((await api.post(`/api/v1/agents/${second.agentId}/suspend`, other)).status, 200)
})

test('of two founding owners that a tenant suspends together, one stays', async (t) => {
  const workspace = await api.workspace()
  const { agentId } = await secondOwner(workspace)
  const answers = await Promise.all(
    [workspace.agentId, agentId].map((id) =>
      api.post(`/api/v1/agents/${id}/suspend`, workspace.token),
    ),
  )
  const statuses = answers.map(({ status }) => status)
  t.is(statuses.filter((status) => status === 200).length, 1, String(statuses))
})

test('the last active key of the last owner is neither deprecated nor revoked', async (t) => {
  const workspace = await api.workspace()
  const { agentId, tenantId, operator, key, token } = workspace
  const own = `/api/v1/agents/${agentId}/keys/${key.fingerprint}`
  for (const mine of [token, operator])
    for (const to of ['deprecate', 'revoke'])
      t.is((await api.post(`${own}/${to}`, mine)).status, 409, to)
  t.is((await api.login(key, { agent_id: agentId, tenant_id: tenantId })).status, 200)

  // An administrator ends the logins of an owner only while another one has a key.
  const second = await secondOwner(workspace)
  const keys = `/api/v1/agents/${second.agentId}/keys/${second.key.fingerprint}`
  const makeAdmin = (role: 'admin' | 'owner') =>
    sql(running)`
      update organization_members set role = ${role}
      where organization_id = ${workspace.organizationId} and member_id = ${agentId}`
  await makeAdmin('admin')
  for (const to of ['deprecate', 'revoke']) await refusedAsLast(t, api.post(`${keys}/${to}`, token))
  await makeAdmin('owner')
  t.is((await api.post(`${keys}/deprecate`, token)).body['status'], 'deprecated')
  await refusedAsLast(t, api.post(`/api/v1/agents/${agentId}/suspend`, token))
})
