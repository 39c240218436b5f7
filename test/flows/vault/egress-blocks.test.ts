/** Calls that are admitted in memory: recorded, refused, revoked and limited like all others, on two processes. */
import test from 'ava'
import {
  bodyCall,
  closedCalls,
  CREDENTIALS,
  type EgressHouse,
  egressPair,
  type Setting,
  settingOf,
} from '../../support/vault/egress.js'
import { apiOf } from '../../support/api.js'
import { sql } from '../../support/storage/sql.js'
import { until } from '../../support/service/watch.js'

const houses = await egressPair()
const [one, other] = houses
test.after.always(async () => {
  await other.end()
  await one.end()
})

/** A call through a process. The path marks it at the upstream of that process. */
async function call(house: EgressHouse, setting: Setting, path: string, method = 'GET') {
  const { statusCode, body } = await house.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, house.upstream.origin + path, { 'x-svc-method': method }),
  })
  await body.dump()
  return statusCode
}

const sentTo = ({ upstream }: EgressHouse, path: string) =>
  upstream.requests.filter(({ url }) => url === path)

const blocksOf = ({ tenantId }: Setting) =>
  sql<{ id: string; held: number }>(one.running)`
    select id, coalesce(requests_held, 0)::integer as held from egress_blocks
    where tenant_id = ${tenantId}`

/**
 * Calls until calls are admitted in memory: after the one that opens a block. @returns how many calls were sent, and what
 * the block held. It is closed soon after the last call.
 */
async function warm(house: EgressHouse, setting: Setting, path: string) {
  for (let calls = 1, inMemory = 0, held = 0; ; calls += 1) {
    const status = await call(house, setting, path)
    if (status !== 200) throw new Error(`status ${status}`)
    const [block] = await blocksOf(setting)
    if (inMemory > 0 || block !== undefined) inMemory += 1
    held = Math.max(held, block?.held ?? 0)
    if (inMemory > 3) return { calls, held }
  }
}

/** The calls whose beginning is recorded. */
const begun = ({ tenantId }: Setting) =>
  sql<{ id: string; end_id: string; request_id: string }>(one.running)`
    select id, overlay(id::text placing '7' from 15) as end_id, data ->> 'request_id' as request_id
    from all_events
    where tenant_id = ${tenantId} and type = 'vault.credential.accessed'`

test('every call is recorded once, with its end, and the block is closed', async (t) => {
  const setting = await settingOf(one)
  const { calls: sent } = await warm(one, setting, '/echo/recorded')
  const more = await Promise.all(
    Array.from({ length: 20 }, () => call(one, setting, '/echo/recorded')),
  )
  t.true(more.every((status) => status === 200))
  const calls = sent + more.length
  t.is(sentTo(one, '/echo/recorded').length, calls)
  t.true((await blocksOf(setting)).length <= 1)
  const closed = await closedCalls(one, setting.tenantId, calls)
  t.is(closed.length, calls)
  const beginnings = await begun(setting)
  t.is(beginnings.length, calls)
  t.is(new Set(beginnings.map(({ request_id }) => request_id)).size, calls)
  const ends = await sql<{ id: string; data: Record<string, unknown> }>(one.running)`
    select id, data from all_events where tenant_id = ${setting.tenantId}
    and type = 'egress.stream.closed'`
  t.deepEqual(ends.map(({ id }) => id).sort(), beginnings.map(({ end_id }) => end_id).sort())
  // Events from templates have the same members as others.
  t.is(new Set(ends.map(({ data }) => Object.keys(data).sort().join())).size, 1)
  await until('the block is closed', async () => (await blocksOf(setting)).length === 0)
  const verified = await one.api.get('/api/v1/audit-events/verify', setting.operator)
  t.is(verified.body['valid'], true, JSON.stringify(verified.body))
  const read = await one.api.get(`${CREDENTIALS}/${setting.credentialId}`, setting.operator)
  t.is(typeof read.body['last_used_at'], 'string')
})

test('a refused call is not sent', async (t) => {
  const setting = await settingOf(one, {}, { methods: ['GET'], path_prefixes: ['/echo/allowed'] })
  await warm(one, setting, '/echo/allowed')
  t.is(await call(one, setting, '/echo/forbidden'), 403)
  t.is(await call(one, setting, '/echo/allowed/posted', 'POST'), 403)
  t.is(sentTo(one, '/echo/forbidden').length, 0)
  t.is(sentTo(one, '/echo/allowed/posted').length, 0)
  const stranger = { ...setting, credentialId: (await settingOf(one)).credentialId }
  t.is(await call(one, stranger, '/echo/allowed'), 404)
})

