/** Attacks on the hosted pages. ASVS 5.0 V3, V6, V7. */
import { createHash } from 'node:crypto'
import test from 'ava'
import { sql } from '../../../support/storage/sql.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  bootstrapped,
  enrol,
  enrolledBrowser,
  SESSION_COOKIE,
  signIn,
  type Workspace,
} from '../../../support/identity/person.js'
import { sharedService } from '../../../support/service.js'
import { RACERS } from '../../../support/racers.js'

const running = await sharedService('plain')

/** The default of auth.brute_force_max_attempts. */
const GUESSES_MAX = 10
/** The service asks to try again. */
const OVERLOADED = 503

const fresh = () => bootstrapped(running)

const browsing = () => openBrowser(running)

/** The types of the tenant's events, in order. */
async function eventsOf({ tenantId }: Workspace): Promise<string[]> {
  const rows = await sql<{ type: string }>(running)`
    select type from all_events where tenant_id = ${tenantId} order by sequence`
  return rows.map(({ type }) => type)
}

test('an unknown address and a wrong password get the very same page', async (t) => {
  const workspace = await fresh()
  const pages = []
  for (const email of [workspace.email, `unknown@${workspace.tenantSlug}.test`]) {
    const browser = browsing()
    const answer = await signIn(browser, { ...workspace, email, password: 'wrong' })
    t.is(answer.status, 200)
    t.is(answer.setCookies.filter((line) => line.includes('svc_session')).length, 0)
    pages.push(
      answer.html
        .replaceAll(email, 'EMAIL')
        .replaceAll(/name="(csrf_token|flow)" value="[^"]*"/g, '$1'),
    )
  }
  t.is(pages[0], pages[1])
  t.regex(pages[0]!, /role="alert"/)
})

test('a user of another tenant is unknown here', async (t) => {
  const [here, there] = [await fresh(), await fresh()]
  const answer = await signIn(browsing(), { ...there, tenantSlug: here.tenantSlug })
  t.is(answer.status, 200)
  t.regex(answer.html, /role="alert"/)
})

test('failures lock the address as typed, known or not, also for the correct password', async (t) => {
  const workspace = await fresh()
  const browser = browsing()
  for (const email of [workspace.email, `ghost@${workspace.tenantSlug}.test`]) {
    const statuses = []
    const spellings = [email, email.toUpperCase(), ` ${email}`]
    for (let n = 0; n <= GUESSES_MAX; n += 1) {
      const typed = spellings[n % spellings.length]!
      const answer = await signIn(browser, { ...workspace, email: typed, password: 'wrong' })
      statuses.push(answer.status)
    }
    t.deepEqual(statuses, [...Array<number>(GUESSES_MAX).fill(200), 429], email)
    const right = await signIn(browser, { ...workspace, email })
    t.is(right.status, 429)
    t.regex(right.headers['retry-after']!, /^(89\d|900)$/)
  }
  const events = await eventsOf(workspace)
  t.is(events.filter((type) => type === 'auth.login.failure').length, 2 * GUESSES_MAX)
  t.is(events.filter((type) => type === 'security.brute_force.detected').length, 2)
})

test('signing in and out emits events of the tenant', async (t) => {
  const workspace = await fresh()
  const before = (await eventsOf(workspace)).length
  const browser = browsing()
  const account = await browser.follow(await signIn(browser, workspace))
  await browser.submit(account, {}, '/auth/logout')
  t.deepEqual((await eventsOf(workspace)).slice(before), ['auth.login.success', 'auth.logout'])
})

test('a session planted before the sign-in is invalid after it', async (t) => {
  const workspace = await fresh()
  const attacker = browsing()
  await attacker.follow(await signIn(attacker, workspace))
  const planted = attacker.cookies.get(SESSION_COOKIE)!

  const victim = browsing()
  victim.cookies.set(SESSION_COOKIE, planted)
  const account = await victim.get('/auth/account')
  t.is(account.status, 200, 'the planted session is open')
  const page = await victim.submit(account, {}, '/auth/logout')
  t.is(page.status, 200)
  victim.cookies.set(SESSION_COOKIE, planted)
  const answer = await signIn(victim, workspace)
  t.is(answer.status, 303)
  t.not(victim.cookies.get(SESSION_COOKIE), planted)
  t.is((await attacker.get('/auth/account')).status, 303, 'the planted session is closed')
})

test('raising the assurance level replaces the cookie', async (t) => {
  const workspace = await fresh()
  const browser = browsing()
  const account = await browser.follow(await signIn(browser, workspace))
  const before = browser.cookies.get(SESSION_COOKIE)!
  const page = await browser.follow(await browser.submit(account, {}, '/auth/account/factors'))
  await enrol(browser, page)
  const raised = browser.cookies.get(SESSION_COOKIE)!
  t.not(raised, before)
  const rows = await sql<{ level: number }>(running)`
    select level from browser_sessions
    where token_sha256 = ${createHash('sha256').update(raised).digest()} and ended_at is null`
  t.deepEqual(rows, [{ level: 2 }])
  const other = browsing()
  other.cookies.set(SESSION_COOKIE, before)
  t.is((await other.get('/auth/account')).status, 303)
  t.is((await browser.get('/auth/account')).status, 200)
})

