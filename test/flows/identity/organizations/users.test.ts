/** Tenant users, fixture users, and the list of users. docs/reference/identity.md. */
import test from 'ava'
import { verify } from '@node-rs/argon2'
import { type Answer, type Json, type Workspace, apiOf } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedApi, sharedService, TRANSPORTS } from '../../../support/service.js'
import { sharedTwo } from '../../../support/service/two-services.js'

const { api, running } = await sharedApi('plain')

const USERS = '/api/v1/tenant-users'
const FIXTURES = '/api/v1/sandbox/fixture-users'
const patch = (id: unknown, token: string, json: Json) =>
  api.patch(`${USERS}/${String(id)}`, token, json)
const remove = (id: unknown, token: string) => api.delete(`${USERS}/${String(id)}`, token)

async function hashOf(email: unknown): Promise<string> {
  const [row] = await sql<{ hash: string }>(running)`
    select password_hash as hash from accounts where email = ${email}`
  return String(row?.hash)
}

async function eventsAbout(id: unknown): Promise<string[]> {
  const rows = await sql<{ type: string }>(running)`
    select type from all_events where data #>> '{resource,id}' = ${id} order by sequence`
  return rows.map(({ type }) => type)
}

/** A token of a tenant with some of its scopes. */
async function narrow(owner: Awaited<ReturnType<typeof api.workspace>>, scope: string) {
  const selector = { agent_id: owner.agentId, tenant_id: owner.tenantId }
  return String((await api.login(owner.key, selector, scope)).body['access_token'])
}

for (const transport of TRANSPORTS) {
  test(`a sandbox has five active fixture users; the sixth is refused (${transport})`, async (t) => {
    const at = transport === 'plain_http' ? running : await sharedService('plain', { transport })
    const api = apiOf(at)
    t.teardown(async () => {
      if (at !== running) await at.end()
    })
    const { token, body, tenantId } = await api.workspace()
    const made: Answer[] = []
    for (let n = 0; n < 4; n += 1) made.push(await api.post(FIXTURES, token))
    for (const { status, body: minted, headers } of made) {
      t.is(status, 201)
      t.deepEqual(Object.keys(minted), ['id', 'email', 'password', 'status', 'created_at'])
      t.true(String(minted['email']).endsWith(`@${String(body['tenant_slug'])}.test`))
      t.is(headers['cache-control'], 'no-store')
    }
    await api.post(FIXTURES, token).gives(409, 'fixture_user_limit')

    const gone = made[0]?.body['id']
    t.is((await api.post(`${USERS}/${String(gone)}/suspend`, token)).status, 200)
    t.is((await api.post(FIXTURES, token)).status, 201)
    const back = await api.post(`${USERS}/${String(gone)}/reactivate`, token)
    t.is(back.body['error'], 'fixture_user_limit')
    const active = await api.list(`${USERS}?status=active`, token)
    t.is(active.rows.length, 5)
    t.true(active.rows.every((user) => user['fixture'] === true && user['tenant_id'] === tenantId))
  })
}

test('of ten concurrent mints in two processes at four of five, one succeeds', async (t) => {
  const { first, second, end } = await sharedTwo()
  t.teardown(end)
  const { token } = await first.workspace()
  for (let n = 0; n < 3; n += 1) t.is((await first.post(FIXTURES, token)).status, 201)
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => (n % 2 ? first : second).post(FIXTURES, token)),
  )
  const count = (status: number) => answers.filter((answer) => answer.status === status).length
  t.deepEqual([count(201), count(409)], [1, 9])
})

test('the database enforces five fixture users on every path', async (t) => {
  const { tenantId, token } = await api.workspace()
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, (_, n) =>
      sql(
        running,
        `with account as (
           insert into accounts (id, email, email_key, created_at, updated_at)
           values (gen_random_uuid(), $2, $2, now(), now()) returning id)
         insert into tenant_users (tenant_id, id, account_id, sub, status, fixture, created_at,
           updated_at)
         select $1, gen_random_uuid(), id, $2, 'active', true, now(), now() from account`,
        [tenantId, `race-${n}-${tenantId}@x.test`],
      ),
    ),
  )
  t.is(results.filter(({ status }) => status === 'fulfilled').length, 4)
  t.is((await api.list(`${USERS}?status=active`, token)).rows.length, 5)
})

