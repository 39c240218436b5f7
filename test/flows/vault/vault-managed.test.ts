/** Export of managed access tokens by token exchange. */
import test from 'ava'
import { CREDENTIALS, egressPair } from '../../support/vault/egress.js'
import { sql } from '../../support/storage/sql.js'
import { tokenUpstream, type TokenUpstream } from '../../support/vault/token-upstream.js'
import {
  ACCESS,
  accessedOf,
  CLIENT_SECRET,
  exchange,
  expireIn,
  managed,
  oauthSetting,
  refusedAs,
} from '../../support/vault/vault-export.js'

/** Two processes of a deployment. */
const [resources, second] = await egressPair()
test.after.always(async () => {
  await second.end()
  await resources.end()
})

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
  const rows = await sql(
    resources.running.db.database,
    'select from vault_managed_tokens where credential_id = $1',
    [setting.credentialId],
  )
  t.is(rows.length, 0)
})

test('thirty concurrent callers in two processes cause one refresh, repeatedly', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(resources, upstream)
  for (let round = 1; round <= 3; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => managed(index % 2 ? resources : second, setting)),
    )
    t.deepEqual([...new Set(answers.map(({ body }) => body['access_token']))], [`at-${round}`])
    t.is(upstream.tokenRequests.length, round)
    await expireIn(resources, setting, 10)
  }
  t.true(upstream.tokenRequests.every(({ form }, index) => form['refresh_token'] === `rt-${index}`))
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
  const { database } = resources.running.db
  const [lease] = await sql<{ until: string }>(
    database,
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
  t.deepEqual(await sql(database, over, [lease!.until]), [{ over: true }])
  t.is(upstream.tokenRequests.length, 1)
})
