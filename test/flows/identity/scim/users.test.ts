/** Users over SCIM (RFC 7643, RFC 7644, docs/reference/identity.md). */
import { randomUUID } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import * as oidc from 'openid-client'
import type { Answer, Json } from '../../../support/api.js'
import {
  type Directory,
  openDirectory,
  SCIM_ENTERPRISE,
  SCIM_USER,
} from '../../../support/identity/directory.js'
import { sql } from '../../../support/storage/sql.js'
import { docsPage } from '../../../support/pages/docs-page.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('enterprise')

const ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error'
const LIST = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'

function refused(
  t: ExecutionContext,
  { status, headers, body }: Answer,
  expected: number,
  scimType?: string,
) {
  t.is(status, expected, JSON.stringify(body))
  t.is(headers['content-type'], 'application/scim+json')
  t.deepEqual(body['schemas'], [ERROR])
  t.is(body['status'], String(expected))
  t.is(body['scimType'], scimType)
  t.is(typeof body['detail'], 'string')
}

const eventsOf = async ({ workspace }: Directory, id: unknown): Promise<readonly string[]> => {
  const rows = await sql<{ type: string }>(running)`
    select type from audit_events where tenant_id = ${workspace.tenantId}
    and resource ->> 'id' = ${id} order by sequence`
  return rows.map(({ type }) => type)
}

let people = 0
/** A user with an address that no other test has: accounts are global. */
const full = (person = (people += 1)): Json => ({
  schemas: [SCIM_USER, SCIM_ENTERPRISE],
  userName: `Ada${person}@corp.test`,
  externalId: '00u-ada',
  name: { formatted: 'Ada King Lovelace', familyName: 'Lovelace', givenName: 'Ada' },
  displayName: 'Ada Lovelace',
  title: 'Analyst',
  emails: [
    { value: `ada${person}@corp.test`, type: 'work', primary: true },
    { value: `ada${person}@home.test`, type: 'home' },
  ],
  phoneNumbers: [
    { value: '+1 (425) 555-0100', type: 'work' },
    { value: '+493012345678', type: 'mobile', primary: true },
  ],
  photos: [{ value: 'https://images.example.com/ada.png', type: 'photo' }],
  addresses: [{ type: 'work', streetAddress: '1 Main St', locality: 'London', country: 'GB' }],
  locale: 'en_GB',
  timezone: 'Europe/London',
  roles: [{ value: 'analyst', display: 'Analyst', primary: true }],
  active: true,
  [SCIM_ENTERPRISE]: { employeeNumber: '42', department: 'Engines', manager: { value: '7' } },
})

test('a user is created with every attribute, and is one tenant user', async (t) => {
  const directory = await openDirectory(api)
  const given = full()
  const { status, headers, body } = await directory.send('POST', '/Users', given)
  t.is(status, 201, JSON.stringify(body))
  t.is(headers['content-type'], 'application/scim+json')
  const { id, meta, ...rest } = body
  t.deepEqual(rest, given)
  const location = `${running.baseUrl}/scim/v2/Users/${String(id)}`
  t.like(meta, { resourceType: 'User', location, version: headers['etag'] })
  t.is(headers['location'], location)
  t.regex(String(headers['etag']), /^W\/"[\w-]+"$/)

  const again = await directory.send('GET', `/Users/${String(id)}`)
  t.deepEqual(again.body, body)
  const user = await api.get(`/api/v1/tenant-users/${String(id)}`, directory.workspace.token)
  t.like(user.body, {
    email: (given['emails'] as Json[])[0]!['value'],
    display_name: 'Ada Lovelace',
    status: 'pre_provisioned',
    roles: ['analyst'],
    given_name: 'Ada',
    family_name: 'Lovelace',
    locale: 'en-GB',
    zoneinfo: 'Europe/London',
    phone_number: '+493012345678',
    picture: 'https://images.example.com/ada.png',
  })
  t.deepEqual(await eventsOf(directory, id), ['sso.user.provisioned'])
})