test('a fixture user is minted once per idempotency key, and its password shown once', async (t) => {
  const { token } = await api.workspace()
  const headers = { 'idempotency-key': 'mint' }
  const first = await api.post(FIXTURES, token, undefined, headers)
  const again = await api.post(FIXTURES, token, undefined, headers).gives(201)
  t.is(again.headers['idempotency-replayed'], 'true')
  t.deepEqual(again.body, {
    id: first.body['id'],
    email: first.body['email'],
    status: 'active',
    created_at: first.body['created_at'],
  })
  for (let n = 0; n < 3; n += 1) t.is((await api.post(FIXTURES, token)).status, 201)
  t.is((await api.post(FIXTURES, token, undefined, headers)).status, 201)
  t.is((await api.post(FIXTURES, token)).status, 409)
})

test('a fixture password is rotated by id, and recovered without one for the oldest', async (t) => {
  const { token, body } = await api.workspace()
  const oldest = body['fixture_end_user'] as Json
  const minted = (await api.post(FIXTURES, token)).body
  const rotated = await api.post(`${FIXTURES}/${String(minted['id'])}/rotate-password`, token)
  t.is(rotated.status, 200)
  t.deepEqual(Object.keys(rotated.body), ['id', 'email', 'password', 'rotated_at'])
  t.is(rotated.body['email'], minted['email'])
  const hash = await hashOf(minted['email'])
  t.true(await verify(hash, String(rotated.body['password'])))
  t.false(await verify(hash, String(minted['password'])))

  const recovered = await api.post('/api/v1/sandbox/fixture-user/rotate-password', token)
  t.is(recovered.body['id'], oldest['id'])
  // Deprecated, and said so with its end and its replacement (RFC 9745, RFC 8594).
  t.is(recovered.headers['deprecation'], `@${Date.parse('2026-11-23') / 1000}`)
  t.is(recovered.headers['sunset'], 'Sat, 01 Jan 2028 00:00:00 GMT')
  const [, guide = ''] =
    /^<([^>]+)>; rel="deprecation"$/.exec(recovered.headers['link'] ?? '') ?? []
  t.is((await api.get(guide)).status, 200, guide)
  const { paths } = (await api.get('/openapi.json')).body as { paths: Record<string, Json> }
  const described = (paths['/api/v1/sandbox/fixture-user/rotate-password'] as Json)['post'] as Json
  t.true(described['deprecated'])
  t.regex(String(described['description']), /Use `rotateFixtureUserPassword` instead/)
  t.true(await verify(await hashOf(oldest['email']), String(recovered.body['password'])))
  t.is((await api.post(`${FIXTURES}/unknown/rotate-password`, token)).status, 404)
  const invited = await api.post(USERS, token, { email: `${String(minted['id'])}@example.com` })
  const path = `${FIXTURES}/${String(invited.body['id'])}/rotate-password`
  t.is((await api.post(path, token)).status, 404)
})

test('sandbox routes need users:manage and a sandbox', async (t) => {
  const owner = await api.workspace()
  const reader = await narrow(owner, 'users:read')
  t.is((await api.post(FIXTURES, reader)).status, 403)
  t.is((await api.post(`${FIXTURES}/x/rotate-password`, reader)).status, 403)
  t.is((await api.post('/api/v1/sandbox/fixture-user/rotate-password', reader)).status, 403)
  t.is((await api.list(USERS, reader)).status, 200)
  const tenants = `/api/v1/control-plane/organizations/${owner.organizationId}/tenants`
  const production = await api.post(tenants, owner.operator, {
    name: 'Live',
    environment: 'production',
  })
  const at = `${tenants}/${String(production.body['id'])}/switch`
  const live = String((await api.post(at, owner.operator)).body['access_token'])
  t.is((await api.post(FIXTURES, live)).body['error'], 'policy_denied')
  t.is((await api.post('/api/v1/sandbox/fixture-user/rotate-password', live)).status, 404)
})

test('a user is invited, or provisioned with a password, with the documented record', async (t) => {
  const { token, tenantId } = await api.workspace()
  const email = `Ann.${tenantId}@example.com`
  const invited = await api.post(USERS, token, { email, display_name: 'Ann' }).gives(201)
  const { id, sub, created_at } = invited.body
  t.is(invited.headers['location'], `${USERS}/${String(id)}`)
  t.deepEqual(invited.body, {
    id,
    tenant_id: tenantId,
    sub,
    email,
    email_verified: false,
    display_name: 'Ann',
    status: 'invited',
    roles: [],
    organization_ids: [],
    fixture: false,
    metadata: {},
    created_at,
    updated_at: created_at,
  })
  t.deepEqual((await api.get(`${USERS}/${String(id)}`, token)).body, invited.body)
  t.deepEqual(await eventsAbout(id), ['admin.user.created', 'tenant_user.invited'])
  t.is((await api.post(USERS, token, { email: email.toLowerCase() })).status, 409)

  const other = `bob.${tenantId}@example.com`
  const provisioned = await api.post(USERS, token, {
    email: other,
    password: 'correct horse battery',
  })
  t.is(provisioned.body['status'], 'pre_provisioned')
  t.true(await verify(await hashOf(other), 'correct horse battery'))
  t.deepEqual(await eventsAbout(provisioned.body['id']), ['admin.user.created'])
  for (const bad of [{}, { email: 'x' }, { email: other, password: 'short' }, { email: 1 }]) {
    t.is((await api.post(USERS, token, bad)).status, 400)
  }
})