test('a session ends when idle, at its absolute end, and with its password, user and tenant', async (t) => {
  for (const change of [
    `update browser_sessions set last_seen_at = now() - interval '2 hours' where tenant_id = $1`,
    `update browser_sessions set expires_at = now() - interval '1 second' where tenant_id = $1`,
    `update tenant_users set status = 'suspended' where tenant_id = $1`,
    `update tenants set status = 'suspended' where id = $1`,
    `update accounts set password_changed_at = now() where id in
       (select account_id from tenant_users where tenant_id = $1)`,
    `update accounts set status = 'suspended' where id in
       (select account_id from tenant_users where tenant_id = $1)`,
  ]) {
    const workspace = await fresh()
    const browser = browsing()
    await signIn(browser, workspace)
    t.is((await browser.get('/auth/account')).status, 200)
    await sql(running.db.database, change, [workspace.tenantId])
    t.is((await browser.get('/auth/account')).status, 303, change)
  }
})

test('only a browser without cookies gets the message about cookies', async (t) => {
  const workspace = await fresh()
  const browser = browsing()
  const page = await browser.get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  const stale = await browser.submit(page, { ...workspace, csrf_token: 'old' }).gives(403)
  t.false(/cookie/i.test(stale.html))
  browser.cookies.clear()
  const answer = await browser.submit(page, workspace).gives(403)
  t.regex(answer.html, /did not send the cookie of this site/)
  t.false(browser.cookies.has(SESSION_COOKIE))
})

test('a form without its token, with a foreign one, or from another site is refused', async (t) => {
  const workspace = await fresh()
  const { email, password } = workspace
  const [browser, other] = [browsing(), browsing()]
  const path = `/auth/login?tenant_slug=${workspace.tenantSlug}`
  const { fields } = (await browser.get(path)).forms[0]!
  const foreign = (await other.get(path)).forms[0]!.fields['csrf_token']!
  const right: Record<string, string> = { ...fields, email, password }
  const without = { ...right }
  delete without['csrf_token']
  for (const [sent, headers] of [
    [without, {}],
    [{ ...right, csrf_token: '' }, {}],
    [{ ...right, csrf_token: foreign }, {}],
    [right, { origin: 'https://evil.example' }],
    [right, { origin: `${running.baseUrl}.evil.example` }],
    [right, { 'sec-fetch-site': 'cross-site' }],
    [right, { 'sec-fetch-site': 'same-site', origin: 'null' }],
    [right, { 'sec-fetch-site': 'none', origin: 'null' }],
    [right, { origin: 'null' }],
  ] as const) {
    const answer = await browser.post('/auth/login', sent, headers).gives(403)
    t.regex(answer.headers['content-type']!, /^text\/html/)
    t.true(answer.html.includes(answer.headers['x-request-id']!))
    t.false(browser.cookies.has(SESSION_COOKIE))
  }
  const honest = await browser.post('/auth/login', right, {
    origin: 'null',
    'sec-fetch-site': 'same-origin',
  })
  t.is(honest.status, 303)

  const account = await browser.follow(honest)
  const token = account.forms.at(-1)!.fields['csrf_token']!
  t.not(token, fields['csrf_token'], 'a form token belongs to its session')
  await browser.post('/auth/logout', { csrf_token: fields['csrf_token']! }).gives(403)
  t.is((await browser.get('/auth/account')).status, 200)
})

test('a sign-in redirects only to same-origin pages', async (t) => {
  const workspace = await fresh()
  for (const target of [
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
    '/ok\r\nset-cookie: a=b',
  ]) {
    const answer = await signIn(browsing(), workspace, target)
    t.is(answer.location, '/auth/account', target)
  }
  const answer = await signIn(browsing(), workspace, '/auth/account?from=here')
  t.is(answer.location, '/auth/account?from=here')
})

test('an unknown flow gets a page with a link back, not a server error', async (t) => {
  const browser = browsing()
  for (const path of ['/auth/login?flow=x', '/auth/mfa?flow=x', '/auth/mfa/enroll?flow=x']) {
    const answer = await browser.get(path)
    t.is(answer.status, 400, path)
    t.true(answer.html.includes('href="/auth/login"'))
  }
  // Opened by their addresses, without a flow, they lead to the sign-in.
  for (const path of ['/auth/mfa', '/auth/mfa/enroll']) {
    const answer = await browser.get(path)
    t.is(answer.status, 303, path)
    t.is(answer.location, '/auth/login', path)
  }
  t.is((await browser.get('/auth/login')).status, 200)
  t.is((await browser.get('/auth/login?tenant_slug=no-such-tenant')).status, 404)
})

