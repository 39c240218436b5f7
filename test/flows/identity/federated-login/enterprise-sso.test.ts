/**
 * Enterprise SSO over HTTP: a tenant's identity provider and its organization's verified domains, with DNS on loopback.
 */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { routes } from '../../../../gateway/route-table.js'
import { apiOf, type Json } from '../../../support/api.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { bootstrapped, SESSION_COOKIE, signIn } from '../../../support/identity/person.js'
import { ownToken } from '../../../support/agents/delegation.js'
import { openMailServer } from '../../../support/operations/mail.js'
import { dataIn, openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import {
  departed,
  onwardFrom,
  ownPathOf,
  throughHome,
  upstreamFixture,
} from '../../../support/vault/upstream.js'
import { IS_LONG } from '../../../support/runs.js'

const mail = await openMailServer()
const fixture = await upstreamFixture({
  environment: {
    SVC_PHONE__ENABLED: 'true',
    SVC_PHONE__PROVIDER: 'http',
    SVC_PHONE__HTTP_URL: 'https://texts.example/send',
    SVC_PHONE__HTTP_SECRET: 's'.repeat(32),
    SVC_SMS__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ENABLED: 'false',
    SVC_PASSKEY__ENABLED: 'true',
    SVC_SIWE__ENABLED: 'true',
    SVC_ADAPTIVE_MFA__ENABLED: 'true',
    ...mail.environment,
  },
})
const { running, person, dns } = fixture
const api = apiOf(running)
/** The workspace of requests that change nothing. */
const refused = await api.workspace()
const PROVIDERS = '/api/v1/sso/providers'
const DOMAINS = '/api/v1/organization/domains'
const draft = {
  name: 'Acme SSO',
  issuer: fixture.home.issuer,
  client_id: 'not-yet',
  client_secret: 'not-yet',
}

type Setting = Awaited<ReturnType<typeof setUp>>

/** A workspace with a provider and, by default, the verified domain of the person. */
async function setUp(provider: Json = {}, domain: Json | null = {}) {
  const workspace = await api.workspace()
  const { token } = workspace
  const slug = String(workspace.body['tenant_slug'])
  const made = await api.post(PROVIDERS, token, { ...draft, ...provider }).gives(201)
  const id = String(made.body['id'])
  const application = await fixture.application(String(made.body['redirect_uri']))
  const answer = await api.patch(`${PROVIDERS}/${id}`, token, {
    client_id: application.clientId,
    client_secret: application.clientSecret,
  })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  const domainId = domain === null ? null : await proved(token, { sso_provider_id: id, ...domain })
  return { ...workspace, tenantSlug: slug, providerId: id, domainId }
}

const name = person.email.slice(person.email.indexOf('@') + 1)

async function proved(token: string, domain: Json): Promise<string> {
  await release()
  const added = await api.post(DOMAINS, token, { domain: name, ...domain }).gives(201)
  const { name: at, value } = added.body['verification'] as { name: string; value: string }
  dns.records.set(at, [...(dns.records.get(at) ?? []), value])
  await api.post(`${DOMAINS}/${String(added.body['id'])}/verify`, token).gives(200)
  return String(added.body['id'])
}

/** Frees the domain, so that every test can verify it. */
async function release(): Promise<void> {
  await sql(running)`delete from verified_domains`
  await sql(running)`delete from domain_owners`
  await sql(running)`delete from upstream_identities`
  await sql(running)`delete from accounts where email = ${person.email}`
}

async function arrive({ tenantSlug, providerId }: Setting) {
  const browser = openBrowser(running)
  const away = await departed(browser, { tenantSlug }, providerId)
  if (away.location === null) return { browser, back: away }
  return { browser, back: await throughHome(fixture, browser, away.location, person) }
}

test.serial(
  'providers are created, read, changed and removed; their secret is never shown',
  async (t) => {
    const { token, tenantId } = await api.workspace()
    const made = await api.post(PROVIDERS, token, { ...draft, client_secret: 'a very secret word' })
    t.is(made.status, 201)
    t.is(made.headers['location'], `${PROVIDERS}/${String(made.body['id'])}`)
    t.is(
      made.body['redirect_uri'],
      `${running.issuer}/auth/sso/callback/${String(made.body['id'])}`,
    )
    const at = `${PROVIDERS}/${String(made.body['id'])}`
    const found = await api.get(at, token)
    t.deepEqual(found.body, made.body)
    t.false(JSON.stringify(found.body).includes('secret word'))
    const [row] = await sql<{ text: string }>(running)`
      select encode(client_secret_sealed, 'escape') as text from sso_providers
      where tenant_id = ${tenantId}`
    t.false(row!.text.includes('secret word'), 'sealed at rest')
    const changed = await api.patch(at, token, { name: 'Renamed' })
    t.like(changed, { status: 200, body: { name: 'Renamed' } })
    t.true(changed.body['has_client_secret'])
    t.is((await api.list(PROVIDERS, token)).rows.length, 1)

    const other = await api.workspace()
    t.is((await api.get(at, other.token)).status, 404)
    t.is((await api.patch(at, other.token, { name: 'x' })).status, 404)
    t.is((await api.delete(at, other.token)).status, 404)
    t.is((await api.get(`${PROVIDERS}/nonsense`, token)).status, 404)
    t.is((await api.delete(at, token)).status, 204)
    t.is((await api.get(at, token)).status, 404)
    const events = await sql<{ change: string }>(running)`
      select data ->> 'change' as change from all_events where tenant_id = ${tenantId}
      and type = 'sso.configured' order by sequence`
    t.deepEqual(
      events.map(({ change }) => change),
      ['created', 'changed', 'deleted'],
    )
  },
)

for (const [what, change, pointer] of [
  ['an issuer that is not https', { issuer: 'http://id.example.org' }, '#/issuer'],
  ['a name that turns the text around it', { name: '\u202egro.emca' }, '#/name'],
  ['an issuer with a query', { issuer: 'https://id.example.org/?a=b' }, '#/issuer'],
  [
    'an endpoint without the others',
    { token_endpoint: 'https://a.example.org/t' },
    '#/authorization_endpoint',
  ],
  ['no openid', { scopes: ['email'] }, '#/scopes'],
  ['a secret for a public client', { token_endpoint_auth_method: 'none' }, '#/client_secret'],
  ['no secret', { client_secret: undefined }, '#/client_secret'],
] as const) {
  test.serial(`a provider with ${what} is refused`, async (t) => {
    const { token } = refused
    const { body } = await api.post(PROVIDERS, token, { ...draft, ...change }).gives(400)
    t.is((body['errors'] as { pointer: string }[])[0]!.pointer, pointer)
    t.is((await api.list(PROVIDERS, token)).rows.length, 0)
  })
}

test.serial('a domain is verified by DNS and belongs to one organization', async (t) => {
  await release()
  const first = await api.workspace()
  const second = await api.workspace()
  const added = await api.post(DOMAINS, first.token, { domain: 'Bücher.Example.' }).gives(201)
  t.is(added.body['domain'], 'xn--bcher-kva.example')
  t.is(added.body['status'], 'pending')
  t.is((await api.post(DOMAINS, first.token, { domain: 'bücher.example' })).status, 409)
  const at = `${DOMAINS}/${String(added.body['id'])}`
  const { name: record, value } = added.body['verification'] as { name: string; value: string }
  t.is(record, '_svc-challenge.xn--bcher-kva.example')

  await api.post(`${at}/verify`, first.token).gives(409)
  dns.records.set(record, ['svc-domain-verification=something-else', `${value}x`])
  t.is((await api.post(`${at}/verify`, first.token)).status, 409)
  dns.records.set(record, ['other', value])
  t.is((await api.post(`${at}/verify`, second.token)).status, 404)
  const verified = await api.post(`${at}/verify`, first.token)
  t.like(verified, { status: 200, body: { status: 'verified' } })
  t.deepEqual((await api.post(`${at}/verify`, first.token)).body, verified.body)

  const rival = await api.post(DOMAINS, second.token, { domain: 'bücher.example' })
  t.is(rival.status, 201, 'an unverified claim has no effect')
  const proof = (rival.body['verification'] as { value: string }).value
  dns.records.set(record, [value, proof])
  const there = `${DOMAINS}/${String(rival.body['id'])}`
  t.is((await api.post(`${there}/verify`, second.token)).status, 409)
  t.is((await api.delete(at, first.token)).status, 204)
  t.is((await api.post(`${there}/verify`, second.token)).status, 200)
  t.is((await api.delete(at, first.token)).status, 404)
})

test.serial('of two organizations that verify one domain concurrently, one gets it', async (t) => {
  const names = Array.from({ length: 4 }, (_, index) => `race-${index}.example`)
  const [a, b] = [await api.workspace(), await api.workspace()]
  for (const domain of names) {
    const claims = await Promise.all(
      [a, b].map(async ({ token }) => {
        const { body } = await api.post(DOMAINS, token, { domain })
        const { name: at, value } = body['verification'] as { name: string; value: string }
        dns.records.set(at, [...(dns.records.get(at) ?? []), value])
        return { token, path: `${DOMAINS}/${String(body['id'])}/verify` }
      }),
    )
    const answers = await Promise.all(claims.map(({ token, path }) => api.post(path, token)))
    t.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409])
  }
})