test('another tenant neither sets the password of an account nor sees its subject', async (t) => {
  const one = await api.workspace()
  const two = await api.workspace()
  const email = `shared.${one.tenantId}@example.com`
  const first = await api.post(USERS, one.token, {
    email,
    password: 'first password',
    display_name: 'First',
  })
  const second = await api.post(USERS, two.token, {
    email,
    password: 'second password',
    display_name: 'Second',
  })
  t.is(second.body['status'], 'pre_provisioned')
  t.not(second.body['sub'], first.body['sub'])
  t.not(second.body['id'], first.body['id'])
  const hashes = await sql<{ hash: string }>(running)`
    select a.password_hash as hash from tenant_users u join accounts a on a.id = u.account_id
    where u.id = any (${[first.body['id'], second.body['id']]}::uuid[]) order by a.created_at`
  t.true(await verify(hashes[0]!.hash, 'first password'))
  t.true(await verify(hashes[1]!.hash, 'second password'))
  t.is(
    (await api.get(`${USERS}/${String(first.body['id'])}`, one.token)).body['display_name'],
    'First',
  )
  t.is(
    (await api.get(`${USERS}/${String(second.body['id'])}`, two.token)).body['display_name'],
    'Second',
  )
  t.is((await api.get(`${USERS}/${String(second.body['id'])}`, one.token)).status, 404)
})

test('concurrent invitations of one address create one user', async (t) => {
  const one = await api.workspace()
  const two = await api.workspace()
  const email = `crowd.${one.tenantId}@example.com`
  await api.post(USERS, two.token, { email })
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => api.post(USERS, one.token, { email })),
  )
  const statuses = answers.map(({ status }) => status).toSorted()
  t.deepEqual(statuses, [201, ...Array.from({ length: 11 }, () => 409)])
})

test('a user is suspended and reactivated, is removed, and returns as the same subject', async (t) => {
  const { token, tenantId } = await api.workspace()
  const email = `lifecycle.${tenantId}@example.com`
  const { body } = await api.post(USERS, token, { email })
  const path = `${USERS}/${String(body['id'])}`
  t.is((await api.post(`${path}/suspend`, token)).body['status'], 'suspended')
  t.is((await api.post(`${path}/suspend`, token)).status, 200)
  t.is((await api.post(`${path}/reactivate`, token)).body['status'], 'invited')
  t.is((await api.post(`${path}/reactivate`, token)).body['status'], 'invited')
  t.is((await remove(body['id'], token)).status, 204)
  for (const answer of [
    await remove(body['id'], token),
    await api.get(path, token),
    await patch(body['id'], token, { roles: [] }),
    await api.post(`${path}/suspend`, token),
    await api.post(`${path}/reactivate`, token),
  ]) {
    t.is(answer.status, 404)
  }
  const ids = async (query: string) =>
    (await api.list(`${USERS}${query}`, token)).rows.map(({ id }) => id)
  t.false((await ids('')).includes(body['id']))
  t.deepEqual(await ids('?status=removed'), [body['id']])
  const again = await api.post(USERS, token, { email }).gives(201)
  t.is(again.body['sub'], body['sub'])
  t.is(again.body['status'], 'invited')
  t.deepEqual(await eventsAbout(body['id']), [
    'admin.user.created',
    'tenant_user.invited',
    'tenant_user.suspended',
    'tenant_user.activated',
    'tenant_user.removed',
    'admin.user.created',
    'tenant_user.invited',
  ])
})

test('suspension ends the sessions of a user in the tenant', async (t) => {
  const { token, tenantId, body } = await api.workspace()
  const { id } = body['fixture_end_user'] as Json
  await sql(running)`
    insert into sessions (tenant_id, id, subject, subject_type, client_id, amr, auth_time,
    created_at, expires_at)
    select tenant_id, gen_random_uuid(), sub, 'human', ${body['client_id']}, '{pwd}', now(),
    now(),
    now() + interval '1 day' from tenant_users where tenant_id = ${tenantId} and id = ${id}`
  await api.post(`${USERS}/${String(id)}/suspend`, token)
  const rows = await sql<{ reason: string }>(running)`
    select ended_reason as reason from sessions where tenant_id = ${tenantId}
    and subject_type = 'human'`
  t.deepEqual(rows, [{ reason: 'user_suspended' }])
})

