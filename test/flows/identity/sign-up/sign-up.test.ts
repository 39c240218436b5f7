/** Sign-up with its link by mail, over HTTP and a mail server. docs/guides/identity/sign-in-and-sign-up.md */
import test, { type ExecutionContext } from 'ava'
import { loadSettings } from '../../../../runtime/process/configuration/load-settings.js'
import { apiOf } from '../../../support/api.js'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { mailDomain } from '../../../support/identity/addresses.js'
import { codeIn, pathIn, sharedMail } from '../../../support/operations/letters.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import {
  callbackOf,
  isConsent,
  pathOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const USERS = '/api/v1/tenant-users'
const SETTINGS = '/api/v1/tenant/settings'
const PASSWORD = 'seven boats left at noon'

async function harbour(t: ExecutionContext, profile: 'people' | 'enterprise' = 'people') {
  const [running, mail] = [await sharedService(profile), await sharedMail()]
  const domain = mailDomain()
  const [ada, eve] = [`ada@${domain}`, `eve@${domain}`]
  const api = apiOf(running)
  t.teardown(() => api.end())
  const workspace = await api.workspace()
  const { token, tenantId } = workspace
  const tenantSlug = String(workspace.body['tenant_slug'])
  const browser = () => openBrowser(running)
  const start = `/auth/register?tenant_slug=${tenantSlug}`
  return {
    running,
    mail,
    ada,
    eve,
    api,
    workspace,
    token,
    tenantId,
    tenantSlug,
    browser,
    start,
    database: running.db.database,
    change: (json: unknown) => api.patch(SETTINGS, token, json),
    /** Submits the sign-up page. */
    async ask(at: TestBrowser, email = ada, path = start): Promise<Page> {
      return at.submit(await at.get(path), { email })
    },
    linkTo: async (email = ada, skip = 0) =>
      pathIn(await mail.letterTo(email, /\/auth\/register\//, skip), '/auth/register/'),
    userOf: async (email: string) => (await api.list(`${USERS}?email=${email}`, token)).rows[0],
  }
}

test.serial('a person signs up, confirms the address, and is signed in', async (t) => {
  const at = await harbour(t)
  const browser = at.browser()
  const login = await browser.get(`/auth/login?tenant_slug=${at.tenantSlug}`)
  const [, path = ''] = /href="(\/auth\/register\?flow=[^"]+)"/.exec(login.html) ?? []
  const page = await browser.get(path).gives(200)
  t.is((await browser.submit(page, { email: 'no address' })).status, 200)
  const sent = await browser.submit(page, { email: at.ada }).gives(200)
  t.true(sent.html.includes('data-register-sent'), sent.html)
  t.deepEqual(
    (await at.api.list(USERS, at.token)).rows.filter((one) => one['email'] === at.ada),
    [],
  )

  const link = await at.linkTo()
  const finish = await browser.get(link)
  t.true(finish.html.includes(at.ada))
  t.is((await browser.get(link)).status, 200, 'opening the link does not use it')
  t.true((await browser.submit(finish, { password: 'short' })).html.includes('role="alert"'))
  const racers = await Promise.all(
    Array.from({ length: 8 }, () => browser.submit(finish, { name: 'Ada L.', password: PASSWORD })),
  )
  t.true(racers.every(({ status }) => status === 303))
  const sessions = new Set(racers.flatMap(({ setCookies }) => setCookies))
  t.is(sessions.size, 1, 'of concurrent requests one wins')
  t.is((await browser.get(link)).status, 410)
  t.like(await at.userOf(at.ada), {
    status: 'active',
    email_verified: true,
    display_name: 'Ada L.',
  })

  const { tenantSlug } = at
  const done = await signIn(at.browser(), { tenantSlug, email: at.ada, password: PASSWORD })
  t.is(done.location, '/auth/account')
  const events = await sql<{ type: string }>(at.database)`
    select type from audit_events where tenant_id = ${at.tenantId} and type in
    ('admin.user.created', 'account.password.reset', 'auth.login.success') order by sequence`
  t.deepEqual(events.map(({ type }) => type).slice(-3), [
    'admin.user.created',
    'auth.login.success',
    'auth.login.success',
  ])
})