test.serial('an unavailable resolver leaves a domain unverified', async (t) => {
  const { token } = await api.workspace()
  const { body } = await api.post(DOMAINS, token, { domain: 'quiet.example' })
  dns.silent = true
  t.teardown(() => {
    dns.silent = false
  })
  const answer = await api.post(`${DOMAINS}/${String(body['id'])}/verify`, token).gives(503)
  t.truthy(answer.headers['retry-after'])
})

for (const domain of [
  'localhost',
  '127.0.0.1',
  'a b.example',
  'com',
  '-x.example',
  'x..example',
  'a@b.example',
  '*.example.org',
]) {
  test.serial(`${domain} is refused as a domain`, async (t) => {
    const { status, body } = await api.post(DOMAINS, refused.token, { domain })
    t.is(status, 400, JSON.stringify(body))
  })
}

test.serial('check-sso returns the provider of a verified domain', async (t) => {
  const setting = await setUp()
  const ask = (email: string, more: Json = { tenant_id: setting.tenantId }) =>
    api.call('POST', '/auth/check-sso', { json: { email, ...more } })
  const routed = await ask(`unknown-at-all@${name.toUpperCase()}`)
  t.like(routed, { status: 200, body: { sso: true, organization_id: setting.organizationId } })
  t.is(routed.body['organization_name'], 'Acme')
  t.deepEqual((await ask(person.email)).body['organization_id'], setting.organizationId)
  t.deepEqual((await ask('ada@elsewhere.example')).body, { sso: false })
  t.deepEqual((await ask(`ada@sub.${name}`)).body, { sso: false })
  for (const malformed of ['no address at all', 'ada@', '@b', '', 'a b@c.de']) {
    const refused = await ask(malformed)
    t.is(refused.status, 400, malformed)
    t.is(refused.body['error'], 'bad_request')
  }
  t.is((await ask(person.email, { tenant_slug: 'no-such-tenant' })).status, 404)
  const both = { tenant_id: setting.tenantId, tenant_slug: setting.tenantSlug }
  t.is((await ask(person.email, both)).status, 400)
  const { tenantId } = await api.workspace()
  t.deepEqual((await ask(person.email, { tenant_id: tenantId })).body, { sso: false })
  t.is((await api.call('GET', '/auth/check-sso')).status, 405)

  // An address of the domain is redirected to the provider and back.
  const browser = openBrowser(running)
  const url = new URL(String(routed.body['authorize_url']))
  url.searchParams.set('login_hint', person.email)
  // A link on another site: the confirmation page is shown.
  const question = await browser.get(ownPathOf(url.href)).gives(200)
  const away = await browser.submit(question, {}, '/auth/sso/start')
  const onward = new URL(dataIn(away.html, 'onward')[0]!)
  t.is(onward.origin, fixture.home.issuer)
  t.is(onward.searchParams.get('login_hint'), person.email)
  const back = await throughHome(fixture, browser, onward.href, person)
  const account = await onwardFrom(browser, back)
  t.true(account.html.includes(person.email))

  const path = `${PROVIDERS}/${setting.providerId}`
  await api.patch(path, setting.token, { active: false })
  t.deepEqual((await ask(person.email)).body, { sso: false })
})

