/** Managed access tokens: their export by token exchange, and egress with `token_of`, whose secret is the token of another credential. */
import test from 'ava'
import {
  CREDENTIALS,
  UPSTREAM_NAME,
  bodyCall,
  egressPair,
  settingOf,
} from '../../support/vault/egress.js'
import { sql } from '../../support/storage/sql.js'
import { type TokenUpstream, tokenUpstream } from '../../support/vault/token-upstream.js'
import {
  ACCESS,
  CLIENT_SECRET,
  accessedOf,
  exchange,
  expireIn,
  managed,
  oauthSetting,
  refusedAs,
} from '../../support/vault/vault-export.js'
import type { Json } from '../../support/api.js'
import { until } from '../../support/service/watch.js'

const [resources, second] = await egressPair()

test('an oauth2 credential exports the access token of its upstream, refreshed before its expiry', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  upstream.adorn({ scope: 'repo read' })
  const setting = await oauthSetting(resources, upstream, { scope: 'repo' })
  const first = await managed(resources, setting)
  t.deepEqual(first.body, {
    access_token: 'at-1',
    issued_token_type: ACCESS,
    token_type: 'Bearer',
    expires_in: first.body['expires_in'],
    scope: 'repo read',
  })
  t.true(Number(first.body['expires_in']) > 3500)
  const [refresh] = upstream.tokenRequests
  t.deepEqual(refresh!.form, { grant_type: 'refresh_token', refresh_token: 'rt-0', scope: 'repo' })
  const pair = Buffer.from(refresh!.headers.authorization!.slice(6), 'base64').toString()
  t.is(pair, 'client+one:canary-client%3A%2B+secret')
  t.is((await managed(second, setting)).body['access_token'], 'at-1')
  t.is(upstream.tokenRequests.length, 1)

  // Sixty seconds before the expiry it is refreshed, with the rotated refresh token.
  await expireIn(resources, setting, 59)
  t.is((await managed(second, setting)).body['access_token'], 'at-2')
  t.is(upstream.tokenRequests[1]!.form['refresh_token'], 'rt-1')
  await expireIn(resources, setting, 90)
  t.is((await managed(resources, setting)).body['access_token'], 'at-2')
  const events = await accessedOf(resources, setting.tenantId)
  t.is(events.length, 4)
  t.like(events[0]!.data, { access: 'managed_token' })
  t.is(events[0]!.grantId, setting.grantId)
  t.false(/at-\d|rt-\d|canary/.test(JSON.stringify(events)))

  // After a rotation nothing of the first secret is left.
  const secret = { token_url: upstream.url, client_id: 'c', client_secret: 's' }
  await resources.api.post(`${CREDENTIALS}/${setting.credentialId}/rotate`, setting.operator, {
    secret: JSON.stringify(secret),
  })
  t.is((await managed(resources, setting)).body['access_token'], 'at-3')
  t.deepEqual(upstream.tokenRequests[2]!.form, { grant_type: 'client_credentials' })

  t.deepEqual(refusedAs(await exchange(resources, setting)), [400, 'invalid_request'])
  // Not through the egress proxy, and not if it is not exportable.
  const proxied = await resources.api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    method: 'GET',
    url: `${resources.upstream.origin}/`,
  })
  t.deepEqual([proxied.status, proxied.body['code'] ?? proxied.body['title']][0], 403)
  await resources.api.post(`${CREDENTIALS}/${setting.credentialId}/revoke`, setting.operator)
  t.deepEqual(refusedAs(await managed(resources, setting)), [403, 'policy_denied'])
  const rows = await sql(resources.running)`
    select from vault_managed_tokens where credential_id = ${setting.credentialId}`
  t.is(rows.length, 0)
})

test('concurrent callers in two processes cause one refresh, repeatedly', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(resources, upstream)
  for (let round = 1; round <= 2; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => managed(index % 2 ? resources : second, setting)),
    )
    t.deepEqual([...new Set(answers.map(({ body }) => body['access_token']))], [`at-${round}`])
    t.is(upstream.tokenRequests.length, round)
    await expireIn(resources, setting, 10)
  }
  t.true(upstream.tokenRequests.every(({ form }, index) => form['refresh_token'] === `rt-${index}`))
})

test('a response without a token type is a Bearer token, whatever its scope looks like', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  for (const type of [{}, { token_type: null }, { token_type: 'BEARER' }]) {
    upstream.answer(() => ({ body: { access_token: 'typeless', scope: ['a', 'b'], ...type } }))
    const { body } = await managed(resources, await oauthSetting(resources, upstream))
    t.is(body['access_token'], 'typeless', JSON.stringify(type))
  }
})

