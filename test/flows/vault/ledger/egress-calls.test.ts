/** The ledger of calls that left the service, its files, and its live view. */
import test from 'ava'
import { auditLine } from '../../../../storage/operations/audit.js'
import { claimsOf, type Json } from '../../../support/api.js'
import { egressPair, type Setting, settingOf } from '../../../support/vault/egress.js'
import { accessToken } from '../../../support/oauth/service-keys.js'
import { until } from '../../../support/service/watch.js'
import { sql } from '../../../support/storage/sql.js'

const [one, other] = await egressPair()
const { api, upstream, running } = one
const CALLS = '/api/v1/egress/calls'

const call = (setting: Setting, path: string, more: Json = {}, house = one) =>
  house.api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: house.upstream.origin + path,
    ...more,
  })

async function listed({ operator }: Setting, query = ''): Promise<readonly Json[]> {
  const { body } = await api.get(`${CALLS}${query}`, operator).gives(200)
  return body as unknown as readonly Json[]
}

const ended = (setting: Setting, count: number) =>
  until('the calls are recorded', async () => (await listed(setting)).length === count)

let nextId = 0
/** Records a call of an MCP tool. */
async function toolCalled(setting: Setting, type: string, data: Json): Promise<void> {
  const id = `01890a5d-ac96-774b-bcce-${(nextId += 1).toString(16).padStart(12, '0')}`
  const occurredAt = new Date()
  const line = auditLine({
    id,
    tenantId: setting.tenantId,
    type,
    occurredAt,
    subject: { sub: setting.agentId, subject_type: 'agent' },
    actors: [],
    clientId: null,
    delegationId: null,
    grantId: null,
    resource: null,
    outcome: 'success',
    requestId: null,
    ip: null,
    data,
  })
  await sql(running)`
    insert into unnumbered_events (tenant_id, id, type, occurred_at, line)
    values (${setting.tenantId}, ${id}, ${type}, ${occurredAt}, ${line})`
}

test('a call is listed with who, what, how much and what the budget has left', async (t) => {
  const budget = { requests: 5, llm_tokens: 100, window: 'day' }
  const setting = await settingOf(one, {}, { budget })
  await call(setting, '/llm/openai-chat', { method: 'POST', body: 'hello' }).gives(200)
  await call(setting, '/status/503', {}, other).gives(503)
  await ended(setting, 2)
  const [last, first] = await listed(setting)
  t.like(last, { kind: 'egress', outcome: 'completed', status: 503, method: 'GET' })
  t.like(first, {
    kind: 'egress',
    agent_id: setting.agentId,
    credential_id: setting.credentialId,
    grant_id: setting.grantId,
    host: upstream.origin.slice('https://'.length).replace(/:\d+$/, ''),
    method: 'POST',
    status: 200,
    outcome: 'completed',
    input_tokens: 12,
    output_tokens: 30,
  })
  t.true(Number(first!['bytes']) > 5)
  t.is(typeof first!['duration_ms'], 'number')
  t.like(first!['budget_left'], { requests: 3, llm_tokens: 58 })
  t.is(first!['tool'], undefined)
})

test('filters, pages, and calls of MCP tools by kind', async (t) => {
  const setting = await settingOf(one)
  for (const path of ['/echo', '/echo', '/echo']) await call(setting, path).gives(200)
  await call(setting, '/reset-before-headers').gives(502)
  await ended(setting, 4)
  await toolCalled(setting, 'mcp.tool.called', {
    tool: 'list_issues',
    server: { id: setting.grantId, slug: 'tracker' },
    outcome: 'ok',
    duration_ms: 12,
    request_bytes: 30,
    response_bytes: 70,
  })
  await toolCalled(setting, 'mcp.tool.denied', { tool: 'delete_all', outcome: 'policy_denied' })
  const count = async (query: string) => (await listed(setting, query)).length
  const host = String((await listed(setting, '?kind=egress'))[0]!['host'])
  for (const [query, wanted] of [
    ['', 6],
    ['?kind=egress', 4],
    ['?kind=mcp', 2],
    ['?outcome=upstream_error', 1],
    ['?outcome=completed', 3],
    [`?agent_id=${setting.agentId}`, 6],
    [`?agent_id=${setting.grantId}`, 0],
    [`?credential_id=${setting.credentialId}`, 4],
    [`?host=${host.toUpperCase()}`, 4],
    ['?host=elsewhere.example', 0],
    [`?since=${new Date(Date.now() + 60_000).toISOString()}`, 0],
    [`?until=${new Date(Date.now() + 60_000).toISOString()}`, 6],
  ] as const)
    t.is(await count(query), wanted, query)
  t.like(await listed(setting, '?kind=mcp'), [
    { tool: 'delete_all', outcome: 'policy_denied' },
    { tool: 'list_issues', server: { slug: 'tracker' }, bytes: 100, duration_ms: 12 },
  ])
  const seen = new Set<unknown>()
  for (let path: string | undefined = `${CALLS}?limit=2`; path !== undefined; ) {
    const { body, headers } = await api.get(path, setting.operator).gives(200)
    for (const { id } of body as unknown as readonly Json[]) seen.add(id)
    path = /<https?:\/\/[^/]+([^>]+)>/.exec(String(headers['link'] ?? ''))?.[1]
  }
  t.is(seen.size, 6)
  for (const query of ['?kind=ssh', '?since=yesterday', '?limit=0'])
    await api.get(`${CALLS}${query}`, setting.operator).gives(400)
})

