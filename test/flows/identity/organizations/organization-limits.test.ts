/** Limits of organizations, invitations that expire, and transfers of environments. */
import test from 'ava'
import { type Api, apiOf, type Json, type Workspace } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('plain')
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

const CONTROL = '/api/v1/control-plane/organizations'
const policyOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/policy`
const membersOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/members`
const transfersOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/transfers`

async function expected(status: number, answer: ReturnType<Api['get']>): Promise<Json> {
  const { status: found, body } = await answer
  if (found !== status) throw new Error(`${found}: ${JSON.stringify(body)}`)
  return body
}
const patch = (path: string, token: string, json: Json) => api.call('PATCH', path, { token, json })
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
  t.is(full.status, 403)
  t.is(full.body['error'], 'policy_denied')
  t.regex(String(full.body['detail']), /limit of 1 environments/)
  const refused = await patch(path, operator, { max_members: 1_001 })
  t.is(refused.status, 400)
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
  await sql(
    running.db.database,
    `update organization_members set expires_at = now() - interval '1 second' where id = $1`,
    [String(invited['id'])],
  )
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
    api.call('DELETE', `${transfersOf(of)}/${String(id)}`, { token: operator })
  const canceled = await expected(201, start())
  t.is((await remove(organizationId, canceled['id'])).status, 204)
  t.is((await remove(organizationId, canceled['id'])).status, 409)
  const declined = await expected(201, start())
  t.is((await remove(otherId, declined['id'])).status, 204)
  const late = await expected(201, start())
  await sql(
    running.db.database,
    `update tenant_transfers set expires_at = now() - interval '1 second' where id = $1`,
    [String(late['id'])],
  )
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
  const foreign = await api.post(`/api/v1/tenants/${tenantId}/transfers`, stranger.operator, {
    organization_id: stranger.organizationId,
  })
  t.is(foreign.status, 404)
  const offered = await expected(201, start())
  const deployment = await operatorOfDeployment(api)
  const hold = `/api/v1/organizations/${organizationId}`
  await expected(200, api.post(`${hold}/suspend`, deployment.token))
  const accept = `${transfersOf(otherId)}/${String(offered['id'])}/accept`
  t.is((await api.post(accept, operator)).status, 403)
  await expected(200, api.post(`${hold}/reactivate`, deployment.token))
  await expected(200, api.post(accept, operator))
})