test('client_secret_post is used and remembered for an upstream that needs it', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  upstream.answer(({ headers, form }) =>
    headers.authorization === undefined && form['client_secret'] === CLIENT_SECRET
      ? { body: { access_token: 'posted', token_type: 'Bearer', expires_in: '61' } }
      : { status: 401, body: { error: 'invalid_client' } },
  )
  const setting = await oauthSetting(resources, upstream)
  t.is((await managed(resources, setting)).body['access_token'], 'posted')
  t.is(upstream.tokenRequests.length, 2)
  await expireIn(resources, setting, 5)
  t.is((await managed(second, setting)).body['access_token'], 'posted')
  t.is(upstream.tokenRequests.length, 3)
})

test('errors of a token endpoint', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const cases: [Parameters<TokenUpstream['answer']>[0], number, string, RegExp][] = [
    [
      () => ({ status: 400, body: { error: 'invalid_grant' } }),
      400,
      'invalid_target',
      /invalid_grant/,
    ],
    [() => ({ status: 401, body: 'no' }), 400, 'invalid_target', /invalid_client/],
    [() => ({ status: 403, body: '<html>' }), 400, 'invalid_target', /status_403/],
    [() => ({ body: { error: 'bad_refresh_token' } }), 400, 'invalid_target', /bad_refresh_token/],
    [
      () => ({ status: 400, body: { error: `"${CLIENT_SECRET}"` } }),
      400,
      'invalid_target',
      /unnamed/,
    ],
    [() => ({ status: 500, body: '' }), 503, 'temporarily_unavailable', /status_500/],
    [
      () => ({ status: 429, headers: { 'retry-after': '7' } }),
      503,
      'temporarily_unavailable',
      /429/,
    ],
    [
      () => ({ status: 302, headers: { location: upstream.url } }),
      502,
      'server_error',
      /status_302/,
    ],
    [() => ({ body: 'hello' }), 502, 'server_error', /not_json/],
    [
      () => ({ body: '{"access_token":"a","access_token":"b","token_type":"bearer"}' }),
      502,
      'server_error',
      /not_json/,
    ],
    [() => ({ body: `"${'x'.repeat(70_000)}"` }), 502, 'server_error', /not_json/],
    [() => ({ body: { token_type: 'bearer' } }), 502, 'server_error', /access_token/],
    [
      () => ({ body: { access_token: 'a\nb', token_type: 'bearer' } }),
      502,
      'server_error',
      /access_token/,
    ],
    [() => ({ body: { access_token: 'a', token_type: 'mac' } }), 502, 'server_error', /token_type/],
    [
      () => ({ body: { access_token: 'a', token_type: 'bearer', expires_in: -1 } }),
      502,
      'server_error',
      /expires_in/,
    ],
  ]
  for (const [reply, status, error, words] of cases) {
    upstream.answer(reply)
    const setting = await oauthSetting(resources, upstream)
    const answer = await managed(resources, setting)
    t.deepEqual(refusedAs(answer), [status, error], String(words))
    t.regex(String(answer.body['error_description']), words)
    t.false(JSON.stringify(answer).includes('canary'))
    if (status === 503) t.is(answer.headers['retry-after'], /429/.test(words.source) ? '7' : '5')
    // A refusal is cached.
    const before = upstream.tokenRequests.length
    t.deepEqual(refusedAs(await managed(second, setting)), [status, error])
    t.is(upstream.tokenRequests.length, before)
    t.deepEqual(await accessedOf(resources, setting.tenantId), [])
  }
  const away = await oauthSetting(resources, upstream, {
    token_url: 'https://api.upstream.example:1/token',
  })
  t.deepEqual(refusedAs(await managed(resources, away)), [503, 'temporarily_unavailable'])
})

test('while the upstream is unavailable, a token near its expiry is used', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(resources, upstream)
  await managed(resources, setting)
  await expireIn(resources, setting, 40)
  upstream.answer(() => ({ status: 503 }))
  t.is((await managed(resources, setting)).body['access_token'], 'at-1')
  t.is((await managed(second, setting)).body['access_token'], 'at-1')
  t.is(upstream.tokenRequests.length, 2)
  await expireIn(resources, setting, -1)
  t.is((await managed(resources, setting)).status, 503)
})

test('a grant that ends during the refresh ends the exchange', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(resources, upstream)
  upstream.answer(async () => {
    await resources.api.post(`/api/v1/vault/grants/${setting.grantId}/revoke`, setting.operator)
    return { body: { access_token: 'late', token_type: 'bearer', expires_in: 3600 } }
  })
  t.deepEqual(refusedAs(await managed(resources, setting)), [400, 'invalid_target'])
  t.deepEqual(await accessedOf(resources, setting.tenantId), [])
})

