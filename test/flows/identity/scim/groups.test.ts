/** Groups over SCIM: the roles of a tenant (docs/reference/identity.md, SCIM). */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { apiOf, type Json } from '../../../support/api.js'
import {
  type Directory,
  openDirectory,
  SCIM_GROUP,
  SCIM_PATCH,
} from '../../../support/identity/directory.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('enterprise')
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

let people = 0
const person = async (directory: Directory) => {
  people += 1
  return String((await directory.create(`g${people}@corp.test`))['id'])
}
const group = (directory: Directory, displayName: string, more: Json = {}) =>
  directory.send('POST', '/Groups', { schemas: [SCIM_GROUP], displayName, ...more })
const patch = (directory: Directory, id: unknown, ...operations: Json[]) =>
  directory.send('PATCH', `/Groups/${String(id)}`, {
    schemas: [SCIM_PATCH],
    Operations: operations,
  })
const membersOf = ({ body }: { body: Json }) =>
  ((body['members'] ?? []) as Json[]).map(({ value }) => value)
const rolesOf = async ({ workspace }: Directory, id: string) =>
  (await api.get(`/api/v1/tenant-users/${id}`, workspace.token)).body['roles']

test('a group is a role: members have it, and lose it', async (t) => {
  const directory = await openDirectory(api)
  const [a, b] = [await person(directory), await person(directory)]
  const created = await group(directory, 'Sec - App Admins (EU)', {
    externalId: 'g-1',
    members: [{ value: a }],
  })
  t.is(created.status, 201, JSON.stringify(created.body))
  const { id } = created.body
  t.is(created.headers['location'], `${running.baseUrl}/scim/v2/Groups/${String(id)}`)
  t.deepEqual(membersOf(created), [a])
  t.deepEqual(await rolesOf(directory, a), ['Sec-App-Admins-EU'])
  const user = await directory.send('GET', `/Users/${a}`)
  t.like((user.body['groups'] as Json[])[0], { value: id, display: 'Sec - App Admins (EU)' })

  const both = await patch(directory, id, { op: 'Add', path: 'members', value: [{ value: b }] })
  t.is(both.status, 200)
  t.deepEqual(membersOf(both), [a, b])
  // Entra names the member in the value, Okta in the path.
  const one = await patch(directory, id, { op: 'Remove', path: 'members', value: [{ value: a }] })
  t.deepEqual(membersOf(one), [b])
  const none = await patch(directory, id, { op: 'remove', path: `members[value eq "${b}"]` })
  t.deepEqual(membersOf(none), [])
  const again = await patch(directory, id, { op: 'remove', path: `members[value eq "${b}"]` })
  t.is(again.status, 200, 'a member who is absent is removed already')
  t.deepEqual(await rolesOf(directory, a), [])
  const replaced = await patch(directory, id, {
    op: 'replace',
    value: { id, displayName: 'App Admins', members: [{ value: a }, { value: b }] },
  })
  t.is(replaced.body['displayName'], 'App Admins')
  t.deepEqual(membersOf(replaced), [a, b])
  t.deepEqual(await rolesOf(directory, a), ['Sec-App-Admins-EU'], 'the role stays')
  const put = await directory.send('PUT', `/Groups/${String(id)}`, {
    schemas: [SCIM_GROUP],
    displayName: 'Renamed',
  })
  t.deepEqual(membersOf(put), [a, b])
  t.false('externalId' in put.body)

  t.is((await directory.send('DELETE', `/Groups/${String(id)}`)).status, 204)
  t.is((await directory.send('GET', `/Groups/${String(id)}`)).status, 404)
  t.deepEqual(await rolesOf(directory, a), [])
  const audit = await sql<{ type: string }>(
    running.db.database,
    `select distinct type from audit_events where tenant_id = $1 and type like 'admin.scim_group%'`,
    [directory.workspace.tenantId],
  )
  t.is(audit.length, 3)
})

test('a group cannot be renamed to a role of the service that it does not give', async (t) => {
  const directory = await openDirectory(api)
  const { body } = await group(directory, 'Printers')
  const path = `/Groups/${String(body['id'])}`
  for (const displayName of ['owner', 'Admin', ' OWNER ', 'ｏｗｎｅｒ', 'own\u200ber', 'member']) {
    const put = await directory.send('PUT', path, { schemas: [SCIM_GROUP], displayName })
    t.is(put.status, 400, displayName)
    for (const operation of [
      { op: 'replace', path: 'displayName', value: displayName },
      { op: 'add', value: { displayName } },
    ])
      t.is((await patch(directory, body['id'], operation)).status, 400, displayName)
  }
  t.is((await directory.send('GET', path)).body['displayName'], 'Printers')
})

