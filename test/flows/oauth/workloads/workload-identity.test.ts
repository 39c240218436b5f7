/** Tokens of trusted issuers stand for applications of a tenant, by three doors (RFC 7523, RFC 8693). */
import test from 'ava'
import { decodeJwt } from 'jose'
import { callAt, type Json, tenantAgent } from '../../../support/identity/tenant-agent.js'
import { type TokenSource, tokenSource } from '../../../support/oauth/token-source.js'
import { sharedService } from '../../../support/service.js'

const ISSUERS = '/api/v1/trusted-issuers'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const SVID = 'urn:ietf:params:oauth:client-assertion-type:jwt-spiffe'

const running = await sharedService('hosts')
const owner = await tenantAgent(running.baseUrl)
const source = await tokenSource(running.issuer)
const service = await application()
const trusted = await trust(source)
await rule(trusted, { conditions: [{ claim: 'sub', op: 'eq', value: 'build' }] })

async function application(more: Json = {}) {
  const created = await owner.ask('POST', '/api/v1/applications', {
    name: 'Deployer',
    client_type: 'confidential',
    grant_types: ['authorization_code'],
    redirect_uris: ['https://deployer.example/callback'],
    scopes: ['openid', 'users:read', 'webhooks:read'],
    ...more,
  })
  if (created.status !== 201) throw new Error(created.text)
  return String(created.body['client_id'] ?? created.body['id'])
}

async function trust({ issuer }: Pick<TokenSource, 'issuer'>, more: Json = {}) {
  const body = { name: 'Source', issuer, purposes: ['workload'], ...more }
  const created = await owner.ask('POST', ISSUERS, body)
  if (created.status !== 201) throw new Error(created.text)
  return String(created.body['id'])
}

async function rule(issuerId: string, more: Json) {
  const body = { name: 'Rule', target: { client_id: service }, scopes: ['webhooks:read'], ...more }
  const created = await owner.ask('POST', `${ISSUERS}/${issuerId}/rules`, body)
  if (created.status !== 201) throw new Error(created.text)
  return created.body
}

const token = (fields: Record<string, string>) =>
  callAt(running.baseUrl, '/oauth/token', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ tenant_id: owner.tenantId, ...fields }).toString(),
  })
const bearer = (assertion: string, more: Record<string, string> = {}) =>
  token({ grant_type: JWT_BEARER, assertion, ...more })

const doors: Readonly<Record<string, (assertion: string) => Record<string, string>>> = {
  'client assertion': (client_assertion) => ({
    grant_type: 'client_credentials',
    client_assertion_type: ASSERTION,
    client_assertion,
  }),
  'jwt-bearer grant': (assertion) => ({ grant_type: JWT_BEARER, assertion }),
  'token exchange': (subject_token) => ({
    grant_type: EXCHANGE,
    subject_token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }),
}

for (const [door, fieldsOf] of Object.entries(doors)) {
  test(`a token of the issuer gets a token of the application by ${door}`, async (t) => {
    const issued = await token(fieldsOf(await source.sign({ sub: 'build' })))
    t.is(issued.status, 200, issued.text)
    t.is(issued.body['refresh_token'], undefined)
    t.is(issued.body['scope'], 'webhooks:read')
    t.true(Number(issued.body['expires_in']) <= 300)
    const claims = decodeJwt(String(issued.body['access_token']))
    t.is(claims.sub, service)
    t.is(claims['subject_type'], 'service')
    const hooks = await callAt(running.baseUrl, '/api/v1/webhooks', {
      headers: { authorization: `Bearer ${String(issued.body['access_token'])}` },
    })
    t.is(hooks.status, 200, hooks.text)
  })

  test(`a token without a rule is refused by ${door}`, async (t) => {
    const refused = await token(fieldsOf(await source.sign({ sub: 'somebody' })))
    const isClient = door === 'client assertion'
    t.is(refused.status, isClient ? 401 : 400, refused.text)
    t.is(refused.body['error'], isClient ? 'invalid_client' : 'invalid_grant')
  })
}

test('a token has the scopes of its rule, and no others', async (t) => {
  const assertion = await source.sign({ sub: 'build' })
  t.is((await bearer(assertion, { scope: 'webhooks:read' })).status, 200)
  for (const scope of ['users:read', 'users:read webhooks:read', 'users:manage']) {
    const refused = await bearer(assertion, { scope })
    t.is(refused.body['error'], 'invalid_scope', refused.text)
  }
  const elsewhere = await bearer(assertion, { resource: 'https://api.example/' })
  t.is(elsewhere.body['error'], 'invalid_target', elsewhere.text)
})

