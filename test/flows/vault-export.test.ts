/** Credentials by token exchange. RFC 8693; decisions.md 4 and 22, export and oauth2 credentials. */
import test from 'ava'
import type { Answer, Json } from '../support/api.js'
import {
  CREDENTIALS,
  delegatedToken,
  type EgressHouse,
  egressHouse,
  SECRET,
  type Setting,
  settingOf,
} from '../support/egress.js'
import { fixtureOf, lend, ownToken, present } from '../support/delegation.js'
import { sql } from '../support/identity.js'
import { tokenUpstream, type TokenUpstream } from '../support/token-upstream.js'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const VAULT_SECRET = 'urn:svc:params:oauth:token-type:vault-secret'
const URN = 'urn:svc:vault:credential:'
const CLIENT_SECRET = 'canary-client:+ secret'

const house = await egressHouse()
/** Another process of the same deployment. */
const second = await egressHouse({ beside: house.running })
test.after.always(async () => {
  await second.end()
  await house.end()
})

function exchange(
  { api }: EgressHouse,
  setting: Pick<Setting, 'delegated' | 'direct' | 'credentialId'>,
  fields: Record<string, string> = {},
): Promise<Answer> {
  return api.form('/oauth/token', {
    grant_type: EXCHANGE,
    subject_token: setting.delegated,
    subject_token_type: ACCESS,
    actor_token: setting.direct,
    actor_token_type: ACCESS,
    requested_token_type: VAULT_SECRET,
    resource: URN + setting.credentialId,
    ...fields,
  })
}
const managed = (at: EgressHouse, setting: Setting, fields: Record<string, string> = {}) =>
  exchange(at, setting, { requested_token_type: ACCESS, ...fields })

const refusedAs = ({ status, body }: Answer) => [status, body['error']]

const accessedOf = (tenantId: string) =>
  sql<{ data: Json; grantId: string | null }>(
    house.running.db.database,
    `select e.data, a.grant_id as "grantId" from events e join audit_events a using (tenant_id, id)
     where e.tenant_id = $1 and e.type = 'vault.credential.accessed' order by e.sequence`,
    [tenantId],
  )

test('an exportable secret is handed to the agent that was granted it', async (t) => {
  const setting = await settingOf(house, { non_exportable: false })
  const answer = await exchange(house, setting)
  t.is(answer.status, 200)
  t.deepEqual(answer.body, {
    access_token: SECRET,
    issued_token_type: VAULT_SECRET,
    token_type: 'N_A',
  })
  t.is(answer.headers['cache-control'], 'no-store')
  // URNs are the same in any case.
  t.is(
    (
      await exchange(house, setting, {
        resource: `URN:svc:vault:credential:${setting.credentialId.toUpperCase()}`,
      })
    ).status,
    200,
  )
  const told = await accessedOf(setting.tenantId)
  t.is(told.length, 2)
  t.is(told[0]!.grantId, setting.grantId)
  t.like(told[0]!.data, {
    access: 'export',
    actor: { type: 'agent', id: setting.agentId },
    resource: { type: 'vault_credential', id: setting.credentialId },
  })
  t.false(JSON.stringify(told).includes(SECRET))
  const record = await house.api.get(`${CREDENTIALS}/${setting.credentialId}`, setting.operator)
  t.truthy(record.body['last_used_at'])
})

