/** Authorization and limits of egress calls. */
import test from 'ava'
import sshpk from 'sshpk'
import { freshKeyPair } from '../../../runtime/kernel/key-pair.js'
import {
  bodyCall,
  closedCalls,
  CREDENTIALS,
  egressHouse,
  SECRET,
  settingOf,
  type Setting,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { EGRESS_LIMITS } from '../../support/fleet/profiles.js'
import { notThrough } from '../../support/fleet/through.js'
import { until } from '../../support/service/watch.js'
import { crowdWithEnded } from '../../support/oauth/grants.js'
import { sql } from '../../support/storage/sql.js'
import { exchange } from '../../support/vault/vault-export.js'

const resources = await egressHouse()
const { api, upstream, running } = resources

const call = (setting: Setting, path: string, more: object = {}) =>
  api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: upstream.origin + path,
    ...more,
  })

for (const [scheme, secret, header, value] of [
  ['bearer', SECRET, 'authorization', `Bearer ${SECRET}`],
  ['basic', 'me:word', 'authorization', `Basic ${Buffer.from('me:word').toString('base64')}`],
  ['header:X-Api-Key', SECRET, 'x-api-key', SECRET],
] as const) {
  test.serial(`${scheme} is injected into ${header}`, async (t) => {
    const setting = await settingOf(resources, { auth_scheme: scheme, secret })
    t.is((await call(setting, '/echo')).status, 200)
    t.is(upstream.requests.at(-1)!.headers[header], value)
    await call(setting, '/echo', { headers: [[header.toUpperCase(), 'mine']] }).gives(400)
  })
}