test('each step of the validation refuses', async (t) => {
  const nowSecs = Math.floor(Date.now() / 1000)
  const stranger = await tokenSource(running.issuer)
  const signed = (more: Record<string, unknown>, header?: Record<string, unknown>) =>
    source.sign({ sub: 'build', ...more }, header)
  const good = await signed({})
  const [head, payload, signature] = good.split('.') as [string, string, string]
  const none = Buffer.from('{"alg":"none"}').toString('base64url')
  const cases: readonly [step: string, token: string][] = [
    ['size', `${head}.${'a'.repeat(16_384)}.${signature}`],
    ['parse', 'not-a-token'],
    ['parse', await signed({}, { crit: ['exp'] }).catch(() => `${head}.${payload}`)],
    ['algorithm', `${none}.${payload}.${signature}`],
    ['issuer', await stranger.sign({ sub: 'build' })],
    ['key', await signed({}, { kid: 'unknown' })],
    ['signature', await stranger.sign({ iss: source.issuer, sub: 'build' })],
    ['exp', await signed({ exp: undefined })],
    ['exp', await signed({ exp: nowSecs - 61, iat: nowSecs - 90 })],
    ['nbf', await signed({ nbf: nowSecs + 120 })],
    ['iat', await signed({ iat: undefined })],
    ['iat', await signed({ iat: nowSecs - 7_200 })],
    ['aud', await signed({ aud: 'https://other.example' })],
    ['rule', await signed({ sub: 'builder' })],
    ['rule', await signed({ sub: ['build'] })],
  ]
  for (const [step, assertion] of cases) {
    const refused = await bearer(assertion)
    t.is(refused.body['error'], 'invalid_grant', `${step}: ${refused.text}`)
    const shown = await owner.ask('POST', `${ISSUERS}/${trusted}/evaluate`, { token: assertion })
    t.is(shown.status, 200, shown.text)
    t.false(shown.body['accepted'])
    t.is((shown.body['failed'] as { step: string }[])[0]!.step, step, shown.text)
  }
  const shown = await owner.ask('POST', `${ISSUERS}/${trusted}/evaluate`, { token: good })
  t.true(shown.body['accepted'], shown.text)
})

test('the tenant reads why a token that its issuer made was refused', async (t) => {
  const audited = await tokenSource(running.issuer)
  const id = await trust(audited)
  await rule(id, { conditions: [{ claim: 'sub', op: 'eq', value: 'job' }] })
  const refused = await audited.sign({ sub: 'other' })
  for (const _ of [1, 2]) t.is((await bearer(refused)).status, 400)
  const forged = await (await tokenSource(running.issuer)).sign({ iss: audited.issuer, sub: 'job' })
  t.is((await bearer(forged)).status, 400)
  const listed = await owner.ask(
    'GET',
    '/api/v1/audit-events?type=auth.assertion.refused&limit=100',
  )
  t.is(listed.status, 200, listed.text)
  const events = (JSON.parse(listed.text) as { resource: { id: string }; data: Json }[]).filter(
    ({ resource }) => resource.id === id,
  )
  t.is(events.length, 1, 'once a minute for each step, and no forgery')
  t.like(events[0]!.data, { step: 'rule', issuer: audited.issuer })
})

test('a rule must pin what the issuer never gives again', async (t) => {
  const rules = [
    ['oidc', [{ claim: 'repository', op: 'eq', value: 'octo/app' }]],
    ['oidc', [{ claim: 'sub', op: 'glob', value: 'repo/*' }]],
    ['github_actions', [{ claim: 'sub', op: 'eq', value: 'repo:octo/app:ref:refs/heads/main' }]],
    ['gitlab', [{ claim: 'project_path', op: 'eq', value: 'octo/app' }]],
    ['kubernetes', [{ claim: 'sub', op: 'eq', value: 'system:serviceaccount:a:b' }]],
  ] as const
  for (const [kind, conditions] of rules) {
    const id = await trust({ issuer: `https://${crypto.randomUUID()}.example` }, { kind })
    const body = { name: 'Loose', target: { client_id: service }, scopes: [], conditions }
    const refused = await owner.ask('POST', `${ISSUERS}/${id}/rules`, body)
    t.is(refused.status, 422, refused.text)
    t.is(refused.body['error'], 'rule_not_pinned')
  }
})

test('a rule has a bounded size, because each token of the issuer reads all rules', async (t) => {
  const id = await trust({ issuer: `https://${crypto.randomUUID()}.example` })
  const large = Array.from({ length: 20 }, (_, index) => `${index}`.padEnd(500, 'x'))
  const body = { name: 'Large', target: { client_id: service }, scopes: [] }
  const conditions = [{ claim: 'sub', op: 'in', value: large }]
  const refused = await owner.ask('POST', `${ISSUERS}/${id}/rules`, { ...body, conditions })
  t.is(refused.status, 400, refused.text)
})