test('a change applies to the next call of the process', async (t) => {
  for (const [what, expected] of [
    ['grant', 404],
    ['credential', 403],
  ] as const) {
    const setting = await settingOf(one)
    const path = `/echo/next-${what}`
    const { calls: sent } = await warm(one, setting, path)
    const ended = {
      grant: `/api/v1/vault/grants/${setting.grantId}/revoke`,
      credential: `${CREDENTIALS}/${setting.credentialId}/revoke`,
    }[what]
    t.is((await one.api.post(ended, setting.operator)).status, 200)
    t.is(await call(one, setting, path), expected)
    t.is(sentTo(one, path).length, sent)
  }
  const setting = await settingOf(one)
  await warm(one, setting, '/echo/next-lease')
  const at = `${CREDENTIALS}/${setting.credentialId}/leases`
  const lease = { recipient_id: setting.agentId, byte_budget: 100_000 }
  t.is((await one.api.post(at, setting.operator, lease)).status, 201)
  t.is(await call(one, setting, '/bytes/900'), 200)
  await until('the lease was used', async () => {
    const { rows } = await one.api.list(at, setting.operator)
    return rows[0]!['bytes_used'] === 900
  })
})

for (const what of ['grant', 'credential', 'agent'] as const) {
  test(`the end of the ${what} on one process ends calls on the other`, async (t) => {
    const setting = await settingOf(one)
    const path = `/echo/ended-${what}`
    await warm(other, setting, path)
    const { grantId, credentialId, agentId, operator } = setting
    const ended = {
      grant: `/api/v1/vault/grants/${grantId}/revoke`,
      credential: `${CREDENTIALS}/${credentialId}/revoke`,
      agent: `/api/v1/agents/${agentId}/suspend`,
    }[what]
    await one.api.post(ended, operator).gives(200)
    await until('the other process refuses', async () => {
      return (await call(other, setting, path)) !== 200
    })
    const later = await Promise.all(Array.from({ length: 4 }, () => call(other, setting, path)))
    t.false(later.includes(200), later.join())
  })
}

test('two processes never exceed a lease that one of them learns of', async (t) => {
  const leased = await settingOf(one)
  const at = `${CREDENTIALS}/${leased.credentialId}/leases`
  await warm(other, leased, '/echo/leased')
  const budget = 300_000
  const lease = { recipient_id: leased.agentId, byte_budget: budget }
  t.is((await apiOf(one.running).post(at, leased.operator, lease)).status, 201)
  // The other process learns of the lease.
  await until('the lease is used', async () => {
    await call(other, leased, '/bytes/10')
    const { rows } = await one.api.list(at, leased.operator)
    return Number(rows[0]!['bytes_used']) > 0
  })
  await Promise.allSettled(
    Array.from({ length: 24 }, (_, nth) => call(houses[nth % 2]!, leased, '/bytes/20000')),
  )
  const { rows } = await one.api.list(at, leased.operator)
  t.true(Number(rows[0]!['bytes_used']) <= budget)
})

/** What the database says of the grant: what is used, and what blocks hold of it. */
const usageOf = async ({ tenantId, grantId }: Setting) => {
  const [row] = await sql<{
    requests: number
    bytes: number
    held: number
    heldBytes: number
    recorded: number
  }>(one.running)`
    select requests_used::integer as requests, bytes_used::integer as bytes,
    (select coalesce(sum(requests_held), 0)::integer from egress_blocks
    where authority_id = g.id) as held,
    (select coalesce(sum(bytes_held), 0)::integer from egress_blocks
    where authority_id = g.id) as "heldBytes",
    (select count(*)::integer from all_events e
    where e.tenant_id = g.tenant_id and e.type = 'vault.credential.accessed') as recorded
    from vault_grants g where tenant_id = ${tenantId} and id = ${grantId}`
  return row!
}

/** Calls until the first refusal. @returns the number of calls that were answered. */
async function exhaust(house: EgressHouse, setting: Setting, path: string): Promise<number> {
  for (let calls = 0; ; calls += 1) {
    const status = await call(house, setting, path)
    if (status === 429) return calls
    if (status !== 200) throw new Error(`status ${status}`)
  }
}

