/** Groups over SCIM: the roles of a tenant. Owners, users created together, and addresses (docs/reference/identity.md, SCIM). */
import test from 'ava'
import { parseEmail } from '../../../../actors/domain/email.js'
import { randomUUID } from 'node:crypto'
import type { Json } from '../../../support/api.js'
import {
  type Directory,
  SCIM_GROUP,
  SCIM_PATCH,
  SCIM_USER,
  openDirectory,
} from '../../../support/identity/directory.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('enterprise')
const book = await openDirectory(api)

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
  const audit = await sql<{ type: string }>(running)`
    select distinct type from audit_events where tenant_id = ${directory.workspace.tenantId}
    and type like 'admin.scim_group%'`
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
    t.like(bad, { status: 400, body: { scimType: 'invalidFilter' } })
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

// A directory whose token acts as owner leaves the tenant an owner who can sign in.

const OWNER = { roles: [{ value: 'owner' }] }
const addressed = (name: string) => ({ emails: [{ value: `${name}@example.com`, primary: true }] })
const noRoles = { op: 'replace', path: 'roles', value: [] }
const off = { op: 'replace', path: 'active', value: false }

test('an owner without mailbox and key is no other owner', async (t) => {
  const directory = await openDirectory(api, { roles: ['owner', 'admin'] })
  const { token } = directory.workspace
  const { id } = await directory.create('real', { ...OWNER, ...addressed('real.owner') })
  await directory.create('unreachable', OWNER)
  t.is((await directory.send('DELETE', `/Users/${String(id)}`)).status, 409)
  t.is((await directory.patch(id, off)).status, 409)
  t.is((await directory.patch(id, noRoles)).status, 409)
  const at = `/api/v1/tenant-users/${String(id)}`
  t.is((await api.delete(at, token)).body['error'], 'last_owner')
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

// Many users that a directory creates at the same moment: they share commits, and each has its own answer.

const user = (userName: string, more: Json = {}): Json => ({
  schemas: [SCIM_USER],
  userName,
  name: { givenName: 'Ada', familyName: 'King' },
  phoneNumbers: [{ value: '+493012345678', type: 'mobile' }],
  active: true,
  ...more,
})

test('users created together are as they are read, each with one event', async (t) => {
  const directory = await openDirectory(api)
  const { tenantId } = directory.workspace
  const names = Array.from({ length: 20 }, (_, index) => `Together${index}@corp.test`)
  const answers = await Promise.all(
    names.map((name, index) =>
      directory.send('POST', '/Users', user(name, { externalId: `x${index}` })),
    ),
  )
  for (const [index, { status, headers, body }] of answers.entries()) {
    t.is(status, 201, JSON.stringify(body))
    t.is(body['userName'], names[index])
    const read = await directory.send('GET', `/Users/${String(body['id'])}`)
    t.deepEqual(read.body, body)
    t.is(read.headers['etag'], headers['etag'])
  }
  const ids = answers.map(({ body }) => body['id'])
  t.is(new Set(ids).size, names.length)
  const events = await sql<{ id: string; type: string }>(running)`
    select resource ->> 'id' as id, type from audit_events
    where tenant_id = ${tenantId} and resource ->> 'id' = any (${ids}) order by sequence`
  t.deepEqual(events.map(({ id }) => id).toSorted(), ids.map(String).toSorted())
  t.true(events.every(({ type }) => type === 'sso.user.provisioned'))
})

test('of users with one name or one address at the same moment, one is created', async (t) => {
  const directory = await openDirectory(api)
  const sameName = Array.from({ length: 12 }, (_, index) =>
    user(index % 2 === 0 ? 'Same.Name' : 'same.name', {
      emails: [{ value: `name${index}@same.test`, type: 'work' }],
    }),
  )
  const sameAddress = Array.from({ length: 12 }, (_, index) =>
    user(`address${index}`, { emails: [{ value: 'One@address.test', type: 'work' }] }),
  )
  const others = Array.from({ length: 12 }, (_, index) => user(`other${index}@corp.test`))
  const answers = await Promise.all(
    [...sameName, ...sameAddress, ...others].map((each) => directory.send('POST', '/Users', each)),
  )
  const statuses = answers.map(({ status }) => status)
  t.is(statuses.slice(0, 12).filter((status) => status === 201).length, 1)
  t.is(statuses.slice(12, 24).filter((status) => status === 201).length, 1)
  for (const { status, body } of answers.slice(0, 24)) {
    if (status === 201) continue
    t.is(status, 409, JSON.stringify(body))
    t.is(body['scimType'], 'uniqueness')
  }
  t.deepEqual(
    statuses.slice(24),
    others.map(() => 201),
  )
  t.is((await directory.names('emails.value eq "one@address.test"')).length, 1)
})

test('users of addresses that the tenant cannot vouch for are invited among the others', async (t) => {
  const directory = await openDirectory(api)
  const elsewhere = (index: number) => user(`stranger${index}@elsewhere.org`)
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) => [
      directory.send('POST', '/Users', elsewhere(index)),
      directory.send('POST', '/Users', user(`known${index}@corp2.test`)),
      directory.send('POST', '/Users', user(`nobox${index}`)),
      directory.send('POST', '/Users', user(`off${index}@corp2.test`, { active: false })),
    ]).flat(),
  )
  t.true(answers.every(({ status }) => status === 201))
  const rows = await sql<{ status: string; count: number }>(running)`
    select u.status, count(*)::int as count from tenant_users u
    join scim_users s on s.tenant_id = u.tenant_id and s.user_id = u.id
    where u.tenant_id = ${directory.workspace.tenantId} group by u.status order by u.status`
  t.deepEqual(rows, [
    { status: 'invited', count: 8 },
    { status: 'pre_provisioned', count: 16 },
    { status: 'suspended', count: 8 },
  ])
})

