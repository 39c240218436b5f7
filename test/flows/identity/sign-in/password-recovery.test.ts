/** Invitations, forgotten and changed passwords, email verification: over HTTP and a mail server. */
import { createServer } from 'node:https'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { openBrowser, type TestBrowser } from '../../../support/pages/browser.js'
import { makeCertificate } from '../../../support/service/certificates.js'
import { sql } from '../../../support/storage/sql.js'
import { mailDomain } from '../../../support/identity/addresses.js'
import { pathIn, sharedMail } from '../../../support/operations/letters.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { sharedService, testService } from '../../../support/service.js'
import { ownDomain } from '../../../support/identity/squatting.js'

const USERS = '/api/v1/tenant-users'
const OLD = 'the old password of ada'
const NEW = 'the new password of ada'
const ON = { SVC_USER_SELF_SERVICE__ENABLED: 'true', SVC_INVITATIONS__ENABLED: 'true' }

async function harbour(t: ExecutionContext, environment?: Record<string, string>) {
  const mail = await sharedMail()
  const running =
    environment === undefined
      ? await sharedService('people')
      : await testService({ environment: { ...mail.environment, ...environment } })
  const domain = mailDomain()
  const ada = `ada@${domain}`
  const api = apiOf(running)
  t.teardown(() => api.end())
  const workspace = await api.workspace()
  await ownDomain(api, workspace, ada)
  const { token } = workspace
  const tenantSlug = String(workspace.body['tenant_slug'])
  const browser = () => openBrowser(running)
  return {
    running,
    mail,
    domain,
    ada,
    api,
    token,
    tenantId: workspace.tenantId,
    tenantSlug,
    browser,
    database: running.db.database,
    create: (json: Record<string, string>) => api.call('POST', USERS, { token, json }),
    enter: (at: TestBrowser, password: string, email = ada) =>
      signIn(at, { tenantSlug, email, password }),
  }
}

type Harbour = Awaited<ReturnType<typeof harbour>>

async function auditTypes({ database, tenantId }: Harbour): Promise<string[]> {
  const rows = await sql<{ type: string }>(database)`
    select type from audit_events where tenant_id = ${tenantId} and type like 'account.%'
    order by sequence`
  return rows.map(({ type }) => type)
}

test.serial(
  'an invited user sets a password with the link of the mail, and is signed in',
  async (t) => {
    const at = await harbour(t)
    const made = await at.create({ email: at.ada, display_name: 'Ada' })
    t.is(made.body['status'], 'invited')
    const letter = await at.mail.letterTo(at.ada)
    t.regex(letter.headers['subject']!, /^You are invited to /)
    const path = pathIn(letter, '/auth/invitations/')
    const browser = at.browser()
    const page = await browser.get(path).gives(200)
    t.true(page.html.includes('Ada'))
    const weak = await browser.submit(page, { password: 'short' }).gives(200)
    t.true(weak.html.includes('role="alert"'))
    t.is((await browser.get(path)).status, 200, 'the link is still valid')

    const racers = await Promise.all(
      Array.from({ length: 10 }, () => browser.submit(page, { name: 'Ada L.', password: NEW })),
    )
    t.true(racers.every(({ status }) => status === 303))
    const sessions = new Set(racers.flatMap(({ setCookies }) => setCookies))
    t.is(sessions.size, 1, 'of concurrent requests one accepts')
    const fresh = at.browser()
    t.is((await at.enter(fresh, NEW)).location, '/auth/account')
    const user = await at.api.call('GET', `${USERS}/${String(made.body['id'])}`, {
      token: at.token,
    })
    t.like(user.body, { status: 'active', email_verified: true })
  },
)