test('a page of issuers has at most twenty, whose key sets can be large', async (t) => {
  const other = await tenantAgent(running.baseUrl)
  for (let made = 0; made < 21; made += 1) {
    const body = { name: 'I', issuer: `https://i${made}.example`, purposes: ['workload'] }
    t.is((await other.ask('POST', ISSUERS, body)).status, 201)
  }
  const first = await other.ask('GET', `${ISSUERS}?limit=200`)
  t.is((JSON.parse(first.text) as unknown[]).length, 20)
  const next = /<([^>]+)>; rel="next"/.exec(String(first.headers.get('link')))![1]!
  const { pathname, search } = new URL(next)
  const second = await other.ask('GET', pathname + search)
  t.is((JSON.parse(second.text) as unknown[]).length, 1)
})

test('an impossible issuer is refused like an unknown one', async (t) => {
  const source = await tokenSource(running.issuer)
  for (const iss of ['a\0b', 'x'.repeat(2_000), '', ['a'], null]) {
    const refused = await bearer(await source.sign({ sub: 'a', iss }))
    t.is(refused.status, 400, refused.text)
    t.is(refused.body['error'], 'invalid_grant')
  }
})

test('GitHub Actions: both forms of sub pass, and a recycled name does not', async (t) => {
  const github = await tokenSource(running.issuer)
  const id = await trust(github, { kind: 'github_actions' })
  await rule(id, {
    conditions: [
      { claim: 'repository_id', op: 'eq', value: '456789' },
      { claim: 'ref', op: 'in', value: ['refs/heads/main', 'refs/heads/release'] },
      { claim: 'environment', op: 'eq', value: 'production' },
    ],
  })
  const claims = { repository_id: '456789', ref: 'refs/heads/main', environment: 'production' }
  for (const sub of [
    'repo:octocat/my-repo:ref:refs/heads/main',
    'repo:octocat@123456/my-repo@456789:ref:refs/heads/main',
  ]) {
    const issued = await bearer(await github.sign({ ...claims, sub }))
    t.is(issued.status, 200, issued.text)
  }
  const sub = 'repo:octocat/my-repo:ref:refs/heads/main'
  for (const more of [
    { repository_id: '999' },
    { ref: 'refs/pull/1/merge' },
    { environment: '' },
  ]) {
    const refused = await bearer(await github.sign({ ...claims, sub, ...more }))
    t.is(refused.body['error'], 'invalid_grant', refused.text)
  }
})

test('Kubernetes: a claim whose name has dots, and keys that the tenant states', async (t) => {
  const cluster = await tokenSource(running.issuer, { path: '/cluster' })
  const id = await trust(cluster, { kind: 'kubernetes', jwks: cluster.keys() })
  const claim = String.raw`kubernetes\.io.serviceaccount.uid`
  await rule(id, { conditions: [{ claim, op: 'eq', value: 'uid-1' }] })
  const claims = (uid: string) => ({
    sub: 'system:serviceaccount:ns:deployer',
    aud: [running.issuer],
    'kubernetes.io': { namespace: 'ns', serviceaccount: { name: 'deployer', uid } },
  })
  const issued = await bearer(await cluster.sign(claims('uid-1')))
  t.is(issued.status, 200, issued.text)
  t.is((await bearer(await cluster.sign(claims('uid-2')))).body['error'], 'invalid_grant')
  t.deepEqual(cluster.host.asked, [])
})

test('SPIFFE: the trust domain decides, and a path ends at a slash', async (t) => {
  const domain = `${crypto.randomUUID()}.example`
  const spire = await tokenSource(running.issuer, { alg: 'ES256', use: 'jwt-svid' })
  const id = await trust(
    { issuer: `spiffe://${domain}` },
    {
      kind: 'spiffe',
      spiffe: { trust_domain: domain, bundle_endpoint_url: `${spire.issuer}/keys` },
    },
  )
  const target = { client_id: await application({ token_endpoint_auth_method: 'spiffe_jwt' }) }
  await rule(id, {
    target,
    conditions: [{ claim: 'sub', op: 'glob', value: `spiffe://${domain}/a/*` }],
  })
  const svid = (path: string, more: Json = {}) =>
    spire.sign({ iss: undefined, iat: undefined, sub: `spiffe://${domain}${path}`, ...more })
  const present = async (assertion: string) =>
    token({
      grant_type: 'client_credentials',
      client_assertion_type: SVID,
      client_assertion: assertion,
    })
  const issued = await present(await svid('/a/b'))
  t.is(issued.status, 200, issued.text)
  const again = await svid('/a/b/c')
  t.is((await present(again)).status, 200)
  t.is((await present(again)).status, 200, 'a JWT-SVID is cached and sent again')
  for (const refused of [
    await svid('/ab'),
    await svid('/a'),
    await svid('/a/b', { aud: [running.issuer, 'https://other.example'] }),
    await spire.sign({ iss: undefined, sub: `spiffe://other.${domain}/a/b` }),
  ])
    t.is((await present(refused)).body['error'], 'invalid_client')
})

