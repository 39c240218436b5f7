/** The log entry and the body of a refused token request, and what they must not contain. */
import test from 'ava'
import { generateKeyPair, SignJWT } from 'jose'
import { bootstrapped } from '../../../support/identity/person.js'
import { tenantAgent } from '../../../support/identity/tenant-agent.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { apiOf } from '../../../support/api.js'
import { sharedService } from '../../../support/service.js'
import { linesOf } from '../../../support/service/exchanges.js'
import { until } from '../../../support/service/watch.js'

const running = await sharedService('plain')

type Line = Readonly<Record<string, unknown>>

/** The entry of a request, with all its text. */
async function entryOf(id: string | null): Promise<Line> {
  const isEntry = (line: string) => line.includes('"msg":"request"')
  const entry = () => linesOf(String(id)).find(isEntry)
  await until('the log entry', () => entry() !== undefined)
  return JSON.parse(entry()!) as Line
}

test('a refused token request is logged with error, client, tenant and grant', async (t) => {
  const asked: string[] = []
  const { tenantId } = await bootstrapped(running)
  const { clientId, secret } = await relyingParty(
    running,
    { tenantId },
    {
      grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
    },
  )
  const ask = async (fields: Record<string, string>) => {
    const body = new URLSearchParams(fields)
    const answer = await fetch(`${running.baseUrl}/oauth/token`, { method: 'POST', body })
    const told = (await answer.json()) as Line
    const id = answer.headers.get('x-request-id')
    t.is(told['request_id'], id, 'the body has it too')
    const access = await entryOf(id)
    asked.push(String(id))
    t.like(access, { status: answer.status, error: told['error'], level: 40 })
    const {
      error,
      client_id: clientId = null,
      tenant_id: tenantOfClient = null,
      presented_client_id: named = null,
      presented_tenant_id: tenantOfNamed = null,
      grant_type: grant = null,
      reason,
    } = access
    const presented = { clientId: named, tenantId: tenantOfNamed }
    return { error, clientId, tenantId: tenantOfClient, presented, grant, reason }
  }
  const client = { client_id: clientId, client_secret: secret }
  const planted = 'a-code-never-issued-0123456789'
  t.like(await ask({ ...client, grant_type: 'authorization_code', code: planted }), {
    error: 'invalid_grant',
    clientId,
    tenantId,
    presented: { clientId: null, tenantId: null },
    grant: 'authorization_code',
  })
  t.like(await ask({ ...client, grant_type: 'client_credentials', scope: 'fly' }), {
    error: 'invalid_scope',
    clientId,
    tenantId,
    grant: 'client_credentials',
  })
  // A client may name its own tenant only.
  const service = { ...client, grant_type: 'client_credentials', scope: 'openid' }
  t.like(await ask({ ...service, tenant_id: crypto.randomUUID() }), { error: 'invalid_request' })
  t.like(await ask({ ...service, tenant_id: 'another' }), { error: 'invalid_request' })
  // What is said without proof has other names. An id that is not a UUID is not repeated.
  const wrong = { ...client, client_secret: 'a-wrong-secret-0123456789' }
  const grant = { grant_type: 'refresh_token', refresh_token: planted }
  t.like(await ask({ ...wrong, ...grant }), {
    error: 'invalid_client',
    clientId: null,
    tenantId: null,
    presented: { clientId, tenantId },
    grant: 'refresh_token',
    reason: 'client_secret_wrong',
  })
  const unknown = crypto.randomUUID()
  t.like(await ask({ ...wrong, ...grant, client_id: unknown }), {
    clientId: null,
    presented: { clientId: unknown, tenantId: null },
    reason: 'client_unknown',
  })
  t.like(await ask({ ...grant, client_id: clientId }), {
    tenantId: null,
    presented: { clientId, tenantId },
    reason: 'client_method_wrong',
  })
  t.like(await ask({ ...wrong, ...grant, client_id: 'no id\nat all' }), {
    clientId: null,
    presented: { clientId: null, tenantId: null },
  })
  const open = await relyingParty(running, { tenantId }, { clientType: 'public' })
  const redeemed = { grant_type: 'authorization_code', client_id: open.clientId, code: planted }
  t.like(await ask(redeemed), {
    error: 'invalid_grant',
    clientId: null,
    tenantId: null,
    presented: { clientId: open.clientId, tenantId },
  })
  t.like(await ask({ ...client, grant_type: 'x\ny' }), {
    error: 'unsupported_grant_type',
    grant: null,
  })
  const log = asked.flatMap((id) => linesOf(id)).join('\n')
  for (const text of [secret, planted, wrong.client_secret]) t.false(log.includes(text))
})