test.serial(
  'a person of a verified domain becomes a user and joins the organization',
  async (t) => {
    const setting = await setUp({}, { auto_join: true })
    const { back, browser } = await arrive(setting)
    t.is(back.status, 200, back.html)
    t.is((await onwardFrom(browser, back)).status, 200)
    const members = await sql<{ role: string }>(running)`
      select m.role from organization_members m join accounts a on a.id = m.member_id
      where m.organization_id = ${setting.organizationId} and a.email = ${person.email}`
    t.deepEqual(members, [{ role: 'member' }])
    t.is((await arrive(setting)).back.status, 200)
  },
)

test.serial('a provider without a verified domain provisions no user', async (t) => {
  await release()
  const setting = await setUp({}, null)
  t.is((await arrive(setting)).back.status, 403)
  // Verified, but routed to another provider.
  const other = await api.post(PROVIDERS, setting.token, { ...draft, name: 'Other' })
  await proved(setting.token, { sso_provider_id: other.body['id'] })
  t.is((await arrive(setting)).back.status, 403)
  t.is((await sql(running)`select from accounts where email = ${person.email}`).length, 0)
})

test.serial('provision=false provisions no new user', async (t) => {
  const setting = await setUp({ provision: false })
  t.is((await arrive(setting)).back.status, 403)
})