test('calls within a limit are admitted in memory, and their use is exact', async (t) => {
  const setting = await settingOf(one, {}, { max_requests: 1_000, max_bytes: 1_000_000_000 })
  const path = '/echo/counted'
  const { calls, held } = await warm(one, setting, path)
  t.true(held > 0)
  await until('all calls are recorded', async () => {
    const { requests, held, recorded } = await usageOf(setting)
    return recorded === calls && requests - held === calls
  })
  await until('the block has given back the rest', async () => {
    const { requests, held } = await usageOf(setting)
    return held === 0 && requests === calls
  })
  const closed = await closedCalls(one, setting.tenantId, calls)
  const bytes = closed.reduce((sum, each) => sum + Number(each['bytes']), 0)
  t.is((await usageOf(setting)).bytes, bytes)
})

test('two processes use a limit up to its last call', async (t) => {
  for (const limit of [1, 90]) {
    const setting = await settingOf(one, {}, { max_requests: limit })
    const path = `/echo/up-to-${limit}`
    const answered = await Promise.all(
      Array.from({ length: 8 }, (_, at) => exhaust(houses[at % 2]!, setting, path)),
    )
    t.is(
      answered.reduce((sum, each) => sum + each),
      limit,
    )
    t.is(sentTo(one, path).length + sentTo(other, path).length, limit)
    t.is((await usageOf(setting)).requests, limit)
  }
})

test('a process gives back what it holds when another one needs it', async (t) => {
  const limit = 160
  const setting = await settingOf(one, {}, { max_requests: limit })
  const path = '/echo/recalled'
  const { calls: before, held } = await warm(other, setting, path)
  t.true(held > 0)
  t.is(before + (await exhaust(one, setting, path)), limit)
  t.is(await call(other, setting, path), 429)
})

test('two processes use a byte budget and never exceed it', async (t) => {
  const leased = await settingOf(one)
  const at = `${CREDENTIALS}/${leased.credentialId}/leases`
  const budget = 3 * 1024 * 1024
  const lease = { recipient_id: leased.agentId, byte_budget: budget }
  t.is((await one.api.post(at, leased.operator, lease)).status, 201)
  const bytes = 50_000
  /** True for a whole response, false for a refusal or a response that breaks off. */
  const answers = async (house: EgressHouse) => {
    const { statusCode, body } = await house.send('/v1/proxy/body', {
      token: leased.direct,
      headers: bodyCall(leased, `${house.upstream.origin}/bytes/${bytes}`, {
        'x-svc-method': 'GET',
      }),
    })
    const read = await body.arrayBuffer().catch(() => null)
    return statusCode === 200 && read?.byteLength === bytes
  }
  const untilSpent = async (house: EgressHouse) => {
    while (await answers(house));
  }
  await Promise.all(Array.from({ length: 4 }, (_, nth) => untilSpent(houses[nth % 2]!)))
  // A response that breaks off spends the rest, also what running calls of the other process give back.
  const closed = async () => closedCalls(one, leased.tenantId, 0)
  const used = async () => Number((await one.api.list(at, leased.operator)).rows[0]!['bytes_used'])
  await until('the lease is spent', async () => (await used()) === budget)
  const relayed = (await closed()).reduce((sum, each) => sum + Number(each['bytes']), 0)
  t.true(relayed <= budget)
  t.true((await closed()).some(({ outcome }) => outcome === 'budget_exhausted'))
  const path = '/echo/after-the-end'
  for (const house of [...houses, ...houses]) t.is(await call(house, leased, path), 429)
  t.is(sentTo(one, path).length + sentTo(other, path).length, 0)
})

test('two processes in turn use a byte budget up to its last response', async (t) => {
  const setting = await settingOf(one, {}, { max_bytes: 2 * 1024 * 1024 })
  const path = '/bytes/100000'
  // The twenty-first does not fit.
  for (let calls = 0; calls < 20; calls += 1) {
    t.is(await call(houses[calls % 2]!, setting, path), 200, `call ${calls}`)
    await until('the call is recorded', async () => {
      const { bytes, heldBytes } = await usageOf(setting)
      return bytes - heldBytes === (calls + 1) * 100_000
    })
  }
  await call(one, setting, path).catch(() => undefined)
  await until('the call that was cut is recorded', async () => {
    const { bytes, heldBytes } = await usageOf(setting)
    return bytes - heldBytes === 2 * 1024 * 1024
  })
  for (const house of houses) t.is(await call(house, setting, '/echo'), 429)
  t.is((await usageOf(setting)).bytes, 2 * 1024 * 1024)
})
