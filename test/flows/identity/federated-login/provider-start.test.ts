/**
 * Another site links to a federated sign-in: the user is asked for confirmation before a session starts or ends (login
 * CSRF). And sign-ins at the host of a tenant.
 */
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { type Page, dataIn, openBrowser } from '../../../support/pages/browser.js'
import { hostileProvider } from '../../../support/identity/hostile-provider.js'
import { sql } from '../../../support/storage/sql.js'
import { signIn } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'
import { back, ownDomain } from '../../../support/identity/squatting.js'
import { FROM_OUR_PAGE, linkTo, reachable } from '../../../support/vault/upstream.js'
import { notThrough } from '../../../support/fleet/through.js'
import { openMailServer, pathIn } from '../../../support/operations/mail.js'

const START = '/auth/sso/start'
const FROM_ANOTHER_SITE = { 'sec-fetch-site': 'cross-site' }
const [provider, mail] = [await hostileProvider(), await openMailServer()]
const way = await reachable([provider.pem])
const running = await testService({
  // Test certificates have no tenant host names.
  transport: 'plain_http',
  environment: {
    ...way.environment,
    ...mail.environment,
    SVC_GENERIC_OAUTH__ENABLED: 'true',
    SVC_GENERIC_OAUTH__ISSUER: provider.issuer,
    SVC_GENERIC_OAUTH__CLIENT_ID: 'rp',
    SVC_GENERIC_OAUTH__CLIENT_SECRET: 'the client secret of the relying party',
    SVC_MAGIC_LINK__ENABLED: 'true',
    SVC_ENTERPRISE_SSO__ENABLED: 'true',
    SVC_VERIFIED_DOMAINS__ENABLED: 'true',
    SVC_PASSKEY__ENABLED: 'true',
  },
})
const api = apiOf(running)
test.after.always(() => Promise.all([provider.close(), mail.close()]))

const MALLORY = { sub: 'mallory', email: 'mallory@evil.works', email_verified: true }

const browserOf = () => openBrowser(running)

async function tenant(name: string) {
  const workspace = await api.workspace(name)
  const fixture = workspace.body['fixture_end_user'] as { email: string; password: string }
  return { ...workspace, ...fixture, tenantSlug: String(workspace.body['tenant_slug']) }
}

/** The attacker's tenant. Its provider signs everyone in as the attacker. */
async function attacker() {
  const own = await tenant('Evil')
  const made = await api.post('/api/v1/sso/providers', own.token, {
    name: 'Evil ID',
    issuer: provider.issuer,
    client_id: 'rp',
    client_secret: 'the client secret of the relying party',
  })
  const id = String(made.body['id'])
  await sql(running)`delete from verified_domains`
  await ownDomain(api, own, MALLORY.email, id)
  const query = new URLSearchParams({ tenant_id: own.tenantId, provider: id }).toString()
  return { ...own, id, start: `${START}?${query}` }
}

async function signedIn(t: ExecutionContext) {
  const own = await tenant('Corp')
  const browser = browserOf()
  t.is((await browser.follow(await signIn(browser, own))).path, '/auth/account')
  const cookie = [...browser.cookies].find(([name]) => name.endsWith('svc_session'))!
  /** True if the browser's earlier session is still valid. */
  const isOpen = async () => {
    const copy = browserOf()
    copy.cookies.set(...cookie)
    return (await copy.get('/auth/account')).status === 200
  }
  return { own, browser, isOpen }
}

function asks(t: ExecutionContext, page: Page): void {
  t.is(page.status, 200, page.html)
  t.is(page.location, null)
  t.is(page.forms.find(({ action }) => action === START)?.method, 'POST')
  t.true(page.html.includes('Continue to Evil ID to sign in to Evil'), page.html)
}

for (const [what, headers] of [
  ['another site', FROM_ANOTHER_SITE],
  ['a site of the same domain', { 'sec-fetch-site': 'same-site' }],
  ['a mail or a bookmark', { 'sec-fetch-site': 'none' }],
  ['a browser without Sec-Fetch-Site', {}],
] as const) {
  test.serial(`a federated sign-in from ${what} needs a confirmation`, async (t) => {
    const evil = await attacker()
    const victim = await signedIn(t)
    const page = await victim.browser.get(evil.start, headers)
    asks(t, page)
    t.true(page.html.includes(`You are signed in to Corp`), page.html)
    t.true(page.html.includes(victim.own.email))
    t.true((await victim.browser.get('/auth/account')).html.includes(victim.own.email))
    t.true(await victim.isOpen())
  })
}

