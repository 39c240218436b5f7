/** Who may change which users of a tenant. docs/guides/identity/organizations-tenants-users.md, users. */
import test from 'ava'
import { type Answer, apiOf, type Json } from '../../../support/api.js'
import { testService } from '../../../support/service.js'

const running = await testService()
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

const USERS = '/api/v1/tenant-users'
const patch = (id: unknown, token: string, json: Json) =>
  api.call('PATCH', `${USERS}/${String(id)}`, { token, json })
const remove = (id: unknown, token: string) =>
  api.call('DELETE', `${USERS}/${String(id)}`, { token })

/** A token of a tenant with some of its scopes. */
async function narrow(owner: Awaited<ReturnType<typeof api.workspace>>, scope: string) {
  const selector = { agent_id: owner.agentId, tenant_id: owner.tenantId }
  return String((await api.login(owner.key, selector, scope)).body['access_token'])
}

test('a token with only users:manage cannot suspend or remove an owner', async (t) => {
  const owner = await api.workspace()
  const manager = await narrow(owner, 'users:manage')
  const { body } = await api.post(USERS, owner.token, {
    email: `owner.${owner.tenantId}@example.com`,
    password: 'a password of an owner',
  })
  const { id } = body
  const to = (what: string, token: string) => api.post(`${USERS}/${String(id)}/${what}`, token)
  t.is((await patch(id, owner.token, { roles: ['owner', 'admin'] })).status, 200)

  const refused = async (answer: Promise<Answer>) => {
    const { status, body: why } = await answer
    t.is(status, 403)
    t.is(why['error'], 'forbidden')
    t.regex(String(why['detail']), /is an owner .* tenant:manage/)
  }
  await refused(patch(id, manager, { roles: ['admin'] }))
  await refused(patch(id, manager, { roles: [], display_name: 'Gone' }))
  await refused(to('suspend', manager))
  await refused(remove(id, manager))
  const still = (await api.get(`${USERS}/${String(id)}`, manager)).body
  t.is(still['status'], 'pre_provisioned')
  t.deepEqual(still['roles'], ['owner', 'admin'])
  t.not(still['display_name'], 'Gone')
  // Changes that do not touch the owner role need users:manage only.
  t.is((await patch(id, manager, { display_name: 'Olga', roles: ['owner'] })).status, 200)

  t.is((await to('suspend', owner.token)).status, 200)
  await refused(to('reactivate', manager))
  t.is((await to('reactivate', owner.token)).status, 200)
  t.is((await patch(id, owner.token, { roles: ['admin'] })).status, 200)
  t.is((await to('suspend', manager)).status, 200)
  t.is((await remove(id, manager)).status, 204)
})
