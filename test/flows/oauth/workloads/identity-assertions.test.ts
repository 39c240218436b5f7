/** A trusted issuer speaks for people: its identity assertions (ID-JAG) give tokens of users at API resources. */
import test from 'ava'
import { fixtureOf, newFixture } from '../../../support/agents/delegation.js'
import { type Answer, claimsOf, type Json } from '../../../support/api.js'
import { proofKey } from '../../../support/identity/proof.js'
import { type TokenSource, tokenSource } from '../../../support/oauth/token-source.js'
import { sharedApi } from '../../../support/service.js'
import { sql } from '../../../support/storage/sql.js'

const ISSUERS = '/api/v1/trusted-issuers'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const TYP = { typ: 'oauth-id-jag+jwt' }

type Fields = Readonly<Record<string, string>>
type Client = { readonly id: string; readonly secret: string }

const { api, running } = await sharedApi('hosts')
const here = await api.workspace()
const { email } = fixtureOf(here)
const domain = email.slice(email.indexOf('@') + 1)
const person = await userOf(email)
const files = await resource('any')
const others = await resource('any')
const client = await application()
const stranger = await application()
const source = await tokenSource(running.issuer)
const trusted = await trust(source, { subject_mapping: 'email', email_domains: [domain] })

async function resource(allowed_clients: 'any' | 'listed', more: Json = {}): Promise<string> {
  const uri = `https://${crypto.randomUUID()}.files.test/mcp`
  const scopes = ['files:read', 'files:write'].map((name) => ({
    name,
    description: name,
    kind: 'read',
  }))
  const draft = { resource: uri, name: 'Files', scopes, allowed_clients, ...more }
  await api.post('/api/v1/api-resources', here.token, draft).gives(201)
  return uri
}

async function application(more: Json = {}): Promise<Client> {
  const draft = {
    name: 'Assistant',
    client_type: 'confidential',
    grant_types: [JWT_BEARER],
    scopes: ['openid', 'profile'],
    ...more,
  }
  const { body } = await api.post('/api/v1/applications', here.token, draft).gives(201)
  return { id: String(body['client_id']), secret: String(body['client_secret']) }
}

async function trust({ issuer }: Pick<TokenSource, 'issuer'>, more: Json) {
  const draft = { name: 'IdP', issuer, purposes: ['identity_assertion'], ...more }
  const { body } = await api.post(ISSUERS, here.token, draft).gives(201)
  return String(body['id'])
}

async function userOf(address: string) {
  const { rows } = await api.list(
    `/api/v1/tenant-users?q=${encodeURIComponent(address)}`,
    here.token,
  )
  return { id: String(rows[0]!['id']), sub: String(rows[0]!['sub']) }
}

/** An assertion of the source for the person of the tenant. */
const jag = (more: Json = {}, header: Json = TYP, by = source) =>
  by.sign(
    {
      sub: 'alice',
      client_id: client.id,
      jti: crypto.randomUUID(),
      scope: 'files:read files:write openid',
      resource: files,
      email,
      email_verified: true,
      ...more,
    },
    header,
  )

const send = (fields: Fields, of: Client | null = client, headers: Record<string, string> = {}) =>
  api.form('/oauth/token', fields, {
    ...(of && {
      authorization: `Basic ${Buffer.from(`${of.id}:${of.secret}`).toString('base64')}`,
    }),
    ...headers,
  })
const present = (assertion: string, more: Fields = {}, of = client, headers = {}) =>
  send({ grant_type: JWT_BEARER, assertion, ...more }, of, headers)
