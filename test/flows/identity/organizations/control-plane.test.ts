/** Control plane: organizations, environments and the tokens for them. */
import test from 'ava'
import { CONTROL_PLANE_OWNER_SCOPES, TENANT_SCOPES } from '../../../../actors/domain/scopes.js'
import { apiOf, claimsOf, type Json } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import { sharedApi, sharedService, TRANSPORTS } from '../../../support/service.js'

const PATH = '/api/v1/control-plane/organizations'
const { api, running } = await sharedApi('plain')

const tenantsOf = (organizationId: unknown) => `${PATH}/${String(organizationId)}/tenants`

for (const transport of TRANSPORTS) {
  test(`an operator creates an organization and an environment and works there (${transport})`, async (t) => {
    const other = transport === 'plain_http' ? running : await sharedService('plain', { transport })
    const api = apiOf(other)
    t.teardown(async () => {
      if (other !== running) await other.end()
    })
    const { operator, agentId, controlPlane } = await api.workspace()
    // Over TLS the two transports are one service.
    const slug = `zwei-${transport.replaceAll('_', '-')}`
    const created = await api.post(PATH, operator, { name: 'Zwei GmbH', slug }).gives(201)
    const { id, created_at } = created.body
    t.deepEqual(created.body, {
      id,
      name: 'Zwei GmbH',
      slug,
      status: 'active',
      role: 'owner',
      created_at,
      updated_at: created_at,
    })

    const tenant = await api.post(tenantsOf(id), operator, {
      name: `Zwei ${transport} production`,
      environment: 'production',
      support_contact: 'help@zwei.example',
    })
    t.is(tenant.status, 201)
    t.deepEqual(tenant.body, {
      id: tenant.body['id'],
      organization_id: id,
      name: `Zwei ${transport} production`,
      slug: `${slug}-production`,
      environment: 'production',
      status: 'active',
      support_contact: 'help@zwei.example',
      created_at: tenant.body['created_at'],
      updated_at: tenant.body['created_at'],
    })
    t.deepEqual((await api.get(tenantsOf(id), operator)).body, [tenant.body] as unknown as Json)

    const bound = await api.post(`${PATH}/${String(id)}/token`, operator).gives(200)
    t.is(bound.headers['cache-control'], 'no-store')
    const scope = CONTROL_PLANE_OWNER_SCOPES.filter((one) => one !== 'org:create').join(' ')
    t.deepEqual(bound.body, {
      access_token: bound.body['access_token'],
      token_type: 'Bearer',
      expires_in: 300,
      scope,
      organization_id: id,
    })
    t.like(claimsOf(bound.body['access_token']), {
      sub: agentId,
      tenant_id: controlPlane,
      organization_id: id,
      scope,
    })

    const switched = await api.post(
      `${tenantsOf(id)}/${String(tenant.body['id'])}/switch`,
      String(bound.body['access_token']),
    )
    t.is(switched.status, 200)
    t.deepEqual(switched.body, {
      access_token: switched.body['access_token'],
      token_type: 'Bearer',
      expires_in: 300,
      scope: TENANT_SCOPES.join(' '),
      organization_id: id,
      tenant_id: tenant.body['id'],
      tenant_slug: `${slug}-production`,
    })
    const token = String(switched.body['access_token'])
    t.like(claimsOf(token), { sub: agentId, tenant_id: tenant.body['id'], subject_type: 'agent' })
    const application = await api.post('/api/v1/applications', token, { name: 'First' }).gives(201)
    t.is(application.body['tenant_id'], tenant.body['id'])
  })
}

test('an operator sees its own organizations, page by page, and a bound token sees its one', async (t) => {
  const { operator, organizationId } = await api.workspace()
  const made = []
  for (const name of ['One', 'Two', 'Three']) {
    made.unshift((await api.post(PATH, operator, { name })).body['id'])
  }
  const all = [...made, organizationId]
  const first = await api.list(`${PATH}?limit=2`, operator)
  const second = await api.list(first.next ?? '', operator)
  t.deepEqual(
    [...first.rows, ...second.rows].map(({ id }) => id),
    all,
  )
  t.is(second.next, undefined)
  const bound = await api.post(`${PATH}/${organizationId}/token`, operator)
  const seen = await api.list(PATH, String(bound.body['access_token']))
  t.deepEqual(
    seen.rows.map(({ id }) => id),
    [organizationId],
  )
})