test('oidcc-scope-address and oidcc-scope-all: the address of the directory is a claim', async (t) => {
  const directory = await openDirectory(api)
  const { workspace } = directory
  const fixture = workspace.body['fixture_end_user'] as { email: string; password: string }
  const person = { ...fixture, tenantId: workspace.tenantId }
  const [found] = (await api.list(`/api/v1/tenant-users?email=${fixture.email}`, workspace.token))
    .rows
  const work = {
    type: 'work',
    primary: true,
    formatted: '1 Main St\nLondon',
    streetAddress: '1 Main St',
    locality: 'London',
    region: 'x'.repeat(501),
    postalCode: 'SW1A 1AA',
    country: 'GB',
  }
  const party = await relyingParty(running, person, {
    scopes: ['openid', 'profile', 'email', 'phone', 'address'],
  })
  const { claims_supported: claims, scopes_supported: scopes } = party.config.serverMetadata()
  t.true(claims!.includes('address') && scopes!.includes('address'))
  const told = async (parameters: Record<string, string>) => {
    const { tokens, claims: id } = await party.signedIn(person, parameters)
    const info = await oidc.fetchUserInfo(party.config, tokens.access_token, id.sub)
    return { info, id, scope: tokens.scope }
  }
  t.false('address' in (await told({ scope: 'openid address' })).info, 'it has no value yet')
  const home = { type: 'home', locality: 'Ockham' }
  const written = await directory.patch(found!['id'], {
    op: 'add',
    value: { addresses: [home, work] },
  })
  t.is(written.status, 200, JSON.stringify(written.body))
  const address = {
    formatted: '1 Main St\nLondon',
    street_address: '1 Main St',
    locality: 'London',
    postal_code: 'SW1A 1AA',
    country: 'GB',
  }
  t.deepEqual((await told({ scope: 'openid address' })).info.address, address)
  const all = await told({ scope: 'openid profile email phone address' })
  t.is(all.scope, 'openid profile email phone address')
  t.like(all.info, { email: fixture.email, address })
  t.false('address' in (await told({ scope: 'openid profile' })).info)
  const single = await told({
    scope: 'openid',
    claims: '{"id_token":{"address":{"essential":true}}}',
  })
  t.deepEqual(single.id['address'], address)
  t.false('address' in single.info)
  // Without a primary address the first one.
  await directory.patch(found!['id'], { op: 'replace', path: 'addresses', value: [home] })
  t.deepEqual((await told({ scope: 'openid address' })).info.address as unknown, {
    locality: 'Ockham',
  })
})

test('a claim that changes elsewhere shows in its attribute', async (t) => {
  const directory = await openDirectory(api)
  const { body: created } = await directory.send('POST', '/Users', full())
  const answer = await api.patch(
    `/api/v1/tenant-users/${String(created['id'])}`,
    directory.workspace.token,
    {
      given_name: 'Augusta',
      locale: 'fr-FR',
      phone_number: '+493000000000',
      display_name: 'A',
    },
  )
  t.is(answer.status, 200)
  const { body } = await directory.send('GET', `/Users/${String(created['id'])}`)
  t.like(body, {
    name: { givenName: 'Augusta', familyName: 'Lovelace' },
    locale: 'fr-FR',
    displayName: 'A',
    phoneNumbers: [
      { value: '+1 (425) 555-0100' },
      { value: '+493000000000', type: 'mobile', primary: true },
    ],
  })
  const { meta } = body as { meta: Json }
  t.not(meta['version'], (created['meta'] as Json)['version'])
})

test('a minimal user without an address is accepted', async (t) => {
  const directory = await openDirectory(api)
  const created = await directory.create('bjensen', { name: { givenName: 'Barbara' } })
  t.like(created, { userName: 'bjensen', active: true })
  t.false('emails' in created)
  const at = `/api/v1/tenant-users/${String(created['id'])}`
  t.regex(String((await api.get(at, directory.workspace.token)).body['email']), /@scim\.invalid$/)
  // The first address makes the account.
  const emails = [{ value: 'barbara@corp.test', primary: true }]
  t.is(
    (await directory.patch(created['id'], { op: 'add', path: 'emails', value: emails })).status,
    200,
  )
  t.like((await api.get(at, directory.workspace.token)).body, {
    email: 'barbara@corp.test',
    status: 'pre_provisioned',
  })
})

