/** Budgets of grants: calls, bytes and tokens of language models in a window, over two processes. */
import test from 'ava'
import type { Json } from '../../../support/api.js'
import {
  bodyCall,
  CREDENTIALS,
  delegatedToken,
  egressPair,
  type EgressHouse,
  type Setting,
  settingOf,
  UPSTREAM_NAME,
} from '../../../support/vault/egress.js'
import { until } from '../../../support/service/watch.js'
import { sql } from '../../../support/storage/sql.js'

const houses = await egressPair()
const [one, other] = houses

const granted = (budget: Json) => settingOf(one, {}, { budget })

function call({ api, upstream }: EgressHouse, setting: Setting, path: string, more: Json = {}) {
  return api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: upstream.origin + path,
    ...more,
  })
}

async function budgetOf({ operator, credentialId, grantId }: Setting): Promise<Json> {
  const { items } = await one.api
    .get(`${CREDENTIALS}/${credentialId}/grants`, operator)
    .gives(200)
    .then(({ body }) => ({ items: body as unknown as readonly Json[] }))
  const grant = items.find(({ id }) => id === grantId)!
  return grant['budget'] as Json
}

const usedOf = async (setting: Setting) => (await budgetOf(setting))['used'] as Json

/** Moves the counts of a grant into the window before. */
const endWindow = ({ tenantId, grantId }: Setting, span: string) =>
  sql(one.running)`
    update vault_grants set budget_began = budget_began - ${span}::interval,
      budget_spent = budget_spent - ${span}::interval
    where tenant_id = ${tenantId} and id = ${grantId}`

test('a used up budget names itself, what is left and when the window ends', async (t) => {
  const setting = await granted({ requests: 2, llm_tokens: 1000, window: 'hour' })
  await call(one, setting, '/echo').gives(200)
  await call(other, setting, '/echo').gives(200)
  const { status, body, headers } = await call(one, setting, '/echo')
  t.is(status, 429)
  t.like(body, {
    error: 'budget_exceeded',
    grant_id: setting.grantId,
    budget: 'requests',
    limit: 2,
    left: 0,
    window: 'hour',
  })
  const endsAt = new Date(String(body['window_ends_at']))
  t.is(endsAt.getTime() % 3_600_000, 0)
  const secs = (endsAt.getTime() - Date.now()) / 1000
  t.true(secs > 0 && secs <= 3_600)
  t.is(Number(headers['retry-after']), Number(body['retry_after']))
  t.true(Math.abs(Number(body['retry_after']) - secs) < 60)
  await until('no call holds a token', async () => (await usedOf(setting))['llm_tokens'] === 0)
  t.is((await usedOf(setting))['requests'], 2)
  t.is((await budgetOf(setting))['window_ends_at'], endsAt.toISOString())

  await call(other, setting, '/echo').gives(429)
  const told = await sql<{ data: Json }>(one.running)`
    select data from all_events
    where tenant_id = ${setting.tenantId} and type = 'vault.budget.exceeded'`
  t.is(told.length, 1)
  t.like(told[0]!.data, { budget: 'requests', limit: 2, left: 0, window: 'hour' })

  await endWindow(setting, '1 hour')
  t.deepEqual(await usedOf(setting), { requests: 0, llm_tokens: 0 })
  await call(one, setting, '/echo').gives(200)
  t.is((await usedOf(setting))['requests'], 1)
})

test('a budget in total has no end', async (t) => {
  const setting = await granted({ requests: 1, window: 'total' })
  await call(one, setting, '/echo').gives(200)
  const { body, headers } = await call(other, setting, '/echo').gives(429)
  t.like(body, { budget: 'requests', window: 'total', window_ends_at: null })
  t.is(headers['retry-after'], undefined)
})

