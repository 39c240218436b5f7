/** PATCH over SCIM (RFC 7644 section 3.5.2), with the shapes that Okta and Microsoft Entra ID send, and filters of lists. */
import test, { type ExecutionContext } from 'ava'
import type { Answer, Json } from '../../../support/api.js'
import {
  SCIM_ENTERPRISE,
  SCIM_PATCH,
  SCIM_USER,
  openDirectory,
} from '../../../support/identity/directory.js'
import { fixtureOf } from '../../../support/agents/delegation.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { signIn } from '../../../support/identity/person.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('enterprise')
const directory = await openDirectory(api)
const listed = await openDirectory(api)
const [fixture] = (await listed.send('GET', '/Users')).body['Resources'] as Json[]
await listed.send('DELETE', `/Users/${String(fixture!['id'])}`)
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const ada = await listed.create('Ada', {
  externalId: 'X1',
  title: 'Countess',
  userType: 'Employee',
  displayName: 'Ada Lovelace',
  name: { familyName: 'Lovelace', givenName: 'Ada' },
  addresses: [{ type: 'work', locality: 'London' }],
  [ENTERPRISE]: { employeeNumber: '7', manager: { value: 'm-1' } },
  emails: [
    { value: 'Ada@corp.test', type: 'work', primary: true },
    { value: 'ada@home.test', type: 'home' },
  ],
})
await listed.create("o'Brien_%", { externalId: 'x2', active: false })
await listed.create('grace', {
  title: 'Admiral',
  emails: [{ value: 'grace@home.test', type: 'work' }],
})
const { meta } = ada as { meta: Json }
const modified = String(meta['lastModified'])
const CORE = 'urn:ietf:params:scim:schemas:core:2.0:User'

let people = 0
async function person(more: Json = {}) {
  people += 1
  const userName = `p${people}@corp.test`
  const emails = [{ value: userName, type: 'work', primary: true }]
  return directory.create(userName, { emails, ...more })
}

/** The user after the operations, without what the server assigns. */
async function after(t: ExecutionContext, { id }: Json, ...operations: Json[]): Promise<Json> {
  const { status, body } = await directory.patch(id, ...operations)
  t.is(status, 200, JSON.stringify(body))
  const { id: _id, meta: _meta, schemas: _schemas, ...rest } = body
  return rest
}

function refused(t: ExecutionContext, answer: Answer, scimType: string): void {
  t.is(answer.status, 400, JSON.stringify(answer.body))
  t.is(answer.body['scimType'], scimType)
}

test('Okta deactivates a user with a value without a path', async (t) => {
  const user = await person()
  const { status, body } = await directory.send('PATCH', `/Users/${String(user['id'])}`, {
    schemas: [SCIM_PATCH],
    Operations: [{ op: 'replace', value: { active: false } }],
  })
  t.is(status, 200)
  t.is(body['active'], false)
})

test('Entra deactivates a user with a string', async (t) => {
  const user = await person()
  const operation = { op: 'Replace', path: 'active', value: 'False' }
  t.is((await after(t, user, operation))['active'], false)
})

test('Entra updates by names with dots, value filters and the URN of the extension', async (t) => {
  const user = await person({ name: { givenName: 'Old', familyName: 'Name' } })
  const work = (user['emails'] as Json[])[0]!['value']
  const rest = await after(
    t,
    user,
    { op: 'Replace', value: { 'name.givenName': 'New', displayName: 'New Name' } },
    { op: 'Add', path: 'emails[type eq "work"].display', value: 'Work' },
    { op: 'Add', path: 'phoneNumbers[type eq "mobile"].value', value: '+4930123' },
    { op: 'Add', path: 'addresses[type eq "work"].locality', value: 'Berlin' },
    { op: 'Add', path: 'roles[primary eq "True"].value', value: 'editor' },
    { op: 'Add', path: `${SCIM_ENTERPRISE}:department`, value: 'Tour Operations' },
    { op: 'Add', path: `${SCIM_ENTERPRISE}:manager`, value: 'boss-1' },
    { op: 'Add', value: { [`${SCIM_ENTERPRISE}:employeeNumber`]: '701984' } },
  )
  t.like(rest, {
    name: { givenName: 'New', familyName: 'Name' },
    displayName: 'New Name',
    emails: [{ value: work, type: 'work', primary: true, display: 'Work' }],
    phoneNumbers: [{ type: 'mobile', value: '+4930123' }],
    addresses: [{ type: 'work', locality: 'Berlin' }],
    roles: [{ primary: true, value: 'editor' }],
    [SCIM_ENTERPRISE]: {
      department: 'Tour Operations',
      manager: { value: 'boss-1' },
      employeeNumber: '701984',
    },
  })
  const less = await after(
    t,
    user,
    { op: 'Remove', path: `${SCIM_ENTERPRISE}:manager` },
    { op: 'Remove', path: 'phoneNumbers[type eq "mobile"].value' },
    { op: 'Remove', path: 'addresses' },
    { op: 'Replace', path: `${SCIM_USER}:name.familyName`, value: 'Else' },
  )
  t.deepEqual(less[SCIM_ENTERPRISE], { department: 'Tour Operations', employeeNumber: '701984' })
  t.deepEqual(less['phoneNumbers'], [{ type: 'mobile' }])
  t.false('addresses' in less)
  t.deepEqual(less['name'], { givenName: 'New', familyName: 'Else' })
})