test('another tenant, and tokens without the scope, see nothing', async (t) => {
  const setting = await settingOf(one)
  await call(setting, '/echo').gives(200)
  await ended(setting, 1)
  t.deepEqual(await listed(await settingOf(one)), [])
  for (const path of [CALLS, `${CALLS}/export`, `${CALLS}/stream`]) {
    await api.get(path, setting.direct).gives(403)
    await api.get(path, setting.delegated).gives(403)
    await api.get(path).gives(401)
  }
})

test('files of calls, without formulas', async (t) => {
  const setting = await settingOf(one)
  await call(setting, '/echo').gives(200)
  await ended(setting, 1)
  await toolCalled(setting, 'mcp.tool.called', { tool: '=1+1', outcome: 'ok' })
  const read = async (query: string) => {
    const { statusCode, headers, body } = await one.send(`${CALLS}/export${query}`, {
      token: setting.operator,
      method: 'GET',
    })
    t.is(statusCode, 200)
    return { headers, lines: (await body.text()).trimEnd().split(/\r?\n/) }
  }
  const { headers, lines } = await read('')
  t.is(headers['content-type'], 'text/csv; charset=utf-8')
  t.is(headers['content-disposition'], 'attachment; filename="calls.csv"')
  t.is(headers['proxy-status'], undefined)
  t.true(lines[0]!.startsWith('ended_at,kind,agent_id,subject,'))
  t.is(lines.length, 3)
  t.true(lines[1]!.includes(",'=1+1,ok,"), lines[1])
  t.true(lines[2]!.includes(`,egress,${setting.agentId},`), lines[2])
  const jsonl = await read('?format=jsonl&kind=egress')
  t.is(jsonl.headers['content-type'], 'application/x-ndjson')
  t.deepEqual(
    jsonl.lines.map((line) => JSON.parse(line) as Json),
    await listed(setting, '?kind=egress'),
  )
})

test('the stream sends each call of the tenant, and goes on after the last event', async (t) => {
  const setting = await settingOf(one)
  await call(setting, '/echo').gives(200)
  await ended(setting, 1)
  const follow = async (query = '', more: Record<string, string> = {}) => {
    const { statusCode, headers, body } = await one.send(`${CALLS}/stream${query}`, {
      token: setting.operator,
      method: 'GET',
      headers: more,
    })
    t.is(statusCode, 200)
    t.is(headers['content-type'], 'text/event-stream')
    let text = ''
    body.on('data', (chunk: Buffer) => (text += chunk.toString())).on('error', () => {})
    const calls = () =>
      [...text.matchAll(/id: (\d+)\nevent: call\ndata: (.*)\n\n/g)].map(([, sequence, data]) => ({
        sequence: sequence!,
        data: JSON.parse(data!) as Json,
      }))
    t.teardown(() => body.destroy())
    return { calls, end: () => body.destroy() }
  }
  const all = await follow()
  const failed = await follow('?outcome=upstream_error')
  await call(setting, '/echo', {}, other).gives(200)
  await call(setting, '/reset-before-headers').gives(502)
  await until('both calls arrive', () => all.calls().length === 2)
  await until('the failed call arrives', () => failed.calls().length === 1)
  t.is(failed.calls()[0]!.data['outcome'], 'upstream_error')
  const [first] = all.calls()
  const empty = await follow('', { 'last-event-id': '' })
  const later = await follow('', { 'last-event-id': first!.sequence })
  await until('the second call arrives again', () => later.calls().length === 1)
  t.deepEqual(empty.calls(), [], 'an empty id is none')
  for (const { end } of [all, failed, empty, later]) end()
})

