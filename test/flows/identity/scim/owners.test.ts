/** A directory whose token acts as owner leaves the tenant an owner who can sign in. */
import test from 'ava'
import { apiOf } from '../../../support/api.js'
import { openDirectory } from '../../../support/identity/directory.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('enterprise')
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

const OWNER = { roles: [{ value: 'owner' }] }
const addressed = (name: string) => ({ emails: [{ value: `${name}@example.com`, primary: true }] })
const rolesOf = { op: 'replace', path: 'roles', value: [] }
const off = { op: 'replace', path: 'active', value: false }

test('an owner without mailbox and key is no other owner', async (t) => {
  const directory = await openDirectory(api, { roles: ['owner', 'admin'] })
  const { token } = directory.workspace
  const { id } = await directory.create('real', { ...OWNER, ...addressed('real.owner') })
  await directory.create('unreachable', OWNER)
  t.is((await directory.send('DELETE', `/Users/${String(id)}`)).status, 409)
  t.is((await directory.patch(id, off)).status, 409)
  t.is((await directory.patch(id, rolesOf)).status, 409)
  const at = `/api/v1/tenant-users/${String(id)}`
  t.is((await api.call('DELETE', at, { token })).body['error'], 'last_owner')
  t.is((await api.post(`${at}/suspend`, token)).body['error'], 'last_owner')
  await directory.create('second', { ...OWNER, ...addressed('second.owner') })
  t.is((await directory.send('DELETE', `/Users/${String(id)}`)).status, 204)
})

test('the last owner is not moved to an address whose person has to accept', async (t) => {
  const directory = await openDirectory(api, { roles: ['owner', 'admin'] })
  const { id } = await directory.create('moved', { ...OWNER, ...addressed('moved.owner') })
  const emails = [{ value: 'stranger@moved-elsewhere.dev', primary: true }]
  const moved = await directory.patch(id, { op: 'replace', path: 'emails', value: emails })
  t.is(moved.status, 409, JSON.stringify(moved.body))
  const read = await api.get(`/api/v1/tenant-users/${String(id)}`, directory.workspace.token)
  t.is(read.body['status'], 'pre_provisioned')
})