test('Entra changes the work address of a user who has not signed in', async (t) => {
  const user = await person()
  const operation = {
    op: 'Replace',
    path: 'emails[type eq "work"].value',
    value: 'moved@corp.test',
  }
  t.like(await after(t, user, operation), {
    emails: [{ value: 'moved@corp.test', type: 'work', primary: true }],
  })
  const at = `/api/v1/tenant-users/${String(user['id'])}`
  t.is((await api.get(at, directory.workspace.token)).body['email'], 'moved@corp.test')
  const other = await person()
  const taken = await directory.patch(other['id'], operation)
  t.like(taken, { status: 409, body: { scimType: 'uniqueness' } })
})

test('one value of a list is primary', async (t) => {
  const user = await person()
  const second = { value: `second-${people}@corp.test`, type: 'home', primary: true }
  const { emails } = await after(t, user, { op: 'add', path: 'emails', value: [second] })
  t.deepEqual(
    (emails as Json[]).map(({ primary }) => primary),
    [false, true],
  )
  const same = await after(t, user, { op: 'add', path: 'emails', value: [second] })
  t.is((same['emails'] as Json[]).length, 2)
})

test('what cannot be done is refused with its scimType, and changes nothing', async (t) => {
  const user = await person({ title: 'Before' })
  const at = `/Users/${String(user['id'])}`
  const patch = (...operations: Json[]) =>
    directory.patch(user['id'], { op: 'replace', path: 'title', value: 'After' }, ...operations)
  refused(t, await patch({ op: 'remove' }), 'noTarget')
  refused(
    t,
    await patch({ op: 'replace', path: 'emails[type eq "none"].value', value: 'x' }),
    'noTarget',
  )
  refused(t, await patch({ op: 'remove', path: 'emails[type eq "none"]' }), 'noTarget')
  refused(t, await patch({ op: 'add', path: 'nothing', value: 'x' }), 'invalidPath')
  refused(t, await patch({ op: 'add', path: 'name.nothing', value: 'x' }), 'invalidPath')
  refused(t, await patch({ op: 'add', path: 'title[type eq "x"]', value: 'x' }), 'invalidPath')
  refused(t, await patch({ op: 'add', path: 'emails[', value: 'x' }), 'invalidPath')
  refused(t, await patch({ op: 'add', path: '__proto__.polluted', value: 'x' }), 'invalidPath')
  refused(t, await patch({ op: 'add', path: 'constructor', value: 'x' }), 'invalidPath')
  refused(t, await patch({ op: 'replace', path: 'id', value: 'x' }), 'mutability')
  refused(t, await patch({ op: 'replace', value: { id: 'x' } }), 'mutability')
  refused(t, await patch({ op: 'add', path: 'meta.version', value: 'x' }), 'mutability')
  refused(t, await patch({ op: 'add', path: 'groups', value: [{ value: 'x' }] }), 'mutability')
  refused(t, await patch({ op: 'remove', path: 'userName' }), 'mutability')
  refused(t, await patch({ op: 'add', path: 'title' }), 'invalidValue')
  refused(t, await patch({ op: 'add', path: 'active', value: 'perhaps' }), 'invalidValue')
  refused(t, await patch({ op: 'add', value: 'x' }), 'invalidValue')
  refused(t, await patch({ op: 'move', path: 'title', value: 'x' }), 'invalidSyntax')
  refused(t, await directory.patch(user['id']), 'invalidSyntax')
  refused(t, await directory.send('PATCH', at, { Operations: [{ op: 'add' }] }), 'invalidSyntax')
  const many = Array.from({ length: 101 }, () => ({ op: 'add', path: 'title', value: 'x' }))
  refused(t, await directory.patch(user['id'], ...many), 'invalidValue')
  t.deepEqual((await directory.send('GET', at)).body, user)
  t.is((Object.prototype as Json)['polluted'], undefined)
})