test('groups are listed, filtered and without members on request', async (t) => {
  const directory = await openDirectory(api)
  const member = await person(directory)
  for (const name of ['One', 'Two']) await group(directory, name, { members: [{ value: member }] })
  const other = await person(directory)
  await group(directory, 'Three', { externalId: 'x3', members: [{ value: other }] })
  const list = async (query: string) => (await directory.send('GET', `/Groups?${query}`)).body
  t.like(await list(''), { totalResults: 3, itemsPerPage: 3 })
  const found = await list('filter=displayName%20eq%20%22two%22&excludedAttributes=members')
  t.is(found['totalResults'], 1)
  const [two] = found['Resources'] as Json[]
  t.is(two?.['displayName'], 'Two')
  t.false('members' in two!)
  t.like(await list('startIndex=2&count=1'), { totalResults: 3, startIndex: 2, itemsPerPage: 1 })
  const groupsOf = async (filter: string) => {
    const { Resources } = await list(`filter=${encodeURIComponent(filter)}`)
    return (Resources as Json[]).map(({ displayName }) => displayName)
  }
  for (const filter of ['members', 'members.value', 'MEMBERS.Value'])
    t.deepEqual(await groupsOf(`${filter} eq "${String(member)}"`), ['One', 'Two'])
  t.deepEqual(await groupsOf(`members[value eq "${String(other)}" and type eq "User"]`), ['Three'])
  t.deepEqual(await groupsOf(`members[type eq "User"].value eq "${String(other)}"`), ['Three'])
  t.deepEqual(await groupsOf('members pr and externalId eq "x3"'), ['Three'])
  t.deepEqual(await groupsOf('not (displayName ew "o") and members pr'), ['One', 'Three'])
  for (const filter of ['members.nothing pr', 'userName pr', 'displayName eq 5']) {
    const bad = await directory.send('GET', `/Groups?filter=${encodeURIComponent(filter)}`)
    t.is(bad.status, 400)
    t.is(bad.body['scimType'], 'invalidFilter')
  }
  const types = await directory.send('GET', '/ResourceTypes')
  t.is(types.body['totalResults'], 2)
})

test('names and roles are unique, members are users of the tenant', async (t) => {
  const directory = await openDirectory(api)
  const other = await openDirectory(api)
  const first = await group(directory, 'Team A')
  for (const name of ['team a', 'Team-A']) {
    const { status, body } = await group(directory, name)
    t.is(status, name === 'team a' ? 409 : 409, name)
    t.is(body['scimType'], 'uniqueness')
  }
  for (const value of [await person(other), randomUUID(), 'nothing']) {
    const answer = await patch(directory, first.body['id'], {
      op: 'add',
      path: 'members',
      value: [{ value }],
    })
    t.is(answer.status, 400, value)
    t.is(answer.body['scimType'], 'invalidValue')
  }
  t.is((await group(directory, '')).status, 400)
  t.is((await group(directory, '!!!')).status, 400)
  const at = `/Groups/${String(first.body['id'])}`
  t.is((await other.send('GET', at)).status, 404)
  t.is((await directory.send('DELETE', at, undefined, { 'if-match': 'W/"x"' })).status, 412)
  t.is((await patch(directory, first.body['id'], { op: 'add', path: 'x', value: 'y' })).status, 400)
})

test('a token gives no role beyond its own, and the last owner stays', async (t) => {
  const directory = await openDirectory(api)
  const { workspace } = directory
  const owning = await openDirectory(api, { roles: ['owner', 'admin'] }, workspace)
  const plain = await openDirectory(api, { roles: [] }, workspace)
  const [a, b] = [await person(directory), await person(directory)]
  const owners = await group(directory, 'OWNER')
  t.is(owners.status, 201)
  const add = (at: Directory, id: unknown, value: string) =>
    patch(at, id, { op: 'add', path: 'members', value: [{ value }] })
  const { id } = owners.body
  t.is((await add(directory, id, a)).status, 403)
  t.is((await add(owning, id, a)).status, 200)
  t.deepEqual(await rolesOf(directory, a), ['owner'])
  t.is((await patch(directory, id, { op: 'remove', path: 'members' })).status, 403)
  t.is((await patch(owning, id, { op: 'remove', path: 'members' })).status, 409)
  t.is((await owning.send('DELETE', `/Groups/${String(id)}`)).status, 409)
  t.is((await add(owning, id, b)).status, 200)
  const both = await Promise.all(
    [a, b].map((each) => patch(owning, id, { op: 'remove', path: `members[value eq "${each}"]` })),
  )
  t.deepEqual(both.map(({ status }) => status).toSorted(), [200, 409])
  const admins = await group(plain, 'admin')
  t.is((await add(plain, admins.body['id'], a)).status, 403)
  t.is((await add(directory, admins.body['id'], a)).status, 200)
  const off = await openDirectory(api, {}, await api.workspace())
  t.is((await add(off, id, a)).status, 404)
})