test('a secret that is rotated during the refresh counts', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(resources, upstream)
  upstream.answer(async ({ form }) => {
    if (form['refresh_token'] === 'owner') {
      return { body: { access_token: 'owned', token_type: 'bearer', expires_in: 3600 } }
    }
    const secret = JSON.stringify({
      token_url: upstream.url,
      client_id: 'c',
      refresh_token: 'owner',
    })
    await resources.api.post(`${CREDENTIALS}/${setting.credentialId}/rotate`, setting.operator, {
      secret,
    })
    return { body: { access_token: 'old', token_type: 'bearer', refresh_token: 'older' } }
  })
  t.is((await managed(resources, setting)).body['access_token'], 'owned')
  await expireIn(resources, setting, -1)
  t.is((await managed(second, setting)).body['access_token'], 'owned')
  t.deepEqual(
    upstream.tokenRequests.map(({ form }) => form['refresh_token']),
    ['rt-0', 'owner', 'owner'],
  )
})

test('the refresh of a dead process is repeated when its lease expires', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(resources, upstream)
  const [lease] = await sql<{ until: string }>(
    resources.running,
    `insert into vault_managed_tokens (tenant_id, credential_id, refresher, refreshing_until)
     values ($1, $2, $2, now() + interval '2 seconds') returning refreshing_until::text as until`,
    [setting.tenantId, setting.credentialId],
  )
  const answers = await Promise.all([managed(resources, setting), managed(second, setting)])
  t.deepEqual(
    answers.map(({ body }) => body['access_token']),
    ['at-1', 'at-1'],
  )
  const over = 'select clock_timestamp() >= $1::timestamptz as over'
  t.deepEqual(await sql(resources.running, over, [lease!.until]), [{ over: true }])
  t.is(upstream.tokenRequests.length, 1)
})

const { api, upstream: echoing } = resources

/** A non-exportable oauth2 credential, and one with its `token_of`. */
async function carried(endpoint: TokenUpstream, more: Json = {}) {
  const source = await settingOf(resources, {
    credential_type: 'oauth2',
    auth_scheme: undefined,
    allowed_hosts: [UPSTREAM_NAME],
    secret: JSON.stringify({ token_url: endpoint.url, client_id: 'c', refresh_token: 'rt-0' }),
  })
  const { operator, agentId } = source
  const created = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'As the account',
    auth_scheme: 'bearer',
    allowed_hosts: [UPSTREAM_NAME],
    token_of: source.credentialId,
    ...more,
  })
  if (created.status !== 201) throw new Error(JSON.stringify(created.body))
  const credentialId = String(created.body['id'])
  const grant = { grantee_type: 'agent', grantee_id: agentId, max_requests: 100 }
  await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, grant)
  const call = (at = resources, path = '/headers') =>
    at.api.post('/v1/proxy', source.delegated, {
      credential_id: credentialId,
      url: `${echoing.origin}${path}`,
    })
  return { source, credentialId, operator, call, record: created.body }
}
const lastAuthorization = () => echoing.requests.at(-1)!.headers.authorization

test.serial(
  'the token is obtained, injected, redacted, and refreshed before its expiry',
  async (t) => {
    const endpoint = await tokenUpstream()
    t.teardown(() => endpoint.close())
    endpoint.adorn({ access_token: 'canary-access-token-1' })
    const { source, credentialId, call, record } = await carried(endpoint)
    t.like(record, { token_of: source.credentialId, non_exportable: true, status: 'active' })
    const first = await call().gives(200)
    t.is(lastAuthorization(), 'Bearer canary-access-token-1')
    t.true(JSON.stringify(first.body).includes('[redacted]'))
    t.false(JSON.stringify([first.body, first.headers]).includes('canary'))
    // There is no other way to get it.
    t.deepEqual(refusedAs(await managed(resources, source)), [403, 'policy_denied'])
    t.deepEqual(refusedAs(await managed(resources, { ...source, credentialId })), [
      403,
      'policy_denied',
    ])
    await api.get(`${CREDENTIALS}/${credentialId}/secret`, source.operator).gives(403)

    // Callers of two processes with an expired token: one refresh.
    endpoint.adorn({ access_token: 'canary-access-token-2' })
    await expireIn(resources, source, 59)
    const many = Array.from({ length: 8 }, (_, nth) => call(nth % 2 === 0 ? resources : second))
    for (const answer of await Promise.all(many)) t.is(answer.status, 200)
    t.is(endpoint.tokenRequests.length, 2)
    t.is(endpoint.tokenRequests[1]!.form['refresh_token'], 'rt-1')
    t.is(lastAuthorization(), 'Bearer canary-access-token-2')
    const raw = await resources.send('/v1/proxy/body', {
      token: source.direct,
      headers: bodyCall({ credentialId }, `${echoing.origin}/headers`),
    })
    t.is(raw.statusCode, 200)
    t.false((await raw.body.text()).includes('canary'))

    const [row] = await sql<{ secret: unknown; token_of: string }>(resources.running)`
      select secret, token_of from vault_credentials where id = ${credentialId}`
    t.deepEqual(row, { secret: null, token_of: source.credentialId })
  },
)