test.serial('the person returns to the application that asked for the sign-in', async (t) => {
  const at = await harbour(t)
  const party = await relyingParty(at.running, at.workspace)
  const begun = await party.journey()
  const browser = at.browser()
  const login = await browser.follow(await browser.get(pathOf(begun.url)))
  const [, path = ''] = /href="(\/auth\/register\?flow=[^"]+)"/.exec(login.html) ?? []
  await at.ask(browser, at.ada, path)
  const finish = await browser.get(await at.linkTo())
  const signedUp = await browser.submit(finish, { password: PASSWORD })
  const consent = await browser.follow(signedUp)
  t.true(isConsent(consent), consent.html)
  const back = callbackOf(await browser.submit(consent, { action: 'allow' }))
  t.is(back.searchParams.get('state'), begun.state)
  t.truthy(back.searchParams.get('code'))
})

test.serial('in another browser the link works, and ends at the account page', async (t) => {
  const at = await harbour(t)
  await at.ask(at.browser())
  const other = at.browser()
  const signedUp = await other.submit(await other.get(await at.linkTo()), { password: PASSWORD })
  t.is(signedUp.location, '/auth/account')
  t.is((await other.get('/auth/account')).status, 200)
})

test.serial('a known address gets the same page, and a mail that says so', async (t) => {
  const at = await harbour(t)
  const browser = at.browser()
  await at.ask(browser)
  await browser.submit(await browser.get(await at.linkTo()), { password: PASSWORD })
  const known = await at.ask(at.browser())
  const unknown = await at.ask(at.browser(), at.eve)
  const shape = ({ status, html }: Page, email: string) =>
    [status, html.replaceAll(email, '').replaceAll(/flow=[\w-]+/g, '')] as const
  t.deepEqual(shape(known, at.ada), shape(unknown, at.eve))
  const letter = await at.mail.letterTo(at.ada, /already have an account/)
  t.notRegex(letter.text, /\/auth\/register\//)
  t.is((await at.browser().get(pathIn(letter, '/auth/login'))).status, 200)
  await at.linkTo(at.eve)
})

test.serial('an account of another tenant joins with its own password', async (t) => {
  const at = await harbour(t)
  const browser = at.browser()
  await at.ask(browser)
  await browser.submit(await browser.get(await at.linkTo()), { password: PASSWORD })
  const second = await at.api.workspace('Second')
  const elsewhere = at.browser()
  await at.ask(elsewhere, at.ada, `/auth/register?tenant_id=${second.tenantId}`)
  const page = await elsewhere.get(await at.linkTo(at.ada, 1))
  t.false(page.html.includes('type="password"'))
  const joined = await elsewhere.submit(page)
  t.is(joined.status, 303)
  const login = await elsewhere.follow(joined)
  t.true(login.path.startsWith('/auth/login'), 'the link alone does not sign in')
  const done = await elsewhere.submit(login, { email: at.ada, password: PASSWORD })
  t.is(done.status, 303)
  const { rows } = await at.api.list(`${USERS}?email=${at.ada}`, second.token)
  t.is(rows[0]?.['status'], 'active')
})

test.serial('what a stranger prepared for the address is dropped', async (t) => {
  const at = await harbour(t)
  const { body } = at.workspace
  const fixture = body['fixture_end_user'] as { email: string; password: string }
  await sql(
    at.database,
    `update accounts set email = $2, email_key = $2, email_verified = false where email = $1`,
    [fixture.email, at.ada],
  )
  const second = await at.api.workspace('Second')
  const browser = at.browser()
  await at.ask(browser, at.ada, `/auth/register?tenant_id=${second.tenantId}`)
  const page = await browser.get(await at.linkTo())
  t.true(page.html.includes('type="password"'), 'an unproved account has no say')
  t.is((await browser.submit(page, { password: PASSWORD })).location?.split('?')[0], '/auth/login')
  const old = { tenantSlug: at.tenantSlug, email: at.ada, password: fixture.password }
  t.is((await signIn(at.browser(), old)).status, 200, 'the password of the stranger is gone')
  const own = { ...old, password: PASSWORD }
  t.is((await signIn(at.browser(), own)).status, 303)
})

test.serial('an invited user may sign up; a suspended or removed one gets no link', async (t) => {
  const at = await harbour(t)
  const made = await at.api.post(USERS, at.token, { email: at.ada })
  t.is(made.body['status'], 'invited')
  await at.ask(at.browser())
  const browser = at.browser()
  const link = await at.linkTo()
  await browser.submit(await browser.get(link), { password: PASSWORD })
  t.is((await at.userOf(at.ada))?.['status'], 'active')

  const path = `${USERS}/${String(made.body['id'])}`
  for (const status of ['suspended', 'removed']) {
    await sql(at.database)`update tenant_users set status = ${status} where id = ${made.body['id']}`
    const asked = await at.ask(at.browser())
    t.true(asked.html.includes('data-register-sent'), 'the page does not tell')
    const rows = await sql<{ status: string; kind: string }>(at.database)`
      select kind, status from outgoing_mail where tenant_id = ${at.tenantId}
      order by created_at desc limit 1`
    t.deepEqual(rows, [{ kind: 'sign_up', status: 'dropped' }], path)
  }
  t.is((await browser.get(link)).status, 410)
})

test.serial('using one link voids the others of the address', async (t) => {
  const at = await harbour(t)
  await at.ask(at.browser())
  await at.ask(at.browser())
  const [first, second] = [await at.linkTo(), await at.linkTo(at.ada, 1)]
  const browser = at.browser()
  await browser.submit(await browser.get(first), { password: PASSWORD })
  t.is((await browser.get(second)).status, 410)
})

test.serial('a tenant opens and closes sign-up, and the control plane never has it', async (t) => {
  const at = await harbour(t)
  const settings = await at.api.call('GET', SETTINGS, { token: at.token })
  t.deepEqual(settings.body['sign_up'], {})
  await at.ask(at.browser())
  const link = await at.linkTo()
  const changed = await at.change({ sign_up: { enabled: false } })
  t.deepEqual(changed.body['sign_up'], { enabled: false })
  t.is((await at.browser().get(at.start)).status, 403)
  t.is((await at.browser().get(link)).status, 410, 'an earlier link is closed too')
  const login = await at.browser().get(`/auth/login?tenant_slug=${at.tenantSlug}`)
  t.false(login.html.includes('/auth/register'))
  t.is((await at.change({ sign_up: { enabled: true } })).status, 200)
  t.is((await at.browser().get(at.start)).status, 200)

  const control = `/auth/register?tenant_id=${at.workspace.controlPlane}`
  t.is((await at.browser().get(control)).status, 403)
  const open = `settings || '{"sign_up":{"enabled":true}}'`
  await sql(at.database, `update tenants set settings = ${open} where control_plane`)
  t.teardown(
    () => sql(at.database)`update tenants set settings = settings - 'sign_up' where control_plane`,
  )
  t.is((await at.browser().get(control)).status, 403)
  t.is((await at.browser().get('/auth/register?tenant_slug=no-such-tenant')).status, 404)
})

test.serial('where the deployment has it off, a tenant still turns it on', async (t) => {
  const at = await harbour(t, 'enterprise')
  t.is((await at.browser().get(at.start)).status, 403)
  await at.change({ sign_up: { enabled: true } })
  t.is((await at.browser().get(at.start)).status, 200)
  const off = await sharedService('plain')
  const [browser, { tenantId }] = [openBrowser(off), await bootstrapped(off)]
  t.teardown(async () => {
    await off.end()
  })
  const without = await browser.get(`/auth/register?tenant_id=${tenantId}`)
  t.is(without.status, 404, 'without self-service there is no sign-up')
})

test.serial('requests for one address are limited', async (t) => {
  const at = await harbour(t)
  for (const email of [at.ada, at.ada.toUpperCase(), at.ada, at.ada, at.ada]) {
    t.is((await at.ask(at.browser(), email)).status, 200)
  }
  const refused = await at.ask(at.browser())
  t.is(refused.status, 429)
  t.truthy(refused.headers['retry-after'])
  t.is((await at.ask(at.browser(), at.eve)).status, 200)
})

test.serial('a form from another page is refused', async (t) => {
  const at = await harbour(t)
  const browser = at.browser()
  const { fields } = (await browser.get(at.start)).forms[0]!
  const forged = { ...fields, email: at.ada, csrf_token: 'forged' }
  t.is((await browser.post('/auth/register', forged)).status, 403)
})

for (const [language, title] of [
  ['en', 'Create your account'],
  ['de', 'Konto erstellen'],
] as const) {
  test.serial(`the whole journey is in one language: ${language}`, async (t) => {
    const at = await harbour(t)
    const browser = at.browser()
    const headers = { 'accept-language': language }
    const page = await browser.get(at.start, headers)
    t.true(page.html.includes(`<h1>${title}</h1>`), page.html)
    const sent = await browser.post(
      '/auth/register',
      { ...page.forms[0]!.fields, email: at.ada },
      headers,
    )
    t.true(sent.html.includes(`lang="${language}"`))
    const letter = await at.mail.letterTo(at.ada)
    t.is(letter.headers['content-language'], language)
    const finish = await browser.get(pathIn(letter, '/auth/register/'), headers)
    t.true(finish.html.includes(`lang="${language}"`))
    await browser.submit(finish, { password: PASSWORD })

    // Forgot password, and a code by mail, with the same account.
    const start = await at.browser().get(`/auth/login?tenant_slug=${at.tenantSlug}`)
    const { flow } = start.forms[0]!.fields
    const other = at.browser()
    const forgot = await other.get(`/auth/password/forgot?flow=${flow}`, headers)
    await other.post(
      '/auth/password/forgot',
      { ...forgot.forms[0]!.fields, email: at.ada },
      headers,
    )
    const reset = await at.mail.letterTo(at.ada, /\/auth\/password\/reset\//)
    const chosen = await other.get(pathIn(reset, '/auth/password/reset/'), headers)
    t.is((await other.submit(chosen, { password: `${PASSWORD} again` })).status, 200)
    const third = at.browser()
    const login = await third.get(`/auth/login?tenant_slug=${at.tenantSlug}`, headers)
    const mailed = await third.post(
      '/auth/login/mail',
      { ...login.forms[0]!.fields, email: at.ada },
      headers,
    )
    const code = codeIn(await at.mail.letterTo(at.ada, /\b[A-Z]{4}-[A-Z]{4}\b/))
    const entered = await third.submit(await third.follow(mailed), { code })
    t.is(entered.location, '/auth/account')
  })
}

test('sign-up is on in a development deployment, and off in production', (t) => {
  const read = (environment: Record<string, string>) =>
    loadSettings({ environment, cwd: '/', servesPlane: false })
  const local = read({})
  t.true(local.tag === 'loaded' && local.settings.user_self_service.sign_up_default)
  t.true(local.tag === 'loaded' && local.settings.magic_link.enabled)
  const production = read({ SVC_SECURITY__PRODUCTION: 'true' })
  const failures = production.tag === 'refused' ? production.failures : []
  t.false(failures.some(({ key }) => key.startsWith('user_self_service.')))
})