test.serial('a user with an account keeps the password and signs in with it', async (t) => {
  const at = await harbour(t)
  const alone = await at.browser().get('/auth/password/forgot')
  t.deepEqual([alone.status, alone.location], [303, '/auth/login'], 'no tenant is known')
  const own = at.browser()
  for (const named of [`tenant_slug=${at.tenantSlug}`, `tenant_id=${at.tenantId}`]) {
    const forgot = await own.get(`/auth/password/forgot?${named}`)
    t.is(forgot.status, 200, 'opened by its address')
    t.truthy(forgot.forms[0]?.fields['flow'])
  }
  const forgot = await own.get(`/auth/password/forgot?tenant_id=${at.tenantId}`)
  const sent = await own.submit(forgot, { email: 'unknown@harbour.example' })
  t.is(sent.status, 200)
  t.regex(sent.html, /Check your email/)
  await at.create({ email: at.ada, password: OLD })
  await sql(at.database)`update accounts set email_verified = true where email = ${at.ada}`
  const second = await at.api.workspace()
  const json = { email: at.ada }
  const made = await at.api.call('POST', USERS, { token: second.token, json })
  t.is(made.body['status'], 'invited')
  const browser = at.browser()
  const page = await browser.get(pathIn(await at.mail.letterTo(at.ada), '/auth/invitations/'))
  t.false(page.html.includes('type="password"'))
  const accepted = await browser.submit(page)
  t.is(accepted.location, `/auth/login?tenant_id=${second.tenantId}`)
  const login = await browser.follow(accepted)
  await browser.submit(login, { email: at.ada, password: OLD }).gives(303)
})

test.serial('a resent invitation invalidates the previous one', async (t) => {
  const at = await harbour(t)
  const made = await at.create({ email: at.ada })
  const first = pathIn(await at.mail.letterTo(at.ada), '/auth/invitations/')
  const path = `${USERS}/${String(made.body['id'])}/invitation`
  t.is((await at.api.post(path, at.token)).status, 200)
  const second = pathIn(await at.mail.letterTo(at.ada, /(?:)/, 1), '/auth/invitations/')
  const browser = at.browser()
  const gone = await browser.get(first).gives(410)
  t.true(
    gone.html.includes(`href="/auth/login?tenant_id=${at.tenantId}"`),
    'the tenant of the link',
  )
  const unknown = await browser.get(`${first.slice(0, -43)}${'A'.repeat(43)}`).gives(410)
  t.false(unknown.html.includes('/auth/login'))
  t.is((await browser.get(second)).status, 200)
  const foreign = await at.api.workspace()
  t.is((await at.api.post(path, foreign.token)).status, 404)
  await browser.submit(await browser.get(second), { password: NEW })
  t.is((await at.api.post(path, at.token)).status, 409)
})

test.serial('with invitations disabled no mail is sent', async (t) => {
  const running = await sharedService('plain')
  const api = apiOf(running)
  t.teardown(() => api.end())
  const { token, tenantId } = await api.workspace()
  const made = await api.post(USERS, token, { email: `ada@${mailDomain()}` })
  t.is(made.body['status'], 'invited')
  t.is((await api.post(`${USERS}/${String(made.body['id'])}/invitation`, token)).status, 403)
  const outgoing = 'select from outgoing_mail where tenant_id = $1'
  t.deepEqual(await sql(running.db.database, outgoing, [tenantId]), [])
})

test.serial('a password reset works once, and ends every session', async (t) => {
  const at = await harbour(t)
  await at.create({ email: at.ada, password: OLD })
  const signedIn = at.browser()
  await at.enter(signedIn, OLD)
  const browser = at.browser()
  const login = await browser.get(`/auth/login?tenant_slug=${at.tenantSlug}`)
  const forgot = await browser.get(/href="(\/auth\/password\/forgot\?[^"]*)"/.exec(login.html)![1]!)
  const asked = await browser.submit(forgot, { email: at.ada }).gives(200)
  const stranger = `unknown@${at.domain}`
  t.is(
    (await browser.submit(forgot, { email: stranger })).html,
    asked.html,
    'the response does not reveal whether the address is known',
  )

  const path = pathIn(await at.mail.letterTo(at.ada), '/auth/password/reset/')
  const page = await browser.get(path)
  t.is(page.headers['referrer-policy'], 'no-referrer')
  await browser.get(path)
  const racers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => browser.submit(page, { password: `${NEW} ${n}` })),
  )
  t.is(racers.filter(({ status }) => status === 200).length, 1)
  t.is(racers.filter(({ status }) => status === 410).length, 9)
  const [known] = await sql<{ n: number }>(at.database)`
    select count(*)::int as n from known_browsers b join accounts a on a.id = b.account_id
    where a.email = ${at.ada}`
  t.is(known?.n, 2, 'guesses of others do not lock the browser of the reset')
  const winner = racers.findIndex(({ status }) => status === 200)
  t.is((await signedIn.get('/auth/account')).status, 303, 'signed out')
  t.is((await at.enter(at.browser(), OLD)).status, 200, 'the old one is wrong')
  t.is((await at.enter(at.browser(), `${NEW} ${winner}`)).status, 303)
  const notice = await at.mail.letterTo(at.ada, /was changed on/)
  t.notRegex(notice.text, /https?:/)
  t.deepEqual(await auditTypes(at), ['account.password.reset'])
  t.is((await at.mail.lettersTo(at.ada)).length, 2)
  t.deepEqual(await at.mail.lettersTo(stranger), [], 'the unknown address got no mail')
})