test('a refused registration has a reason in the log', async (t) => {
  const running = await sharedService('clients')
  t.teardown(() => running.end())
  const id = '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e'
  for (const [method, path, authorization] of [
    ['POST', '/oauth/register', undefined],
    ['POST', '/oauth/register', 'Bearer unknown'],
    ['GET', `/oauth/register/${id}`, undefined],
    ['DELETE', `/oauth/register/${id}`, 'Bearer unknown'],
  ] as const) {
    const answer = await fetch(running.baseUrl + path, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
      },
      ...(method === 'POST' ? { body: '{}' } : {}),
    })
    t.is(answer.status, 401, path)
    const entry = await entryOf(answer.headers.get('x-request-id'))
    const reason = authorization === undefined ? 'token_missing' : 'token_invalid'
    t.is(entry['reason'], reason, `${method} ${path}`)
  }
})

test('every refused authority of the API has a reason in the log', async (t) => {
  const running = await sharedService('enterprise')
  t.teardown(() => running.end())
  const agent = await tenantAgent(running.baseUrl)
  const narrow = String((await agent.login('openid')).body['access_token'])
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  for (const [path, headers, status, reason] of [
    ['/api/v1/applications', {}, 401, 'token_missing'],
    ['/api/v1/applications', { authorization: 'Digest x' }, 401, 'token_malformed'],
    ['/api/v1/applications', { authorization: `Basic ${btoa('a:b')}` }, 401, 'token_malformed'],
    ['/api/v1/applications', bearer('a.b.c'), 401, 'token_invalid'],
    ['/api/v1/applications', bearer(narrow), 403, 'scope_missing'],
    ['/api/v1/vault/credentials', bearer(narrow), 403, 'scope_missing'],
    ['/scim/v2/Users', {}, 401, 'token_missing'],
    ['/scim/v2/Users', bearer('x'), 401, 'token_invalid'],
    ['/scim/v2/Users', { authorization: `Basic ${btoa('a:b')}` }, 401, 'token_malformed'],
    ['/userinfo', {}, 401, 'token_missing'],
    ['/userinfo', bearer('a.b.c'), 401, 'token_invalid'],
    ['/userinfo', { authorization: 'Digest x' }, 401, 'token_malformed'],
    ['/userinfo', bearer(narrow), 403, 'scope_missing'],
  ] as const) {
    const answer = await fetch(running.baseUrl + path, { headers })
    t.is(answer.status, status, path)
    t.false((await answer.text()).includes('"reason"'), 'the answer does not tell it')
    const entry = await entryOf(answer.headers.get('x-request-id'))
    t.is(entry['reason'], reason, path)
    const known = status === 403 ? agent : null
    t.is(entry['client_id'], known?.agentId, path)
    t.is(entry['tenant_id'], known?.tenantId, path)
    t.is(entry['presented_client_id'], undefined, path)
  }
})

test('a Basic header that cannot be read has one reason at every endpoint of clients', async (t) => {
  for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect', '/oauth/par'])
    for (const [authorization, reason] of [
      ['Basic !!!', 'basic_malformed'],
      [`Basic ${btoa('no colon')}`, 'basic_malformed'],
      [`Basic ${btoa('%zz:x')}`, 'basic_malformed'],
      ['Digest x', 'authorization_scheme_wrong'],
    ] as const) {
      const answer = await fetch(running.baseUrl + path, {
        method: 'POST',
        headers: { authorization },
        body: new URLSearchParams({ token: 'x', grant_type: 'client_credentials' }),
      })
      t.is(answer.status, 401, path)
      const entry = await entryOf(answer.headers.get('x-request-id'))
      t.like(entry, { error: 'invalid_client', reason }, `${path} ${authorization}`)
    }
})

test('a refusal of the API has the word of its cause', async (t) => {
  const agent = await tenantAgent(running.baseUrl)
  const { token } = agent
  const api = apiOf(running)
  t.teardown(() => api.close())
  const { id } = (
    await api
      .post('/api/v1/vault/credentials', token, {
        provider: 'p',
        credential_type: 'api_key',
        label: 'l',
        auth_scheme: 'bearer',
        allowed_hosts: ['api.example.com'],
        secret: 'x',
      })
      .gives(201)
  ).body
  const path = `/api/v1/vault/credentials/${String(id)}`
  const kept = await api.get(`${path}/secret`, token).gives(403)
  const entry = await entryOf(kept.headers['x-request-id']!)
  t.like(entry, { error: 'policy_denied', reason: 'credential_not_exportable' })
  const foreign = await fetch(`${running.baseUrl}/auth/login`, {
    method: 'POST',
    headers: { origin: 'https://evil.example' },
    body: new URLSearchParams({ email: 'a' }),
  })
  t.is(foreign.status, 403)
  const { reason } = await entryOf(foreign.headers.get('x-request-id'))
  t.true(['form_foreign', 'cookie_missing'].includes(String(reason)), String(reason))
})