test.serial('a return path does not start another federated sign-in', async (t) => {
  const evil = await attacker()
  const own = await tenant('Corp')
  for (const path of [evil.start, `/x/..${evil.start}`, evil.start.replace('sso', '%73so')]) {
    const done = await signIn(browserOf(), own, path)
    t.is(done.location, '/auth/account', path)
  }
})

test.serial('a link of our sign-in page redirects to the provider directly', async (t) => {
  const evil = await attacker()
  const browser = browserOf()
  const page = await browser.get(`/auth/login?tenant_slug=${evil.tenantSlug}`)
  const away = await browser.get(linkTo(page, evil.id), FROM_OUR_PAGE)
  t.is(new URL(away.location!).origin, provider.issuer)
  // The same link on another site.
  asks(t, await browser.get(linkTo(page, evil.id), FROM_ANOTHER_SITE))
  // And on our page, in a browser that is signed in at another tenant.
  const victim = await signedIn(t)
  const asked = await victim.browser.get(linkTo(page, evil.id), FROM_OUR_PAGE)
  asks(t, asked)
  t.true(await victim.isOpen())
})

test.serial('confirming signs out of the named tenant, then signs in', async (t) => {
  const evil = await attacker()
  const victim = await signedIn(t)
  const page = await victim.browser.get(evil.start, FROM_ANOTHER_SITE)
  const forged = { ...page.forms[0]!.fields, csrf_token: 'guessed' }
  t.is((await victim.browser.post(START, forged)).status, 403)
  t.true(await victim.isOpen(), 'a form of another site has no effect')
  const away = await victim.browser.submit(page, {}, START)
  t.is(away.status, 200, away.html)
  t.false(await victim.isOpen())
  const onward = dataIn(away.html, 'onward')[0]!
  t.is((await back(victim.browser, provider, evil.id, onward, MALLORY)).status, 200)
  t.true((await victim.browser.get('/auth/account')).html.includes(MALLORY.email))
})

test.serial('a confirmation that named no session ends none', async (t) => {
  const evil = await attacker()
  const victim = await signedIn(t)
  const browser = browserOf()
  const page = await browser.get(evil.start)
  asks(t, page)
  t.false(page.html.includes('You are signed in to'))
  // Signed in since then, in another tab.
  const cookie = [...victim.browser.cookies].find(([name]) => name.endsWith('svc_session'))!
  browser.cookies.set(...cookie)
  const again = await browser.submit(page, {}, START)
  asks(t, again)
  t.true(again.html.includes('You are signed in to Corp'))
  t.true(await victim.isOpen())
})

test.serial('a callback ends no session of another tenant', async (t) => {
  const evil = await attacker()
  const victim = await signedIn(t)
  const browser = browserOf()
  const away = await browser.submit(await browser.get(evil.start), {}, START)
  const onward = dataIn(away.html, 'onward')[0]!
  // Signed in to another tenant while the browser was at the provider.
  const cookie = [...victim.browser.cookies].find(([name]) => name.endsWith('svc_session'))!
  browser.cookies.set(...cookie)
  t.is((await back(browser, provider, evil.id, onward, MALLORY)).status, 200)
  t.true(await victim.isOpen())
})

test.serial('a confined session neither sees nor changes the keys of the account', async (t) => {
  const corp = await attacker()
  const email = MALLORY.email
  const browser = browserOf()
  const page = await browser.get(`/auth/login?tenant_slug=${corp.tenantSlug}`)
  const away = await browser.get(linkTo(page, corp.id), FROM_OUR_PAGE)
  t.is((await back(browser, provider, corp.id, away.location!, MALLORY)).status, 200)
  const [account] = await sql<{ id: string }>(
    running,
  )`select id from accounts where email = ${email}`
  const id = account!.id
  await sql(running)`update browser_sessions set confined = true where account_id = ${id}`
  await sql(running)`update accounts set password_hash = 'x' where id = ${id}`
  const [key] = await sql<{ id: string }>(
    running,
    `insert into passkeys (account_id, id, credential_id, public_key, counter, device_bound,
       backed_up, transports, aaguid, name, created_at)
     values ($1, gen_random_uuid(), '\\x01', '\\x02', 0, false, false, '{}', gen_random_uuid(), 'Key of elsewhere', now())
     returning id`,
    [id],
  )
  await sql(running)`
    insert into upstream_identities (account_id, id, provider, tenant_id, issuer, subject, email,
    created_at, last_used_at)
    values (${id}, gen_random_uuid(), 'google', null, 'https://deployment.example', 's',
    'private@mail.example', now(), now())`
  const shown = await browser.get('/auth/account').gives(200)
  for (const hidden of ['Key of elsewhere', 'private@mail.example', 'deployment.example'])
    t.false(shown.html.includes(hidden), hidden)
  t.true(shown.html.includes('You signed in through a provider of'))
  t.true(shown.html.includes(provider.issuer) || shown.html.includes('Evil ID'), 'its own')
  const { csrf_token: csrf = '' } = shown.forms[0]!.fields
  const rename = `/auth/account/passkeys/${key!.id}/rename`
  const answer = await browser.post(rename, { csrf_token: csrf, name: 'Taken over' })
  t.regex(answer.location!, /^\/auth\/login\?/)
  const factor = await browser.post('/auth/account/factors', { csrf_token: csrf })
  t.regex(factor.location!, /^\/auth\/login\?/, 'and the passkey is not revealed')
  const [row] = await sql(running)`select name from passkeys where id = ${key!.id}`
  t.deepEqual(row, { name: 'Key of elsewhere' })
})

