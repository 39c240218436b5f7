/** Federated sign-in through another instance of the service. */
import test from 'ava'
import { dataIn, openBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, enrolledBrowser, signIn } from '../../../support/identity/person.js'
import {
  departed,
  onwardFrom,
  throughHome,
  upstreamFixture,
} from '../../../support/vault/upstream.js'

const fixture = await upstreamFixture()
const { running, person } = fixture

/** A tenant that provisions users whom the deployment's provider vouches for. */
async function openTenant(provision = true) {
  const workspace = await bootstrapped(running)
  await sql(running)`
    update tenants set settings = ${JSON.stringify({ social: { provision } })}
    where id = ${workspace.tenantId}`
  return workspace
}

async function arrive(workspace: { tenantSlug: string }, who = person) {
  const browser = openBrowser(running)
  const away = await departed(browser, workspace)
  const back = await throughHome(fixture, browser, away.location ?? away.html, who)
  return { browser, away, back }
}

test.serial('an unknown user is provisioned if the tenant enables it', async (t) => {
  const workspace = await openTenant()
  const { browser, away, back } = await arrive(workspace)
  t.is(away.status, 303)
  const url = new URL(away.location!)
  t.is(url.origin, fixture.home.issuer)
  t.is(url.searchParams.get('code_challenge_method'), 'S256')
  t.truthy(url.searchParams.get('nonce'))
  t.is(back.status, 200, back.html)
  const account = await onwardFrom(browser, back)
  t.is(account.status, 200)
  t.true(account.html.includes(person.email))
  t.is(dataIn(account.html, 'identity').length, 1)

  const [row] = await sql<{ amr: string[]; level: number; confined: boolean }>(running)`
    select amr, level, confined from browser_sessions where tenant_id = ${workspace.tenantId}
    and ended_at is null
    order by created_at desc limit 1`
  t.deepEqual(row, { amr: ['fed'], level: 1, confined: false })

  // Again: the same user, by issuer and subject.
  const again = await arrive(workspace)
  t.is(again.back.status, 200)
  const users = await sql<{ count: string }>(running)`
    select count(*) from tenant_users where tenant_id = ${workspace.tenantId} and not fixture`
  t.is(Number(users[0]!.count), 1)
  const types = await sql<{ type: string }>(running)`
    select distinct type from all_events where tenant_id = ${workspace.tenantId}
    and type like 'sso.%' order by type`
  t.deepEqual(
    types.map(({ type }) => type),
    ['sso.login.success', 'sso.user.provisioned'],
  )
})

const PROFILE = '/auth/account/profile'
const ADA = {
  name: 'Ada King',
  given_name: 'Ada',
  family_name: 'Lovelace',
  picture: 'https://images.example.com/ada.png?size=2',
  locale: 'de-DE',
  zoneinfo: 'Europe/Berlin',
}

test.serial('a provider of the deployment fills what is missing, and nothing else', async (t) => {
  const there = openBrowser(fixture.home)
  const account = await there.follow(await signIn(there, person))
  const known = { ...ADA, phone_number: '+493012345678' }
  t.is((await there.submit(account, known, PROFILE)).status, 303)
  const workspace = await openTenant()
  const { browser } = await arrive(workspace)
  const row = async () => {
    const text = `select given_name, family_name, locale, zoneinfo, picture, phone_number from accounts where email = $1`
    return (await sql(running, text, [person.email]))[0]!
  }
  const { name: _name, ...profile } = ADA
  // The provider was asked for the scopes openid, email and profile.
  t.deepEqual(await row(), { ...profile, phone_number: null })
  const own = await browser.get('/auth/account')
  t.is((await browser.submit(own, { given_name: 'Augusta', locale: '' }, PROFILE)).status, 303)
  await arrive(workspace)
  t.like(await row(), { given_name: 'Augusta', locale: 'de-DE', family_name: 'Lovelace' })
  const records = await sql<{ data: Record<string, string> }>(running)`
    select data from audit_events where type = 'account.profile.updated'
    and tenant_id = ${workspace.tenantId} order by sequence`
  t.deepEqual(
    records.map(({ data }) => data['provider'] ?? null),
    ['oidc', null, 'oidc'],
  )
})