const proofOf = async (key: Awaited<ReturnType<typeof proofKey>>) => ({
  dpop: await key.proof('POST', `${running.issuer}/oauth/token`),
})
const isActive = async (token: unknown) => {
  const caller = await application({
    grant_types: ['client_credentials'],
    scopes: ['tokens:introspect'],
  })
  const authorization = `Basic ${Buffer.from(`${caller.id}:${caller.secret}`).toString('base64')}`
  const shown = await api.form('/oauth/introspect', { token: String(token) }, { authorization })
  return shown.body['active']
}
const failedStep = async (token: string, id = trusted) => {
  const { body } = await api.post(`${ISSUERS}/${id}/evaluate`, here.token, { token }).gives(200)
  return (body['failed'] as { step: string }[] | undefined)?.[0]?.step
}
const describe = ({ body }: Answer) => JSON.stringify(body)

test.serial('an assertion gives a token of the person at the API resource', async (t) => {
  const nowSecs = Math.floor(Date.now() / 1000)
  const assertion = await jag({ acr: 'aal2', amr: ['pwd', 'otp'], auth_time: nowSecs - 60 })
  t.is(await failedStep(assertion), undefined)
  const issued = await present(assertion)
  t.is(issued.status, 200, describe(issued))
  t.is(issued.body['refresh_token'], undefined)
  t.is(issued.body['id_token'], undefined)
  t.is(issued.body['scope'], 'files:read files:write openid')
  t.true(Number(issued.body['expires_in']) <= 3_600)
  t.like(claimsOf(issued.body['access_token']), {
    sub: person.sub,
    subject_type: 'human',
    aud: files,
    client_id: client.id,
    idp: source.issuer,
    acr: 'aal2',
    amr: ['pwd', 'otp'],
    auth_time: nowSecs - 60,
  })
  t.true(await isActive(issued.body['access_token']))
})

test.serial('each step of the validation refuses', async (t) => {
  const nowSecs = Math.floor(Date.now() / 1000)
  const impostor = await tokenSource(running.issuer)
  const workloads = await tokenSource(running.issuer)
  const purpose = { name: 'CI', issuer: workloads.issuer, purposes: ['workload'] }
  await api.post(ISSUERS, here.token, purpose).gives(201)
  const [head, payload, signature] = (await jag()).split('.') as [string, string, string]
  const none = Buffer.from(JSON.stringify({ alg: 'none', ...TYP })).toString('base64url')
  const other = { sub: 'unlinked' }
  const foreign = { ...other, email: 'eve@elsewhere.example' }
  const cases: readonly [step: string, token: string, client?: Client][] = [
    ['size', `${head}.${'a'.repeat(16_384)}.${signature}`],
    ['parse', await jag({}, { typ: 'JWT' })],
    ['algorithm', `${none}.${payload}.${signature}`],
    ['issuer', await jag({}, TYP, impostor)],
    ['issuer', await jag({ iss: running.issuer })],
    ['purpose', await jag({}, TYP, workloads)],
    ['key', await jag({}, { ...TYP, kid: 'unknown' })],
    ['signature', await jag({ iss: source.issuer }, TYP, impostor)],
    ['exp', await jag({ exp: undefined })],
    ['exp', await jag({ exp: nowSecs - 61, iat: nowSecs - 90 })],
    ['exp', await jag({ exp: nowSecs + 3_700 })],
    ['nbf', await jag({ nbf: nowSecs + 120 })],
    ['iat', await jag({ iat: undefined })],
    ['iat', await jag({ iat: nowSecs - 700 })],
    ['aud', await jag({ aud: 'https://other.example' })],
    ['aud', await jag({ aud: `${running.issuer}/` })],
    ['aud', await jag({ aud: [running.issuer, 'https://other.example'] })],
    ['aud', await jag({ aud_tenant: crypto.randomUUID() })],
    ['jti', await jag({ jti: undefined })],
    ['target', await jag({ client_id: crypto.randomUUID() })],
    ['rule', await jag({ sub: undefined })],
    ['rule', await jag({ tenant: 7 })],
    ['rule', await jag({ ...other, email_verified: false })],
    ['rule', await jag({ ...other, email: undefined })],
    ['rule', await jag(foreign)],
    ['rule', await jag({ ...other, email: `unknown@${domain}` })],
    ['rule', await jag({ ...other, email: undefined, aud_sub: person.sub })],
    ['scope', await jag({ scope: undefined })],
    ['scope', await jag({ resource: [files, 7] })],
    ['scope', await jag({ act: { sub: 7 } })],
    ['scope', await jag({ authorization_details: [{ type: 'payment' }] })],
  ]
  for (const [step, assertion] of cases) {
    const refused = await present(assertion)
    t.is(refused.status, 400, `${step}: ${describe(refused)}`)
    t.is(refused.body['error'], 'invalid_grant', step)
    t.is(await failedStep(assertion), step)
  }
  const limited = await tokenSource(running.issuer)
  await trust(limited, { subject_mapping: 'email', email_domains: ['limited.example'] })
  const beyond = await present(await jag({}, TYP, limited))
  t.is(beyond.body['error'], 'invalid_grant', 'an address that the issuer may not state')
  const ours = await tokenSource(running.issuer)
  const own = await trust(ours, {
    kind: 'static_jwks',
    jwks: ours.keys(),
    subject_mapping: 'email',
    email_domains: [domain],
  })
  await sql(running)`update trusted_issuers set issuer = ${running.issuer} where id = ${own}`
  t.is(await failedStep(await jag({ iss: running.issuer }, TYP, ours), own), 'issuer')
  const ofOther = await present(await jag(), {}, stranger)
  t.is(ofOther.body['error'], 'invalid_grant', 'the assertion names another client')
})