/** Every way in that an account may have. Each but the mailbox is an insert for the account $1 with the id $2. */
const WAYS_IN = {
  'a mailbox that signs in by code': null,
  'a password': `update accounts set password_hash = (select password_hash from accounts
    where password_hash is not null limit 1) where id = $1 and $2::uuid is not null`,
  'a passkey': `insert into passkeys (account_id, id, credential_id, public_key, counter, device_bound,
    backed_up, transports, aaguid, name, created_at)
    values ($1, $2, 'x', 'x', 0, false, false, '{}', $2, 'Key', now())`,
  'a phone number': `insert into account_phones (account_id, phone_number, proved_at)
    select $1, '+493012345678', now() where $2::uuid is not null`,
  'an Ethereum account': `insert into account_wallets (account_id, id, address, created_at)
    values ($1, $2, '0x' || repeat('a', 40), now())`,
  'another provider': `insert into upstream_identities (account_id, id, provider, issuer, subject,
    created_at, last_used_at) values ($1, $2, 'oidc', 'https://op.example', 's', now(), now())`,
} as const

/** What signs a person in, and their second factors. */
const standing = (accountId: string) =>
  sql(running)`
    select a.email_key, a.email_verified, a.password_hash,
    (select json_agg(p order by p.id) from passkeys p where p.account_id = a.id) as passkeys,
    (select json_agg(n) from account_phones n where n.account_id = a.id) as phones,
    (select json_agg(w) from account_wallets w where w.account_id = a.id) as wallets,
    (select json_agg(i.id order by i.id) from upstream_identities i
    where i.account_id = a.id) as linked,
    (select json_agg(f) from totp_factors f where f.account_id = a.id
    and f.confirmed_at is not null) as factors,
    (select json_agg(c) from recovery_codes c where c.account_id = a.id) as codes
    from accounts a where a.id = ${accountId}`

/** Forms of the account page that end something and change no way in. */
const ENDINGS = [
  'revokeOwnSession',
  'revokeOtherOwnSessions',
  'withdrawConsent',
  'revokeOwnDelegation',
  'disconnectOwn',
]
const OWN_FORMS = routes.filter(
  ({ method, path, operationId }) =>
    method === 'POST' && path.startsWith('/auth/account/') && !ENDINGS.includes(operationId),
)
/** Together the fields of all these forms. */
const FIELDS = {
  current: person.password,
  password: 'grape-lantern-orbit-72',
  name: 'Mallory',
  code: '123456',
  phone_number: '+493012345679',
  email: 'mallory@example.net',
  provider: 'oidc',
  credential: '{}',
  account: `0x${'b'.repeat(40)}`,
  chain_id: '0x1',
  message: 'm',
  signature: '0x00',
}