test('an empty externalId is none', async (t) => {
  const empty = { externalId: '' }
  const user = await person(empty)
  t.false('externalId' in user)
  t.is((await after(t, user, { op: 'add', path: 'externalId', value: 'e1' }))['externalId'], 'e1')
  t.false('externalId' in (await after(t, user, { op: 'replace', path: 'externalId', value: '' })))
  await after(t, user, { op: 'replace', value: { externalId: 'e2' } })
  t.false('externalId' in (await after(t, user, { op: 'replace', value: empty })))
  const { userName } = user
  const put = await directory.send('PUT', `/Users/${String(user['id'])}`, {
    schemas: [SCIM_USER],
    userName,
    ...empty,
  })
  t.is(put.status, 200, JSON.stringify(put.body))
})

test('members that no attribute has are ignored in a value without a path', async (t) => {
  const user = await person()
  const value = { title: 'T', constructor: { y: 2 }, custom: 3 }
  const rest = await after(t, user, { op: 'add', value })
  t.is(rest['title'], 'T')
  t.false('custom' in rest)
  const polluting = JSON.parse('{"__proto__":{"x":1}}') as Json
  refused(t, await directory.patch(user['id'], { op: 'add', value: polluting }), 'invalidSyntax')
})

test('a token gives no role beyond its own, and protects owners', async (t) => {
  const { workspace } = directory
  const plain = await openDirectory(api, { roles: [] }, workspace)
  const owning = await openDirectory(api, { roles: ['owner', 'admin'] }, workspace)
  const user = await person()
  const give = (at: typeof plain, value: string) =>
    at.patch(user['id'], { op: 'replace', path: 'roles', value: [{ value }] })
  t.is((await give(plain, 'member')).status, 200)
  t.is((await give(plain, 'admin')).status, 403)
  t.is((await give(directory, 'admin')).status, 200)
  t.is((await give(directory, 'owner')).status, 403)
  t.is((await give(owning, 'owner')).status, 200)
  const off = { op: 'replace', path: 'active', value: false }
  t.is((await directory.patch(user['id'], off)).status, 403)
  t.is((await directory.send('DELETE', `/Users/${String(user['id'])}`)).status, 403)
  // The last owner stays, whatever the token may do.
  const last = await owning.patch(user['id'], off)
  t.is(last.status, 409)
  t.regex(String(last.body['detail']), /last owner/)
  t.is((await give(owning, 'member')).status, 409)
  t.is((await owning.send('DELETE', `/Users/${String(user['id'])}`)).status, 409)
  const second = await person({ roles: [] })
  const roles = [{ value: 'owner' }]
  await owning.patch(second['id'], { op: 'add', path: 'roles', value: roles })
  // One of two concurrent changes that each leave one owner is refused.
  const both = await Promise.all([owning.patch(user['id'], off), owning.patch(second['id'], off)])
  t.deepEqual(both.map(({ status }) => status).toSorted(), [200, 409])
})

test('active false ends the sessions and tokens of the user immediately', async (t) => {
  const own = await openDirectory(api)
  const human = fixtureOf(own.workspace)
  const browser = openBrowser(running)
  t.is((await signIn(browser, human)).status, 303)
  t.is((await browser.get('/auth/account')).status, 200)
  const found = await own.send(
    'GET',
    `/Users?filter=${encodeURIComponent(`userName eq "${human.email}"`)}`,
  )
  const [user] = found.body['Resources'] as Json[]
  const patched = await own.patch(user!['id'], { op: 'replace', value: { active: false } })
  t.is(patched.status, 200, JSON.stringify(patched.body))
  t.not((await browser.get('/auth/account')).status, 200)
  t.not((await signIn(browser, human)).status, 303)
  const open = await sql<{ open: number }>(running)`
    select count(*)::integer as open from browser_sessions
    where tenant_id = ${own.workspace.tenantId} and ended_at is null`
  t.is(open[0]!.open, 0)
  await own.patch(user!['id'], { op: 'replace', value: { active: true } })
  t.is((await signIn(browser, human)).status, 303)
})

// Filters of lists over SCIM (RFC 7644 section 3.4.2.2).