test('who gets nothing, and how they are told', async (t) => {
  const setting = await settingOf(house, { non_exportable: false })
  const { operator, direct, agentId, credentialId, tenantId } = setting
  const stranger = await settingOf(house, { non_exportable: false })
  const claims = (more: Json) => delegatedToken(house.running, direct, agentId, more)
  const cases: [number, string, Promise<Answer>][] = [
    [403, 'policy_denied', exchange(house, { ...setting, delegated: direct })],
    [
      403,
      'insufficient_scope',
      exchange(house, { ...setting, delegated: await claims({ scope: 'vault:list' }) }),
    ],
    [400, 'invalid_target', exchange(house, setting, { resource: URN + agentId })],
    [400, 'invalid_target', exchange(house, setting, { resource: URN + stranger.credentialId })],
    [400, 'invalid_target', exchange(house, setting, { resource: `${URN}x` })],
    [400, 'invalid_target', exchange(house, setting, { resource: 'https://api.example' })],
    [400, 'invalid_request', exchange(house, setting, { resource: '' })],
    [400, 'invalid_request', exchange(house, setting, { requested_token_type: ACCESS })],
    [400, 'invalid_request', exchange(house, setting, { requested_token_type: '' })],
    [400, 'invalid_request', exchange(house, setting, { requested_token_type: 'urn:x' })],
    [400, 'invalid_request', exchange(house, setting, { may_act: agentId })],
    [400, 'invalid_scope', exchange(house, setting, { scope: 'vault:read' })],
    [400, 'invalid_grant', exchange(house, { ...setting, delegated: 'x' })],
    // Another tenant's agent has no business with the token at all.
    [400, 'invalid_grant', exchange(house, { ...setting, direct: stranger.direct })],
  ]
  for (const [index, [status, error, answer]] of cases.entries()) {
    t.deepEqual(refusedAs(await answer), [status, error], `${index}`)
  }
  t.deepEqual(await accessedOf(tenantId), [])

  const closed = await settingOf(house)
  t.deepEqual(refusedAs(await exchange(house, closed)), [403, 'policy_denied'])
  for (const limits of [
    { max_requests: 5 },
    { methods: ['GET'] },
    { path_prefixes: ['/v1'] },
    { max_bytes: 9 },
  ]) {
    const limited = await settingOf(house, { non_exportable: false }, limits)
    t.deepEqual(refusedAs(await exchange(house, limited)), [403, 'policy_denied'])
  }
  const listed = await settingOf(house, { non_exportable: false }, { capabilities: ['list'] })
  t.deepEqual(refusedAs(await exchange(house, listed)), [400, 'invalid_target'])
  const lease = await house.api.post(
    `${CREDENTIALS}/${listed.credentialId}/leases`,
    listed.operator,
    {
      recipient_id: listed.agentId,
      byte_budget: 1000,
    },
  )
  t.is(lease.status, 201)
  t.deepEqual(refusedAs(await exchange(house, listed)), [403, 'policy_denied'])

  await house.api.post(`/api/v1/vault/grants/${setting.grantId}/revoke`, operator)
  t.deepEqual(refusedAs(await exchange(second, setting)), [400, 'invalid_target'])
  const again = await settingOf(house, { non_exportable: false })
  await house.api.post(`${CREDENTIALS}/${again.credentialId}/revoke`, again.operator)
  t.deepEqual(refusedAs(await exchange(second, again)), [403, 'policy_denied'])
  await house.api.post(`${CREDENTIALS}/${credentialId}/revoke`, operator)
  t.deepEqual(refusedAs(await exchange(house, setting)), [400, 'invalid_target'])
})

test('a grant to a delegation counts under that delegation only', async (t) => {
  const { api } = house
  const here = await api.workspace()
  const { tenantId, token: operator } = here
  const { key, agentId } = await api.register(tenantId)
  const { body } = await api.login(key, { tenant_id: tenantId, agent_id: agentId })
  const direct = String(body['access_token'])
  const person = await present(api, fixtureOf(here))
  t.teardown(() => person.browser.close())
  const [lent, other] = [await lend(api, direct, person), await lend(api, direct, person)]
  const created = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    allowed_hosts: [],
    secret: SECRET,
    non_exportable: false,
  })
  const credentialId = String(created.body['id'])
  const granted = await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, {
    grantee_type: 'delegation',
    grantee_id: lent.delegationId,
  })
  t.is(granted.status, 201)
  const under = ({ token }: { token: string }) =>
    exchange(second, { delegated: token, direct, credentialId })
  t.is((await under(lent)).body['access_token'], SECRET)
  t.deepEqual(refusedAs(await under(other)), [400, 'invalid_target'])
  const [told] = await accessedOf(tenantId)
  t.like(told!.data, { access: 'export', actor: { type: 'agent', id: agentId } })
  // The person takes it back: the token is worth nothing, nor is the grant.
  const own = await ownToken(api, here, person)
  await api.post(`/api/v1/delegations/${lent.delegationId}/revoke`, own)
  t.deepEqual(refusedAs(await under(lent)), [400, 'invalid_grant'])
})

