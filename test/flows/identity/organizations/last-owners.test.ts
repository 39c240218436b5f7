/** The last owner, where an agent is one, and where the operator of the deployment acts. */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('plain')
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

/** A workspace whose organization is also owned by an agent of its tenant. */
async function ownedByAgent() {
  const workspace = await api.workspace()
  const { organizationId, tenantId, operator } = workspace
  const { agentId } = await api.register(tenantId)
  const members = `/api/v1/organizations/${organizationId}/members`
  const added = await api.post(members, operator, { agent_id: agentId, role: 'owner' })
  if (added.status !== 201) throw new Error(JSON.stringify(added.body))
  /** Gives the agent that made the workspace another role. */
  const founder = (role: 'owner' | 'admin') =>
    sql(
      running.db.database,
      `update organization_members set role = $3 where organization_id = $1 and member_id = $2`,
      [organizationId, workspace.agentId, role],
    )
  return { ...workspace, agentId, founder }
}

test('an agent that is the last owner of an organization is neither suspended nor deleted', async (t) => {
  const { agentId, token, founder } = await ownedByAgent()
  const path = `/api/v1/agents/${agentId}`
  await founder('admin')
  for (const attack of [
    () => api.post(`${path}/suspend`, token),
    () => api.call('DELETE', path, { token }),
  ]) {
    const { status, body } = await attack()
    t.deepEqual([status, body['error']], [409, 'last_owner'], JSON.stringify(body))
  }
  t.is((await api.get(path, token)).body['status'], 'active')
  await founder('owner')
  t.is((await api.post(`${path}/suspend`, token)).status, 200)
  t.is((await api.call('DELETE', path, { token })).status, 204)
})

test('of two owner agents that are deleted together, one stays', async (t) => {
  const first = await ownedByAgent()
  const { tenantId, organizationId, operator, token } = first
  const { agentId } = await api.register(tenantId)
  const members = `/api/v1/organizations/${organizationId}/members`
  t.is((await api.post(members, operator, { agent_id: agentId, role: 'owner' })).status, 201)
  await first.founder('admin')
  const answers = await Promise.all(
    [first.agentId, agentId].map((id) => api.call('DELETE', `/api/v1/agents/${id}`, { token })),
  )
  t.deepEqual(answers.map(({ status }) => status).toSorted(), [204, 409])
})

test('the operator of the deployment suspends the last owner, and deletes none', async (t) => {
  const { token: operator } = await operatorOfDeployment(api)
  const workspace = await api.workspace()
  const path = `/api/v1/agents/${workspace.agentId}`
  const suspended = await api.post(`${path}/suspend`, operator)
  t.is(suspended.status, 200, JSON.stringify(suspended.body))
  t.is(suspended.body['status'], 'suspended')
  t.is((await api.post(`${path}/activate`, operator)).status, 200)
  t.is((await api.call('DELETE', path, { token: operator })).body['error'], 'last_owner')
})