test("another operator's organization or tenant is not found, also with a bound token", async (t) => {
  const mine = await api.workspace()
  const theirs = await api.workspace()
  const second = await api.post(PATH, mine.operator, { name: 'Second' })
  const bound = await api.post(`${PATH}/${mine.organizationId}/token`, mine.operator)
  const boundToken = String(bound.body['access_token'])
  for (const [organization, token] of [
    [theirs.organizationId, mine.operator],
    [second.body['id'], boundToken],
    ['not-a-uuid', mine.operator],
  ]) {
    const at = `${PATH}/${String(organization)}`
    t.is((await api.get(`${at}/tenants`, String(token))).status, 404)
    t.is((await api.post(`${at}/tenants`, String(token), { name: 'Mine' })).status, 404)
    const path = `${at}/tenants/${theirs.tenantId}/switch`
    t.is((await api.post(path, String(token))).status, 404)
  }
  t.is((await api.post(`${PATH}/${theirs.organizationId}/token`, mine.operator)).status, 404)
  const crossed = `${tenantsOf(mine.organizationId)}/${theirs.tenantId}/switch`
  t.is((await api.post(crossed, mine.operator)).status, 404)
  t.is((await api.post(`${tenantsOf(mine.organizationId)}/x/switch`, mine.operator)).status, 404)
})

test('a bound token creates neither organizations nor further bound tokens', async (t) => {
  const { operator, organizationId } = await api.workspace()
  const bound = await api.post(`${PATH}/${organizationId}/token`, operator)
  const token = String(bound.body['access_token'])
  t.is((await api.post(PATH, token, { name: 'More' })).body['error'], 'insufficient_scope')
  t.is((await api.post(`${PATH}/${organizationId}/token`, token)).status, 403)
})

test('a tenant token is not an operator token, and scopes limit an operator token', async (t) => {
  const { token, key, agentId, organizationId, tenantId, controlPlane } = await api.workspace()
  t.is((await api.get(PATH, token)).status, 403)
  t.is((await api.get(PATH)).status, 401)
  const selector = { agent_id: agentId, tenant_id: controlPlane }
  const narrow = await api.login(key, selector, 'org:read')
  const reader = String(narrow.body['access_token'])
  t.is((await api.get(PATH, reader)).status, 200)
  t.is((await api.post(PATH, reader, { name: 'More' })).status, 403)
  t.is((await api.post(tenantsOf(organizationId), reader, { name: 'More' })).status, 403)
  t.is((await api.post(`${tenantsOf(organizationId)}/${tenantId}/switch`, reader)).status, 403)
  const bound = await api.post(`${PATH}/${organizationId}/token`, reader)
  t.is(bound.body['scope'], 'org:read')
})

test('only owners create environments; a member gets the scopes of its role', async (t) => {
  const owner = await api.workspace()
  const other = await api.workspace()
  const join = (role: string) =>
    sql(running)`
      insert into organization_members (organization_id, member_type, member_id, role, created_at)
      values (${owner.organizationId}, 'agent', ${other.agentId}, ${role}, now())
      on conflict (organization_id, member_type, member_id) do update set role = excluded.role`
  for (const [role, scope] of [
    ['member', 'org:read'],
    ['admin', 'org:read org:manage'],
  ]) {
    await join(String(role))
    await api.post(tenantsOf(owner.organizationId), other.operator, { name: 'No' }).gives(403)
    const bound = await api.post(`${PATH}/${owner.organizationId}/token`, other.operator)
    t.is(bound.body['scope'], scope)
    const at = `${tenantsOf(owner.organizationId)}/${owner.tenantId}/switch`
    const switched = await api.post(at, other.operator)
    t.is(switched.body['scope'], 'openid vault:list vault:read')
  }
})