/** An oauth2 credential whose token endpoint is `upstream`. */
function oauthSetting(upstream: TokenUpstream, more: Json = {}): Promise<Setting> {
  return settingOf(house, {
    credential_type: 'oauth2',
    auth_scheme: undefined,
    non_exportable: false,
    secret: JSON.stringify({
      token_url: upstream.url,
      client_id: 'client one',
      client_secret: CLIENT_SECRET,
      refresh_token: 'rt-0',
      ...more,
    }),
  })
}

test('an oauth2 credential gives the access token of its upstream, refreshed in good time', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  upstream.adorn({ scope: 'repo read' })
  const setting = await oauthSetting(upstream, { scope: 'repo' })
  const first = await managed(house, setting)
  t.deepEqual(first.body, {
    access_token: 'at-1',
    issued_token_type: ACCESS,
    token_type: 'Bearer',
    expires_in: first.body['expires_in'],
    scope: 'repo read',
  })
  t.true(Number(first.body['expires_in']) > 3500)
  const [asked] = upstream.asked
  t.deepEqual(asked!.form, { grant_type: 'refresh_token', refresh_token: 'rt-0', scope: 'repo' })
  const pair = Buffer.from(asked!.headers.authorization!.slice(6), 'base64').toString()
  t.is(pair, 'client+one:canary-client%3A%2B+secret')
  t.is((await managed(second, setting)).body['access_token'], 'at-1')
  t.is(upstream.asked.length, 1)

  // Sixty seconds before it expires the next one is fetched, with the refresh token of the first.
  await expireIn(setting, 59)
  t.is((await managed(second, setting)).body['access_token'], 'at-2')
  t.is(upstream.asked[1]!.form['refresh_token'], 'rt-1')
  await expireIn(setting, 90)
  t.is((await managed(house, setting)).body['access_token'], 'at-2')
  const told = await accessedOf(setting.tenantId)
  t.is(told.length, 4)
  t.like(told[0]!.data, { access: 'managed_token' })
  t.is(told[0]!.grantId, setting.grantId)
  t.false(/at-\d|rt-\d|canary/.test(JSON.stringify(told)))

  // The owner puts in another secret: nothing of the first one is left.
  const secret = { token_url: upstream.url, client_id: 'c', client_secret: 's' }
  await house.api.post(`${CREDENTIALS}/${setting.credentialId}/rotate`, setting.operator, {
    secret: JSON.stringify(secret),
  })
  t.is((await managed(house, setting)).body['access_token'], 'at-3')
  t.deepEqual(upstream.asked[2]!.form, { grant_type: 'client_credentials' })

  t.deepEqual(refusedAs(await exchange(house, setting)), [400, 'invalid_request'])
  // Not through egress (decisions.md 5), and not where it was said to stay.
  const proxied = await house.api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    method: 'GET',
    url: `${house.upstream.origin}/`,
  })
  t.deepEqual([proxied.status, proxied.body['code'] ?? proxied.body['title']][0], 403)
  await house.api.post(`${CREDENTIALS}/${setting.credentialId}/revoke`, setting.operator)
  t.deepEqual(refusedAs(await managed(house, setting)), [403, 'policy_denied'])
  const rows = await sql(
    house.running.db.database,
    'select from vault_managed_tokens where credential_id = $1',
    [setting.credentialId],
  )
  t.is(rows.length, 0)
})

const expireIn = ({ credentialId }: Setting, secs: number) =>
  sql(
    house.running.db.database,
    `update vault_managed_tokens set obtained_at = now() - interval '1 hour',
       expires_at = now() + make_interval(secs => $2) where credential_id = $1`,
    [credentialId, secs],
  )

test('thirty who ask in two processes cost one refresh, again and again', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(upstream)
  for (let round = 1; round <= 3; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => managed(index % 2 ? house : second, setting)),
    )
    t.deepEqual([...new Set(answers.map(({ body }) => body['access_token']))], [`at-${round}`])
    t.is(upstream.asked.length, round)
    await expireIn(setting, 10)
  }
  t.true(upstream.asked.every(({ form }, index) => form['refresh_token'] === `rt-${index}`))
})