test.serial('an ssh_key is injected by every scheme', async (t) => {
  const pem = freshKeyPair('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })
  const secret = `${sshpk.parsePrivateKey(pem, 'pem').toString('openssh')}\n`
  const base64 = Buffer.from(secret).toString('base64')
  for (const [scheme, header, value] of [
    ['bearer', 'authorization', `Bearer ${base64}`],
    ['basic', 'authorization', `Basic ${base64}`],
    ['header:x-key', 'x-key', base64],
  ] as const) {
    const setting = await settingOf(resources, {
      credential_type: 'ssh_key',
      auth_scheme: scheme,
      secret,
    })
    const answer = await call(setting, '/headers').gives(200)
    t.is(upstream.requests.at(-1)!.headers[header], value)
    t.false(JSON.stringify(answer.body).includes(base64.replace(/=+$/, '')))
  }
})

test.serial('a non-ASCII secret is sent in UTF-8 and redacted', async (t) => {
  for (const [scheme, secret, value] of [
    ['basic', 'me:пароль', `Basic ${Buffer.from('me:пароль').toString('base64')}`],
    ['bearer', 'ключ-1234', `Bearer ${Buffer.from('ключ-1234').toString('latin1')}`],
  ] as const) {
    const setting = await settingOf(resources, { auth_scheme: scheme, secret })
    const answer = await call(setting, '/headers').gives(200)
    t.is(upstream.requests.at(-1)!.headers.authorization, value)
    t.true(JSON.stringify(answer.body).includes('[redacted]'), JSON.stringify(answer.body))
  }
})

test.serial('query: is appended, and never twice', async (t) => {
  const setting = await settingOf(resources, { auth_scheme: 'query:api[key]', secret: 'a b&c+' })
  t.is((await call(setting, '/echo?x=1')).status, 200)
  t.is(upstream.requests.at(-1)!.url, '/echo?x=1&api%5Bkey%5D=a%20b%26c%2B')
  t.is((await call(setting, '/echo?api%5Bkey%5D=mine')).status, 400)
})

test.serial('quotes of a query arrive as they were sent', async (t) => {
  const setting = await settingOf(resources)
  for (const query of ["?a='b'&c=%27d'", "?a=%27'%27", "?a='", '?a=%27', "?a=%2527'"]) {
    t.is((await call(setting, `/echo${query}`)).status, 200)
    t.is(upstream.requests.at(-1)!.url, `/echo${query}`)
  }
})

test.serial('the secret is redacted from a response, in any coding', async (t) => {
  const setting = await settingOf(resources)
  const codings = ['none', 'gzip', 'deflate', 'deflate-raw', 'br', 'zstd']
  for (const coding of codings) {
    for (const stream of [false, true]) {
      const answer = await call(setting, `/secrets/${coding}`, { stream })
      t.is(answer.status, 200, coding)
      t.is(answer.body['text'], '<[redacted]> <[redacted]> <[redacted]> <[redacted]>', coding)
      t.is(answer.headers['location'], 'https://elsewhere.example/?key=[redacted]')
      t.is(answer.headers['content-encoding'], undefined)
    }
  }
  const closed = await closedCalls(resources, setting.tenantId, codings.length * 2)
  t.deepEqual(
    closed.map(({ redactions }) => redactions),
    Array(codings.length * 2).fill(5),
  )
})

test.serial('the event has the token counts of a stream', async (t) => {
  const setting = await settingOf(resources)
  t.is((await call(setting, '/sse', { stream: true })).status, 200)
  const [closed] = await closedCalls(resources, setting.tenantId, 1)
  t.like(closed, { input_tokens: 25, output_tokens: 310, outcome: 'completed' })
})

test.serial('methods and path prefixes of a grant', async (t) => {
  const setting = await settingOf(resources, {}, { methods: ['GET'], path_prefixes: ['/echo/a'] })
  const statusOf = async (path: string, method = 'GET') =>
    (await call(setting, path, { method })).status
  t.is(await statusOf('/echo/a'), 200)
  t.is(await statusOf('/echo/a/b?c'), 200)
  t.is(await statusOf('/echo/%61/b'), 200)
  t.is(await statusOf('/echo/a', 'HEAD'), 200)
  for (const path of [
    '/echo/ab',
    '/echo',
    '/echo/a/../b',
    '/echo/a/%2e%2e/b',
    '/echo/a%2f..%2fb',
    '/echo/a//b',
    '/echo/a/%252e%252e/b',
    '/echo/a/..;/b',
    '/echo/a/%5c..',
  ]) {
    t.is(await statusOf(path), 403, path)
  }
  t.is(await statusOf('/echo/a', 'POST'), 403)
})

test.serial('expired grants do not hide an active one', async (t) => {
  const setting = await settingOf(resources, { non_exportable: false })
  await crowdWithEnded(running.db.database, setting.grantId)
  t.is((await call(setting, '/echo')).status, 200)
  const exported = await exchange(resources, setting)
  t.is(exported.body['access_token'], SECRET)
})

test.serial('a grant to sign gets an error that names the credential type', async (t) => {
  const setting = await settingOf(resources, {
    credential_type: 'ssh_ca',
    auth_scheme: undefined,
    secret: undefined,
    non_exportable: false,
  })
  const called = await call(setting, '/echo').gives(403, 'policy_denied')
  t.regex(String(called.body['detail']), /does not support credentials of type ssh_ca/)
  const exported = await exchange(resources, setting)
  t.is(exported.status, 403, JSON.stringify(exported.body))
  t.is(exported.body['error'], 'policy_denied')
  t.is(exported.body['access_token'], undefined)
})

test.serial('of 12 concurrent calls a grant for 5 allows 5', async (t) => {
  const setting = await settingOf(resources, {}, { max_requests: 5 })
  const answers = await Promise.all(Array.from({ length: 12 }, () => call(setting, '/echo')))
  const statuses = answers.map(({ status }) => status).sort()
  t.deepEqual(statuses, [...Array(5).fill(200), ...Array(7).fill(429)])
  t.is(answers.find(({ status }) => status === 429)!.body['error'], 'budget_exceeded')
})

test.serial('concurrent calls are checked by their own credential and grant', async (t) => {
  const setting = await settingOf(resources, { label: 'first' }, { path_prefixes: ['/echo/0'] })
  const { operator, agentId } = setting
  const created = await Promise.all(
    [1, 2, 3, 4].map((at) =>
      api.post(CREDENTIALS, operator, {
        provider: 'upstream',
        credential_type: 'api_key',
        label: `number ${at}`,
        auth_scheme: `header:x-key-${at}`,
        allowed_hosts: [UPSTREAM_NAME],
        secret: `secret-number-${at}`,
      }),
    ),
  )
  const ids = [setting.credentialId, ...created.map(({ body }) => String(body['id']))]
  // The last one has no grant.
  for (const at of [1, 2, 3]) {
    const answer = await api.post(`${CREDENTIALS}/${ids[at]}/grants`, operator, {
      grantee_type: 'agent',
      grantee_id: agentId,
      path_prefixes: [`/echo/${at}`],
    })
    t.is(answer.status, 201)
  }
  const asked = Array.from({ length: 25 }, (_, at) => [at % 5, Math.floor(at / 5) % 5] as const)
  const statuses = await Promise.all(
    asked.map(async ([credential, path]) => {
      const answer = await call(setting, `/echo/${path}`, { credential_id: ids[credential] })
      return answer.status
    }),
  )
  t.deepEqual(
    statuses,
    asked.map(([credential, path]) => (credential === 4 ? 404 : credential === path ? 200 : 403)),
  )
})

/** The bytes that the database counts as used by the only lease, or by the grant, of a setting. */
async function bytesUsed({ credentialId }: Setting, kind: 'lease' | 'grant'): Promise<number> {
  const [row] = await sql<{ used: string }>(
    running.db.database,
    `select bytes_used::text as used from vault_${kind}s where credential_id = $1`,
    [credentialId],
  )
  return Number(row!.used)
}

test.serial('concurrent calls never exceed a lease, and unused bytes are returned', async (t) => {
  const setting = await settingOf(resources)
  const { operator, credentialId, agentId, tenantId } = setting
  const budget = 200_000
  const answer = await api.post(`${CREDENTIALS}/${credentialId}/leases`, operator, {
    recipient_id: agentId,
    byte_budget: budget,
  })
  t.is(answer.status, 201)
  const answers = await Promise.allSettled(
    Array.from({ length: 8 }, () => call(setting, '/bytes/40000', { stream: true })),
  )
  const whole = answers.filter(
    (each) => each.status === 'fulfilled' && each.value.status === 200,
  ).length
  t.true(whole >= 1 && whole <= 5, String(whole))
  // Calls that break off are recorded too. One that was cut spends the lease; else what is not used is given back.
  const usage = async () => {
    const closed = await closedCalls(resources, tenantId, whole)
    const used = closed.reduce((sum, { bytes }) => sum + Number(bytes), 0)
    const isCut = closed.some(({ outcome }) => outcome === 'budget_exhausted')
    return { used, due: isCut ? budget : used, recorded: await bytesUsed(setting, 'lease') }
  }
  let used = 0
  await until('the use is recorded', async () => {
    const found = await usage()
    used = found.used
    return found.recorded === found.due
  })
  t.true(used <= budget)
  const refused = await call(setting, '/echo', { method: 'POST', body: 'x'.repeat(200_000) })
  t.like(refused, { status: 429, body: { error: 'budget_exceeded' } })
})

for (const kind of ['lease', 'grant'] as const) {
  for (const stream of [true, false]) {
    const how = stream ? 'streamed' : 'buffered'
    test.serial(`a ${how} call that is cut by its ${kind} spends it`, async (t) => {
      const budget = 200_000
      const limited = kind === 'grant' ? { max_bytes: budget } : {}
      const setting = await settingOf(resources, {}, limited)
      const at = `${CREDENTIALS}/${setting.credentialId}/${kind}s`
      if (kind === 'lease') {
        const lease = { recipient_id: setting.agentId, byte_budget: budget }
        t.is((await api.post(at, setting.operator, lease)).status, 201)
      }
      // The last chunk does not fit, however much is left.
      await call(setting, '/bytes/4194304', { stream }).catch(() => undefined)
      const before = upstream.requests.length
      for (let times = 0; times < 5; times += 1) {
        await call(setting, '/echo', { stream }).gives(429, 'budget_exceeded')
      }
      t.is(upstream.requests.length, before, 'the upstream hears nothing more')
      t.is(await bytesUsed(setting, kind), budget)
      t.is((await api.list(at, setting.operator)).rows[0]!['status'], 'spent')
    })
  }
}

test.serial('what a running call gives back does not open a spent lease', async (t) => {
  const setting = await settingOf(resources)
  const { operator, credentialId, agentId, tenantId } = setting
  const budget = 10_000_000
  const lease = { recipient_id: agentId, byte_budget: budget }
  const at = `${CREDENTIALS}/${credentialId}/leases`
  t.is((await api.post(at, operator, lease)).status, 201)
  const leaving = new AbortController()
  const running = await resources.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${upstream.origin}/silent-after-chunk`),
    signal: leaving.signal,
  })
  t.is(running.statusCode, 200)
  await call(setting, '/bytes/20000000', { stream: true }).catch(() => undefined)
  t.is((await call(setting, '/echo')).status, 429)
  leaving.abort()
  await running.body.text().catch(() => undefined)
  const closed = await closedCalls(resources, tenantId, 2)
  t.deepEqual(closed.map(({ outcome }) => outcome).sort(), ['budget_exhausted', 'client_closed'])
  t.is((await call(setting, '/echo')).status, 429)
  t.is(await bytesUsed(setting, 'lease'), budget)
})

test.serial(
  'the unused bytes of a small lease are available to the next call immediately',
  async (t) => {
    notThrough('it asserts what one process does before the others')
    const setting = await settingOf(resources)
    const at = `${CREDENTIALS}/${setting.credentialId}/leases`
    const lease = { recipient_id: setting.agentId, byte_budget: 10_000 }
    t.is((await api.post(at, setting.operator, lease)).status, 201)
    // The first call holds all of it until it ends.
    for (let nth = 1; nth <= 8; nth += 1) {
      t.is((await call(setting, '/bytes/100')).status, 200, `call ${nth}`)
    }
  },
)

test.serial('a revocation applies to the next call', async (t) => {
  for (const what of ['grant', 'credential'] as const) {
    const setting = await settingOf(resources)
    t.is((await call(setting, '/echo')).status, 200)
    const at =
      what === 'grant'
        ? `/api/v1/vault/grants/${setting.grantId}/revoke`
        : `${CREDENTIALS}/${setting.credentialId}/revoke`
    t.is((await api.post(at, setting.operator)).status, 200)
    await call(setting, '/echo').gives(what === 'grant' ? 404 : 403)
  }
  const setting = await settingOf(resources)
  const { agentId, operator, direct } = setting
  t.is((await api.post(`/api/v1/agents/${agentId}/suspend`, operator)).status, 200)
  const after = await resources.send('/v1/proxy/body', {
    token: direct,
    headers: bodyCall(setting, `${upstream.origin}/echo`),
  })
  t.is(after.statusCode, 401)
})

for (const what of ['grant', 'credential', 'agent'] as const) {
  test.serial(`a running stream ends when the ${what} does`, async (t) => {
    const setting = await settingOf(resources)
    const { grantId, credentialId, agentId, operator, tenantId } = setting
    const answer = await resources.send('/v1/proxy/body', {
      token: setting.direct,
      headers: bodyCall(setting, `${upstream.origin}/silent-after-chunk`),
    })
    t.is(answer.statusCode, 200)
    const reading = answer.body.text()
    reading.catch(() => {})
    const at = {
      grant: `/api/v1/vault/grants/${grantId}/revoke`,
      credential: `${CREDENTIALS}/${credentialId}/revoke`,
      agent: `/api/v1/agents/${agentId}/suspend`,
    }[what]
    t.is((await api.post(at, operator)).status, 200)
    await t.throwsAsync(reading)
    const [closed] = await closedCalls(resources, tenantId, 1)
    t.is(closed!['outcome'], 'revoked')
  })
}

test.serial('a response over the buffer limit is not returned in part', async (t) => {
  const setting = await settingOf(resources)
  for (const over of [1, 2 ** 20]) {
    const answer = await call(setting, `/bytes/${EGRESS_LIMITS.responseBytes + over}`).gives(502)
    t.is(answer.headers['proxy-status'], 'svc-egress; error=http_response_body_size')
    t.is(answer.body['error'], 'bad_gateway')
  }
  for (const { outcome } of await closedCalls(resources, setting.tenantId, 2))
    t.is(outcome, 'upstream_error', 'the client was there')
})

test.serial('an upstream that misbehaves is a 502, which names how', async (t) => {
  const setting = await settingOf(resources)
  const habits = [
    ['reset-before-headers', 'connection_terminated'],
    ['reset-in-body', 'http_response_incomplete'],
    ['short-body', 'http_response_incomplete'],
    ['not-http', 'http_protocol_error'],
    ['huge-headers', 'http_response_header_section_size'],
    ['endless-headers', 'http_response_header_section_size'],
    ['bomb', 'http_response_body_size'],
    ['bomb/zeros', 'http_response_content_coding'],
    ['zipped', 'http_response_content_coding'],
  ] as const
  for (const [habit, error] of habits) {
    const answer = await call(setting, `/${habit}`)
    t.is(answer.status, 502, habit)
    t.is(answer.headers['proxy-status'], `svc-egress; error=${error}`, habit)
  }
  const closed = await closedCalls(resources, setting.tenantId, habits.length)
  t.is(closed.length, habits.length)
  for (const { outcome } of closed) t.truthy(outcome)
})

test.serial('events contain only host and method of a call', async (t) => {
  const setting = await settingOf(resources)
  await call(setting, '/echo/a-path?a=query', { method: 'POST', body: 'a-body' })
  await closedCalls(resources, setting.tenantId, 1)
  const rows = await sql<{ text: string }>(
    running.db.database,
    `select data::text as text from all_events where tenant_id = $1
     union all select data::text from audit_events where tenant_id = $1`,
    [setting.tenantId],
  )
  const events = JSON.stringify(rows)
  for (const word of ['a-path', 'query', 'a-body', SECRET]) t.false(events.includes(word), word)
  t.true(events.includes(UPSTREAM_NAME))
})