test.serial('a public client, and one without the grant, are refused', async (t) => {
  const open = await application({
    client_type: 'public',
    grant_types: ['authorization_code'],
    redirect_uris: ['https://app.example/callback'],
  })
  const refused = await send(
    {
      grant_type: JWT_BEARER,
      client_id: open.id,
      assertion: await jag({ client_id: open.id }),
    },
    null,
  )
  t.like(refused, { status: 401, body: { error: 'invalid_client' } }, describe(refused))
  const without = await application({ grant_types: ['client_credentials'] })
  const foreign = await present(await jag({ client_id: without.id }), {}, without)
  t.is(foreign.body['error'], 'unauthorized_client', describe(foreign))
  const draft = {
    name: 'Public',
    client_type: 'public',
    grant_types: [JWT_BEARER],
    redirect_uris: ['https://app.example/callback'],
  }
  await api.post('/api/v1/applications', here.token, draft).gives(400)
})

test.serial('an assertion is used by one client with one key', async (t) => {
  const [key, thief] = await Promise.all([proofKey(), proofKey()])
  const assertion = await jag()
  const bound = await present(assertion, {}, client, await proofOf(key))
  t.is(bound.status, 200, describe(bound))
  t.is((claimsOf(bound.body['access_token'])['cnf'] as Json)['jkt'], key.jkt)
  t.is((await present(assertion, {}, client, await proofOf(key))).status, 200, 'sent again')
  for (const headers of [{}, await proofOf(thief)]) {
    const refused = await present(assertion, {}, client, headers)
    t.is(refused.body['error'], 'invalid_grant', describe(refused))
  }
  const once = await tokenSource(running.issuer)
  await trust(once, { subject_mapping: 'email', email_domains: [domain], require_jti: true })
  const single = await jag({}, TYP, once)
  const answers = await Promise.all([1, 2, 3, 4].map(() => present(single)))
  t.is(answers.filter(({ status }) => status === 200).length, 1, answers.map(describe).join())
})

test.serial('an assertion with a key needs a proof of that key', async (t) => {
  const [key, thief] = await Promise.all([proofKey(), proofKey()])
  const cnf = { jkt: key.jkt }
  for (const headers of [{}, await proofOf(thief)]) {
    const refused = await present(await jag({ cnf }), {}, client, headers)
    t.is(refused.body['error'], 'invalid_grant', describe(refused))
  }
  const wrong = await present(await jag({ cnf: 'key' }), {}, client, await proofOf(key))
  t.is(wrong.body['error'], 'invalid_grant')
  const issued = await present(await jag({ cnf }), {}, client, await proofOf(key))
  t.is(issued.body['token_type'], 'DPoP', describe(issued))
  const strict = await resource('any', { require_dpop: true })
  const unbound = await present(await jag({ resource: strict }))
  t.is(unbound.body['error'], 'invalid_dpop_proof', describe(unbound))
})