test('an upstream that wants the secret in the form gets it there, and is remembered', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  upstream.answer(({ headers, form }) =>
    headers.authorization === undefined && form['client_secret'] === CLIENT_SECRET
      ? { body: { access_token: 'posted', token_type: 'Bearer', expires_in: '61' } }
      : { status: 401, body: { error: 'invalid_client' } },
  )
  const setting = await oauthSetting(upstream)
  t.is((await managed(house, setting)).body['access_token'], 'posted')
  t.is(upstream.asked.length, 2)
  await expireIn(setting, 5)
  t.is((await managed(second, setting)).body['access_token'], 'posted')
  t.is(upstream.asked.length, 3)
})

test('what an upstream can answer instead of a token', async (t) => {
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
    const setting = await oauthSetting(upstream)
    const answer = await managed(house, setting)
    t.deepEqual(refusedAs(answer), [status, error], String(words))
    t.regex(String(answer.body['error_description']), words)
    t.false(JSON.stringify(answer).includes('canary'))
    if (status === 503) t.is(answer.headers['retry-after'], /429/.test(words.source) ? '7' : '5')
    // Nobody hammers an upstream with what it has refused a moment ago.
    const before = upstream.asked.length
    t.deepEqual(refusedAs(await managed(second, setting)), [status, error])
    t.is(upstream.asked.length, before)
    t.deepEqual(await accessedOf(setting.tenantId), [])
  }
  const away = await oauthSetting(upstream, { token_url: 'https://api.upstream.example:1/token' })
  t.deepEqual(refusedAs(await managed(house, away)), [503, 'temporarily_unavailable'])
})

test('while the upstream is away, a token that is nearly used up still serves', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(upstream)
  await managed(house, setting)
  await expireIn(setting, 40)
  upstream.answer(() => ({ status: 503 }))
  t.is((await managed(house, setting)).body['access_token'], 'at-1')
  t.is((await managed(second, setting)).body['access_token'], 'at-1')
  t.is(upstream.asked.length, 2)
  await expireIn(setting, -1)
  t.is((await managed(house, setting)).status, 503)
})

test('a grant that ends while the upstream thinks ends the exchange', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(upstream)
  upstream.answer(async () => {
    await house.api.post(`/api/v1/vault/grants/${setting.grantId}/revoke`, setting.operator)
    return { body: { access_token: 'late', token_type: 'bearer', expires_in: 3600 } }
  })
  t.deepEqual(refusedAs(await managed(house, setting)), [400, 'invalid_target'])
  t.deepEqual(await accessedOf(setting.tenantId), [])
})

test('a secret that its owner replaces while the upstream thinks is the one that counts', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(upstream)
  upstream.answer(async ({ form }) => {
    if (form['refresh_token'] === 'owner') {
      return { body: { access_token: 'owned', token_type: 'bearer', expires_in: 3600 } }
    }
    const secret = JSON.stringify({
      token_url: upstream.url,
      client_id: 'c',
      refresh_token: 'owner',
    })
    await house.api.post(`${CREDENTIALS}/${setting.credentialId}/rotate`, setting.operator, {
      secret,
    })
    return { body: { access_token: 'old', token_type: 'bearer', refresh_token: 'older' } }
  })
  t.is((await managed(house, setting)).body['access_token'], 'owned')
  await expireIn(setting, -1)
  t.is((await managed(second, setting)).body['access_token'], 'owned')
  t.deepEqual(
    upstream.asked.map(({ form }) => form['refresh_token']),
    ['rt-0', 'owner', 'owner'],
  )
})

test('whoever dies while it asks is followed by another once its lease has run out', async (t) => {
  const upstream = await tokenUpstream()
  t.teardown(() => upstream.close())
  const setting = await oauthSetting(upstream)
  await sql(
    house.running.db.database,
    `insert into vault_managed_tokens (tenant_id, credential_id, refresher, refreshing_until)
     values ($1, $2, $2, now() + interval '2 seconds')`,
    [setting.tenantId, setting.credentialId],
  )
  const beganMs = performance.now()
  const answers = await Promise.all([managed(house, setting), managed(second, setting)])
  t.deepEqual(
    answers.map(({ body }) => body['access_token']),
    ['at-1', 'at-1'],
  )
  t.true(performance.now() - beganMs > 1_000)
  t.is(upstream.asked.length, 1)
})
