/** Invites, branding and languages of the hosted pages. */
import test from 'ava'
import { sql } from '../../../support/storage/sql.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { bootstrapped, enrolledBrowser, signIn } from '../../../support/identity/person.js'
import { pathOf, relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const running = await sharedService('plain')

const fresh = () => bootstrapped(running)

const browsing = () => openBrowser(running)

test('the well-known password change URL leads through sign-in to the page', async (t) => {
  const workspace = await fresh()
  const browser = browsing()
  const found = await browser.get('/.well-known/change-password')
  t.deepEqual([found.status, found.location], [303, '/auth/account/password'])
  await signIn(browser, workspace)
  const page = await browser.follow(await browser.get('/.well-known/change-password')).gives(200)
  t.regex(page.html, /autocomplete="new-password"/)
})

test('an invite creates one operator, once, who owns the organization and its tenant', async (t) => {
  const workspace = await fresh()
  const path = new URL(workspace.inviteUrl).pathname
  const browser = browsing()
  const page = await browser.get(path).gives(200)
  const weak = await browser.submit(page, { email: 'op@harbour.test', password: 'short' })
  t.is(weak.status, 200)
  t.regex(weak.html, /href="#password"/)
  const taken = await browser.submit(page, {
    email: workspace.email.toUpperCase(),
    password: 'a sentence with words',
  })
  t.is(taken.status, 200, 'the address has an account')
  t.is((await browser.get(path)).status, 200, 'the invite is unchanged')

  const password = 'correct horse battery staple'
  const ready = await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      const racer = browsing()
      const email = `op-${workspace.tenantSlug}-${index}@harbour.test`
      return { racer, email, form: await racer.get(path) }
    }),
  )
  const racers = await Promise.all(
    ready.map(async ({ racer, email, form }) => {
      const answer = await racer.submit(form, { name: 'Op', email, password })
      return { racer, email, answer }
    }),
  )
  const winners = racers.filter(({ answer }) => answer.status === 303)
  t.is(winners.length, 1)
  t.is(racers.filter(({ answer }) => answer.status === 410).length, 7)
  const [{ racer, email }] = winners as [(typeof winners)[0]]
  const account = await racer.get('/auth/account')
  t.is(account.status, 200)
  t.true(account.html.includes(email))
  const rows = await sql<{ roles: string[]; role: string }>(running)`
    select u.roles, m.role from tenant_users u join accounts a on a.id = u.account_id
    join organization_members m on m.member_id = a.id where a.email = ${email}`
  t.deepEqual(rows, [{ roles: ['owner'], role: 'owner' }])
  const again = await signIn(browsing(), { ...workspace, email, password })
  t.is(again.status, 303)
})

test('branding is applied, and cannot inject anything', async (t) => {
  const workspace = await fresh()
  const brand = (branding: object) =>
    sql(running)`
      update tenants set settings = ${JSON.stringify({ branding })}
      where id = ${workspace.tenantId}`
  const show = async () => browsing().get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  await brand({
    name: 'Hafen & "Söhne" <x>',
    color: '#C0FFEE',
    logo: 'data:image/png;base64,iVBORw0KGgo=',
  })
  const page = await show()
  t.true(page.html.includes('Hafen &amp; &quot;Söhne&quot; &lt;x&gt;'))
  t.true(page.html.includes('/auth/brand/c0ffee'))
  t.true(page.html.includes('src="data:image/png;base64,iVBORw0KGgo="'))
  const css = await browsing().get('/auth/brand/c0ffee', { accept: 'text/css,*/*;q=0.1' })
  t.is(css.status, 200)
  t.regex(css.headers['content-type']!, /^text\/css/)
  await brand({
    color: 'red;}body{display:none',
    logo: 'https://evil.example/pixel.png',
  })
  const plain = await show()
  t.false(/brand\/|evil|display:none/.test(plain.html))
})

test('a person reads the pages in their own language', async (t) => {
  const workspace = await fresh()
  const browser = browsing()
  const path = `/auth/login?tenant_slug=${workspace.tenantSlug}`
  const german = await browser.get(path, { 'accept-language': 'de-AT,de;q=0.9,en;q=0.8' })
  t.regex(german.html, /<html lang="de" dir="ltr">/)
  t.true(german.html.includes('Passwort'))
  const asked = await browser.get(`${path}&ui_locales=de`, { 'accept-language': 'en' })
  t.regex(asked.html, /<html lang="de" dir="ltr">/)
  const wrong = await browser.submit(asked, { email: 'x@y.test', password: 'x' })
  t.regex(wrong.html, /<html lang="de" dir="ltr">/, 'the language stays with the flow')
})

test('a page with a form error starts its title with it', async (t) => {
  const workspace = await fresh()
  const browser = browsing()
  const login = await browser.get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  t.regex(login.html, /<title>Sign in – /)
  const wrong = await browser.submit(login, { email: 'x@y.test', password: 'x' })
  t.regex(wrong.html, /<title>Error: Sign in – /)
})

