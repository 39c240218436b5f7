/** Security events of identity providers (RFC 8935, CAEP, RISC): what a provider revokes or disables ends here. */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { delegate, fixtureOf, present } from '../../../support/agents/delegation.js'
import { apiOf, claimsOf, type Json } from '../../../support/api.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { testService } from '../../../support/service.js'
import { linesOf } from '../../../support/service/exchanges.js'
import { until } from '../../../support/service/watch.js'
import { sql } from '../../../support/storage/sql.js'
import { departed, reachable } from '../../../support/vault/upstream.js'

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/'
const RISC = 'https://schemas.openid.net/secevent/risc/event-type/'
const REVOKED = `${CAEP}session-revoked`
const CHANGED = `${CAEP}credential-change`
const PURGED = `${RISC}account-purged`
const DISABLED = `${RISC}account-disabled`

const provider = await hostileProvider()
const way = await reachable([provider.pem])
const running = await testService({
  environment: {
    ...way.environment,
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
    SVC_ENTERPRISE_SSO__ENABLED: 'true',
  },
})
const api = apiOf(running)
const workspace = await api.workspace()
const [tenant] = await sql<{ tenantSlug: string }>(running)`
  update tenants set settings = ${JSON.stringify({ social: { provision: true } })}
  where id = ${workspace.tenantId} returning slug as "tenantSlug"`
test.after.always(() => provider.close())

/** The line of the log of a request. */
async function entryOf(id: string | null): Promise<Json> {
  const entry = () => linesOf(String(id)).find((line) => line.includes('"msg":"request"'))
  await until('the log entry', () => entry() !== undefined)
  return JSON.parse(entry()!) as Json
}

const nowSecs = () => Math.floor(Date.now() / 1000)
const issSub = (sub: string) => ({ format: 'iss_sub', iss: provider.issuer, sub })
const complex = (sub: string | undefined, sid: string) => ({
  format: 'complex',
  ...(sub !== undefined && { user: issSub(sub) }),
  session: { format: 'opaque', id: sid },
})

/** The provider signs a user in. */
async function signIn(claims: Json = {}, id = 'oidc') {
  const browser = openBrowser(running)
  const { location } = await departed(browser, tenant!, id)
  const subject = String(claims['sub'] ?? randomUUID())
  provider.mood = { claims: { sub: subject, email: `${subject}@evil.example`, ...claims } }
  const url = new URL(location!)
  provider.nonce = url.searchParams.get('nonce')!
  const query = { code: 'abc', state: url.searchParams.get('state')!, iss: provider.issuer }
  await browser.get(`/auth/sso/callback/${id}?${new URLSearchParams(query).toString()}`).gives(200)
  provider.mood = {}
  const isOpen = async () => (await browser.get('/auth/account')).status === 200
  return { subject, browser, isOpen }
}

async function post(token: string, id = 'oidc', type = 'application/secevent+jwt') {
  const headers = { 'content-type': type }
  const url = `${running.baseUrl}/auth/sso/${id}/security-events`
  const answer = await fetch(url, { method: 'POST', headers, body: token })
  const text = await answer.text()
  return {
    status: answer.status,
    id: answer.headers.get('x-request-id'),
    language: answer.headers.get('content-language'),
    body: (text === '' ? {} : JSON.parse(text)) as Json,
  }
}

async function send(type: string, subject: Json, more: Json = {}, id = 'oidc') {
  const token = await provider.securityEvent({ events: { [type]: {} }, sub_id: subject, ...more })
  return { token, answer: await post(token, id) }
}