test('the second factor can neither be skipped nor enrolled again over an existing one', async (t) => {
  const workspace = await fresh()
  await enrolledBrowser(running, workspace)
  const browser = browsing()
  const page = await browser.follow(await signIn(browser, workspace))
  const flow = page.forms[0]!.fields['flow']!
  const enrolment = await browser.get(`/auth/mfa/enroll?flow=${flow}`)
  t.is(enrolment.location, `/auth/mfa?flow=${flow}`)
  t.is((await browser.get('/auth/account')).status, 303)
  const forced = await browser.post('/auth/mfa/enroll', { ...page.forms[0]!.fields, code: '1' })
  t.is(forced.location, `/auth/mfa?flow=${flow}`)
})

test('a TOTP code works once', async (t) => {
  const workspace = await fresh()
  const { codes } = await enrolledBrowser(running, workspace)
  const code = codes.next()
  const outcomes = []
  for (let round = 0; round < 2; round += 1) {
    const again = browsing()
    const page = await again.follow(await signIn(again, workspace))
    outcomes.push((await again.submit(page, { code })).status)
  }
  t.deepEqual(outcomes, [303, 200])
})

for (const [what, pick] of [
  ['a time step', (e: Awaited<ReturnType<typeof enrolledBrowser>>) => e.codes.next()],
  ['a recovery code', (e: Awaited<ReturnType<typeof enrolledBrowser>>) => e.recoveryCodes[3]!],
] as const) {
  test(`of ${RACERS} concurrent uses of ${what} in as many browsers, one wins`, async (t) => {
    t.timeout(180_000)
    // Each counts as a guess, which this profile does not limit.
    const open = await sharedService('people')
    t.teardown(() => open.end())
    const workspace = await bootstrapped(open)
    const enrolment = await enrolledBrowser(open, workspace)
    const racers = []
    for (let count = 0; count < RACERS; count += 1) {
      const browser = openBrowser(open)
      racers.push({ browser, page: await browser.follow(await signIn(browser, workspace)) })
    }
    const code = pick(enrolment)
    const answers = await Promise.all(
      racers.map(async ({ browser, page }) => {
        for (;;) {
          const answer = await browser.submit(page, { code })
          if (answer.status !== OVERLOADED) return answer.status
        }
      }),
    )
    t.is(answers.filter((status) => status === 303).length, 1)
    t.is(answers.filter((status) => status === 200).length, RACERS - 1)
  })
}

test('a user ends their own sessions, and never sessions of another user', async (t) => {
  const [workspace, stranger] = [await fresh(), await fresh()]
  const [here, there, other] = [browsing(), browsing(), browsing()]
  const account = await here.follow(await signIn(here, workspace))
  await signIn(there, workspace)
  const foreign = await other.follow(await signIn(other, stranger))
  t.is(foreign.forms.filter(({ action }) => action.includes('/sessions/')).length, 0)

  const both = await here.get('/auth/account')
  const form = both.forms.find(({ action }) => action.includes('/sessions/'))
  t.truthy(form, account.html)
  const attack = await other.post(form!.action, {
    csrf_token: foreign.forms.at(-1)!.fields['csrf_token']!,
  })
  t.is(attack.status, 404)
  t.is((await there.get('/auth/account')).status, 200)
  const ended = await here.post(form!.action, form!.fields)
  t.is(ended.location, '/auth/account')
  t.is((await there.get('/auth/account')).status, 303)
  t.is((await here.get('/auth/account')).status, 200)
})

test('a second factor is removed after fresh authentication, with the recovery codes', async (t) => {
  const workspace = await fresh()
  const { browser } = await enrolledBrowser(running, workspace)
  await sql(running)`
    update browser_sessions set auth_time = now() - interval '6 minutes'
    where tenant_id = ${workspace.tenantId}`
  const stale = await browser.submit(await browser.get('/auth/account'), {}, /\/remove$/)
  t.regex(stale.location!, /^\/auth\/login\?flow=/)
  await sql(running)`
    update browser_sessions set auth_time = now() where tenant_id = ${workspace.tenantId}`
  const removed = await browser.submit(await browser.get('/auth/account'), {}, /\/remove$/)
  t.is(removed.location, '/auth/account')
  const left = await sql(running)`
    select from recovery_codes c join tenant_users u on u.account_id = c.account_id
    where u.tenant_id = ${workspace.tenantId}`
  t.is(left.length, 0)
  const account = await browser.get('/auth/account')
  t.true(account.forms.some(({ action }) => action === '/auth/account/factors'))
})

test('cookies and second-factor secrets are not stored in plain text', async (t) => {
  const workspace = await fresh()
  const { browser, secret, recoveryCodes } = await enrolledBrowser(running, workspace)
  const rows = await sql<{ text: string }>(running)`
    select s::text as text from browser_sessions s union all select f::text from totp_factors f
    union all select c::text from recovery_codes c union all select w::text from sign_in_flows w
    union all select e::text from all_events e`
  const all = rows.map(({ text }) => text).join('\n')
  for (const value of [browser.cookies.get(SESSION_COOKIE)!, secret, ...recoveryCodes]) {
    t.false(all.includes(value))
    t.false(all.includes(Buffer.from(value).toString('hex')))
  }
})