test('concurrent calls of two processes never exceed the calls of a budget', async (t) => {
  const limit = 7
  const setting = await granted({ requests: limit, window: 'day' })
  const calls = await Promise.all(
    Array.from({ length: 24 }, (_, at) => call(houses[at % 2]!, setting, '/echo/budget')),
  )
  const count = (wanted: number) => calls.filter(({ status }) => status === wanted).length
  t.is(count(200), limit)
  t.is(count(429), 24 - limit)
  t.deepEqual(await usedOf(setting), { requests: limit })
})

test('a call that the upstream never heard of is given back', async (t) => {
  const setting = await granted({ requests: 2, bytes: 1000, llm_tokens: 10, window: 'month' })
  const closed = { credential_id: setting.credentialId, url: `https://${UPSTREAM_NAME}:1/` }
  for (let turn = 0; turn < 4; turn += 1) {
    await one.api
      .post('/v1/proxy', setting.delegated, { ...closed, method: 'POST', body: 'x'.repeat(200) })
      .gives(502)
    await until('it is given back', async () => {
      const used = await usedOf(setting)
      return used['requests'] === 0 && used['bytes'] === 0 && used['llm_tokens'] === 0
    })
  }
  await call(one, setting, '/status/500').gives(500)
  await until('the answer is settled', async () => (await usedOf(setting))['bytes'] === 10)
  t.deepEqual(await usedOf(setting), { requests: 1, bytes: 10, llm_tokens: 0 })
})

test('bytes of both directions count, and a cut call spends the window', async (t) => {
  const setting = await granted({ bytes: 100_000, window: 'hour' })
  await call(one, setting, '/echo', { method: 'POST', body: 'x'.repeat(1_000) }).gives(200)
  await until('both are counted', async () => (await usedOf(setting))['bytes'] === 2_000)
  const { body } = await call(one, setting, '/echo', {
    method: 'POST',
    body: 'x'.repeat(98_001),
  }).gives(429)
  t.like(body, { budget: 'bytes', left: 98_000, limit: 100_000 })
  await call(other, setting, '/bytes/200000').gives(429)
  await until('it is spent', async () => (await usedOf(setting))['bytes'] === 100_000)
  t.like((await call(one, setting, '/echo').gives(429)).body, { budget: 'bytes', left: 0 })
  await endWindow(setting, '1 hour')
  await call(one, setting, '/echo').gives(200)
  const { body: grants } = await one.api.get(
    `${CREDENTIALS}/${setting.credentialId}/grants`,
    setting.operator,
  )
  t.like((grants as unknown as readonly Json[])[0], { status: 'active' })
})

for (const shape of [
  'openai-chat',
  'openai-chat-stream',
  'openai-responses',
  'anthropic',
  'anthropic-stream',
  'gemini',
  'gemini-stream',
]) {
  test(`tokens of ${shape} are settled at the end of a call`, async (t) => {
    const setting = await granted({ llm_tokens: 42, window: 'day' })
    const path = `/llm/${shape}`
    await call(one, setting, path, { stream: shape.endsWith('stream') }).gives(200)
    await until('the tokens are settled', async () => (await usedOf(setting))['llm_tokens'] === 42)
    const { body } = await call(other, setting, path).gives(429)
    t.like(body, { budget: 'llm_tokens', limit: 42, left: 0 })
  })
}

