/** Many users that a directory creates at the same moment: they share commits, and each has its own answer. */
import test from 'ava'
import { apiOf, type Json } from '../../../support/api.js'
import { openDirectory, SCIM_USER } from '../../../support/identity/directory.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('enterprise')
const api = apiOf(running)
test.after.always(async () => {
  await api.close()
  await running.end()
})

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
  const names = Array.from({ length: 60 }, (_, index) => `Together${index}@corp.test`)
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
  const events = await sql<{ id: string; type: string }>(
    running.db.database,
    `select resource ->> 'id' as id, type from audit_events
     where tenant_id = $1 and resource ->> 'id' = any ($2) order by sequence`,
    [tenantId, ids],
  )
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
  const rows = await sql<{ status: string; count: number }>(
    running.db.database,
    `select u.status, count(*)::int as count from tenant_users u
     join scim_users s on s.tenant_id = u.tenant_id and s.user_id = u.id
     where u.tenant_id = $1 group by u.status order by u.status`,
    [directory.workspace.tenantId],
  )
  t.deepEqual(rows, [
    { status: 'invited', count: 8 },
    { status: 'pre_provisioned', count: 16 },
    { status: 'suspended', count: 8 },
  ])
})

test('a user whose name is the address of a person in the tenant is refused', async (t) => {
  const directory = await openDirectory(api)
  const { tenantId } = directory.workspace
  const [person] = await sql<{ email: string }>(
    running.db.database,
    `select a.email from tenant_users u join accounts a on a.id = u.account_id
     where u.tenant_id = $1 and u.status = 'active' limit 1`,
    [tenantId],
  )
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
