/** Credentials that get access tokens: `oauth2_refresh` and `oauth2_client_credentials`. */
import { createVerify, generateKeyPairSync } from 'node:crypto'
import test from 'ava'
import {
  CREDENTIALS,
  UPSTREAM_NAME,
  bodyCall,
  egressPair,
  type Setting,
  settingOf,
} from '../../../support/vault/egress.js'
import { docsPage, testCommands } from '../../../support/pages/docs-page.js'
import { sql } from '../../../support/storage/sql.js'
import { type TokenUpstream, tokenUpstream } from '../../../support/vault/token-upstream.js'
import { expireIn, managed } from '../../../support/vault/vault-export.js'
import type { Json } from '../../../support/api.js'
import { until } from '../../../support/service/watch.js'

const [resources, second] = await egressPair()
const { api } = resources
const upstreams: TokenUpstream[] = []
test.after.always(() => Promise.all(upstreams.map((each) => each.close())))

async function endpoint(): Promise<TokenUpstream> {
  const upstream = await tokenUpstream()
  upstreams.push(upstream)
  return upstream
}

/** A credential of a scheme whose token endpoint is `upstream`, granted to an agent. */
const tokenSetting = (upstream: TokenUpstream, secret: Json = {}, more: Json = {}) =>
  settingOf(resources, {
    credential_type: 'custom',
    auth_scheme: 'oauth2_refresh',
    secret: {
      token_url: upstream.url,
      client_id: 'client one',
      client_secret: 'canary-client:+ secret',
      refresh_token: 'rt-0',
      ...secret,
    },
    ...more,
  })

const call = (upstream: TokenUpstream, setting: Setting, more: Json = {}, at = resources) =>
  at.api.post('/v1/proxy', setting.delegated, {
    credential_id: setting.credentialId,
    url: `${upstream.origin}/api/things`,
    ...more,
  })

const statusOf = async ({ credentialId, operator }: Setting) =>
  (await api.get(`${CREDENTIALS}/${credentialId}`, operator)).body['status']

/** What is kept for a minute at most is kept for an hour, however slow the machine is. */
const keptLong = ({ credentialId }: Setting) =>
  until('something is kept', async () => {
    const { length } = await sql(resources.running)`
      update vault_managed_tokens set retry_at = retry_at + interval '1 hour',
        kept_until = kept_until + interval '1 hour'
      where credential_id = ${credentialId} and coalesce(retry_at, kept_until) is not null
      returning credential_id`
    return length > 0
  })

const eventsOf = ({ tenantId }: Setting, type: string) =>
  sql<{ data: Json }>(resources.running)`
    select data from all_events where tenant_id = ${tenantId} and type = ${type}`

test('a refresh token gets the token of a call, is rotated, and neither is in an answer', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream)
  const first = await call(upstream, setting).gives(200)
  t.is(upstream.apiRequests[0]!.authorization, 'Bearer at-1')
  t.deepEqual(first.body, { authorization: 'Bearer [redacted]', body: '', known: ['[redacted]'] })
  const [asked] = upstream.tokenRequests
  t.deepEqual(asked!.form, { grant_type: 'refresh_token', refresh_token: 'rt-0' })
  const pair = Buffer.from(asked!.headers.authorization!.slice(6), 'base64').toString()
  t.is(pair, 'client+one:canary-client%3A%2B+secret')

  await expireIn(resources, setting, 59)
  const many = Array.from({ length: 8 }, (_, nth) =>
    call(upstream, setting, {}, nth % 2 === 0 ? resources : second).gives(200),
  )
  for (const { body } of await Promise.all(many)) t.false(JSON.stringify(body).includes('at-'))
  t.is(upstream.tokenRequests.length, 2, 'one refresh of two processes')
  t.is(upstream.tokenRequests[1]!.form['refresh_token'], 'rt-1')
  t.is(upstream.apiRequests.at(-1)!.authorization, 'Bearer at-2')
  // It is not exported, as it is not exportable.
  t.is((await managed(resources, setting)).status, 403)
})

test('client credentials have the parameters of their document, and no refresh token', async (t) => {
  const upstream = await endpoint()
  const document = {
    scope: 'read write',
    audience: 'https://api.example',
    resource: 'https://api.example/v1',
    extra_params: { tenant: 'acme' },
    auth_method: 'client_secret_post',
    refresh_token: undefined,
  }
  const more = { auth_scheme: 'oauth2_client_credentials', credential_type: 'oauth2' }
  const setting = await tokenSetting(upstream, document, { ...more, non_exportable: false })
  await call(upstream, setting).gives(200)
  const [{ form, headers } = { form: {}, headers: {} as Json }] = upstream.tokenRequests
  t.is(headers['authorization'], undefined)
  t.deepEqual(form, {
    tenant: 'acme',
    grant_type: 'client_credentials',
    scope: 'read write',
    audience: 'https://api.example',
    resource: 'https://api.example/v1',
    client_id: 'client one',
    client_secret: 'canary-client:+ secret',
  })
  // An exportable one exports its access token.
  t.is((await managed(resources, setting)).body['access_token'], 'at-1')
})