test('an answer that does not report its tokens counts by its bytes', async (t) => {
  const setting = await granted({ llm_tokens: 350, window: 'day' })
  const used = async () => (await usedOf(setting))['llm_tokens']
  await call(one, setting, '/llm-silent/3200').gives(200)
  await until('the whole stream is estimated', async () => (await used()) === 100)
  const control = new AbortController()
  const { body } = await one.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${one.upstream.origin}/llm-silent/6400/held`, {
      'x-svc-method': 'GET',
      'x-svc-stream-response': 'true',
    }),
    signal: control.signal,
  })
  let bytes = 0
  body.on('error', () => {}).on('data', (chunk: Buffer) => (bytes += chunk.byteLength))
  await until('it has arrived', () => bytes === 6400)
  control.abort()
  await until('the cut stream is estimated', async () => (await used()) === 300)
  // What it reports counts, if that is more.
  await call(one, setting, '/llm/openai-chat-stream', { stream: true }).gives(200)
  await until('the tokens are settled', async () => (await used()) === 342)
  t.is((await call(one, setting, '/llm-silent/3200').gives(200)).status, 200)
  await until('the budget is used up', async () => (await used()) === 442)
  t.like((await call(one, setting, '/echo').gives(429)).body, { budget: 'llm_tokens' })
})

test('a call is admitted while one token is left, and at most as many calls as tokens', async (t) => {
  const setting = await granted({ llm_tokens: 43, window: 'day' })
  await call(one, setting, '/llm/gemini').gives(200)
  await until('the tokens are settled', async () => (await usedOf(setting))['llm_tokens'] === 42)
  const calls = await Promise.all(houses.map((house) => call(house, setting, '/llm/gemini')))
  t.deepEqual(calls.map(({ status }) => status).toSorted(), [200, 429])
  await until('the call is settled', async () => (await usedOf(setting))['llm_tokens'] === 84)
  await call(other, setting, '/echo').gives(429)
})

test('a delegation made from another spends the same budget', async (t) => {
  const setting = await granted({ requests: 2, window: 'hour' })
  const { operator, credentialId, tenantId, agentId } = setting
  const [delegation] = await sql<{ id: string }>(one.running)`
    insert into delegations (tenant_id, id, agent_id, agent_name, subject, scopes, audience, level, amr,
      auth_time, created_at, expires_at)
    select tenant_id, gen_random_uuid(), ${agentId}, 'agent', sub, '{vault:read}', 'https://svc.test', 2,
      '{pwd,otp}', now(), now(), now() + interval '1 h'
    from tenant_users where tenant_id = ${tenantId} limit 1 returning id`
  await one.api
    .post(`${CREDENTIALS}/${credentialId}/grants`, operator, {
      grantee_type: 'delegation',
      grantee_id: delegation!.id,
      budget: { requests: 2, window: 'hour' },
    })
    .gives(201)
  const { key, agentId: nextId } = await one.api.register(tenantId)
  const { body } = await one.api.login(key, { tenant_id: tenantId, agent_id: nextId }, 'vault:read')
  const first = await delegatedToken(one.running, setting.direct, agentId, {
    delegation_id: delegation!.id,
  })
  const next = await delegatedToken(one.running, String(body['access_token']), nextId, {
    delegation_id: delegation!.id,
    act: {
      sub: nextId,
      subject_type: 'agent',
      act: { sub: agentId, subject_type: 'agent' },
    },
  })
  const as = (token: string) => call(one, { ...setting, delegated: token }, '/echo')
  await as(first).gives(200)
  await as(next).gives(200)
  t.like((await as(next)).body, { error: 'budget_exceeded' })
})

test('budgets that say nothing are refused, money precisely', async (t) => {
  const { operator, credentialId, agentId } = await settingOf(one)
  const grant = (budget: Json) =>
    one.api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, {
      grantee_type: 'agent',
      grantee_id: agentId,
      budget,
    })
  for (const budget of [
    { window: 'hour' },
    { requests: 1 },
    { requests: 0, window: 'hour' },
    { requests: 1, window: 'week' },
    { request: 1, window: 'hour' },
  ])
    await grant(budget).gives(400)
  const { body } = await grant({ amount_minor: 500, currency: 'USD', window: 'day' }).gives(422)
  t.like((body['errors'] as readonly Json[])[0], { pointer: '#/budget/amount_minor' })
  t.deepEqual((await grant({ bytes: 5, window: 'total' }).gives(201)).body['budget'], {
    bytes: 5,
    window: 'total',
    used: { bytes: 0 },
    window_ends_at: null,
  })
})