test.serial(
  'resource and scope narrow what the assertion grants, and nothing widens it',
  async (t) => {
    const both = { resource: [files, others], scope: 'files:read' }
    const narrowed = await present(await jag(both), { resource: others, scope: 'files:read' })
    t.is(narrowed.status, 200, describe(narrowed))
    t.is(claimsOf(narrowed.body['access_token'])['aud'], others)
    const whole = await present(await jag(both))
    const audience = claimsOf(whole.body['access_token'])['aud'] as readonly string[]
    t.deepEqual(audience.toSorted(), [files, others].toSorted())
    const none = await jag({ resource: undefined })
    t.is((await present(none)).body['error'], 'invalid_target', 'no resource')
    t.is((await present(none, { resource: files })).status, 200)
    const closed = await resource('listed')
    for (const [error, claims, fields] of [
      ['invalid_target', {}, { resource: others }],
      ['invalid_target', { resource: closed }, {}],
      ['invalid_target', { resource: running.issuer }, {}],
      ['invalid_scope', { scope: 'files:read' }, { scope: 'files:write' }],
      ['invalid_scope', { scope: 'users:manage' }, {}],
      ['invalid_scope', { scope: 'files:read offline_access' }, { scope: 'offline_access' }],
    ] as const) {
      const refused = await present(await jag(claims), fields)
      t.is(refused.body['error'], error, `${JSON.stringify([claims, fields])} ${describe(refused)}`)
    }
    const dropped = await present(await jag({ scope: 'files:read users:manage offline_access' }))
    t.is(dropped.body['scope'], 'files:read', describe(dropped))
  },
)

test.serial('an agent of the issuer stays visible, and is no agent here', async (t) => {
  const act = { sub: here.agentId, act: { sub: 'planner', iss: 'https://agents.example' } }
  const issued = await present(await jag({ act }))
  t.is(issued.status, 200, describe(issued))
  const token = String(issued.body['access_token'])
  t.like(claimsOf(token)['act'], {
    sub: here.agentId,
    iss: source.issuer,
    act: { sub: 'planner', iss: 'https://agents.example' },
  })
  t.true(await isActive(token))
  const { rows } = await api.list(
    `/api/v1/audit-events?type=auth.token.issued&subject=${person.sub}&limit=1`,
    here.token,
  )
  const [acting] = rows[0]!['actors'] as readonly Json[]
  t.is(acting!['sub'], `${source.issuer} ${here.agentId}`)
})

test.serial('the link decides from the first match on, and ends with the user', async (t) => {
  const human = await newFixture(api, here)
  const { id, sub } = await userOf(human.email)
  const first = await present(await jag({ sub: 'bob', email: human.email }))
  t.is(claimsOf(first.body['access_token'])['sub'], sub, describe(first))
  const later = await present(await jag({ sub: 'bob', email }))
  t.is(claimsOf(later.body['access_token'])['sub'], sub, 'the address of another user')
  const elsewhere = await present(await jag({ sub: 'bob', tenant: 'other', email }))
  t.is(claimsOf(elsewhere.body['access_token'])['sub'], person.sub, 'another tenant of the issuer')
  await api.post(`/api/v1/tenant-users/${id}/suspend`, here.token, {}).gives(200)
  const refused = await jag({ sub: 'bob', email: human.email })
  t.is((await present(refused)).body['error'], 'invalid_grant')
  t.is(await failedStep(refused), 'target')
  t.false(await isActive(first.body['access_token']))
})