test('userName is unique in the tenant without regard to case, an address too', async (t) => {
  const directory = await openDirectory(api)
  await directory.create('grace', { emails: [{ value: 'grace@corp.test' }] })
  const post = (json: Json) => directory.send('POST', '/Users', { schemas: [SCIM_USER], ...json })
  refused(t, await post({ userName: 'GRACE' }), 409, 'uniqueness')
  const other = { userName: 'other', emails: [{ value: 'Grace@corp.test' }] }
  refused(t, await post(other), 409, 'uniqueness')
  const answer = await api.post('/api/v1/tenant-users', directory.workspace.token, {
    email: 'hopper@corp.test',
  })
  t.is(answer.status, 201)
  const taken = { userName: 'Hopper@corp.test', emails: [{ value: 'else@corp.test' }] }
  refused(t, await post(taken), 409, 'uniqueness')
  // Another tenant has its own names.
  await (await openDirectory(api)).create('grace', { emails: [{ value: 'grace@else.test' }] })
  const concurrent = await Promise.all(Array.from({ length: 8 }, () => post({ userName: 'racer' })))
  t.deepEqual(concurrent.map(({ status }) => status).toSorted(), [201, ...Array(7).fill(409)])
})

test('an address that another sandbox has makes no difference', async (t) => {
  const [one, two] = [await openDirectory(api), await openDirectory(api)]
  const mine = await one.create('shared@corp.test')
  const theirs = await two.create('shared@corp.test')
  const statusOf = async (at: Directory, { id }: Json) =>
    (await api.get(`/api/v1/tenant-users/${String(id)}`, at.workspace.token)).body['status']
  t.is(await statusOf(one, mine), 'pre_provisioned')
  t.is(await statusOf(two, theirs), 'pre_provisioned')
  const outside = await one.create('ada@corp-of-others.com')
  t.is(await statusOf(one, outside), 'invited')
  t.deepEqual(await eventsOf(one, outside['id']), ['sso.user.provisioned', 'tenant_user.invited'])
})

test('a directory finds a user with an account of the sandbox by name', async (t) => {
  const [one, two] = [await openDirectory(api), await openDirectory(api)]
  const name = `shared.${one.workspace.tenantId}@corp.test`
  await one.create(name)
  const made = await two.create(name)
  for (const filter of [`userName eq "${name}"`, `userName sw "${name.slice(0, 20)}"`]) {
    const list = await two.send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
    const found = list.body['Resources'] as Json[]
    t.deepEqual(
      found.map(({ id }) => id),
      [made['id']],
      filter,
    )
  }
  t.like(await two.create(`other.${name}`), { active: true })
})

test('active false suspends, true reactivates, and DELETE removes', async (t) => {
  const directory = await openDirectory(api)
  const { id } = await directory.create('eve@corp.test')
  const at = `/api/v1/tenant-users/${String(id)}`
  const off = await directory.patch(id, { op: 'replace', value: { active: false } })
  t.like(off, { status: 200, body: { active: false } })
  t.is((await api.get(at, directory.workspace.token)).body['status'], 'suspended')
  const on = await directory.patch(id, { op: 'Replace', path: 'active', value: 'True' })
  t.is(on.body['active'], true)
  t.is((await api.get(at, directory.workspace.token)).body['status'], 'pre_provisioned')
  const gone = await directory.send('DELETE', `/Users/${String(id)}`)
  t.like(gone, { status: 204, body: { text: '' } })
  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH'])
    refused(
      t,
      await directory.send(
        method,
        `/Users/${String(id)}`,
        method.startsWith('P') ? { schemas: [SCIM_USER], userName: 'x' } : undefined,
      ),
      404,
    )
  t.deepEqual(await eventsOf(directory, id), [
    'sso.user.provisioned',
    'tenant_user.suspended',
    'tenant_user.activated',
    'tenant_user.removed',
  ])
  // The name is free again. The same person keeps id and subject.
  t.is((await directory.create('eve@corp.test'))['id'], id)
  const removed = await api.list('/api/v1/tenant-users?status=removed', directory.workspace.token)
  t.deepEqual(removed.rows, [])
  const inactive = await directory.create('late@corp.test', { active: false })
  t.is(inactive['active'], false)
})

test('a user that an operator removed frees the name', async (t) => {
  const directory = await openDirectory(api)
  const { id } = await directory.create('mallory', { emails: [{ value: 'mallory@corp.test' }] })
  const at = `/api/v1/tenant-users/${String(id)}`
  t.is((await api.delete(at, directory.workspace.token)).status, 204)
  t.deepEqual(await directory.names('userName eq "mallory"'), [])
  await directory.create('mallory', { emails: [{ value: 'another@corp.test' }] })
})

