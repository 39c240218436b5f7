/** The audit chain over HTTP: listing, export, verification, and detection of tampering. */
import { readFileSync } from 'node:fs'
import test from 'ava'
import { decodeJwt } from 'jose'
import { Client } from 'pg'
import { AUDIT_ONLY_TYPES } from '../../../actors/domain/audit.js'
import { apiOf, type Json } from '../../support/api.js'
import { verifyOffline } from '../../support/operations/audit.js'
import { REPEATED_OVER } from '../../support/fleet/transports.js'
import { testService } from '../../support/service.js'

const PATH = '/api/v1/audit-events'
const running = await testService()
const api = apiOf(running)

/** Tampers as an attacker with direct database access could. */
async function tamper(text: string, values: unknown[]): Promise<void> {
  const client = new Client({ connectionString: running.db.superuserUrl })
  await client.connect()
  await client.query('alter table audit_events disable trigger user')
  await client.query(text, values)
  await client.query('alter table audit_events enable trigger user')
  await client.end()
}

async function lines(
  path: string,
  token: string,
  at = api,
): Promise<{ all: string[]; next?: string }> {
  const { status, headers, body } = await at.get(path, token)
  if (status !== 200) throw new Error(JSON.stringify(body))
  const next = /<([^>]+)>; rel="next"/.exec(headers['link'] ?? '')?.[1]
  return {
    all: String(body['text']).split('\n').slice(0, -1),
    ...(next === undefined ? {} : { next: next.slice(at.at.baseUrl.length) }),
  }
}

/** A tenant with several audited changes. */
async function eventful(at = api) {
  const owner = await at.workspace()
  const { agentId } = await at.register(owner.tenantId)
  await at.post(`/api/v1/agents/${agentId}/suspend`, owner.token)
  await at.call('PATCH', '/api/v1/tenant/settings', {
    token: owner.token,
    json: { admit_agents: false },
    headers: { 'x-request-id': 'settings-1' },
  })
  await at.post('/api/v1/tenant-users', owner.token, { email: `x.${agentId}@example.com` })
  return { ...owner, staff: agentId }
}

for (const transport of REPEATED_OVER) {
  test(`audited changes are listed, exported and verified (${transport})`, async (t) => {
    const at = transport === 'plain_http' ? running : await testService({ transport })
    const api = apiOf(at)
    t.teardown(async () => {
      if (at !== running) await at.end()
    })
    const { token, tenantId, agentId } = await eventful(api)
    const { rows } = await api.list(PATH, token)
    const types = rows.map(({ type }) => type)
    t.deepEqual(types.slice(0, 4), [
      'tenant_user.invited',
      'admin.user.created',
      'tenant.settings.changed',
      'admin.agent.suspended',
    ])
    const settings = rows[2] ?? {}
    t.deepEqual(settings, {
      id: settings['id'],
      sequence: settings['sequence'],
      tenant_id: tenantId,
      type: 'tenant.settings.changed',
      occurred_at: settings['occurred_at'],
      subject: { sub: agentId, subject_type: 'agent' },
      actors: [],
      client_id: agentId,
      delegation_id: null,
      grant_id: null,
      resource: { type: 'tenant', id: tenantId },
      outcome: 'success',
      request_id: 'settings-1',
      ip: '127.0.0.1',
      data: settings['data'],
      previous_hash: rows[3]?.['hash'],
      hash: settings['hash'],
    })
    t.like(settings['data'], { before: { admit_agents: true }, after: { admit_agents: false } })
    const verified = await api.get(`${PATH}/verify`, token)
    t.deepEqual(verified.body, {
      valid: true,
      events: rows.length,
      after_sequence: 0,
      last_sequence: rows.length,
      last_hash: rows[0]?.['hash'],
      broken_at: null,
      next_after_sequence: null,
      unnumbered_events: 0,
    })
    const { all } = await lines(`${PATH}/export`, token, api)
    t.deepEqual(
      all.map((line) => JSON.parse(line) as Json),
      rows.toReversed(),
    )
  })
}