test.serial(
  'a sign-out at the issuer ends the tokens, and the assertions from before',
  async (t) => {
    const path = `/auth/sso/${trusted}/backchannel-logout`
    const nowSecs = Math.floor(Date.now() / 1000)
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    const logoutOf = (more: Json = {}, header: Json = { typ: 'logout+jwt' }, by = source) =>
      by.sign({ sub: 'dora', jti: crypto.randomUUID(), events, ...more }, header)
    const post = (logout_token: string, at = path) => api.form(at, { logout_token })
    const before = { sub: 'dora', iat: nowSecs - 5, exp: nowSecs + 120 }
    const assertion = await jag(before)
    const issued = await present(assertion)
    t.is(issued.status, 200, describe(issued))
    const tokenOf = async (more: Json) =>
      (await present(await jag({ ...before, ...more }))).body['access_token']
    const [other, elsewhere] = [await tokenOf({ sub: 'erik' }), await tokenOf({ tenant: 'two' })]
    const impostor = await tokenSource(running.issuer)
    for (const refused of [
      post(await logoutOf({ aud: client.id })),
      post(await logoutOf({ sub: undefined, sid: 's' })),
      post(await logoutOf({ nonce: 'n' })),
      post(await logoutOf({ events: {} })),
      post(await logoutOf({ iat: nowSecs - 400, exp: nowSecs + 60 })),
      post(await logoutOf({ exp: nowSecs - 60 })),
      post(await logoutOf({}, { typ: 'JWS' })),
      post(await logoutOf({ iss: source.issuer }, undefined, impostor)),
      post(await logoutOf(), `/auth/sso/${crypto.randomUUID()}/backchannel-logout`),
    ])
      t.like(await refused, { status: 400, body: { error: 'invalid_request' } })
    t.true(await isActive(issued.body['access_token']))
    const ofTenant = await post(await logoutOf({ tenant: 'two', iat: nowSecs - 1 }))
    t.like(ofTenant, { status: 200, headers: { 'cache-control': 'no-store' } }, describe(ofTenant))
    t.false(await isActive(elsewhere))
    t.true(await isActive(issued.body['access_token']))
    const token = await logoutOf({ iat: nowSecs - 1 })
    t.is((await post(token)).status, 200)
    t.is((await post(token)).body['error_description'], 'jti was used before')
    t.false(await isActive(issued.body['access_token']))
    t.true(await isActive(other), 'another subject')
    t.is((await present(assertion)).body['error'], 'invalid_grant')
    t.is(await failedStep(assertion), 'iat')
    const later = await present(await jag({ sub: 'dora' }))
    t.is(later.status, 200, describe(later))
    const { rows } = await api.list(
      '/api/v1/audit-events?type=auth.identity_assertion.ended&limit=1',
      here.token,
    )
    t.like(rows[0], { resource: { id: trusted }, data: { sub: 'dora', tokens: 1 } })
  },
)