test('a tenant has eight streams at most', async (t) => {
  const setting = await settingOf(one)
  const open = () => one.send(`${CALLS}/stream`, { token: setting.operator, method: 'GET' })
  const streams = []
  for (let count = 0; count < 8; count += 1) {
    const { statusCode, body } = await open()
    t.is(statusCode, 200)
    streams.push(body)
  }
  const { statusCode, headers, body } = await open()
  t.is(statusCode, 429)
  t.truthy(headers['retry-after'])
  await body.dump()
  for (const each of streams) each.on('error', () => {}).destroy()
  await until('a stream is free', async () => {
    const again = await open()
    again.body.on('error', () => {}).destroy()
    return again.statusCode === 200
  })
})

test('a stream ends with its token', async (t) => {
  const setting = await settingOf(one)
  const exp = Math.floor(Date.now() / 1000) + 3
  const token = await accessToken(running, { ...claimsOf(setting.operator), exp })
  const { statusCode, body } = await one.send(`${CALLS}/stream`, { token, method: 'GET' })
  t.is(statusCode, 200)
  t.true((await body.text()).startsWith('retry: 2000'))
})

/** Keeps the events of a tenant from being numbered, which readers wait for, until `release`. */
async function numberingHeld({ tenantId }: Setting) {
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  let held = () => {}
  const isHeld = new Promise<void>((resolve) => (held = resolve))
  const over = running.db.database.system(async (tx) => {
    const text = 'select from event_sequences where tenant_id = $1 for update'
    await tx.query({ name: 'test.hold_numbering', text, values: [tenantId] })
    held()
    await released
  })
  await isHeld
  return {
    async release() {
      release()
      await over
    },
  }
}

const waiting = async () => {
  const [row] = await sql<{ count: number }>(running)`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%svc_number_events%'`
  return row!.count
}

test.serial('the work of a stream ends with its reader', async (t) => {
  const setting = await settingOf(one)
  await call(setting, '/echo').gives(200)
  await ended(setting, 1)
  const { release } = await numberingHeld(setting)
  await toolCalled(setting, 'mcp.tool.called', { tool: 'x', outcome: 'ok' })
  for (const path of ['/stream', '/export']) {
    const { statusCode, body } = await one.send(CALLS + path, {
      token: setting.operator,
      method: 'GET',
      headers: { 'last-event-id': '0' },
    })
    t.is(statusCode, 200)
    body.on('error', () => {}).resume()
    await until('it waits', async () => (await waiting()) > 0)
    body.destroy()
    await until('its scan has ended', async () => (await waiting()) === 0)
  }
  await release()
})

test.serial('a file whose token is revoked breaks off', async (t) => {
  const setting = await settingOf(one)
  await call(setting, '/echo').gives(200)
  await ended(setting, 1)
  const { release } = await numberingHeld(setting)
  await toolCalled(setting, 'mcp.tool.called', { tool: 'x', outcome: 'ok' })
  const { statusCode, body } = await one.send(`${CALLS}/export`, {
    token: setting.operator,
    method: 'GET',
  })
  t.is(statusCode, 200)
  const text = body.text().catch(() => 'broken off')
  await until('it waits', async () => (await waiting()) > 0)
  await sql(running)`
    update sessions set ended_at = now() where tenant_id = ${setting.tenantId}
    and id = ${String(claimsOf(setting.operator)['sid'])}`
  await release()
  t.is(await text, 'broken off')
})

test.serial('a follower that is far behind gets every call', async (t) => {
  const setting = await settingOf(one)
  await call(setting, '/echo').gives(200)
  await ended(setting, 1)
  for (let count = 0; count < 1_100; count += 1)
    await toolCalled(setting, 'mcp.tool.called', { tool: 'x', outcome: 'ok' })
  const { body } = await one.send(`${CALLS}/stream?kind=mcp`, {
    token: setting.operator,
    method: 'GET',
    headers: { 'last-event-id': '0' },
  })
  let seen = ''
  body.on('error', () => {}).on('data', (chunk: Buffer) => (seen += chunk.toString()))
  const sequences = () =>
    [...seen.matchAll(/id: (\d+)\nevent: call\n/g)].map(([, id]) => Number(id))
  await until('all arrive', () => sequences().length === 1_100)
  t.is(new Set(sequences()).size, 1_100)
  t.deepEqual(
    sequences(),
    sequences().toSorted((a, b) => a - b),
  )
  body.destroy()
})