test('name, roles and metadata are updated, and no caller grants roles above its own scopes', async (t) => {
  const owner = await api.workspace()
  const { body } = await api.post(USERS, owner.token, {
    email: `roles.${owner.tenantId}@example.com`,
    password: 'correct horse',
    display_name: 'Before',
  })
  const { id } = body
  const changed = await patch(id, owner.token, {
    display_name: 'After',
    roles: ['admin', 'billing:clerk', 'admin'],
    metadata: { plan: { placements: 3 } },
    ignored: true,
  }).gives(200)
  t.like(changed.body, {
    display_name: 'After',
    roles: ['admin', 'billing:clerk'],
    metadata: { plan: { placements: 3 } },
  })
  // The name of the account, which the tenant sees after the first sign-in.
  t.like((await patch(id, owner.token, { display_name: null })).body, {
    display_name: '',
    roles: ['admin', 'billing:clerk'],
  })
  const manager = await narrow(owner, 'users:manage')
  t.is((await patch(id, manager, { roles: ['admin', 'viewer'] })).status, 200)
  for (const roles of [['owner'], ['viewer', 'owner']]) {
    const refused = await patch(id, manager, { roles })
    t.is(refused.body['error'], 'insufficient_scope')
  }
  t.is((await patch(id, manager, { roles: [] })).status, 200)
  t.is((await patch(id, manager, { roles: ['admin'] })).status, 403)
  t.is((await patch(id, owner.token, { roles: ['owner'] })).status, 200)
  const metadata = { text: 'a \\u0000 that is text, \u{1f600}' }
  t.deepEqual((await patch(id, owner.token, { metadata })).body['metadata'], metadata)
  for (const bad of [
    { roles: ['no spaces'] },
    { metadata: { a: 'x'.repeat(8192) } },
    { metadata: { a: ['\0'] } },
    { metadata: { '\ud800': 1 } },
    { display_name: '\udfff' },
    { display_name: '' },
  ]) {
    t.is((await patch(id, owner.token, bad)).status, 400)
  }
})

test('users are listed page by page and found by address, whatever its case', async (t) => {
  const { token, tenantId, body } = await api.workspace()
  const made = [(body['fixture_end_user'] as Json)['id']]
  for (let n = 0; n < 4; n += 1) {
    const email = `page${n}.${tenantId}@example.com`
    made.unshift((await api.post(USERS, token, { email })).body['id'])
  }
  const first = await api.list(`${USERS}?limit=3`, token)
  const rest = await api.list(first.next ?? '', token)
  t.deepEqual(
    [...first.rows, ...rest.rows].map(({ id }) => id),
    made,
  )
  t.is(rest.next, undefined)
  const filtered = await api.list(`${USERS}?status=invited&limit=2`, token)
  t.regex(filtered.next ?? '', /status=invited/)
  t.is((await api.list(filtered.next ?? '', token)).rows.length, 2)
  const email = encodeURIComponent(`PAGE2.${tenantId}@example.com`)
  t.deepEqual(
    (await api.list(`${USERS}?email=${email}`, token)).rows.map(({ id }) => id),
    [made[1]],
  )
  t.is((await api.list(`${USERS}?status=nonsense`, token)).status, 400)
  t.is((await api.list(`${USERS}?limit=0`, token)).status, 400)
})

// Search and order of the list of users. docs/reference/identity.md.

const SORTS = ['email', 'name', 'created_at', 'last_sign_in_at'] as const

/** A workspace with users of whom some share a name and a time, and some have neither. */
async function crowd(): Promise<Workspace> {
  const workspace = await api.workspace()
  const names = ['Zoë', 'ada', 'Ada', 'ADA', 'b_b', 'b%b', undefined]
  for (const [n, display_name] of names.entries()) {
    const email = `${n % 2 ? 'User' : 'user'}${n}.${workspace.tenantId}@example.com`
    await api.post(USERS, workspace.token, { email, display_name }).gives(201)
  }
  await sql(running)`
    update tenant_users set last_login_at = to_timestamp(1700000000 + (ascii(display_name) % 3) *
    0.001),
    created_at = to_timestamp(1600000000 + (length(coalesce(display_name, '')) % 2) * 0.001)
    where tenant_id = ${workspace.tenantId} and status = 'invited' and display_name is distinct
    from 'Zoë'`
  return workspace
}