test.serial('a revoked user is signed out of each session, a revoked session alone', async (t) => {
  const sub = randomUUID()
  const [first, second] = [await signIn({ sub, sid: 'one' }), await signIn({ sub, sid: 'two' })]
  const other = await signIn()
  const { answer } = await send(REVOKED, complex(sub, 'one'))
  t.is(answer.status, 202, JSON.stringify(answer.body))
  t.false(await first.isOpen())
  t.true(await second.isOpen())
  t.is((await send(REVOKED, complex(undefined, 'two'))).answer.status, 202)
  t.false(await second.isOpen())

  const third = await signIn({ sub })
  t.is((await send(REVOKED, issSub(sub))).answer.status, 202)
  t.false(await third.isOpen())
  t.true(await other.isOpen())
  const path = '/api/v1/audit-events?type='
  const { rows } = await api.list(`${path}security_event.received`, workspace.token)
  t.is(rows.length, 3)
  t.like(rows[0], { resource: { type: 'human' }, subject: null })
  t.like(rows[0]?.['data'], { event: REVOKED, issuer: provider.issuer, provider: 'oidc' })
  const ended = await api.list(`${path}auth.logout`, workspace.token)
  t.is(ended.rows.filter(({ data }) => (data as Json)['reason'] === 'provider_event').length, 3)
})

test.serial('an event ends once, and nothing that began after it', async (t) => {
  const { subject, isOpen } = await signIn()
  const { token, answer } = await send(REVOKED, issSub(subject))
  t.is(answer.status, 202)
  t.false(await isOpen())
  const again = await signIn({ sub: subject })
  t.is((await post(token)).status, 202)
  t.true(await again.isOpen(), 'received before')
  const earlier = { events: { [REVOKED]: { event_timestamp: nowSecs() - 600 } } }
  t.is((await send(REVOKED, issSub(subject), earlier)).answer.status, 202)
  t.true(await again.isOpen(), 'began later')
  t.is((await send(REVOKED, issSub(subject), { iat: nowSecs() - 600 })).answer.status, 202)
  t.true(await again.isOpen())
  for (const type of [`${CAEP}assurance-level-change`, `${RISC}identifier-changed`, 'urn:other'])
    t.is((await send(type, { format: 'opaque', id: 'x' })).answer.status, 202)
  const changed = (change_type: string) => ({ events: { [CHANGED]: { change_type } } })
  t.is((await send(CHANGED, issSub(subject), changed('create'))).answer.status, 202)
  t.true(await again.isOpen())
  const { rows } = await api.list(
    '/api/v1/audit-events?type=security_event.received',
    workspace.token,
  )
  const { jti } = claimsOf(token)
  t.is(rows.filter(({ data }) => (data as Json)['jti'] === jti).length, 1)
  t.is((await send(CHANGED, issSub(subject), changed('revoke'))).answer.status, 202)
  t.false(await again.isOpen())
})

test.serial(
  'a disabled account ends sessions and delegations in the tenant of the provider',
  async (t) => {
    const { token, tenantId } = workspace
    const draft = { name: 'Own', issuer: provider.issuer, client_id: 'rp', client_secret: 'secret' }
    const made = await api.post('/api/v1/sso/providers', token, draft).gives(201)
    const id = String(made.body['id'])
    const human = fixtureOf(workspace)
    const person = await present(api, human)
    const subject = randomUUID()
    for (const [at, home] of [
      [id, tenantId],
      ['oidc', null],
    ] as const)
      await sql(running)`
      insert into upstream_identities (account_id, id, provider, tenant_id, issuer, subject, created_at, last_used_at)
      select id, gen_random_uuid(), ${at}, ${home}, ${provider.issuer}, ${subject}, now(), now()
      from accounts where email = ${human.email}`
    const lent = await delegate(api, token, person)
    const isUsable = async () =>
      (await api.get('/api/v1/vault/credentials', lent.token)).status === 200
    t.is((await send(REVOKED, issSub(subject), {}, id)).answer.status, 202)
    t.true(await isUsable(), 'a session ends, and no delegation')
    t.is((await send(DISABLED, issSub(subject))).answer.status, 202)
    t.true(await isUsable(), 'a provider of the deployment')
    const { answer } = await send(DISABLED, issSub(subject), {}, id)
    t.is(answer.status, 202)
    t.false(await isUsable())
    t.is((await person.browser.get('/auth/account')).status, 303)
    const { body } = await api.get(`/api/v1/delegations/${lent.delegationId}`, token)
    t.is(body['status'], 'revoked')
    await sql(running)`update sso_providers set active = false where id = ${id}`
    t.is((await send(DISABLED, issSub(subject), {}, id)).answer.status, 400)
  },
)