test('an idempotency key creates once, and refuses another body', async (t) => {
  const { operator, organizationId } = await api.workspace()
  for (const [path, body] of [
    [PATH, { name: 'Once' }],
    [tenantsOf(organizationId), { name: 'Once' }],
  ] as const) {
    const headers = { 'idempotency-key': 'once' }
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => api.post(path, operator, body, headers)),
    )
    t.deepEqual([...new Set(answers.map(({ status }) => status))], [201])
    t.is(new Set(answers.map((answer) => answer.body['id'])).size, 1)
    t.is(answers.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, 4)
    t.is((await api.post(path, operator, { name: 'Other' }, headers)).status, 422)
  }
})

/** Hosts of the service below `server.base_domain`, and what scripts and resolvers take for something else. */
const RESERVED =
  `account admin api app auth cdn connect console constructor control-plane dashboard docs egress
  health identity localhost login mail mcp metrics pay status svc www`.split(/\s+/)

test('slugs are unique, not reserved, and generated from the name when absent', async (t) => {
  const { operator, organizationId } = await api.workspace()
  const slug = `taken-${organizationId.slice(-6)}`
  t.is((await api.post(PATH, operator, { name: 'A', slug })).status, 201)
  t.is((await api.post(PATH, operator, { name: 'B', slug })).status, 409)
  t.is((await api.post(tenantsOf(organizationId), operator, { name: 'A', slug })).status, 201)
  t.is((await api.post(tenantsOf(organizationId), operator, { name: 'B', slug })).status, 409)
  for (const bad of ['www', '-ab', 'ab-', 'A-b', 'ab', 'control-plane', 'xn--80ak6aa92e']) {
    t.is((await api.post(PATH, operator, { name: 'C', slug: bad })).status, 400, bad)
  }
  for (const reserved of RESERVED) {
    for (const path of [PATH, tenantsOf(organizationId)])
      t.is((await api.post(path, operator, { name: 'C', slug: reserved })).status, 400, reserved)
    const derived = await api.post(PATH, operator, { name: reserved })
    t.regex(String(derived.body['slug']), new RegExp(`^${reserved}-.{8}$`))
  }
  const named = await api.post(PATH, operator, { name: `Ünïque ${slug}` })
  t.is(named.body['slug'], `unique-${slug}`)
})

test('a new environment admits agents when it is a sandbox, and not when it is production', async (t) => {
  const { operator, organizationId } = await api.workspace()
  const make = async (environment: string) =>
    String(
      (await api.post(tenantsOf(organizationId), operator, { name: 'E', environment })).body['id'],
    )
  const sandbox = await make('sandbox')
  await t.notThrowsAsync(api.register(sandbox))
  const production = await make('production')
  await t.throwsAsync(api.register(production), { message: /policy_denied/ })
})

test('a switched tenant token ends with the key of the login it came from', async (t) => {
  const { operator, organizationId, tenantId, key } = await api.workspace()
  const switched = await api.post(`${tenantsOf(organizationId)}/${tenantId}/switch`, operator)
  const [session] = await sql<{ key: string }>(running)`
    select key_fingerprint as key from sessions
    where id = ${claimsOf(switched.body['access_token'])['sid']}`
  t.is(session?.key, key.fingerprint)
})

test('the event of a new organization is in its tenant of origin, once, with its creator', async (t) => {
  const { operator, agentId, controlPlane } = await api.workspace()
  const { body } = await api.post(PATH, operator, { name: 'Told' }, { 'x-request-id': 'told-1' })
  const events = await sql<{ type: string; data: Json }>(running)`
    select type, data from all_events where tenant_id = ${controlPlane}
    and data #>> '{resource,id}' = ${body['id']}
    order by sequence`
  t.deepEqual(
    events.map(({ type }) => type),
    ['org.created', 'org.member.added'],
  )
  t.like(events[0]?.data, { actor: { type: 'agent', id: agentId }, request_id: 'told-1' })
})