testCommands('the commands of docs/guides/vault/oauth-credentials.md run unchanged', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream)
  const page = docsPage(t, 'guides/vault/oauth-credentials')
  const env = {
    BASE: resources.running.baseUrl,
    TOKEN: setting.operator,
    API_HOST: UPSTREAM_NAME,
    TOKEN_URL: upstream.url,
    REFRESH_TOKEN: 'rt-0',
  }
  const credential = JSON.parse(await page.run('sh', 0, env)) as Json
  t.like(credential, { auth_scheme: 'oauth2_refresh', status: 'active' })
  const { operator, agentId } = setting
  const grant = { grantee_type: 'agent', grantee_id: agentId }
  const credentialId = String(credential['id'])
  await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, grant).gives(201)
  await call(upstream, { ...setting, credentialId }).gives(200)
  t.is(page.blocks('sh').length, 1)
})

test('private_key_jwt signs a new assertion for each request', async (t) => {
  const upstream = await endpoint()
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const setting = await tokenSetting(upstream, {
    client_secret: undefined,
    private_key: privateKey.export({ type: 'pkcs1', format: 'pem' }),
    kid: 'key-1',
    auth_method: 'private_key_jwt',
  })
  await call(upstream, setting).gives(200)
  await expireIn(resources, setting, 10)
  await call(upstream, setting).gives(200)
  const ids = upstream.tokenRequests.map(({ form }) => {
    t.is(form['client_assertion_type'], 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    const [head = '', claims = '', signature = ''] = form['client_assertion']!.split('.')
    const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Json
    t.deepEqual(read(head), { alg: 'RS256', typ: 'JWT', kid: 'key-1' })
    const { iss, sub, aud, iat, exp, jti } = read(claims)
    t.deepEqual({ iss, sub, aud }, { iss: 'client one', sub: 'client one', aud: upstream.url })
    t.is(Number(exp) - Number(iat), 120)
    const verifier = createVerify('sha256').update(`${head}.${claims}`)
    t.true(verifier.verify(publicKey, Buffer.from(signature, 'base64url')))
    return jti
  })
  t.is(new Set(ids).size, 2)
})

test('after invalid_grant nothing is asked again until the owner stores a new refresh token', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream)
  upstream.answer(() => ({ status: 400, body: { error: 'invalid_grant' } }))
  for (const at of [resources, second, resources]) {
    const { status, body, headers } = await call(upstream, setting, {}, at)
    t.is(status, 424)
    t.like(body, { status: 424, error: 'policy_denied', reason: 'reauthorization_required' })
    t.is(headers['proxy-status'], 'svc-egress; error=http_request_denied')
  }
  const { credentialId, operator } = setting
  const raw = await resources.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall({ credentialId }, `${upstream.origin}/api`),
  })
  t.is(raw.statusCode, 424)
  await raw.body.dump()
  t.is(upstream.tokenRequests.length, 1)
  t.is(upstream.apiRequests.length, 0)
  t.is(await statusOf(setting), 'needs_reauthorization')
  const { rows } = await api.list(CREDENTIALS, setting.operator)
  t.is(rows.find(({ id }) => id === credentialId)!['status'], 'needs_reauthorization')
  const events = await eventsOf(setting, 'vault.credential.reauthorization_required')
  t.is(events.length, 1)
  t.like(events[0]!.data, {
    resource: { type: 'vault_credential', id: credentialId },
    provider: 'upstream',
    label: 'Key',
    auth_scheme: 'oauth2_refresh',
  })

  upstream.answer(null)
  const secret = { token_url: upstream.url, client_id: 'c', refresh_token: 'rt-0' }
  await api.post(`${CREDENTIALS}/${credentialId}/rotate`, operator, { secret }).gives(200)
  t.is(await statusOf(setting), 'active')
  await call(upstream, setting).gives(200)
  await api.post(`${CREDENTIALS}/${credentialId}/revoke`, operator).gives(200)
  t.is(await statusOf(setting), 'revoked')
})

