/** The console as an OpenID Connect client: sign-in, session, step-up, sign-out. */
import test from 'ava'
import { fixtureOf, newFixture, present } from '../../../support/agents/delegation.js'
import { consoleOwner, openConsole } from '../../../support/identity/console.js'
import { sql } from '../../../support/storage/sql.js'
import { enrol, signIn } from '../../../support/identity/person.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain')

const COOKIE = /svc_console=/
const SECRET = 'the-secret-of-the-harbour'
const CREATE = '/console/applications/do/create'

test('the console asks for the tenant, and remembers it', async (t) => {
  const { made, person } = await consoleOwner(api)
  const browser = openBrowser(running)
  const asked = await browser.follow(await browser.get('/console'))
  t.is(asked.path, '/console/sign-in?return_to=%2Fconsole')
  const unknown = await browser.submit(asked, { workspace: 'no-such-workspace' })
  t.regex(unknown.html, /No workspace has this slug/)
  const noDomain = await browser.submit(asked, { workspace: 'ann@nowhere.example' })
  t.regex(noDomain.html, /No workspace has verified the domain/)
  const login = await browser.follow(await browser.submit(asked, { workspace: made.tenantSlug }))
  t.true(login.path.startsWith('/auth/login'), login.path)
  const { email, password } = person.human
  const next = await browser.follow(await browser.submit(login, { email, password }))
  const code = await browser.follow(await browser.submit(next, { code: person.codes.next() }))
  t.is(code.path, '/console')
  t.is(code.status, 200)
  t.true(code.html.includes('Harbour Works'), 'the page names the tenant')
  await browser.get('/console').gives(200)
})

test('the tenant of an address is found by its verified domain only', async (t) => {
  const { made } = await consoleOwner(api)
  const browser = openBrowser(running)
  const domain = `${made.tenantSlug}.example`
  await sql(running)`
    insert into verified_domains (tenant_id, id, domain, proof, auto_join, created_at,
    verified_at)
    values (${made.tenantId}, gen_random_uuid(), ${domain}, 'proof', false, now(), now())`
  const asked = await browser.get('/console/sign-in?switch=1')
  for (const workspace of [`anyone@${domain}`, ` @${domain.toUpperCase()} `]) {
    const begun = await browser.submit(asked, { workspace }).gives(303)
    t.true(begun.location?.includes(`tenant_id=${made.tenantId}`), String(begun.location))
  }
})

test('the sign-in of another browser is refused', async (t) => {
  const { person, made } = await consoleOwner(api)
  const other = openBrowser(running)
  const begun = await person.browser.get(`/console/sign-in?tenant_id=${made.tenantId}`)
  const answered = await person.browser.get(begun.location!)
  t.regex(String(answered.location), /^\/console\/callback\?code=/)
  const stolen = await other.get(answered.location!).gives(400)
  t.notRegex(stolen.setCookies.join(), COOKIE)
  const mine = await person.browser.get(answered.location!).gives(303)
  t.regex(mine.setCookies.join(), COOKIE)
  t.regex(mine.setCookies.find((line) => COOKIE.test(line))!, /HttpOnly.*SameSite=Lax/i)
  const twice = await person.browser.get(answered.location!)
  t.is(twice.status, 400, 'a code works once')
})

test('the client is built in: no consent, not listed, no other redirect URI', async (t) => {
  const { person, made, token } = await consoleOwner(api)
  const rows = await sql<{ id: string; metadata_url: string }>(running)`
    select id, metadata_url from applications where tenant_id = ${made.tenantId}
    and metadata_url is not null`
  t.deepEqual(
    rows.map(({ metadata_url }) => metadata_url),
    ['svc_console'],
  )
  const listed = await api.get('/api/v1/applications', token)
  t.notRegex(JSON.stringify(listed.body), /svc_console/)
  const challenge = 'A'.repeat(43)
  const ask = (more: Record<string, string>) =>
    person.browser.get(
      `/oauth/authorize?${new URLSearchParams({
        client_id: 'svc_console',
        tenant_id: made.tenantId,
        response_type: 'code',
        redirect_uri: `${running.issuer}/console/callback`,
        code_challenge: challenge,
        code_challenge_method: 'S256',
        scope: 'openid',
        ...more,
      }).toString()}`,
    )
  t.is((await ask({})).status, 302)
  t.is((await ask({ redirect_uri: 'https://evil.example/' })).status, 400)
  const byId = await ask({ client_id: rows[0]!.id })
  t.is(byId.status, 400, 'its id is not its client_id')
  const answer = await person.browser.get(
    `/oauth/authorize?client_id=svc_console&tenant_id=${made.tenantId}&response_type=code&redirect_uri=${encodeURIComponent(`${running.issuer}/console/callback`)}`,
  )
  t.is(answer.status, 400)
})