const [A, B, G] = ['Ada', "o'Brien_%", 'grace']
const FOUND: readonly (readonly [filter: string, names: readonly string[]])[] = [
  ['userName eq "ada"', [A]],
  ['USERNAME EQ "ADA"', [A]],
  [`${CORE}:userName eq "ada"`, [A]],
  ['userName ne "ada"', [B, G]],
  ['userName co "\'b"', [B]],
  ['userName co "_%"', [B]],
  ['userName sw "a"', [A]],
  ['userName sw "%"', []],
  ['userName eq "\\u0041da"', [A]],
  ['userName pr', [A, B, G]],
  ['externalId eq "X1"', [A]],
  ['externalId eq "x1"', []],
  ['externalId pr', [A, B]],
  ['not (externalId pr)', [G]],
  ['externalId eq null', [G]],
  ['externalId ne "X1"', [B, G]],
  [`id eq "${String(ada['id'])}"`, [A]],
  ['id eq "nothing"', []],
  [`id sw "${String(ada['id']).slice(0, 23)}"`, [A]],
  ['active eq true', [A, G]],
  ['active eq "False"', [B]],
  ['active ne true', [B]],
  ['emails.value eq "ada@corp.test"', [A]],
  ['emails eq "ada@corp.test"', [A]],
  ['emails.value co "home"', [A, G]],
  ['emails.value pr', [A, G]],
  ['not (emails pr)', [B]],
  ['emails[type eq "work"]', [A, G]],
  ['emails[type eq "work" and value co "home"]', [G]],
  ['emails[primary eq true]', [A]],
  ['emails[not (type eq "work")]', [A]],
  [`meta.lastModified ge "${modified}"`, [A, B, G]],
  [`meta.lastModified eq "${modified}"`, [A]],
  [`meta.lastModified lt "${modified}"`, []],
  [`meta.lastModified gt "${modified}"`, [B, G]],
  [`meta.lastModified le "${modified}"`, [A]],
  ['userName eq "ada" or userName eq "grace" and active eq false', [A]],
  ['(userName eq "ada" or userName eq "grace") and active eq true', [A, G]],
  ['NOT (userName eq "ada") AND active eq true', [G]],
  ['emails[type eq "work"].value eq "ada@corp.test"', [A]],
  ['emails[type eq "home"].value eq "ada@corp.test"', []],
  ['emails[type eq "work"].value ew "home.test"', [G]],
  ['emails[type eq "work"].primary pr', [A]],
  ['displayName eq "ada lovelace"', [A]],
  ['title pr', [A, G]],
  ['not (title pr)', [B]],
  ['TITLE SW "ad"', [G]],
  ['title ne "Countess"', [B, G]],
  ['title eq null', [B]],
  ['userType eq "employee"', [A]],
  ['name.familyName co "love"', [A]],
  ['name pr', [A]],
  ['addresses[type eq "work"].locality eq "london"', [A]],
  ['addresses.locality eq "London"', [A]],
  ['employeeNumber eq "7"', [A]],
  [`${ENTERPRISE}:employeeNumber eq "7"`, [A]],
  [`${ENTERPRISE}:manager.value eq "m-1"`, [A]],
  ['manager eq "m-1"', [A]],
  ['userName ew "A"', [A]],
  ['userName gt "f" and title pr', [G]],
  ['title pr and (userName eq "ada" or employeeNumber eq "8")', [A]],
  ['externalId eq "X1" and name.givenName eq "ada"', [A]],
  ['meta.created le "2999-01-01T00:00:00Z" and title eq "Admiral"', [G]],
  ['meta.resourceType eq "User"', [A, B, G]],
]

for (const [filter, names] of FOUND) {
  test(`${filter.replace(modified, 'T')} finds ${names.length}`, async (t) => {
    t.deepEqual(await listed.names(filter), names)
  })
}

const INVALID = [
  'userName',
  'userName eq',
  'userName xx "a"',
  'userName eq a',
  'userName eq "a',
  'userName eq "a" and',
  '(userName eq "a"',
  'userName eq "a")',
  'userName eq 5',
  'active co true',
  'active eq "perhaps"',
  'password eq "x"',
  '__proto__ eq "x"',
  'constructor.name eq "x"',
  'meta.lastModified gt "yesterday"',
  'meta.lastModified gt "2026-02-30T00:00:00"',
  'emails[type eq "work"',
  'emails[nothing eq "work"]',
  'emails[type eq "work"].nothing eq "x"',
  'emails[type eq "work"].value',
  'name eq "x"',
  'title eq 5',
  'meta.created co "2026"',
  'title[value eq "x"]',
  `${CORE}:employeeNumber eq "7"`,
  'urn:unknown:User:userName eq "x"',
  'userName eq "a\\u0000"',
  'not userName eq "a"',
  '; drop table accounts',
  `${'('.repeat(40)}userName pr${')'.repeat(40)}`,
  Array.from({ length: 65 }, () => 'userName pr').join(' or '),
  `userName eq "${'x'.repeat(4_100)}"`,
]

for (const filter of INVALID) {
  test(`${filter.slice(0, 60)} is not a filter`, async (t) => {
    const at = `/Users?filter=${encodeURIComponent(filter)}`
    const { status, headers, body } = await listed.send('GET', at)
    t.is(status, 400, JSON.stringify(body))
    t.is(headers['content-type'], 'application/scim+json')
    t.is(body['scimType'], 'invalidFilter')
  })
}

test('a filter sees the users of its tenant only', async (t) => {
  const other = await openDirectory(api)
  t.deepEqual(await other.names('userName eq "ada"'), [])
  t.deepEqual(await other.names('not (userName eq "none") and externalId pr'), [])
})
