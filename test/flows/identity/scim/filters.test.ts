/** Filters of lists over SCIM (RFC 7644 section 3.4.2.2). */
import test from 'ava'
import { apiOf, type Json } from '../../../support/api.js'
import { openDirectory } from '../../../support/identity/directory.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('enterprise')
const api = apiOf(running)
const directory = await openDirectory(api)
const [fixture] = (await directory.send('GET', '/Users')).body['Resources'] as Json[]
await directory.send('DELETE', `/Users/${String(fixture!['id'])}`)
const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
const ada = await directory.create('Ada', {
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
await directory.create("o'Brien_%", { externalId: 'x2', active: false })
await directory.create('grace', {
  title: 'Admiral',
  emails: [{ value: 'grace@home.test', type: 'work' }],
})
const { meta } = ada as { meta: Json }
const modified = String(meta['lastModified'])
const CORE = 'urn:ietf:params:scim:schemas:core:2.0:User'
test.after.always(async () => {
  await api.close()
  await running.end()
})

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
    t.deepEqual(await directory.names(filter), names)
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
    const { status, headers, body } = await directory.send('GET', at)
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