test('tokens are sealed at rest, renewed in time, and revoked at sign-out', async (t) => {
  const { browser, made } = await consoleOwner(api)
  const read = () =>
    sql<{ tokens_sealed: Buffer; access_until: Date }>(running)`
      select tokens_sealed, access_until from console_sessions where tenant_id = ${made.tenantId}`
  const [before] = await read()
  t.notRegex(before!.tokens_sealed.toString('latin1'), /eyJ/)
  await sql(running)`
    update console_sessions set access_until = now() where tenant_id = ${made.tenantId}`
  const page = await browser.get('/console/applications').gives(200)
  const [after] = await read()
  t.notDeepEqual(after!.tokens_sealed, before!.tokens_sealed)
  t.true(after!.access_until > new Date())
  await browser.submit(page, {}, '/console/sign-out').gives(303)
  t.deepEqual(await read(), [])
  const [family] = await sql<{ open: string }>(running)`
    select count(*) as open from refresh_families f join applications a on a.id = f.client_id
    where a.tenant_id = ${made.tenantId} and a.metadata_url = 'svc_console'
    and f.revoked_at is null`
  t.is(Number(family!.open), 0)
  const again = await browser.follow(await browser.get(`/console?tenant_id=${made.tenantId}`))
  t.true(again.path.startsWith('/auth/login'), `signed out, so the user signs in: ${again.path}`)
})

test('the console leaves the sign-in of another user open', async (t) => {
  const { browser } = await consoleOwner(api)
  const other = await consoleOwner(api)
  const page = await browser.get('/console')
  for (const [name, value] of other.browser.cookies)
    if (name.endsWith('svc_session')) browser.cookies.set(name, value)
  await browser.submit(page, {}, '/console/sign-out').gives(303)
  const kept = await browser.get('/auth/account')
  t.is(kept.status, 200)
})

test('the page of a refused sign-in shows what the answer to this browser says', async (t) => {
  const { person, made } = await consoleOwner(api)
  const begun = await person.browser.get(`/console/sign-in?tenant_id=${made.tenantId}`)
  const state = new URL(begun.location!, running.issuer).searchParams.get('state')!
  const words = 'Call the harbour now'
  const answer = (more: Record<string, string>) => {
    const query = new URLSearchParams({ error: 'server_error', error_description: words, ...more })
    return person.browser.get(`/console/callback?${query.toString()}`).gives(400)
  }
  for (const forged of [{}, { state: 'forged', iss: running.issuer }, { state }])
    t.false((await answer(forged)).html.includes(words), JSON.stringify(forged))
  t.true((await answer({ state, iss: running.issuer })).html.includes(words))
})

test('the end of the sign-in session ends the session of the console', async (t) => {
  const { browser, made } = await consoleOwner(api)
  const session = browser.cookies.get('svc_console') ?? browser.cookies.get('__Host-svc_console')
  t.truthy(session)
  const account = await browser.get('/auth/account')
  await browser.submit(account, {}, '/auth/logout')
  const page = await browser.get('/console/applications').gives(303)
  t.true(page.location?.startsWith('/console/sign-in?'), String(page.location))
  t.true(page.location?.includes(made.tenantId))
})

test('a suspended tenant has no console', async (t) => {
  const { browser, made } = await consoleOwner(api)
  await sql(running)`update tenants set status = 'suspended' where id = ${made.tenantId}`
  const page = await browser.get('/console').gives(303)
  const led = await browser.follow(page)
  t.not(led.path, '/console')
  const form = await browser.post(CREATE, { name: 'Ferry' })
  t.not(form.status, 200)
})