test.serial('a purged account loses its link to the provider', async (t) => {
  const { subject, isOpen } = await signIn()
  const links = async () =>
    (await sql(running)`select 1 from upstream_identities where subject = ${subject}`).length
  t.is(await links(), 1)
  t.is((await send(PURGED, issSub(subject))).answer.status, 202)
  t.false(await isOpen())
  t.is(await links(), 0)
})

test.serial('the transmitter has the keys, or the provider without one', async (t) => {
  const { token } = workspace
  const issuer = provider.issuer
  const own = { name: 'Keys', issuer, client_id: 'rp', client_secret: 'secret' }
  const made = await api.post('/api/v1/sso/providers', token, own).gives(201)
  const id = String(made.body['id'])
  const received = async (status: number) => {
    provider.mood = { answer: { transmitter: (response) => response.writeHead(status).end() } }
    const { answer } = await send(REVOKED, issSub(randomUUID()), {}, id)
    provider.mood = {}
    return answer.status
  }
  t.is(await received(500), 503, 'the transmitter sends it again')
  await api.patch(`/api/v1/sso/providers/${id}`, token, { name: 'Other' }).gives(200)
  t.is(await received(404), 202)
})

test.serial('worthless events are one line of the log a second', async (t) => {
  const token = await provider.securityEvent({ aud: 'other', sub_id: issSub('alice') })
  const began = performance.now()
  const answers = await Promise.all(Array.from({ length: 40 }, () => post(token)))
  const secs = Math.ceil((performance.now() - began) / 1000)
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [400])
  const entries = await Promise.all(answers.map(({ id }) => entryOf(id)))
  t.deepEqual([...new Set(entries.map(({ reason }) => reason))], ['invalid_audience'])
  const shown = entries.filter(({ level }) => level === 40).length
  t.true(shown >= 1 && shown <= secs + 1, `${shown} in ${secs} s`)
})

for (const [what, err, claims, mood] of [
  ['another issuer', 'invalid_issuer', { iss: 'https://other.example' }, {}],
  ['another audience', 'invalid_audience', { aud: 'other' }, {}],
  ['another key', 'invalid_key', {}, { foreignKey: true }],
  ['another type', 'invalid_request', {}, { header: { typ: 'logout+jwt' } }],
  ['sub', 'invalid_request', { sub: 'mallory' }, {}],
  ['exp', 'invalid_request', { exp: nowSecs() + 60 }, {}],
  ['no jti', 'invalid_request', { jti: undefined }, {}],
  ['an iat of five days ago', 'invalid_request', { iat: nowSecs() - 432_000 }, {}],
  ['two events', 'invalid_request', { events: { [REVOKED]: {}, [DISABLED]: {} } }, {}],
  ['no event', 'invalid_request', { events: {} }, {}],
  [
    'a subject of another issuer',
    'invalid_request',
    { sub_id: { format: 'iss_sub', iss: 'https://other.example', sub: 'x' } },
    {},
  ],
  [
    'an address as subject',
    'invalid_request',
    { sub_id: { format: 'email', email: 'a@evil.example' } },
    {},
  ],
] as const)
  test.serial(`an event with ${what} is refused, and ends nothing`, async (t) => {
    const { subject, isOpen } = await signIn()
    provider.mood = mood
    const { answer } = await send(REVOKED, issSub(subject), claims)
    provider.mood = {}
    t.like(answer, { status: 400, body: { err }, language: 'en' })
    t.is(typeof answer.body['description'], 'string')
    t.true(await isOpen())
  })

test.serial('an event goes to its provider alone, as a security event', async (t) => {
  const { subject, isOpen } = await signIn()
  const token = await provider.securityEvent({ sub_id: issSub(subject) })
  for (const id of ['google', randomUUID(), 'unknown']) t.is((await post(token, id)).status, 400)
  t.is((await post(token, 'oidc', 'application/json')).status, 415)
  t.true(await isOpen())
  t.is((await post(token)).status, 202)
  t.false(await isOpen())
})