test('events are filtered and listed page by page', async (t) => {
  const { token, agentId, staff } = await eventful()
  const all = (await api.list(PATH, token)).rows
  const first = await api.list(`${PATH}?limit=3`, token)
  const rest = await api.list(first.next ?? '', token)
  t.deepEqual([...first.rows, ...rest.rows], all.slice(0, 6))
  const suspended = await api.list(`${PATH}?type=admin.agent.suspended`, token)
  t.is(suspended.rows.length, 1)
  t.like(suspended.rows[0], { resource: { type: 'agent', id: staff } })
  const byStaff = await api.list(`${PATH}?actor=${staff}`, token)
  t.deepEqual(
    byStaff.rows.map(({ type }) => type),
    ['admin.agent.registered'],
  )
  const byOwner = await api.list(`${PATH}?actor=${agentId}&type=tenant.settings.changed`, token)
  t.is(byOwner.rows.length, 1)
  const at = String(suspended.rows[0]?.['occurred_at'])
  const since = await api.list(`${PATH}?since=${at}`, token)
  const until = await api.list(`${PATH}?until=${at}`, token)
  t.is(since.rows.length + until.rows.length, all.length)
  t.true(since.rows.some(({ id }) => id === suspended.rows[0]?.['id']))
  const plusTwo = new Date(Date.parse(at) + 7_200_000).toISOString().replace('Z', '+02:00')
  const elsewhere = await api.list(`${PATH}?since=${encodeURIComponent(plusTwo)}`, token)
  t.deepEqual(elsewhere.rows, since.rows)
  for (const bad of [
    'since=yesterday',
    'limit=0',
    'cursor_id=x',
    'type=',
    'actor=%00',
    'type=a%0Ab',
  ]) {
    t.is((await api.list(`${PATH}?${bad}`, token)).status, 400, bad)
  }
})

test('events are filtered by object and by request, in the list and the export', async (t) => {
  const { token, staff } = await eventful()
  for (const [filter, type] of [
    [`resource_type=agent&resource_id=${staff}`, 'admin.agent.suspended'],
    ['request_id=settings-1', 'tenant.settings.changed'],
  ] as const) {
    const { rows } = await api.list(`${PATH}?${filter}`, token)
    t.true(
      rows.some((row) => row['type'] === type),
      filter,
    )
    t.true(rows.length < 5, filter)
    const { all } = await lines(`${PATH}/export?${filter}`, token)
    t.deepEqual(
      all.map((line) => JSON.parse(line) as Json),
      rows.toReversed(),
    )
  }
  t.deepEqual((await api.list(`${PATH}?resource_id=nothing`, token)).rows, [])
  t.is((await api.list(`${PATH}?resource_type=a%0Ab`, token)).status, 400)
})

test('people and things of events are named within their tenant', async (t) => {
  const mine = await eventful()
  const theirs = await eventful()
  const { rows: users } = await api.list('/api/v1/tenant-users', mine.token)
  const { id, sub, email } = users.find((one) => String(one['email']).startsWith('x.'))!
  const ids = [mine.staff, theirs.staff, String(sub), 'nothing'].join(',')
  const named = async (token: string) => (await api.list(`${PATH}/names?ids=${ids}`, token)).rows
  const names = await named(mine.token)
  t.like(
    names.find(({ type }) => type === 'tenant_user'),
    { id: sub, object_id: id, name: email },
  )
  t.deepEqual(
    names.filter(({ type }) => type === 'agent').map((one) => one['id']),
    [mine.staff],
    'of another tenant nothing is named',
  )
  t.is((await api.list(`${PATH}/names?ids=${'a,'.repeat(200)}a`, mine.token)).status, 400)
  const login = await api.login(
    mine.key,
    { agent_id: mine.agentId, tenant_id: mine.tenantId },
    'audit:read',
  )
  const narrow = await named(String(login.body['access_token']))
  t.deepEqual(
    narrow.map(({ type }) => type),
    ['agent'],
    'without the right to read people none is named',
  )
})