test('a form without the CSRF token of its browser changes nothing', async (t) => {
  const { browser, token } = await consoleOwner(api)
  const form = await openConsole(browser, CREATE)
  const { csrf_token: csrf = '', ...fields } = form.forms.find(
    ({ action }) => action === CREATE,
  )!.fields
  await browser.post(CREATE, { ...fields, name: 'Forged' }).gives(403)
  const answer = await browser.post(
    CREATE,
    { ...fields, csrf_token: csrf, name: 'Forged' },
    { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  )
  t.is(answer.status, 403)
  await api.get('/api/v1/tenant-users', token).gives(200)
  const page = await browser.get('/console/applications')
  t.notRegex(page.html, /Forged/)
})

test('a form that was open before a sign-in to another tenant changes nothing', async (t) => {
  const { browser, token } = await consoleOwner(api)
  const form = await openConsole(browser, CREATE)
  const other = await consoleOwner(api)
  // The same browser, with the sessions of the other tenant.
  for (const [name, value] of other.browser.cookies)
    if (/svc_(?:console|session)$/.test(name)) browser.cookies.set(name, value)
  const refused = await browser.submit(form, { name: 'Ferry' }, CREATE).gives(403)
  t.regex(
    refused.html,
    new RegExp(`href="${CREATE}"`),
    'the page leads to its form in this session',
  )
  await browser.submit(form, {}, '/console/sign-out').gives(403)
  for (const one of [token, other.token]) {
    const listed = await api.list('/api/v1/applications', one)
    t.notRegex(JSON.stringify(listed.rows), /Ferry/)
  }
  await browser.get('/console').gives(200)
})

test('a member sees what members may see, and can do nothing else', async (t) => {
  const workspace = await api.workspace()
  const { browser } = await present(api, fixtureOf(workspace))
  const page = await openConsole(browser, `/console?tenant_id=${workspace.tenantId}`)
  for (const absent of ['applications', 'people', 'webhooks', 'audit', 'settings', 'accounts']) {
    t.notRegex(page.html, new RegExp(`href="/console/${absent}"`), absent)
    const opened = await browser.get(`/console/${absent}`)
    t.is(opened.status, 404, absent)
  }
  const { csrf_token: csrf = '' } = page.forms[0]!.fields
  await browser.post(CREATE, { csrf_token: csrf, name: 'Ferry' }).gives(404)
  const listed = await api.list('/api/v1/applications', workspace.token)
  t.notRegex(JSON.stringify(listed.rows), /Ferry/)
})

test('an action that needs a second factor leads there and back, and is done once', async (t) => {
  const workspace = await api.workspace()
  const human = await newFixture(api, workspace)
  const browser = openBrowser(running)
  const owner = (await api.list('/api/v1/tenant-users', workspace.token)).rows.find(
    ({ email }) => email === human.email,
  )!
  await api.patch(`/api/v1/tenant-users/${String(owner['id'])}`, workspace.token, {
    roles: ['owner'],
  })
  await browser.follow(await signIn(browser, human)).gives(200)
  await openConsole(browser, `/console?tenant_id=${workspace.tenantId}`)
  const create = '/console/vault-credentials/do/create'
  const kept = await browser.submit(
    await openConsole(browser, create),
    {
      provider: 'custom',
      credential_type: 'api_key',
      label: 'Harbour key',
      auth_scheme: 'bearer',
      allowed_hosts: 'api.example.com',
      secret: SECRET,
      non_exportable: 'false',
    },
    create,
  )
  t.is(kept.status, 303, kept.html)
  const item = kept.location!.replace(/\?.*/, '')
  const shown = await openConsole(browser, item)
  t.notRegex(shown.html, new RegExp(SECRET))

  const path = `${item}/do/reveal`
  const led = await browser.submit(await openConsole(browser, path), {}, path)
  t.is(led.status, 303, led.html)
  t.regex(String(led.location), /^\/oauth\/authorize\?.*acr_values=aal2/)
  const page = await browser.follow(led)
  t.true(page.path.startsWith('/auth/mfa/enroll'), page.path)
  const enrolled = await enrol(browser, page)
  const onward = /href="(\/oauth\/authorize\/resume\/[^"]+)"/.exec(enrolled.page.html)?.[1]
  const done = await browser.follow(await browser.get(onward!))
  t.is(done.status, 200, done.html)
  t.regex(done.html, new RegExp(`data-secret="secret">${SECRET}<`))
  const reveals = async () =>
    (await api.list('/api/v1/audit-events?type=vault.credential.accessed', workspace.token)).rows
  const before = (await reveals()).length
  const reloaded = await browser.get(done.path)
  t.is(reloaded.location, item, 'a reload shows the object')
  t.is((await reveals()).length, before, 'and does nothing again')
  t.notRegex((await openConsole(browser, item)).html, new RegExp(SECRET))
  const other = openBrowser(running)
  t.is((await other.get(done.path)).status, 400, 'another browser has no sign-in to complete')
  const now = await browser.submit(await openConsole(browser, path), {}, path)
  t.is(now.status, 200, 'the second factor is still fresh')
})