test.serial('a state works once, in its browser, at the callback of its provider', async (t) => {
  const workspace = await openTenant()
  const browser = openBrowser(running)
  const away = await departed(browser, workspace)
  const stranger = openBrowser(running)
  await stranger.get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  const stolen = await throughHome(fixture, stranger, away.location!, person)
  t.is(stolen.status, 400)
  t.is(stranger.cookies.get('svc_session'), undefined)
  const { path } = stolen
  await browser.get(path.replace('/callback/oidc', '/callback/google')).gives(400)

  const answers = await Promise.all(Array.from({ length: 8 }, () => browser.get(path)))
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  t.is(answers.filter(({ status }) => status === 400).length, 7)
  const forged = path.replace(/state=[^&]*/, `state=${'A'.repeat(43)}`)
  t.is((await browser.get(forged)).status, 400)
  t.is((await browser.get(`${path}&state=x`)).status, 400)
})

test.serial('a tenant without provisioning refuses users it does not have', async (t) => {
  const workspace = await openTenant(false)
  const { back } = await arrive(workspace)
  t.is(back.status, 403)
  t.true(back.html.includes('not a member'))
})

test.serial('a suspended user is refused', async (t) => {
  const workspace = await openTenant()
  t.is((await arrive(workspace)).back.status, 200)
  await sql(running)`
    update tenant_users set status = 'suspended' where tenant_id = ${workspace.tenantId}
    and not fixture`
  const { back, browser } = await arrive(workspace)
  t.is(back.status, 403)
  t.true(back.html.includes('suspended'))
  t.is((await browser.get('/auth/account')).status, 303)
})

test.serial('a signed-in user links an identity and can unlink it', async (t) => {
  const workspace = await openTenant()
  // The fixture user of this tenant gets a second identity: another user of the provider.
  const person = await anotherAtHome()
  await giveAddress(workspace.email, person.email, false)
  const browser = openBrowser(running)
  const account = await browser.follow(await signIn(browser, { ...workspace, email: person.email }))
  const away = await browser.submit(account, {}, '/auth/account/identities')
  t.is(away.status, 200, away.html)
  const [url] = dataIn(away.html, 'onward')
  const back = await throughHome(fixture, browser, url!, person)
  t.is(back.status, 200, back.html)
  const linked = await onwardFrom(browser, back)
  const [identity] = dataIn(linked.html, 'identity')
  t.truthy(identity)
  t.deepEqual(await linksOf(workspace), ['person'])
  const arrived = await arrive(workspace, person)
  t.is(arrived.back.status, 200)
  t.deepEqual(await linksOf(workspace), ['person'])

  await browser.submit(linked, {}, `/auth/account/identities/${identity}/unlink`).gives(303)
  t.is(
    (await arrived.browser.get('/auth/account')).status,
    303,
    'the sessions of the identity have ended',
  )
  // The provider vouched for the account's address, which is verified by that.
  t.is((await arrive(workspace, person)).back.status, 200)
})

/** Another user who signs in at the provider. */
async function anotherAtHome() {
  const elsewhere = await bootstrapped(fixture.home)
  await sql(fixture.home)`
    update accounts set email_verified = true where email = ${elsewhere.email}`
  await sql(fixture.home)`
    insert into tenant_users (tenant_id, id, account_id, sub, status, created_at, updated_at)
    select ${fixture.person.tenantId}, gen_random_uuid(), id, ${`linked-${elsewhere.email}`},
    'active', now(), now() from accounts where email = ${elsewhere.email}`
  return { ...elsewhere, tenantSlug: fixture.person.tenantSlug }
}