test('the page names another tenant at sign-in, and asks for confirmation at re-authentication', async (t) => {
  const [here, there] = [await fresh(), await fresh()]
  await sql(running)`
    update tenants set settings = ${JSON.stringify({ branding: { name: 'Lighthouse' } })}
    where id = ${there.tenantId}`
  const browser = browsing()
  await signIn(browser, here)
  const away = await browser.get(`/auth/login?tenant_slug=${there.tenantSlug}`)
  t.regex(
    away.html,
    /<span>Lighthouse<\/span><\/p>\n<h1>Sign in<\/h1>\n<p class="lead">Continue to your account\.<\/p>/,
  )
  t.true(away.html.includes(`value="${here.email}"`), 'their address, once typed')
  const party = await relyingParty(running, here)
  const { url } = await party.journey({ prompt: 'login' })
  const asked = await browser.follow(await browser.get(pathOf(url)))
  t.regex(asked.html, /Confirm that it&#39;s you\./)
})

test('opening a form-only address shows a message', async (t) => {
  const browser = browsing()
  for (const path of ['/auth/logout', '/auth/login/code', '/auth/account/recovery-codes']) {
    const page = await browser.get(path)
    t.is(page.status, 405, path)
    t.true(page.html.includes('This address is one step of another page'), path)
  }
})

test('the reason for the sign-in is a correct German sentence', async (t) => {
  const workspace = await fresh()
  const path = `/auth/login?tenant_slug=${workspace.tenantSlug}&ui_locales=de`
  const page = await browsing().get(path)
  t.regex(page.html, /<h1>Anmelden<\/h1>\n<p class="lead">Weiter zu Ihrem Konto\.<\/p>/)
})

test('a form field with NUL is a bad request on every page before sign-in', async (t) => {
  const workspace = await fresh()
  const browser = browsing()
  const login = await browser.get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  const invite = await browser.get(new URL(workspace.inviteUrl).pathname)
  const password = 'correct horse battery staple'
  const email = 'new@harbour.test'
  const answers = [
    await browser.submit(login, { email: 'a\0b@harbour.test', password }),
    await browser.submit(login, { email, password: `${password}\0` }),
    await browser.submit(invite, { name: 'A\0', email, password }),
    await browser.submit(invite, { name: 'A', email: 'a\0b@harbour.test', password }),
  ]
  t.deepEqual(
    answers.map(({ status }) => status),
    [400, 400, 400, 400],
  )
  t.is((await browser.submit(invite, { name: 'A', email, password })).status, 303)
})

test('after the session ends, the user is redirected to that tenant’s sign-in page', async (t) => {
  const workspace = await fresh()
  const elsewhere = await fresh()
  const [browser, other] = [browsing(), browsing()]
  await signIn(browser, workspace)
  const account = await other.follow(await signIn(other, workspace))
  await other.submit(account, {}, '/auth/account/sessions/revoke-others')
  const away = await browser.get('/auth/requests')
  t.is(away.location, `/auth/login?tenant_id=${workspace.tenantId}&return_to=%2Fauth%2Frequests`)
  const login = await browser.follow(away)
  const back = await browser.submit(login, workspace)
  t.is(back.location, '/auth/requests')

  // Expired, and requested by a form.
  await sql(running)`
    update browser_sessions set last_seen_at = last_seen_at - interval '1 day'
    where tenant_id = ${workspace.tenantId}`
  const sent = await browser.post('/auth/account/sessions/revoke-others', { csrf_token: 'old' })
  t.is(sent.location, `/auth/login?tenant_id=${workspace.tenantId}&return_to=%2Fauth%2Faccount`)

  // A browser that was never signed in, and one that signed out.
  const stranger = browsing()
  const nowhere = '/auth/login?return_to=%2Fauth%2Faccount'
  t.is((await stranger.get('/auth/account')).location, nowhere)
  const foreign = await stranger.follow(await signIn(stranger, elsewhere))
  await stranger.submit(foreign, {}, '/auth/logout')
  t.is((await stranger.get('/auth/account')).location, nowhere)
})

test('an expired sign-in leads to the sign-in page of the same tenant', async (t) => {
  const workspace = await bootstrapped(running)
  const browser = openBrowser(running)
  const { tenantSlug: slug, tenantId, email, password } = workspace
  const page = await browser.get(`/auth/login?tenant_slug=${slug}&ui_locales=de`)
  await sql(running)`
    update sign_in_flows set expires_at = now() - interval '5 minutes'
    where tenant_id = ${tenantId}`
  const flow = page.forms[0]!.fields['flow']!
  for (const late of [
    await browser.submit(page, { email, password }),
    await browser.get(`/auth/login?flow=${flow}`),
    await browser.get(`/auth/mfa?flow=${flow}`),
    await browser.get(`/auth/sso/start?provider=oidc&flow=${flow}`),
  ]) {
    t.is(late.status, 400)
    const [, href] = /class="button" href="([^"]*)"/.exec(late.html)!
    t.is(href, `/auth/login?tenant_id=${tenantId}`, late.path)
    t.true(late.html.includes('Harbour Works'), 'its name')
    if (!late.path.includes('/sso/')) t.true(late.html.includes('<html lang="de" dir="ltr">'))
  }
  const again = await browser.get(`/auth/login?tenant_id=${tenantId}`)
  t.is((await browser.submit(again, { email, password })).location, '/auth/account')
  t.is((await browser.get(`/auth/login?flow=${'A'.repeat(43)}`)).status, 400)
})

test('a user with a pending second factor is redirected to their own tenant', async (t) => {
  const workspace = await fresh()
  const { browser: enrolled } = await enrolledBrowser(running, workspace)
  t.teardown(() => enrolled.close())
  const browser = browsing()
  t.regex((await signIn(browser, workspace)).location!, /^\/auth\/mfa\?/)
  const away = await browser.get('/auth/account')
  t.is(away.location, `/auth/login?tenant_id=${workspace.tenantId}&return_to=%2Fauth%2Faccount`)
})

test('a button for something already ended gets a message that it no longer exists', async (t) => {
  const workspace = await fresh()
  const [browser, other] = [browsing(), browsing()]
  await signIn(other, workspace)
  const account = await browser.follow(await signIn(browser, workspace))
  const own = /\/sessions\/[0-9a-f-]{36}\//
  t.is((await browser.submit(account, {}, own)).status, 303)
  const again = await browser.submit(account, {}, own).gives(404)
  t.true(again.html.includes('This has ended, has expired or was already handled'))
  t.false(again.html.includes('This page does not exist'))
})