test('PUT replaces the attributes, except roles and active that it does not name', async (t) => {
  const directory = await openDirectory(api)
  const { body: created } = await directory.send('POST', '/Users', full())
  const put = (json: Json) =>
    directory.send('PUT', `/Users/${String(created['id'])}`, { schemas: [SCIM_USER], ...json })
  await directory.patch(created['id'], { op: 'replace', value: { active: false } })
  const emails = [{ value: 'put@corp.test' }]
  const { status, body } = await put({ id: randomUUID(), userName: 'ada.l', emails })
  t.is(status, 200, JSON.stringify(body))
  const { meta: _meta, ...rest } = body
  t.deepEqual(rest, {
    schemas: [SCIM_USER],
    id: created['id'],
    userName: 'ada.l',
    emails,
    roles: created['roles'],
    active: false,
  })
  const cleared = await put({ userName: 'ada.l', emails, roles: [], active: true })
  t.false('roles' in cleared.body)
  t.is(cleared.body['active'], true)
  refused(t, await put({ emails }), 400, 'invalidValue')
})

test('a change that changes nothing keeps the version', async (t) => {
  const directory = await openDirectory(api)
  const given = full()
  const { body: created } = await directory.send('POST', '/Users', given)
  const put = await directory.send('PUT', `/Users/${String(created['id'])}`, given)
  t.deepEqual(put.body, created)
  const patch = await directory.patch(created['id'], { op: 'replace', value: { title: 'Analyst' } })
  t.deepEqual(patch.body, created)
  t.deepEqual(await eventsOf(directory, created['id']), ['sso.user.provisioned'])
})