test.serial('security events of the issuer end the tokens, and a purge the link', async (t) => {
  const nowSecs = Math.floor(Date.now() / 1000)
  const type = (name: string) => `https://schemas.openid.net/secevent/${name}`
  const alias = { format: 'iss_sub', iss: source.issuer, sub: 'gina' }
  const eventOf = (name: string, more: Json = {}, by = source, header: Json = {}) =>
    by.sign(
      {
        exp: undefined,
        iat: nowSecs - 1,
        jti: crypto.randomUUID(),
        sub_id: alias,
        events: { [type(name)]: {} },
        ...more,
      },
      { typ: 'secevent+jwt', ...header },
    )
  const post = async (body: string, id = trusted) => {
    const headers = { 'content-type': 'application/secevent+jwt' }
    const url = `${running.baseUrl}/auth/sso/${id}/security-events`
    const answer = await fetch(url, { method: 'POST', headers, body })
    const text = await answer.text()
    return { status: answer.status, err: text && (JSON.parse(text) as Json)['err'] }
  }
  const issue = async (more: Json = {}) => {
    const made = await present(await jag({ sub: 'gina', iat: nowSecs - 5, ...more }))
    return made.body['access_token']
  }
  const REVOKED = 'caep/event-type/session-revoked'
  const [token, other] = [await issue(), await issue({ sub: 'hans' })]
  const impostor = await tokenSource(running.issuer)
  const edwards = await tokenSource(running.issuer, { alg: 'EdDSA' })
  const narrow = await trust(edwards, { allowed_algs: ['ES256'], subject_mapping: 'link' })
  const foreign = { ...alias, iss: impostor.issuer }
  const session = { format: 'complex', session: { format: 'opaque', id: 's' } }
  for (const [err, refused, id] of [
    ['invalid_audience', eventOf(REVOKED, { aud: client.id })],
    ['invalid_issuer', eventOf(REVOKED, { iss: 'https://other.example' })],
    ['invalid_key', eventOf(REVOKED, { iss: source.issuer }, impostor)],
    [
      'invalid_key',
      eventOf(REVOKED, { sub_id: { ...alias, iss: edwards.issuer } }, edwards),
      narrow,
    ],
    ['invalid_request', eventOf(REVOKED, { sub_id: foreign })],
    ['invalid_request', eventOf(REVOKED, { sub_id: session })],
    ['invalid_request', eventOf(REVOKED, { exp: nowSecs + 60 })],
    ['invalid_request', eventOf(REVOKED, {}, source, { typ: 'JWT' })],
    ['invalid_request', eventOf(REVOKED), crypto.randomUUID()],
  ] as const)
    t.deepEqual(await post(await refused, id), { status: 400, err })
  t.is((await post(await eventOf('risc/event-type/account-enabled'))).status, 202)
  t.true(await isActive(token))
  const event = await eventOf(REVOKED)
  t.is((await post(event)).status, 202)
  t.is((await post(event)).status, 202)
  t.false(await isActive(token))
  t.true(await isActive(other), 'another subject')
  const ended = '/api/v1/audit-events?type=auth.identity_assertion.ended'
  const { rows } = await api.list(ended, here.token)
  const { jti } = claimsOf(event)
  const records = rows.filter(({ data }) => (data as Json)['jti'] === jti)
  t.is(records.length, 1)
  t.like(records[0], { data: { sub: 'gina', tokens: 1, event: type(REVOKED), unlinked: false } })
  const later = await issue({ iat: nowSecs })
  t.true(await isActive(later))
  const purged = 'risc/event-type/account-purged'
  t.is((await post(await eventOf(purged, { iat: nowSecs }))).status, 202)
  t.false(await isActive(later))
  t.like((await api.list(`${ended}&limit=1`, here.token)).rows[0], { data: { unlinked: true } })
})

test.serial(
  'jit makes one user, aud_sub names one where it is trusted, link makes none',
  async (t) => {
    const at = `${crypto.randomUUID()}.example`
    const jit = await tokenSource(running.issuer)
    const id = await trust(jit, { subject_mapping: 'jit', email_domains: [at] })
    const claims = { sub: 'carol', email: `carol@${at}`, name: 'Ca\u202Er\0ol' }
    t.is(await failedStep(await jag(claims, TYP, jit), id), undefined)
    const answers = await Promise.all(
      [1, 2, 3].map(async () => present(await jag(claims, TYP, jit))),
    )
    const subs = new Set(answers.map(({ body }) => claimsOf(body['access_token'])['sub']))
    t.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
      answers.map(describe).join(),
    )
    t.is(subs.size, 1)
    t.true(subs.has((await userOf(claims.email)).sub))
    const { rows } = await api.list(`/api/v1/tenant-users?q=carol@${at}`, here.token)
    t.is(rows[0]!['display_name'], 'Carol')
    for (const more of [{ sub: 'a\0b' }, { tenant: '\0' }, { amr: ['\0'], sub: 'b\0' }])
      t.is(
        (await present(await jag({ ...claims, ...more }, TYP, jit))).body['error'],
        'invalid_grant',
      )
    const linked = await tokenSource(running.issuer)
    const linking = await trust(linked, { subject_mapping: 'link', trust_aud_sub: true })
    t.is(await failedStep(await jag({}, TYP, linked), linking), 'rule')
    t.is(await failedStep(await jag({ aud_sub: 'a\0b' }, TYP, linked), linking), 'rule')
    const named = await present(await jag({ aud_sub: person.sub }, TYP, linked))
    t.is(claimsOf(named.body['access_token'])['sub'], person.sub, describe(named))
  },
)