test('a tenant reads its own chain, with audit:read', async (t) => {
  const mine = await eventful()
  const theirs = await eventful()
  const { rows } = await api.list(PATH, mine.token)
  t.true(rows.every((row) => row['tenant_id'] === mine.tenantId))
  t.false(JSON.stringify(rows).includes(theirs.tenantId))
  const narrow = await api.login(
    mine.key,
    { agent_id: mine.agentId, tenant_id: mine.tenantId },
    'users:read',
  )
  const reader = String(narrow.body['access_token'])
  for (const path of [PATH, `${PATH}/verify`, `${PATH}/export`, `${PATH}/names?ids=a`]) {
    t.is((await api.get(path, reader)).body['error'], 'insufficient_scope', path)
    t.is((await api.get(path)).status, 401, path)
  }
})

test('an export is checked offline, in whole or in part', async (t) => {
  const { token } = await eventful()
  const whole = await lines(`${PATH}/export`, token)
  const good = await verifyOffline(whole.all)
  t.is(good.code, 0, good.out)
  t.regex(good.out, new RegExp(`${whole.all.length} events`))
  const first = await lines(`${PATH}/export?limit=2`, token)
  t.is(first.all.length, 2)
  const second = await lines(first.next ?? '', token)
  t.deepEqual([...first.all, ...second.all], whole.all.slice(0, 4))
  const part = await verifyOffline(second.all)
  t.is(part.code, 0, part.out)
  t.regex(part.out, /from 3 to 4/)
  const { out } = await verifyOffline(second.all, '--json')
  const found = JSON.parse(out.slice(0, out.indexOf('}') + 1)) as Json
  t.like(found, { events: 2, first_sequence: 3, last_sequence: 4 })
  t.is(found['last_hash'], (JSON.parse(second.all[1]!) as Json)['hash'])
})

test('a changed, cut, reordered or forged export is refused offline', async (t) => {
  const { token } = await eventful()
  const { all } = await lines(`${PATH}/export`, token)
  const changed = all.map((line, index) =>
    index === 2 ? JSON.stringify({ ...(JSON.parse(line) as Json), outcome: 'denied' }) : line,
  )
  const cases: [lines: string[], says: RegExp][] = [
    [changed, /3 was changed/],
    [[...all.slice(0, 2), ...all.slice(3)], /4 follows 2/],
    [[all[1]!, all[0]!, ...all.slice(2)], /1 follows 2/],
    [[...all.slice(0, 2), 'not json'], /line 3/],
    [[...all.slice(0, 2), '{}'], /line 3/],
    [[], /no events/],
  ]
  for (const [given, says] of cases) {
    const { code, out } = await verifyOffline(given)
    t.is(code, 1)
    t.regex(out, says)
  }
})

test('tampering in the database is detected, and so is a chain cut off at its end', async (t) => {
  const { token, tenantId } = await eventful()
  const verify = async () => (await api.get(`${PATH}/verify`, token)).body
  const { events } = await verify()
  await tamper(
    `update audit_events set data = '{"forged":true}' where tenant_id = $1 and sequence = 3`,
    [tenantId],
  )
  t.like(await verify(), { valid: false, events: 2, last_sequence: 2, next_after_sequence: null })
  t.like((await verify())['broken_at'], { sequence: 3 })
  const after = await api.get(`${PATH}/verify?after_sequence=3`, token)
  t.like(after.body, { valid: true, events: Number(events) - 3 })

  const other = await eventful()
  const count = Number((await api.get(`${PATH}/verify`, other.token)).body['events'])
  await tamper('delete from audit_events where tenant_id = $1 and sequence >= $2', [
    other.tenantId,
    count - 1,
  ])
  const cut = (await api.get(`${PATH}/verify`, other.token)).body
  t.like(cut, { valid: false, events: count - 2 })
  t.like(cut['broken_at'], { sequence: count - 1 })
})