test('an agent, and an application of another tenant, are no targets', async (t) => {
  const other = await tenantAgent(running.baseUrl)
  const foreign = await other.ask('POST', '/api/v1/applications', {
    name: 'Theirs',
    client_type: 'confidential',
    grant_types: ['client_credentials'],
    scopes: ['openid'],
  })
  t.is(foreign.status, 201, foreign.text)
  const conditions = [{ claim: 'sub', op: 'eq', value: 'job' }]
  for (const [status, target] of [
    [400, { agent_id: owner.agentId }],
    [422, { client_id: owner.agentId }],
    [422, { client_id: String(foreign.body['client_id']) }],
  ] as const) {
    const body = { name: 'Mine', target, conditions, scopes: [] }
    const refused = await owner.ask('POST', `${ISSUERS}/${trusted}/rules`, body)
    t.is(refused.status, status, refused.text)
  }
})

test('a client may authenticate besides, and another may not', async (t) => {
  const created = await owner.ask('POST', '/api/v1/applications', {
    name: 'Both',
    client_type: 'confidential',
    grant_types: ['client_credentials'],
    scopes: ['webhooks:read'],
  })
  const client_id = String(created.body['client_id'])
  const client_secret = String(created.body['client_secret'])
  const both = await tokenSource(running.issuer)
  const conditions = [{ claim: 'sub', op: 'eq', value: 'job' }]
  const scopes = ['webhooks:read']
  await rule(await trust(both), { target: { client_id }, conditions, scopes })
  const assertion = await both.sign({ sub: 'job' })
  const issued = await bearer(assertion, { client_id, client_secret })
  t.is(issued.status, 200, issued.text)
  t.is((await bearer(assertion, { client_id, client_secret: 'wrong' })).status, 401)
  const ofOther = await source.sign({ sub: 'build' })
  t.is((await bearer(ofOther, { client_secret, client_id })).body['error'], 'invalid_grant')
})

test('the scopes of the rule bound introspection too', async (t) => {
  const reader = await application({ scopes: ['openid', 'webhooks:read', 'tokens:introspect'] })
  const limited = await tokenSource(running.issuer)
  const conditions = [{ claim: 'sub', op: 'eq', value: 'job' }]
  const target = { client_id: reader }
  await rule(await trust(limited), { target, conditions, scopes: ['webhooks:read'] })
  const answer = await callAt(running.baseUrl, '/oauth/introspect', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      tenant_id: owner.tenantId,
      token: owner.token,
      client_assertion_type: ASSERTION,
      client_assertion: await limited.sign({ sub: 'job' }),
    }).toString(),
  })
  t.not(answer.body['active'], true, answer.text)
})

test('what the rules rest on does not change', async (t) => {
  const fixed = await tokenSource(running.issuer)
  const id = await trust(fixed)
  for (const change of [{ kind: 'github_actions' }, { issuer: 'https://other.example' }]) {
    const refused = await owner.ask('PATCH', `${ISSUERS}/${id}`, change)
    t.is(refused.status, 400, refused.text)
  }
  const same = { kind: 'oidc', issuer: fixed.issuer, name: 'Renamed' }
  t.is((await owner.ask('PATCH', `${ISSUERS}/${id}`, same)).status, 200)
})

test('a jti is accepted once where the issuer says so', async (t) => {
  const once = await tokenSource(running.issuer)
  const id = await trust(once, { require_jti: true })
  await rule(id, { conditions: [{ claim: 'sub', op: 'eq', value: 'job' }] })
  const assertion = await once.sign({ sub: 'job', jti: crypto.randomUUID() })
  t.is((await bearer(assertion)).status, 200)
  t.is((await bearer(assertion)).body['error'], 'invalid_grant')
  t.is((await bearer(await once.sign({ sub: 'job' }))).body['error'], 'invalid_grant')
})