for (const [way, statement] of Object.entries(WAYS_IN)) {
  test.serial(`a tenant’s provider cannot take over an account with ${way}`, async (t) => {
    // The owner of the tenant trusts every sign-in of their provider as two factors.
    const setting = await setUp({ trusted_acr_values: ['aal1'] })
    const [accountId, id] = [randomUUID(), randomUUID()]
    await sql(
      running,
      `insert into accounts (id, email, email_key, email_verified, created_at, updated_at)
       values ($1, $2, lower($2), true, now(), now())`,
      [accountId, person.email],
    )
    await sql(running)`
      insert into totp_factors (account_id, id, secret_sealed, created_at, confirmed_at,
      last_step)
      values (${accountId}, ${id}, 'x', now(), now(), 1)`
    if (statement !== null) await sql(running, statement, [accountId, id])
    const { back, browser } = await arrive(setting)
    t.is(back.status, 200, back.html)
    const account = await onwardFrom(browser, back)
    t.is(account.status, 200)
    const [session] = await sql<{ accountId: string; confined: boolean; level: number }>(running)`
      select account_id as "accountId", confined, level from browser_sessions
      where tenant_id = ${setting.tenantId}`
    t.deepEqual(session, { accountId, confined: true, level: 2 })

    const csrf = account.forms.find(({ fields }) => 'csrf_token' in fields)!.fields['csrf_token']!
    const before = await standing(accountId)
    const [linked] = (before[0] as { linked: string[] }).linked
    t.true(OWN_FORMS.length > 15)
    const isEach = way === 'a password' || IS_LONG
    for (const { path, operationId } of isEach ? OWN_FORMS : OWN_FORMS.slice(0, 2)) {
      const target = operationId === 'unlinkOwnIdentity' ? linked! : id
      const fields = { ...FIELDS, csrf_token: csrf }
      // The scripts of the pages ask for JSON.
      const accept = { accept: /options|message/.test(path) ? 'application/json' : 'text/html' }
      const answer = await browser.post(path.replace('{id}', target), fields, accept)
      const isAbsent = answer.status === 404 && /email/.test(path)
      const leadsTo = answer.location ?? (answer.html.startsWith('{') ? answer.html : '')
      t.true(
        isAbsent || leadsTo.includes('/auth/login?'),
        `${path}: ${answer.status} ${answer.html}`,
      )
    }
    t.deepEqual(await standing(accountId), before)
    const page = await browser.follow(await browser.submit(account, {}, '/auth/account/factors'))
    t.true(
      page.path.startsWith('/auth/login?'),
      'the person is asked for a way in, without a redirect loop',
    )
    t.is(page.status, 200)
    t.is((await browser.get('/auth/account/password')).location?.startsWith('/auth/login?'), true)
  })
}

test.serial('domains whose name servers never answer hold few look-ups of a tenant', async (t) => {
  const { token } = await api.workspace()
  dns.silentBelow = '.silent.example'
  t.teardown(() => (dns.silentBelow = null))
  const added = await Promise.all(
    [1, 2, 3, 4, 5].map((nth) => api.post(DOMAINS, token, { domain: `d${nth}.silent.example` })),
  )
  const proofs = await Promise.all(
    added.map(({ body }) => api.post(`${DOMAINS}/${String(body['id'])}/verify`, token)),
  )
  t.deepEqual([...new Set(proofs.map(({ status }) => status))], [503])
  const asked = new Set(dns.asked.filter((name) => name.endsWith('.silent.example')))
  t.true(asked.size < 5, String(asked.size))
})

test.serial('a browser that a tenant’s provider signs in is unknown to the account', async (t) => {
  const setting = await setUp()
  const workspace = await bootstrapped(running)
  const victim = { ...workspace, email: person.email }
  await sql(
    running,
    'update accounts set email = $2, email_key = lower($2), email_verified = true where email = $1',
    [workspace.email, person.email],
  )
  const { back, browser } = await arrive(setting)
  t.is((await onwardFrom(browser, back)).status, 200, back.html)
  browser.cookies.delete(SESSION_COOKIE)
  t.regex((await signIn(browser, victim)).location!, /^\/auth\/mfa\?flow=/)
})

test.serial('the database confines the sessions that an earlier release opens', async (t) => {
  const setting = await setUp()
  t.is((await arrive(setting)).back.status, 200)
  const rows = await sql<{ provider: string; confined: boolean }>(running)`
    insert into browser_sessions (tenant_id, id, account_id, token_sha256, level, pending, amr,
    auth_time, password_at, idle_secs, user_agent, address, created_at, last_seen_at, expires_at,
    provider)
    select tenant_id, gen_random_uuid(), account_id, sha256(v.provider::bytea), level, pending,
    amr,
    auth_time, password_at, idle_secs, user_agent, address, created_at, last_seen_at, expires_at,
    v.provider
    from browser_sessions s, (values ('oidc'), (${setting.providerId})) as v (provider)
    where tenant_id = ${setting.tenantId} returning provider, confined`
  t.deepEqual(rows.map(({ provider, confined }) => [provider === 'oidc', confined]).toSorted(), [
    [false, true],
    [true, false],
  ])
})