async function giveAddress(before: string, email: string, verified: boolean): Promise<void> {
  await sql(
    running,
    'update accounts set email = $1, email_key = lower($1), email_verified = $3 where email = $2',
    [email, before, verified],
  )
}

/** How identities of the tenant's users were linked, in order, from the audit chain. */
async function linksOf({ tenantId }: { tenantId: string }): Promise<string[]> {
  const rows = await sql<{ data: Record<string, string> }>(running)`
    select data from audit_events where tenant_id = ${tenantId}
    and type = 'account.identity.linked'
    order by sequence`
  for (const { data } of rows) {
    if (data['provider'] !== 'oidc' || data['issuer'] !== fixture.home.issuer)
      throw new Error(JSON.stringify(data))
  }
  return rows.map(({ data }) => data['by']!)
}

test.serial('linking by address is recorded in the audit chain', async (t) => {
  const workspace = await openTenant()
  const person = await anotherAtHome()
  await giveAddress(workspace.email, person.email, true)
  const { back } = await arrive(workspace, person)
  t.is(back.status, 200, back.html)
  t.deepEqual(await linksOf(workspace), ['address'])
  t.is((await arrive(workspace, person)).back.status, 200)
  t.deepEqual(await linksOf(workspace), ['address'])
})

test.serial('the only sign-in method cannot be removed', async (t) => {
  const workspace = await openTenant()
  const { browser, back } = await arrive(workspace)
  const account = await onwardFrom(browser, back)
  const [identity] = dataIn(account.html, 'identity')
  const path = `/auth/account/identities/${identity}/unlink`
  await browser.submit(account, {}, path).gives(409)
  t.is((await browser.get('/auth/account')).status, 200)
})

test.serial('a second factor of the account is required after a federated sign-in', async (t) => {
  const workspace = await openTenant()
  await enrolledBrowser(running, workspace)
  const [{ id }] = (await sql<{ id: string }>(running)`
    select id from accounts where email = ${workspace.email}`) as [{ id: string }]
  await sql(running)`delete from upstream_identities`
  await sql(running)`
    insert into upstream_identities (account_id, id, provider, issuer, subject, created_at,
    last_used_at)
    select ${id}, gen_random_uuid(), 'oidc', ${fixture.home.issuer}, ${await subjectAtHome()},
    now(), now()`
  const arrived = await arrive(workspace)
  t.is(arrived.back.status, 200, arrived.back.html)
  const next = await onwardFrom(arrived.browser, arrived.back)
  t.true(next.path.startsWith('/auth/mfa?'))
  t.is((await arrived.browser.get('/auth/account')).status, 303, 'not signed in yet')
})

async function subjectAtHome(): Promise<string> {
  const [row] = await sql<{ sub: string }>(fixture.home)`
    select u.sub from tenant_users u join accounts a on a.id = u.account_id
    where u.tenant_id = ${person.tenantId} and a.email = ${person.email}`
  return row!.sub
}

test.serial('an unavailable provider is reported in bounded time', async (t) => {
  const workspace = await openTenant()
  const browser = openBrowser(running)
  const away = await departed(browser, workspace)
  t.is(away.status, 303)
  t.is((await browser.get('/auth/sso/start?provider=unknown&flow=none')).status, 400)
  const page = await browser.get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  const flow = /flow=([A-Za-z0-9_-]{43})/.exec(page.html)![1]!
  t.is((await browser.get(`/auth/sso/start?provider=unknown&flow=${flow}`)).status, 404)
  // The authorization response that never arrived.
  const state = new URL(away.location!).searchParams.get('state')!
  const denied = await browser.get(
    `/auth/sso/callback/oidc?error=access_denied&state=${state}&iss=${encodeURIComponent(fixture.home.issuer)}`,
  )
  t.is(denied.status, 403)
  t.true(denied.html.includes('did not sign you in'))
})