test('a user whose name is the address of a person in the tenant is refused', async (t) => {
  const directory = await openDirectory(api)
  const { tenantId } = directory.workspace
  const [person] = await sql<{ email: string }>(running)`
    select a.email from tenant_users u join accounts a on a.id = u.account_id
    where u.tenant_id = ${tenantId} and u.status = 'active' limit 1`
  const name = person!.email
  const answers = await Promise.all([
    directory.send('POST', '/Users', user(name, { emails: [{ value: 'other@corp3.test' }] })),
    directory.send('POST', '/Users', user('free@corp3.test')),
  ])
  t.deepEqual(
    answers.map(({ status }) => status),
    [409, 201],
  )
})

// One type of e-mail address: the API finds what SCIM takes, and both refuse the same.

let users = 0
const provision = (email: string) => {
  users += 1
  const emails = [{ value: email, type: 'work', primary: true }]
  const json = { schemas: [SCIM_USER], userName: `user-${users}`, emails }
  return book.send('POST', '/Users', json)
}
const lookUp = (email: string) =>
  api.get(`/api/v1/tenant-users?email=${encodeURIComponent(email)}`, book.workspace.token)

for (const email of [
  'q&a@example.com',
  'o%neil@example.com',
  'x~y@example.com',
  'dept/ada@example.com',
  'a!#$^*=?{}|`@example.com',
  'ada@bücher.example.com',
]) {
  test(`${email} is one account for SCIM and the API`, async (t) => {
    const made = await provision(email)
    t.is(made.status, 201, JSON.stringify(made.body))
    const found = await lookUp(email).gives(200)
    t.deepEqual(
      (found.body as unknown as { email: string }[]).map((user) => user.email),
      [parseEmail(email)],
    )
  })
}

for (const email of [
  'a@.example.com',
  'a@example..com',
  'a@example.com.',
  'a..b@example.com',
  '.a@example.com',
  'a.@example.com',
  'a@-example.com',
  'a@b@example.com',
  'a@localhost',
]) {
  test(`${email} is refused everywhere`, async (t) => {
    t.is((await provision(email)).status, 400)
    t.is((await lookUp(email)).status, 400)
    const answer = await api.post('/api/v1/tenant-users', book.workspace.token, {
      email,
      role: 'member',
    })
    t.is(answer.status, 400)
  })
}