test('keys rotate, and unknown keys cause one fetch', async (t) => {
  const rotating = await tokenSource(running.issuer)
  const id = await trust(rotating)
  await rule(id, { conditions: [{ claim: 'sub', op: 'eq', value: 'job' }] })
  t.is((await bearer(await rotating.sign({ sub: 'job' }))).status, 200)
  const fetches = () => rotating.host.asked.filter((path) => path === '/keys').length
  t.is(fetches(), 1)
  const unknown = await Promise.all(
    Array.from({ length: 20 }, (_, index) => rotating.sign({ sub: 'job' }, { kid: `no-${index}` })),
  )
  const refused = await Promise.all(unknown.map((assertion) => bearer(assertion)))
  t.true(refused.every(({ body }) => body['error'] === 'invalid_grant'))
  t.true(fetches() <= 2, `${fetches()} fetches`)
})

test('a disabled issuer, a deleted rule and another tenant are refused', async (t) => {
  const ending = await tokenSource(running.issuer)
  const id = await trust(ending)
  const { id: ruleId } = await rule(id, { conditions: [{ claim: 'sub', op: 'eq', value: 'job' }] })
  const assertion = await ending.sign({ sub: 'job' })
  t.is((await bearer(assertion)).status, 200)
  const other = await tenantAgent(running.baseUrl)
  t.is((await bearer(assertion, { tenant_id: other.tenantId })).body['error'], 'invalid_grant')
  for (const path of [`${ISSUERS}/${id}`, `${ISSUERS}/${id}/rules`])
    t.is((await other.ask('GET', path)).status, 404)
  const removed = await owner.ask('DELETE', `${ISSUERS}/${id}/rules/${String(ruleId)}`)
  t.is(removed.status, 204)
  const failedStep = async () => {
    const shown = await owner.ask('POST', `${ISSUERS}/${id}/evaluate`, { token: assertion })
    return (shown.body['failed'] as { step: string }[])[0]!.step
  }
  t.is(await failedStep(), 'rule')
  t.is((await owner.ask('PATCH', `${ISSUERS}/${id}`, { status: 'disabled' })).status, 200)
  t.is(await failedStep(), 'issuer')
})

test('private addresses and private keys are refused', async (t) => {
  const strict = await sharedService('clients')
  const stranger = await tenantAgent(strict.baseUrl)
  const base = { name: 'Source', issuer: 'https://issuer.example', purposes: ['workload'] }
  for (const more of [
    { jwks_uri: 'https://127.0.0.1/keys' },
    { jwks_uri: 'http://issuer.example/keys' },
    { kind: 'static_jwks', jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } },
    { kind: 'static_jwks' },
    { issuer: 'http://issuer.example' },
    { issuer: 'https://@issuer.example' },
    { issuer: 'https://issuer.example?' },
    { kind: 'spiffe' },
  ]) {
    const refused = await stranger.ask('POST', ISSUERS, { ...base, ...more })
    t.is(refused.status, 400, `${JSON.stringify(more)}: ${refused.text}`)
  }
})

test('a rule for an application needs its powers, and so do the keys of an issuer with rules', async (t) => {
  const powerful = await tokenSource(running.issuer)
  const id = await trust(powerful)
  const conditions = [{ claim: 'sub', op: 'eq', value: 'job' }]
  const target = { client_id: await application({ scopes: ['openid', 'tenant:manage'] }) }
  await rule(id, { target, conditions, scopes: ['tenant:manage'] })
  const lesser = await owner.login('federation:manage')
  const as = (method: string, path: string, body: Json) =>
    callAt(running.baseUrl, path, {
      method,
      headers: {
        authorization: `Bearer ${String(lesser.body['access_token'])}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    })
  for (const refused of [
    await as('POST', `${ISSUERS}/${id}/rules`, { name: 'Mine', target, conditions, scopes: [] }),
    await as('PATCH', `${ISSUERS}/${id}`, { jwks: powerful.keys() }),
  ]) {
    t.is(refused.status, 403, refused.text)
    t.is(refused.body['error'], 'insufficient_scope')
  }
})

test('a jti that is used once may belong to a token that says it lives for years', async (t) => {
  const eternal = await tokenSource(running.issuer)
  const id = await trust(eternal, { require_jti: true })
  await rule(id, { conditions: [{ claim: 'sub', op: 'eq', value: 'job' }] })
  const exp = Math.floor(Date.now() / 1000) + 10 * 365 * 86_400
  const assertion = await eternal.sign({ sub: 'job', jti: crypto.randomUUID(), exp })
  const issued = await bearer(assertion)
  t.is(issued.status, 200, issued.text)
  t.true(Number(issued.body['expires_in']) <= 86_400)
  t.is((await bearer(assertion)).body['error'], 'invalid_grant')
})