test.serial('the members of an issuer for people', async (t) => {
  const base = { name: 'IdP', purposes: ['identity_assertion'], subject_mapping: 'email' }
  const draft = (more: Json) => ({
    ...base,
    issuer: `https://${crypto.randomUUID()}.example`,
    email_domains: [domain],
    ...more,
  })
  for (const more of [
    { subject_mapping: undefined },
    { subject_mapping: 'link' },
    { email_domains: [] },
    { email_domains: ['UPPER.example'] },
    { kind: 'github_actions' },
    { audiences: ['https://other.example'] },
    { issuer: running.issuer },
    { purposes: ['workload'] },
    { purposes: ['workload', 'identity_assertion'] },
  ]) {
    const refused = await api.post(ISSUERS, here.token, draft(more))
    t.is(refused.status, 400, `${JSON.stringify(more)} ${describe(refused)}`)
  }
  const foreign = await api.post(ISSUERS, here.token, draft({ email_domains: ['gmail.com'] }))
  t.is(foreign.body['error'], 'domain_not_verified', describe(foreign))
  const rule = {
    name: 'Job',
    target: { client_id: client.id },
    conditions: [{ claim: 'sub', op: 'eq', value: 'alice' }],
    scopes: [],
  }
  await api.post(`${ISSUERS}/${trusted}/rules`, here.token, rule).gives(400)
  const path = `${ISSUERS}/${trusted}`
  await api.patch(path, here.token, { purposes: ['workload'] }).gives(400)
  await api.patch(path, here.token, { email_domains: ['gmail.com'] }).gives(422)
})

test.serial('an assertion for people is none for workloads', async (t) => {
  const both = await tokenSource(running.issuer)
  await trust(both, { subject_mapping: 'email', email_domains: [domain] })
  const workload = { name: 'CI', issuer: both.issuer, purposes: ['workload'] }
  const { body } = await api.post(ISSUERS, here.token, workload).gives(201)
  const rule = {
    name: 'Job',
    target: { client_id: client.id },
    conditions: [{ claim: 'sub', op: 'eq', value: 'alice' }],
    scopes: ['openid'],
  }
  await api.post(`${ISSUERS}/${String(body['id'])}/rules`, here.token, rule).gives(201)
  const asWorkload = (assertion: string) => ({
    tenant_id: here.tenantId,
    grant_type: 'client_credentials',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  })
  t.is((await send(asWorkload(await both.sign({ sub: 'alice' })), null)).status, 200)
  const refused = await send(asWorkload(await jag({}, TYP, both)), null)
  t.is(refused.body['error'], 'invalid_client', describe(refused))
})

test.serial(
  'an issuer that is disabled speaks for no one, and other tenants do not know it',
  async (t) => {
    await api.patch(`${ISSUERS}/${trusted}`, here.token, { status: 'disabled' }).gives(200)
    const assertion = await jag()
    t.is(await failedStep(assertion), 'issuer')
    const other = await api.workspace()
    await api.post(`${ISSUERS}/${trusted}/evaluate`, other.token, { token: assertion }).gives(404)
    const discovery = await api.get('/.well-known/oauth-authorization-server').gives(200)
    t.deepEqual(discovery.body['authorization_grant_profiles_supported'], [
      'urn:ietf:params:oauth:grant-profile:id-jag',
    ])
    t.false(JSON.stringify(discovery.body).includes(source.issuer))
  },
)