test('invalid_client is a fault of the configuration: the credential stays active', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream, { auth_method: 'client_secret_basic' })
  upstream.answer(() => ({ status: 401, body: { error: 'invalid_client' } }))
  for (let times = 0; times < 2; times += 1) {
    const { status, headers, body } = await call(upstream, setting)
    t.is(status, 502)
    t.is(headers['proxy-status'], 'svc-egress; error=proxy_configuration_error')
    t.true(String(body['detail']).endsWith('invalid_client.'))
    await keptLong(setting)
  }
  t.is(upstream.tokenRequests.length, 1)
  t.is(await statusOf(setting), 'active')
})

test('a token that still lives bridges an outage until its end', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream)
  await call(upstream, setting).gives(200)
  await expireIn(resources, setting, 59)
  upstream.answer(() => ({ status: 503 }))
  await call(upstream, setting).gives(200)
  await keptLong(setting)
  await expireIn(resources, setting, 59)
  await call(upstream, setting, {}, second).gives(200)
  t.is(upstream.tokenRequests.length, 2)
  t.is(upstream.apiRequests.at(-1)!.authorization, 'Bearer at-1')
  await expireIn(resources, setting, -1)
  const away = await call(upstream, setting).gives(502)
  t.is(away.headers['proxy-status'], 'svc-egress; error=destination_unavailable')
})

test('a slow token endpoint holds a call for 5 s while its token lives', async (t) => {
  t.timeout(60_000)
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream)
  await call(upstream, setting).gives(200)
  await expireIn(resources, setting, 59)
  let finish: (reply: { body: Json }) => void = () => {}
  upstream.answer(() => new Promise((resolve) => (finish = resolve)))
  const waiting = [call(upstream, setting), call(upstream, setting, {}, second)]
  for (const answer of await Promise.all(waiting)) t.is(answer.status, 200)
  t.is(upstream.tokenRequests.length, 2)
  t.is(upstream.apiRequests.at(-1)!.authorization, 'Bearer at-1')
  // The refresh goes on without them.
  finish({ body: { access_token: 'at-slow', token_type: 'Bearer', expires_in: 3600 } })
  upstream.answer(null)
  for (let tries = 0; upstream.apiRequests.at(-1)!.authorization !== 'Bearer at-slow'; tries += 1) {
    if (tries === 100) return t.fail('the token of the slow answer is not used')
    await call(upstream, setting).gives(200)
  }
  t.is(upstream.tokenRequests.length, 2)
})

test('a rejected token is refreshed once, and the call repeated if its body is at hand', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream, {}, {})
  await call(upstream, setting).gives(200)
  upstream.reject('at-1')
  const long = 'x'.repeat(200_000)
  const again = await call(upstream, setting, { method: 'POST', body: long }).gives(200)
  t.is((again.body['body'] as string).length, long.length)
  t.deepEqual(
    upstream.apiRequests.map(({ authorization }) => authorization),
    ['Bearer at-1', 'Bearer at-1', 'Bearer at-2'],
  )
  // The former token is redacted too.
  t.deepEqual(again.body['known'], ['[redacted]', '[redacted]'])

  // A streamed body is not sent twice, and the next call has a new token.
  upstream.reject('at-2')
  const streamed = await resources.send('/v1/proxy/body', {
    token: setting.direct,
    headers: bodyCall(setting, `${upstream.origin}/api`),
    body: 'streamed',
  })
  t.is(streamed.statusCode, 401)
  await streamed.body.dump()
  t.is(upstream.tokenRequests.length, 2)
  await call(upstream, setting).gives(200)
  t.is(upstream.apiRequests.at(-1)!.authorization, 'Bearer at-3')

  // An API that rejects every token costs one refresh.
  upstream.reject('all')
  await call(upstream, setting).gives(401)
  await keptLong(setting)
  for (let times = 0; times < 4; times += 1) await call(upstream, setting).gives(401)
  t.is(upstream.tokenRequests.length, 4)
  const closed = await eventsOf(setting, 'vault.credential.accessed')
  t.true(closed.length >= 8)
})

test('many calls with a rejected token cause one refresh', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream)
  await call(upstream, setting).gives(200)
  upstream.reject('at-1')
  const many = Array.from({ length: 10 }, (_, nth) =>
    call(upstream, setting, {}, nth % 2 === 0 ? resources : second),
  )
  for (const { status } of await Promise.all(many)) t.is(status, 200)
  t.is(upstream.tokenRequests.length, 2)
})

test('a call whose first token another call replaced during it is repeated', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream)
  const letGo = upstream.holdNext()
  const early = call(upstream, setting)
  await until('the API has the call', () => upstream.apiRequests.length === 1)
  upstream.reject('at-1')
  await call(upstream, setting, {}, second).gives(200)
  letGo()
  await early.gives(200)
  t.is(upstream.tokenRequests.length, 2)
  t.deepEqual(
    upstream.apiRequests.map(({ authorization }) => authorization),
    ['Bearer at-1', 'Bearer at-1', 'Bearer at-2', 'Bearer at-2'],
  )
})