// Pages at the host of a tenant: links and callbacks return to the same host. docs/guides/identity/hosted-pages.md,
// hosts of tenants.

const ADA = 'ada@harbour.works'
async function tenantWithHost() {
  notThrough('its browser needs a certificate for the host of a tenant')
  const workspace = await api.workspace()
  const { token, body } = workspace
  await sql(running)`delete from verified_domains`
  await ownDomain(api, workspace, ADA)
  const url = new URL(running.issuer)
  url.hostname = `${String(body['tenant_slug'])}.localhost`
  return { token, origin: url.origin, at: { host: url.host } }
}

test.serial('a link by mail leads to the host where it was requested', async (t) => {
  const { token, origin, at } = await tenantWithHost()
  const json = { email: ADA, password: 'the password of ada' }
  await api.call('POST', '/api/v1/tenant-users', { token, json })
  const own = browserOf()
  const page = await own.get('/auth/login', at)
  const fields = { ...page.forms[0]!.fields, email: ADA }
  t.is((await own.post('/auth/login/mail', fields, at)).status, 303)
  const letter = await mail.letterTo(ADA)
  t.true(letter.text.includes(`${origin}/auth/magic/`), letter.text)
  const path = pathIn(letter, '/auth/magic/')
  const link = await own.get(path, at)
  const done = await own.post(link.forms[0]!.action, link.forms[0]!.fields, at)
  t.is(done.status, 303, done.html)
  t.is((await own.get('/auth/account', at)).status, 200)
})

test.serial(
  'a callback returns to the host where the sign-in started, and to no other',
  async (t) => {
    const { token, origin, at } = await tenantWithHost()
    const json = { social: { provision: true } }
    t.is((await api.patch('/api/v1/tenant/settings', token, json)).status, 200)
    const own = browserOf()
    const page = await own.get('/auth/login', at)
    const away = new URL(
      (await own.get(linkTo(page, 'oidc'), { ...at, ...FROM_OUR_PAGE })).location!,
    )
    t.is(away.searchParams.get('redirect_uri'), `${running.issuer}/auth/sso/callback/oidc`)
    provider.mood = {}
    provider.nonce = away.searchParams.get('nonce')!
    const state = away.searchParams.get('state')!
    const query = new URLSearchParams({ code: 'abc', state, iss: provider.issuer }).toString()
    const path = `/auth/sso/callback/oidc?${query}`
    // At the service's own address the browser has other cookies.
    const back = await browserOf().get(path)
    t.is(back.status, 303, back.html)
    t.is(back.location, `${origin}${path}`)
    t.is((await browserOf().get(path, at)).status, 400, 'another browser')
    t.is((await own.get(path, at)).status, 200)
    t.is((await own.get('/auth/account', at)).status, 200)
    t.is((await browserOf().get(path)).status, 400, 'works once')

    const elsewhere = browserOf()
    const forged = await elsewhere.get('/auth/login', at)
    const start = linkTo(forged, 'oidc')
    const sent = new URL(
      (await elsewhere.get(start, { host: 'evil.example', ...FROM_OUR_PAGE })).location!,
    )
    const planted = new URLSearchParams({ code: 'abc', state: sent.searchParams.get('state')! })
    const answer = await browserOf().get(`/auth/sso/callback/oidc?${planted.toString()}`)
    t.is(answer.status, 400, 'a foreign host is never redirected to')
  },
)