test.serial('a suspended user, and an address that changed, cannot use a link', async (t) => {
  const at = await harbour(t)
  const made = await at.create({ email: at.ada, password: OLD })
  const browser = at.browser()
  const login = await browser.get(`/auth/login?tenant_slug=${at.tenantSlug}`)
  const forgot = await browser.get(/href="(\/auth\/password\/forgot\?[^"]*)"/.exec(login.html)![1]!)
  await browser.submit(forgot, { email: at.ada })
  const path = pathIn(await at.mail.letterTo(at.ada), '/auth/password/reset/')
  const page = await browser.get(path)
  const user = `${USERS}/${String(made.body['id'])}`
  await at.api.post(`${user}/suspend`, at.token)
  t.is((await browser.submit(page, { password: NEW })).status, 410)
  await at.api.post(`${user}/reactivate`, at.token)
  await sql(at.database, 'update accounts set email = $2, email_key = $2 where email = $1', [
    at.ada,
    `changed@${at.domain}`,
  ])
  t.is((await browser.get(path)).status, 410)
})

test.serial(
  'a password is changed with the current one; only this browser stays signed in',
  async (t) => {
    const at = await harbour(t)
    await at.create({ email: at.ada, password: OLD })
    const [here, there] = [at.browser(), at.browser()]
    await at.enter(here, OLD)
    await at.enter(there, OLD)
    const before = [...here.cookies]
    const page = await here.get('/auth/account/password')
    const wrong = await here.submit(page, { current: 'not it', password: NEW })
    t.true(wrong.html.includes('role="alert"'))
    const weak = await here.submit(page, { current: OLD, password: at.ada })
    t.true(weak.html.includes('role="alert"'))
    t.is((await there.get('/auth/account')).status, 200)
    const done = await here.submit(page, { current: OLD, password: NEW })
    t.is(done.location, '/auth/account')
    t.notDeepEqual([...here.cookies], before, 'the cookie has changed')
    t.is((await here.get('/auth/account')).status, 200)
    t.is((await there.get('/auth/account')).status, 303)
    t.is((await at.enter(at.browser(), NEW)).status, 303)
    await at.mail.letterTo(at.ada, /was changed on/)
    t.deepEqual(await auditTypes(at), ['account.password.changed'])
  },
)

test.serial('an address is verified with the link of a mail', async (t) => {
  const at = await harbour(t)
  await at.create({ email: at.ada, password: OLD })
  const browser = at.browser()
  const account = await browser.follow(await at.enter(browser, OLD))
  await browser.submit(account, {}, '/auth/account/email/verification').gives(200)
  const path = pathIn(await at.mail.letterTo(at.ada), '/auth/email/')
  const elsewhere = at.browser()
  t.is((await elsewhere.submit(await elsewhere.get(path))).status, 403, 'another browser')
  const page = await browser.get(path)
  t.is((await browser.submit(page)).status, 200)
  t.is((await browser.submit(page)).status, 410)
  t.false((await browser.get('/auth/account')).html.includes('/email/verification'))
  t.deepEqual(await auditTypes(at), ['account.email.verified'])
})

test.serial('self-service can be off; forms need their token', async (t) => {
  const running = await sharedService('plain')
  const [browser, { tenantSlug, email }] = [openBrowser(running), await bootstrapped(running)]
  t.teardown(async () => {
    await running.end()
  })
  const login = await browser.get(`/auth/login?tenant_slug=${tenantSlug}`)
  t.false(login.html.includes('/auth/password/forgot'))
  const { fields } = login.forms[0]!
  t.is((await browser.get(`/auth/password/forgot?flow=${fields['flow']}`)).status, 404)
  await browser.post('/auth/password/forgot', { ...fields, email }).gives(404)
  for (const kind of ['password/reset', 'invitations', 'email']) {
    t.is((await browser.get(`/auth/${kind}/nothing`)).status, 410)
    t.is((await browser.post(`/auth/${kind}/nothing`, {})).status, 403)
  }
  t.is((await browser.get('/auth/account/password')).status, 303)
})