test('a refusal after a rejection is the answer', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream)
  await call(upstream, setting).gives(200)
  upstream.reject('at-1')
  upstream.answer(() => ({ status: 400, body: { error: 'invalid_grant' } }))
  t.is((await call(upstream, setting)).status, 424)
  t.is(await statusOf(setting), 'needs_reauthorization')
})

test('a connection that breaks is tried once more', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(upstream, { auth_method: 'client_secret_basic' })
  upstream.breakNext(1)
  await call(upstream, setting).gives(200)
  await expireIn(resources, setting, -1)
  const before = upstream.broken
  upstream.breakNext(5)
  await call(upstream, setting).gives(502)
  t.is(upstream.broken - before, 2)
})

test('other token types, and hosts that the credential no longer allows, are refused', async (t) => {
  const upstream = await endpoint()
  const setting = await tokenSetting(
    upstream,
    {},
    { allowed_hosts: [UPSTREAM_NAME, 'other.example'] },
  )
  upstream.adorn({ token_type: 'DPoP' })
  const typed = await call(upstream, setting).gives(502)
  t.is(typed.headers['proxy-status'], 'svc-egress; error=proxy_configuration_error')

  const narrow = await tokenSetting(upstream, { token_url: `${upstream.origin}/token` })
  await api
    .patch(`${CREDENTIALS}/${narrow.credentialId}`, narrow.operator, { allowed_hosts: [] })
    .gives(200)
  await call(upstream, narrow).gives(403)
  t.is(upstream.tokenRequests.length, 1)
})

test('what a document may have', async (t) => {
  const upstream = await endpoint()
  const { operator } = await tokenSetting(upstream)
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const draft = {
    provider: 'upstream',
    credential_type: 'custom',
    label: 'Odd',
    auth_scheme: 'oauth2_refresh',
    allowed_hosts: [UPSTREAM_NAME],
  }
  const document = { token_url: upstream.url, client_id: 'c', refresh_token: 'canary-rt' }
  const bad: [unknown, string][] = [
    ['canary', '#/secret'],
    ['{"token_url":1,"token_url":2}', '#/secret'],
    [{ ...document, refresh_token: undefined }, '#/secret/refresh_token'],
    [{ ...document, token_url: 'https://elsewhere.example/token' }, '#/secret/token_url'],
    [{ ...document, token_url: `http://${UPSTREAM_NAME}/token` }, '#/secret/token_url'],
    [{ ...document, token_url: 'canary' }, '#/secret/token_url'],
    [{ ...document, more: 'canary' }, '#/secret'],
    [{ ...document, connection_id: 'x' }, '#/secret'],
    [{ ...document, dpop: true }, '#/secret/dpop'],
    [{ ...document, auth_method: 'tls_client_auth' }, '#/secret/auth_method'],
    [{ ...document, auth_method: 'client_secret_post' }, '#/secret/client_secret'],
    [{ ...document, auth_method: 'none', client_secret: 'canary' }, '#/secret/client_secret'],
    [{ ...document, auth_method: 'private_key_jwt' }, '#/secret/private_key'],
    [{ ...document, private_key: 'canary' }, '#/secret/private_key'],
    [{ ...document, private_key: pem, auth_method: 'none' }, '#/secret/private_key'],
    [{ ...document, extra_params: { grant_type: 'password' } }, '#/secret/extra_params'],
    [{ ...document, scope: '' }, '#/secret/scope'],
  ]
  for (const [secret, pointer] of bad) {
    const { status, body } = await api.post(CREDENTIALS, operator, { ...draft, secret })
    t.is(status, 400, JSON.stringify(secret))
    t.is((body['errors'] as Json[])[0]!['pointer'], pointer, JSON.stringify(secret))
    t.false(JSON.stringify(body).includes('canary'))
  }
  const good = { ...document, private_key: pem, dpop: false, resource: ['https://a.example'] }
  for (const secret of [good, JSON.stringify(good)])
    await api.post(CREDENTIALS, operator, { ...draft, secret }).gives(201)
  const other = { ...draft, credential_type: 'api_key', auth_scheme: 'bearer', secret: document }
  t.is((await api.post(CREDENTIALS, operator, other)).status, 400)
  const ssh = { ...draft, credential_type: 'ssh_key', secret: document }
  t.is((await api.post(CREDENTIALS, operator, ssh)).status, 400)
})