test.serial(
  'without a token the caller gets an error, and only the request count is used',
  async (t) => {
    const endpoint = await tokenUpstream()
    t.teardown(() => endpoint.close())
    const { source, call, credentialId, operator } = await carried(endpoint)
    await api.post(`${CREDENTIALS}/${credentialId}/leases`, operator, {
      recipient_id: source.agentId,
      byte_budget: 100_000,
    })
    const before = echoing.requests.length
    endpoint.answer(() => ({ status: 400, body: { error: 'invalid_grant' } }))
    const refused = await call().gives(502)
    t.is(refused.headers['proxy-status'], 'svc-egress; error=proxy_configuration_error')
    t.true(String(refused.body['detail']).endsWith('invalid_grant.'))
    await sql(resources.running)`
      delete from vault_managed_tokens where credential_id = ${source.credentialId}`
    endpoint.answer(() => ({ status: 503, body: '' }))
    const away = await call().gives(502)
    t.is(away.headers['proxy-status'], 'svc-egress; error=destination_unavailable')
    t.is(echoing.requests.length, before, 'nothing was sent')
    await until('the bytes are given back', async () => {
      const { rows } = await api.list(`${CREDENTIALS}/${credentialId}/leases`, operator)
      return rows[0]!['bytes_used'] === 0
    })
  },
)

test.serial('a token that the API rejects is refreshed early, at a limited rate', async (t) => {
  const endpoint = await tokenUpstream()
  t.teardown(() => endpoint.close())
  const { source, call } = await carried(endpoint)
  t.is((await call(resources, '/denied')).status, 401)
  t.is((await call(resources, '/denied')).status, 401)
  t.is(endpoint.tokenRequests.length, 1, 'a token of this minute is not refreshed')
  await expireIn(resources, source, 3_000)
  t.is((await call(resources, '/denied')).status, 401)
  for (let tries = 0; endpoint.tokenRequests.length === 1 && tries < 100; tries += 1) {
    t.is((await call()).status, 200)
  }
  t.is(endpoint.tokenRequests.length, 2)
  t.is(lastAuthorization(), 'Bearer at-2')
})

test.serial('revoking the account revokes its dependent credentials', async (t) => {
  const endpoint = await tokenUpstream()
  t.teardown(() => endpoint.close())
  const { source, call, credentialId, operator } = await carried(endpoint)
  t.is((await call()).status, 200)
  await api.post(`${CREDENTIALS}/${source.credentialId}/revoke`, operator).gives(200)
  t.deepEqual(refusedAs(await call()), [403, 'policy_denied'])
  const read = await api.get(`${CREDENTIALS}/${credentialId}`, operator)
  t.like(read.body, { status: 'revoked', token_of: source.credentialId })
})

test.serial('which credentials support token_of', async (t) => {
  const endpoint = await tokenUpstream()
  t.teardown(() => endpoint.close())
  const { source, operator, credentialId } = await carried(endpoint)
  const bad: [Json, string][] = [
    [{ token_of: credentialId }, '#/token_of'],
    [{ token_of: 'no-uuid' }, '#/token_of'],
    [{ token_of: '01890000-0000-7000-8000-000000000001' }, '#/token_of'],
    [{ credential_type: 'ssh_ca', auth_scheme: undefined }, '#/token_of'],
    [{ credential_type: 'oauth2' }, '#/token_of'],
    [{ secret: 'own' }, '#/secret'],
    [{ non_exportable: false }, '#/non_exportable'],
    [{ auth_scheme: 'basic' }, '#/auth_scheme'],
    [{ auth_scheme: undefined }, '#/auth_scheme'],
  ]
  const draft = {
    provider: 'upstream',
    credential_type: 'custom',
    label: 'Odd',
    auth_scheme: 'bearer',
    token_of: source.credentialId,
  }
  for (const [more, pointer] of bad) {
    const { status, body } = await api.post(CREDENTIALS, operator, { ...draft, ...more })
    t.is(status, 400, JSON.stringify(more))
    t.is((body['errors'] as Json[])[0]!['pointer'], pointer, JSON.stringify(more))
  }
  const stranger = await api.workspace()
  t.is((await api.post(CREDENTIALS, stranger.token, draft)).status, 400)
  await api.post(`${CREDENTIALS}/${credentialId}/rotate`, operator, { secret: 'x' }).gives(400)
  for (const scheme of ['header:x-api-key', 'query:key']) {
    await api.post(CREDENTIALS, operator, { ...draft, auth_scheme: scheme }).gives(201)
  }
})