test.serial('the same identity at two tenants is two accounts', async (t) => {
  const one = await setUp()
  t.is((await arrive(one)).back.status, 200)
  // The same issuer and subject, by a provider of another organization without a verified domain.
  const other = await setUp({}, null)
  const { back } = await arrive(other)
  t.is(back.status, 403)
})

test.serial('the acr of a provider counts only if it is trusted', async (t) => {
  for (const [trusted, level] of [
    [[], 1],
    [['aal1'], 2],
  ] as const) {
    const setting = await setUp({ trusted_acr_values: trusted })
    t.is((await arrive(setting)).back.status, 200)
    const [row] = await sql<{ level: number; amr: string[] }>(running)`
      select level, amr from browser_sessions where tenant_id = ${setting.tenantId}`
    t.is(row!.level, level)
    t.deepEqual(row!.amr, level === 1 ? ['fed'] : ['fed', 'pwd', 'mfa'])
  }
})

test.serial(
  'deleting a provider removes its linked identities and ends its sessions',
  async (t) => {
    const setting = await setUp()
    const arrived = await arrive(setting)
    t.is(arrived.back.status, 200)
    t.is((await onwardFrom(arrived.browser, arrived.back)).status, 200)
    const path = `${PROVIDERS}/${setting.providerId}`
    t.is((await api.delete(path, setting.token)).status, 204)
    t.is((await sql(running)`select from upstream_identities`).length, 0)
    t.is((await arrived.browser.get('/auth/account')).status, 303)
    const { body } = await api.get(`${DOMAINS}/${setting.domainId}`, setting.token)
    t.is(body['sso_provider_id'], null)
    const browser = openBrowser(running)
    const page = await browser.get(`/auth/login?tenant_slug=${setting.tenantSlug}`)
    t.deepEqual(dataIn(page.html, 'upstream'), [])
  },
)

test.serial('a session of a tenant’s provider manages no organization', async (t) => {
  const setting = await setUp({ trusted_acr_values: ['aal1'] })
  const workspace = await bootstrapped(running)
  await sql(
    running,
    'update accounts set email = $2, email_key = lower($2), email_verified = true where email = $1',
    [workspace.email, person.email],
  )
  await sql(running)`
    insert into organization_members (organization_id, member_type, member_id, id, role,
    created_at)
    select ${setting.organizationId}, 'account', id, gen_random_uuid(), 'owner', now()
    from accounts where email = ${person.email}`
  const { browser, back } = await arrive(setting)
  t.is((await onwardFrom(browser, back)).status, 200, back.html)
  const { rows } = await api.list('/api/v1/tenant-users', setting.token)
  const user = rows.find(({ email }) => email === person.email)!
  const json = { roles: ['owner'] }
  const path = `/api/v1/tenant-users/${String(user['id'])}`
  t.is((await api.patch(path, setting.token, json)).status, 200)
  const human = { ...person, tenantSlug: setting.tenantSlug }
  const scope = 'openid org:read org:manage org:create tenant:manage users:manage'
  const token = await ownToken(api, setting, { browser, human }, scope)
  t.is((await api.get(path, token)).status, 200, 'an owner of the tenant')
  const at = `/api/v1/organizations/${setting.organizationId}`
  const control = `/api/v1/control-plane/organizations/${setting.organizationId}`
  t.is((await api.get(at, token)).status, 403)
  t.is((await api.get(`${control}/tenants`, token)).status, 403)
  t.is((await api.post(`${control}/token`, token)).status, 403)
  const mallory = { email: mailbox('mallory'), role: 'owner' }
  t.is((await api.post(`${at}/members`, token, mallory)).status, 403)
  const tenant = { name: 'Mine', slug: `mine-${setting.tenantSlug}`, environment: 'sandbox' }
  t.is((await api.post(`${control}/tenants`, token, tenant)).status, 404)
})
