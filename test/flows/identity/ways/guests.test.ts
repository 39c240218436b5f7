/** Guests: continue without an address, keep the account by proving one. */
import test, { type ExecutionContext } from 'ava'
import * as oidc from 'openid-client'
import { apiOf } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import { mailbox } from '../../../support/identity/addresses.js'
import { codeIn, sharedMail } from '../../../support/operations/letters.js'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import { sharedService } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'
import { removeOldGuests } from '../../../../storage/identity/ways/guests.js'
import {
  credentialsOf,
  issuing,
  offeredToken,
  requestCredential,
  shownRevoked,
  statusOf,
} from '../../../support/oauth/wallet.js'
import { authorized, callbackOf, relyingParty } from '../../../support/oauth/relying-party.js'

async function stage(t: ExecutionContext, profile: 'people' | 'factors' = 'people') {
  const mail = await sharedMail()
  const running = await sharedService(profile)
  const api = apiOf(running)
  t.teardown(() => api.end())
  const workspace = await api.workspace()
  const slug = String(workspace.body['tenant_slug'])
  const db = running.db.database
  return {
    running,
    api,
    mail,
    workspace,
    slug,
    db,
    async allow() {
      const links = [{ label: 'Terms', url: 'https://harbour.example/terms' }]
      const json = { anonymous: { enabled: true }, branding: { links } }
      const { token } = workspace
      const changed = await api.patch('/api/v1/tenant/settings', token, json).gives(200)
      t.deepEqual(changed.body['anonymous'], { enabled: true })
    },
    browser(): TestBrowser {
      const opened = openBrowser(running)
      return opened
    },
    login: (browser: TestBrowser): Promise<Page> =>
      browser.get(`/auth/login?tenant_slug=${slug}&return_to=/auth/account`),
  }
}

test.serial('a guest is admitted where the tenant allows it, without address claims', async (t) => {
  const at = await stage(t)
  const closed = at.browser()
  const before = await at.login(closed)
  t.false(before.html.includes('/auth/login/guest'))
  const { csrf_token, flow } = before.forms[0]!.fields as Record<string, string>
  const forced = await closed.post('/auth/login/guest', { csrf_token: csrf_token!, flow: flow! })
  t.is(forced.status, 404, 'not by the form either')

  await at.allow()
  const browser = at.browser()
  const done = await browser.submit(await at.login(browser), {}, '/auth/login/guest')
  t.is(done.location, '/auth/account', done.html)
  const account = await browser.follow(done)
  t.true(account.html.includes('You are a guest'))
  t.false(account.html.includes('guest.invalid'), 'the placeholder address is not shown')
  const [row] = await sql<{ email: string }>(at.db)`
    select email from accounts a join tenant_users u on u.account_id = a.id
    where guest_since is not null and u.tenant_id = ${at.workspace.tenantId}`
  const mailed = await at.browser().get(`/auth/login?tenant_slug=${at.slug}`)
  t.is(mailed.status, 200)
  t.regex(row!.email, /@guest\.invalid$/)

  const party = await relyingParty(at.running, { tenantId: at.workspace.tenantId })
  const begun = await party.journey()
  const none = { email: '', password: '' }
  const callback = callbackOf(await authorized(browser, none, begun.url))
  const tokens = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
  const claims = tokens.claims()!
  t.deepEqual(
    ['email', 'email_verified', 'preferred_username'].filter((name) => name in claims),
    [],
  )
  t.is(claims['acr'], 'aal1')
  const events = await sql<{ type: string }>(at.db)`
    select type from all_events where data -> 'actor' ->> 'id' = ${claims.sub}
    order by occurred_at, type`
  t.true(events.some(({ type }) => type === 'tenant_user.activated'))
})