test('an endpoint of clients logs what a wrong Basic header names as presented', async (t) => {
  const running = await sharedService('people')
  t.teardown(() => running.end())
  const named = crypto.randomUUID()
  const answer = await fetch(`${running.baseUrl}/oauth/revoke`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${named}:b`)}` },
    body: new URLSearchParams({ token: 'x' }),
  })
  t.is(answer.status, 401)
  const entry = await entryOf(answer.headers.get('x-request-id'))
  t.like(entry, { error: 'invalid_client', presented_client_id: named })
  t.false('client_id' in entry)
})

test('a refusal of the MCP endpoint is logged', async (t) => {
  const running = await sharedService('mcp')
  t.teardown(() => running.end())
  const answer = await fetch(`${running.baseUrl}/mcp`, {
    method: 'POST',
    headers: { authorization: 'Bearer x', 'content-type': 'application/json' },
    body: '{}',
  })
  t.is(answer.status, 401)
  const entry = await entryOf(answer.headers.get('x-request-id'))
  t.like(entry, { route: '/mcp', status: 401, reason: 'credentials_not_taken', level: 40 })
})

test('refused tokens of unknown issuers, which cost a stranger nothing, are one line a second', async (t) => {
  const { tenantId } = await bootstrapped(running)
  const grant_type = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
  const { privateKey } = await generateKeyPair('ES256')
  const assertion = await new SignJWT({ iss: 'https://unknown.example' })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(privateKey)
  const body = new URLSearchParams({ grant_type, assertion, tenant_id: tenantId })
  const began = performance.now()
  const answers = await Promise.all(
    Array.from({ length: 40 }, () =>
      fetch(`${running.baseUrl}/oauth/token`, { method: 'POST', body }),
    ),
  )
  const secs = Math.ceil((performance.now() - began) / 1000)
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [400])
  const entries = await Promise.all(
    answers.map(({ headers }) => entryOf(headers.get('x-request-id'))),
  )
  t.deepEqual([...new Set(entries.map(({ reason }) => reason))], ['workload_issuer'])
  const shown = entries.filter(({ level }) => level === 40).length
  t.true(shown >= 1 && shown <= secs + 1, `${shown} in ${secs} s`)
})

test('the reason of a refused client assertion says whether the client is known', async (t) => {
  const { tenantId } = await bootstrapped(running)
  const { clientId } = await relyingParty(running, { tenantId })
  const { privateKey } = await generateKeyPair('ES256')
  const reasonOf = async (id: string, expires: string) => {
    const client_assertion = await new SignJWT({ jti: crypto.randomUUID() })
      .setProtectedHeader({ alg: 'ES256' })
      .setIssuer(id)
      .setSubject(id)
      .setAudience(running.issuer)
      .setIssuedAt()
      .setExpirationTime(expires)
      .sign(privateKey)
    const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
    const fields = { grant_type: 'client_credentials', client_assertion_type, client_assertion }
    const body = new URLSearchParams(fields)
    const answer = await fetch(`${running.baseUrl}/oauth/token`, { method: 'POST', body })
    t.is(answer.status, 401)
    return (await entryOf(answer.headers.get('x-request-id')))['reason']
  }
  t.is(await reasonOf(clientId, '1m'), 'client_assertion_wrong')
  t.is(await reasonOf(crypto.randomUUID(), '1m'), 'client_unknown')
  t.is(await reasonOf(crypto.randomUUID(), '-1m'), 'client_assertion_wrong')
})

test('a refusal that is a page is logged with its error', async (t) => {
  const headers = { accept: 'text/html' }
  const unknown = `response_type=code&client_id=${crypto.randomUUID()}&redirect_uri=https%3A%2F%2Fa.example%2F`
  for (const [path, status, error] of [
    [`/oauth/authorize?${unknown}`, 400, 'invalid_client'],
    ['/oauth/authorize?response_type=code', 400, 'invalid_request'],
    ['/auth/invites/made-up', 404, undefined],
    ['/connect/made-up', 404, 'unknown'],
  ] as const) {
    const answer = await fetch(running.baseUrl + path, { headers, redirect: 'manual' })
    t.is(answer.status, status, await answer.text())
    const entry = await entryOf(answer.headers.get('x-request-id'))
    t.truthy(entry['error'], path)
    if (error !== undefined) t.is(entry['error'], error, path)
    t.is(entry['reason'], entry['error'], path)
  }
})