function without(object: Json, ...names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}

test('repeated tokens of an application are audited like the first', async (t) => {
  const { token, tenantId } = await api.workspace()
  const made = await api.post('/api/v1/applications', token, {
    name: 'Nightly report',
    redirect_uris: ['https://app.example/callback'],
    grant_types: ['client_credentials'],
    scopes: ['users:read', 'applications:read'],
  })
  const credentials = {
    client_id: String(made.body['client_id']),
    client_secret: String(made.body['client_secret']),
  }
  const path = `/api/v1/applications/${credentials.client_id}`
  const ask = (scope: string, requestId: string) => {
    const fields = { grant_type: 'client_credentials', ...credentials, scope }
    return api.form('/oauth/token', fields, { 'x-request-id': requestId })
  }
  const requestIds = ['first', 'second', 'third', 'fourth.of_them-']
  const claims: Json[] = []
  for (const requestId of requestIds) {
    const { status, body } = await ask('users:read', requestId)
    t.is(status, 200)
    claims.push(decodeJwt(String(body['access_token'])))
  }
  const { rows } = await api.list(`${PATH}?type=auth.token.issued`, token)
  const told = rows.filter((row) => row['client_id'] === credentials.client_id).toReversed()
  t.deepEqual(
    told.map((row) => [row['request_id'], row['resource']]),
    claims.map(({ jti }, at) => [requestIds[at], { type: 'token', id: jti }]),
  )
  for (const [at, row] of told.entries()) {
    const { iat, exp, nbf } = claims[at]!
    const own = ['iat', 'exp', 'nbf', 'jti']
    t.deepEqual(without(claims[at]!, ...own), without(claims[0]!, ...own))
    t.is(Number(exp) - Number(iat), 300)
    t.is(nbf, iat)
    const data = row['data'] as Json
    t.deepEqual(without(data, 'expires_at'), without(told[0]!['data'] as Json, 'expires_at'))
    const expiresMs = Date.parse(String(data['expires_at']))
    t.is(expiresMs - Date.parse(String(row['occurred_at'])), 300_000)
    t.is(Math.floor(expiresMs / 1000), Number(exp))
    t.like(row, {
      tenant_id: tenantId,
      subject: { sub: credentials.client_id, subject_type: 'application' },
      actors: [],
      outcome: 'success',
    })
  }
  const verified = await api.get(`${PATH}/verify`, token)
  t.true(verified.body['valid'])

  // A change counts for the next token, even with a prepared record.
  const { body: before } = await api.get(path, token)
  const readOnly = ['client_id', 'id', 'tenant_id', 'created_at', 'updated_at', 'status']
  const next = { scopes: ['applications:read'], audience: 'https://api.example/next' }
  const json = { ...without(before, ...readOnly), ...next }
  await api.put(path, token, json).gives(200)
  const refused = await ask('users:read', 'fifth')
  t.deepEqual([refused.status, refused.body['error']], [400, 'invalid_scope'])
  for (const requestId of ['sixth', 'seventh', 'eighth']) {
    const { body } = await ask('applications:read', requestId)
    const { scope, aud } = decodeJwt(String(body['access_token']))
    t.is(scope, 'applications:read')
    t.true([aud].flat().includes('https://api.example/next'))
  }
})

test('the page lists every audit-only type, and no other', (t) => {
  const page = readFileSync('docs/guides/operations/audit.md', 'utf8')
  const [, list = ''] = /not sent to webhooks:\n([^#]+)\n\n## /.exec(page) ?? []
  const named = [...list.matchAll(/`([^`]+)`/g)].map(([, type]) => type!)
  t.deepEqual(named, [...AUDIT_ONLY_TYPES].toSorted())
})