test.serial('an old guest is deleted, with tokens and credentials', async (t) => {
  const at = await stage(t)
  await at.allow()
  const { api, db } = at
  const tenant = await issuing(api, at.workspace)
  const browser = at.browser()
  await browser.submit(await at.login(browser), {}, '/auth/login/guest')
  const party = await relyingParty(at.running, tenant)
  const begun = await party.journey()
  const callback = callbackOf(await authorized(browser, { email: '', password: '' }, begun.url))
  const tokens = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
  const isAdmitted = async () => (await api.get('/userinfo', tokens.access_token)).status === 200
  const [guest] = await sql<{ id: string; account: string }>(db)`
    select id, account_id as account from tenant_users
    where tenant_id = ${tenant.tenantId} and sub = ${tokens.claims()!.sub}`
  const offered = await offeredToken(api, tenant, { user_id: guest!.id })
  const [credential = ''] = credentialsOf(await requestCredential(api, tenant, offered))
  t.is(await statusOf(api, credential), 0)
  t.true(await isAdmitted())
  // Older than the guests of other files, which use the database too.
  await sql(db)`update accounts set guest_since = '2001-01-01' where id = ${guest!.account}`
  await sql(db)`update browser_sessions set last_seen_at = '2001-01-01'
    where account_id = ${guest!.account}`
  const before = new Date('2002-01-01')
  const removed = await db.system((tx) => removeOldGuests(tx, before, 10, new Date()))
  t.deepEqual(
    removed.map(({ tenantUserId }) => tenantUserId),
    [guest!.id],
  )
  await shownRevoked(api, credential)
  await until('the token is refused', async () => !(await isAdmitted()))
})

test.serial('a sign-in that needs more than a guest does not offer one', async (t) => {
  const at = await stage(t, 'factors')
  await at.allow()
  const browser = at.browser()
  const page = await at.login(browser)
  t.false(page.html.includes('/auth/login/guest'))
  const { csrf_token, flow } = page.forms[0]!.fields as Record<string, string>
  await browser.post('/auth/login/guest', { csrf_token: csrf_token!, flow: flow! }).gives(404)
})

test.serial(
  'a guest keeps the account by proving an address, and takes over no other',
  async (t) => {
    const at = await stage(t)
    await at.allow()
    const browser = at.browser()
    await browser.submit(await at.login(browser), {}, '/auth/login/guest')
    const [guest] = await sql<{ id: string; sub: string }>(at.db)`
      select a.id, u.sub from accounts a join tenant_users u on u.account_id = a.id
      where a.guest_since is not null and u.tenant_id = ${at.workspace.tenantId}`
    const form = await browser.get('/auth/account/email/new')
    const bad = await browser.submit(form, { email: 'x@guest.invalid' })
    t.true(bad.html.includes('Enter a valid email address.'))

    const [known, ada] = [mailbox('owner'), mailbox('ada')]
    const json = { email: known, password: 'a password of the owner here' }
    const answer = await at.api.call('POST', '/api/v1/tenant-users', {
      token: at.workspace.token,
      json,
    })
    t.is(answer.status, 201)
    const asked = await browser.submit(form, { email: known })
    const fresh = await browser.submit(form, { email: ada.toUpperCase() })
    const shape = ({ html }: Page) => html.replaceAll(/value="[^"]*"|<bdi[^>]*>[^<]*<\/bdi>/g, '')
    t.is(shape(asked), shape(fresh), 'the response does not reveal whether the address is known')

    // The second letter to an address is asked for when the first has arrived: they could come in any order.
    for (const to of [known, ada]) await at.mail.letterTo(to, /[A-Z]{4}-[A-Z]{4}/)
    const again = await browser.submit(form, { email: known })
    const letter = await at.mail.letterTo(known, /[A-Z]{4}-[A-Z]{4}/, 1)
    t.regex(letter.headers['subject']!, /^Your code for /)
    const taken = await browser.submit(again, { code: codeIn(letter) }).gives(409)
    t.true(taken.html.includes('You already have an account with this email address.'))

    const mine = await browser.submit(form, { email: ada.toUpperCase() })
    const code = codeIn(await at.mail.letterTo(ada, /[A-Z]{4}-[A-Z]{4}/, 1))
    const stranger = at.browser()
    await stranger.submit(await at.login(stranger), {}, '/auth/login/guest')
    const other = await stranger.submit(await stranger.get('/auth/account/email/new'), {
      email: mailbox('other'),
    })
    t.is((await stranger.submit(other, { code })).status, 200, 'a code belongs to one session')
    const both = await Promise.all([browser.submit(mine, { code }), browser.submit(mine, { code })])
    t.true(both.some(({ location }) => location === '/auth/account'))
    const [row] = await sql(at.db)`
      select email, email_verified as proved, guest_since as since,
      (select sub from tenant_users where account_id = a.id) as sub
      from accounts a where id = ${guest!.id}`
    t.deepEqual(row, { email: ada, proved: true, since: null, sub: guest!.sub })
    const account = await browser.get('/auth/account')
    t.is(account.status, 200, 'the session stays')
    t.false(account.html.includes('You are a guest'))
    t.is((await browser.get('/auth/account/email/new')).location, '/auth/account')
  },
)