/** Retries while a loaded machine makes the range service respond too late. */
async function answered<A extends { readonly status: number }>(ask: () => Promise<A>): Promise<A> {
  let answer = await ask()
  for (let n = 0; n < 40 && answer.status === 503; n += 1) answer = await ask()
  return answer
}

/** A Pwned Passwords range service that knows the given passwords. */
async function rangeService(t: ExecutionContext, known: readonly string[]) {
  const certificate = makeCertificate()
  const asked: { path: string; padding: string | undefined }[] = []
  let behaviour: 'answers' | 'stalls' | 'fails' | 'babbles' = 'answers'
  const { certPath, keyPath } = certificate
  const key = readFileSync(keyPath)
  const server = createServer({ key, cert: readFileSync(certPath) }, (request, response) => {
    asked.push({ path: request.url!, padding: request.headers['add-padding'] as string })
    if (behaviour === 'stalls') return
    if (behaviour === 'fails') return response.writeHead(503).end()
    if (behaviour === 'babbles') return response.end('<html>')
    const prefix = request.url!.slice(-5)
    const hits = known
      .map((one) => createHash('sha1').update(one).digest('hex').toUpperCase())
      .filter((hash) => hash.startsWith(prefix))
      .map((hash) => `${hash.slice(5)}:42`)
    response.end([...hits, `${'0'.repeat(35)}:0`].join('\r\n'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
    certificate.remove()
  })
  return {
    asked,
    becomes: (next: typeof behaviour) => (behaviour = next),
    environment: {
      SVC_CHALLENGE__HIBP_ENABLED: 'true',
      SVC_CHALLENGE__HIBP_URL: `https://localhost:${(server.address() as AddressInfo).port}`,
      SVC_VAULT__EGRESS_ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_VAULT__EGRESS_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_VAULT__EGRESS_CA_PEM_PATH: certPath,
    },
  }
}

test.serial('a password known from breaches is refused wherever one is set', async (t) => {
  const stolen = 'correct horse battery staple'
  const service = await rangeService(t, [stolen])
  const at = await harbour(t, { ...ON, ...service.environment })
  const refused = await answered(() => at.create({ email: at.ada, password: stolen }))
  t.is(refused.status, 400)
  t.deepEqual(await sql(at.database)`select from accounts where email = ${at.ada}`, [])
  const digest = createHash('sha1').update(stolen).digest('hex').toUpperCase()
  t.deepEqual(service.asked.at(-1), { path: `/range/${digest.slice(0, 5)}`, padding: 'true' })

  const bob = `bob@${at.domain}`
  await at.create({ email: bob })
  const browser = at.browser()
  const invitation = await browser.get(pathIn(await at.mail.letterTo(bob), '/auth/invitations/'))
  const again = await answered(() => browser.submit(invitation, { password: stolen }))
  t.is(again.status, 200)
  t.true(again.html.includes('role="alert"'))

  t.is((await answered(() => at.create({ email: at.ada, password: OLD }))).status, 201)
  await at.enter(browser, OLD)
  const page = await browser.get('/auth/account/password')
  const wanted = { current: OLD, password: stolen }
  const change = await answered(() => browser.submit(page, wanted))
  t.true(change.html.includes('role="alert"'))

  const fresh = at.browser()
  const login = await fresh.get(`/auth/login?tenant_slug=${at.tenantSlug}`)
  const forgot = await fresh.get(/href="(\/auth\/password\/forgot\?[^"]*)"/.exec(login.html)![1]!)
  await fresh.submit(forgot, { email: at.ada })
  const reset = await fresh.get(pathIn(await at.mail.letterTo(at.ada), '/auth/password/reset/'))
  const stale = await answered(() => fresh.submit(reset, { password: stolen }))
  t.true(stale.html.includes('role="alert"'))

  for (const behaviour of ['stalls', 'fails', 'babbles'] as const) {
    service.becomes(behaviour)
    const unasked = await fresh.submit(reset, { password: NEW })
    t.is(unasked.status, 503, `${behaviour}: what cannot be checked is not set`)
    const json = { email: `${behaviour}@${at.domain}`, password: NEW }
    t.is((await at.create(json)).status, 503)
  }
  service.becomes('answers')
  const saved = await answered(() => fresh.submit(reset, { password: NEW }))
  t.is(saved.status, 200, 'the link was not used up')
  t.is((await at.enter(at.browser(), NEW)).status, 303)
})