test('entity tags: 304 for a reader, 412 for a writer of another version', async (t) => {
  const directory = await openDirectory(api)
  const { id, meta } = await directory.create('tag@corp.test')
  const at = `/Users/${String(id)}`
  const version = String((meta as Json)['version'])
  const cached = await directory.send('GET', at, undefined, { 'if-none-match': version })
  t.is(cached.status, 304)
  const patch = { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'] }
  const change = (title: string, tag: string) =>
    directory.send(
      'PATCH',
      at,
      { ...patch, Operations: [{ op: 'add', path: 'title', value: title }] },
      { 'if-match': tag },
    )
  const changed = await change('One', version)
  t.is(changed.status, 200)
  refused(t, await change('Two', version), 412)
  refused(t, await directory.send('DELETE', at, undefined, { 'if-match': version }), 412)
  t.is((await change('Three', '*')).status, 200)
  const newest = (await directory.send('GET', at)).headers['etag']!
  t.is((await directory.send('DELETE', at, undefined, { 'if-match': newest })).status, 204)
})

test('a list has pages, and attributes can be chosen', async (t) => {
  const directory = await openDirectory(api)
  // The workspace begins with a fixture user.
  const { id } = ((await directory.send('GET', '/Users')).body['Resources'] as Json[])[0]!
  t.is((await directory.send('DELETE', `/Users/${String(id)}`)).status, 204)
  for (const name of ['a', 'b', 'c']) await directory.create(name, { title: name.toUpperCase() })
  const list = async (query: string) => {
    const { status, body } = await directory.send('GET', `/Users?${query}`)
    t.is(status, 200, JSON.stringify(body))
    return body
  }
  t.like(await list(''), { schemas: [LIST], totalResults: 3, startIndex: 1, itemsPerPage: 3 })
  const second = await list('startIndex=2&count=1')
  t.like(second, { totalResults: 3, startIndex: 2, itemsPerPage: 1 })
  t.is((second['Resources'] as Json[])[0]?.['userName'], 'b')
  t.like(await list('count=0'), { totalResults: 3, itemsPerPage: 0, Resources: [] })
  t.like(await list('startIndex=9'), { totalResults: 3, startIndex: 9, itemsPerPage: 0 })
  t.like(await list('startIndex=-1&count=-5'), { startIndex: 1, itemsPerPage: 0 })
  t.like(await list('count=100000'), { itemsPerPage: 3 })
  refused(t, await directory.send('GET', '/Users?count=many'), 400, 'invalidValue')

  const [chosen] = (await list('attributes=USERNAME,meta.location&count=1'))['Resources'] as Json[]
  t.deepEqual(Object.keys(chosen!).toSorted(), ['id', 'meta', 'schemas', 'userName'])
  t.deepEqual(Object.keys(chosen!['meta'] as Json), ['location'])
  const [rest] = (await list('excludedAttributes=meta,title,id&count=1'))['Resources'] as Json[]
  t.deepEqual(Object.keys(rest!).toSorted(), ['active', 'id', 'schemas', 'userName'])
  refused(
    t,
    await directory.send('GET', '/Users?attributes=a&excludedAttributes=b'),
    400,
    'invalidValue',
  )

  const search = await directory.send('POST', '/Users/.search', {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'],
    filter: 'userName sw "B"',
    attributes: ['userName'],
    startIndex: 1,
    count: 10,
  })
  t.is(search.status, 200, JSON.stringify(search.body))
  t.is(search.body['totalResults'], 1)
  const [hit] = search.body['Resources'] as Json[]
  t.deepEqual(Object.keys(hit!).toSorted(), ['id', 'schemas', 'userName'])
})

test('users that no directory wrote are listed by their address', async (t) => {
  const directory = await openDirectory(api)
  const json = { email: 'plain@corp.test', display_name: 'Plain' }
  const invited = await api.post('/api/v1/tenant-users', directory.workspace.token, json)
  const { body } = await directory.send(
    'GET',
    '/Users?filter=userName%20eq%20%22PLAIN@corp.test%22',
  )
  t.like((body['Resources'] as Json[])[0], {
    id: invited.body['id'],
    userName: 'plain@corp.test',
    displayName: 'Plain',
    emails: [{ value: 'plain@corp.test', type: 'work', primary: true }],
  })
  const linked = await directory.patch(invited.body['id'], {
    op: 'add',
    value: { externalId: 'ext-1', userName: 'plain' },
  })
  t.like(linked.body, { externalId: 'ext-1', userName: 'plain' })
})

test('bodies that are not valid are refused with SCIM errors', async (t) => {
  const directory = await openDirectory(api)
  const post = (json: unknown) => directory.send('POST', '/Users', json)
  refused(t, await post({ userName: 'x' }), 400, 'invalidSyntax')
  refused(t, await post({ schemas: [SCIM_USER] }), 400, 'invalidValue')
  refused(t, await post([]), 400, 'invalidSyntax')
  const user = { schemas: [SCIM_USER], userName: 'x' }
  refused(t, await post({ ...user, active: 'maybe' }), 400, 'invalidValue')
  refused(t, await post({ ...user, title: 7 }), 400, 'invalidValue')
  refused(t, await post({ ...user, emails: [{ value: 'none' }] }), 400, 'invalidValue')
  refused(t, await post({ ...user, USERNAME: 'y' }), 400, 'invalidSyntax')
  refused(t, await post({ ...user, roles: [{ value: 'no spaces' }] }), 400, 'invalidValue')
  const two = [
    { value: 'a@corp.test', primary: true },
    { value: 'b@corp.test', primary: true },
  ]
  refused(t, await post({ ...user, emails: two }), 400, 'invalidValue')
  const text = await api.call('POST', '/scim/v2/Users', {
    token: directory.token,
    json: user,
    headers: { 'content-type': 'text/plain' },
  })
  refused(t, text, 415)
  const large = await post({ ...user, title: 'x'.repeat(1_100_000) })
  refused(t, large, 413)
  const json = await directory.send('POST', '/Users', user, { 'content-type': 'application/json' })
  t.is(json.status, 201)
  const accepted = await directory.send('GET', '/Users', undefined, { accept: 'application/json' })
  t.is(accepted.status, 200)
})

test('the guide provisions, suspends and removes a user', async (t) => {
  const workspace = await api.workspace()
  const told = await docsPage(t, 'guides/identity/scim').runCommands({
    BASE: running.baseUrl,
    TOKEN: workspace.token,
  })
  t.regex(told, /\n1\nfalse\s*$/)
  const { rows } = await api.list('/api/v1/tenant-users?status=removed', workspace.token)
  t.like(rows[0], { email: 'grace@example.com' })
  t.deepEqual((await api.list('/api/v1/scim/tokens', workspace.token)).rows, [])
})
