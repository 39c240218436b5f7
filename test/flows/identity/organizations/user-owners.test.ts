/** Who may change which users of a tenant. docs/guides/identity/organizations-tenants-users.md, users. */
import test from 'ava'
import { type Answer, apiOf, type Json } from '../../../support/api.js'
import { owned } from '../../../support/identity/owner.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('plain')
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

/** Another user who is an owner of the tenant. */
async function anotherOwner({ tenantId, token }: Awaited<ReturnType<typeof api.workspace>>) {
  const email = `other.${tenantId}@example.com`
  const { body } = await api.post(USERS, token, { email, password: 'a password of an owner' })
  const { status } = await patch(body['id'], token, { roles: ['owner'] })
  if (status !== 200) throw new Error(String(status))
  return String(body['id'])
}

test('the last owner stays: suspended, removed and demoted by no owner, admin or application', async (t) => {
  const owner = await api.workspace()
  const last = await anotherOwner(owner)
  const at = `${USERS}/${last}`
  const attacks = [
    () => api.post(`${at}/suspend`, owner.token),
    () => remove(last, owner.token),
    () => patch(last, owner.token, { roles: [] }),
    () => patch(last, owner.token, { roles: ['admin'], display_name: 'Gone' }),
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
  t.is((await patch(invited['id'], owner.token, { roles: ['owner'] })).status, 200)
  const second = await anotherOwner({ ...owner, tenantId: `s.${owner.tenantId}` })
  t.is((await api.post(`${USERS}/${second}/suspend`, owner.token)).status, 200)
  await refused()
  t.is((await remove(invited['id'], owner.token)).status, 204, 'an invited owner is no last one')
  t.is((await api.post(`${USERS}/${second}/reactivate`, owner.token)).status, 200)
  // Of two requests that each leave one owner, the second is refused.
  const both = await Promise.all([
    patch(last, owner.token, { roles: [] }),
    remove(second, owner.token),
  ])
  const statuses = both.map(({ status }) => status)
  t.is(statuses.filter((status) => status === 409).length, 1, String(statuses))
})

test('an owner neither suspends, removes nor demotes themselves as the last one', async (t) => {
  const { made, person, token } = await owned(api)
  t.teardown(() => person.browser.close())
  const { rows } = await api.list(USERS, token)
  const { id } = rows.find(({ email }) => email === person.human.email)!
  t.is((await api.post(`${USERS}/${String(id)}/suspend`, token)).body['error'], 'last_owner')
  t.is((await remove(id, token)).body['error'], 'last_owner')
  t.is((await patch(id, token, { roles: ['member'] })).body['error'], 'last_owner')
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
  t.is((await patch(id, owner.token, { roles: ['owner', 'admin'] })).status, 200)
  await anotherOwner(owner)

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