async function pagesOf({ token }: Workspace, query: string): Promise<Json[]> {
  const found: Json[] = []
  let path: string | undefined = `${USERS}?limit=2${query}`
  while (path !== undefined) {
    const { rows, next, status } = await api.list(path, token)
    if (status !== 200) throw new Error(JSON.stringify(rows))
    found.push(...rows)
    path = next
  }
  return found
}

const keyOf = (user: Json, sort: (typeof SORTS)[number]): string => {
  const member = {
    email: 'email',
    name: 'display_name',
    created_at: 'created_at',
    last_sign_in_at: 'last_login_at',
  }[sort]
  return String(user[member] ?? '').toLowerCase()
}
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

test('in every order each user is on one page, also with equal and missing keys', async (t) => {
  const workspace = await crowd()
  const all = (await api.list(USERS, workspace.token)).rows.map(({ id }) => id)
  t.is(all.length, 8, 'with the fixture user')
  for (const name of SORTS)
    for (const sign of ['', '-']) {
      const found = await pagesOf(workspace, `&sort=${sign}${name}`)
      const why = sign + name
      t.deepEqual(found.map(({ id }) => id).toSorted(), all.toSorted(), why)
      const keys = found.map((user) => keyOf(user, name))
      const ordered = keys.toSorted(byBytes)
      t.deepEqual(keys, sign === '' ? ordered : ordered.toReversed(), why)
    }
})

test('q begins a name or an address in any case, and its signs are no patterns', async (t) => {
  const workspace = await crowd()
  const found = async (query: string) =>
    (await pagesOf(workspace, query)).map(({ display_name: name }) => name)
  t.deepEqual(await found('&q=aDa&sort=name'), await found('&q=ADA&sort=name'))
  t.is((await found('&q=ada')).length, 3)
  t.is((await found('&q=da')).length, 0)
  t.deepEqual(await found('&q=b_'), ['b_b'])
  t.deepEqual(await found('&q=b%25'), ['b%b'])
  t.is((await found('&q=uSeR&sort=-email')).length, 7)
  t.deepEqual(await found('&q=zO%C3%AB'), ['Zoë'])
  t.deepEqual(await found(`&q=${encodeURIComponent("' or true --")}`), [])
})

test('role and status narrow every order', async (t) => {
  const workspace = await crowd()
  const [first] = (await api.list(`${USERS}?q=zo`, workspace.token)).rows
  const path = `${USERS}/${String(first!['id'])}`
  const json = { roles: ['analyst'] }
  t.is((await api.patch(path, workspace.token, json)).status, 200)
  for (const sort of ['', '&sort=email', '&sort=-last_sign_in_at']) {
    const rows = await pagesOf(workspace, `&role=analyst${sort}`)
    t.deepEqual(
      rows.map(({ id }) => id),
      [first!['id']],
    )
    t.is((await pagesOf(workspace, `&role=analyst&status=active${sort}`)).length, 0)
    t.is((await pagesOf(workspace, `&status=invited${sort}`)).length, 7)
  }
})

test('a search finds neither what a tenant does not see nor users of another tenant', async (t) => {
  const [mine, theirs] = [await api.workspace(), await api.workspace()]
  const email = `known.${theirs.tenantId}@example.com`
  const json = { email, display_name: 'Secretive', password: 'a password of an owner' }
  t.is((await api.post(USERS, theirs.token, json)).status, 201)
  t.is((await pagesOf(mine, '&q=known')).length, 0)
  t.is((await api.post(USERS, mine.token, { email })).status, 201)
  for (const sort of ['', '&sort=name']) {
    t.is(
      (await pagesOf(mine, `&q=secretive${sort}`)).length,
      0,
      'the name of an account that has not accepted',
    )
    t.is((await pagesOf(mine, `&q=known${sort}`)).length, 1)
  }
})

test('unknown orders and halves of a cursor are refused', async (t) => {
  const { token } = await api.workspace()
  const id = '01a2270c-0e00-7ec1-bda8-41896f4dfe8d'
  const at = `cursor_ts=2026-01-01T00:00:00.000Z&cursor_id=${id}`
  for (const query of [
    'sort=password',
    'sort=--email',
    'sort=',
    'q=',
    `q=${'x'.repeat(255)}`,
    'role=',
    `sort=email&${at}`,
    'sort=email&cursor_key=x',
  ])
    t.is((await api.get(`${USERS}?${query}`, token)).status, 400, query)
  t.is((await api.get(`${USERS}?sort=email&cursor_key=x&${at}`, token)).status, 200)
})
