/** Phone numbers: proof on the account page, and sign-in with a code by text message. */
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import {
  bootstrapped,
  enrolledBrowser,
  signIn,
  type Workspace,
} from '../../../support/identity/person.js'
import { codeOf, openTextServer, type TextServer } from '../../../support/identity/text-provider.js'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import { sharedService, testService, type TestService } from '../../../support/service.js'

type Stage = {
  readonly running: TestService
  readonly texts: TextServer
  readonly workspace: Workspace
  /** A number of this test alone. */
  readonly number: string
  browser(): TestBrowser
}

const texts = await openTextServer()
const open = new Map<string, Promise<TestService>>()
let stages = 0
const LIMITED = {
  ...texts.http,
  SVC_SMS__REQUESTS_PER_NUMBER_MAX: '3',
  SVC_SMS__PER_SANDBOX_PER_DAY_MAX: '4',
  SVC_SMS__ALLOWED_PREFIXES: '["+49"]',
}
test.after.always(async () => {
  for (const running of open.values()) await (await running).end()
  texts.close()
})

/** Tests with the same settings have one service. */
function serviceWith(environment: Readonly<Record<string, string>>): Promise<TestService> {
  const key = JSON.stringify(environment)
  const running = open.get(key) ?? testService({ environment })
  open.set(key, running)
  return running
}

async function stage(environment: Readonly<Record<string, string>> = LIMITED): Promise<Stage> {
  const running = await serviceWith(environment)
  return {
    running,
    texts,
    number: `+49301234567${(stages += 1)}`,
    workspace: await bootstrapped(running),
    browser() {
      const browser = openBrowser(running)
      return browser
    },
  }
}

/** A browser whose user is signed in by password. */
async function signedIn(at: Stage, workspace = at.workspace): Promise<TestBrowser> {
  const browser = at.browser()
  await browser.follow(await signIn(browser, workspace))
  return browser
}

/** Proves a number on the account page. */
async function prove(t: ExecutionContext, at: Stage, browser: TestBrowser, number = at.number) {
  const before = at.texts.received.filter(({ to }) => to === number).length
  const page = await browser.get('/auth/account/phone')
  t.is(page.status, 200, page.html)
  const asked = await browser.submit(page, { phone_number: number })
  t.is(asked.status, 200, asked.html)
  const text = await at.texts.textTo(number, before)
  const done = await browser.submit(asked, { code: codeOf(text) })
  t.is(done.location, '/auth/account', done.html)
  return text
}

/** The page after a code was requested. */
async function request(at: Stage, browser: TestBrowser, number = at.number): Promise<Page> {
  const { tenantSlug } = at.workspace
  const login = await browser.get(`/auth/login?tenant_slug=${tenantSlug}&return_to=/auth/account`)
  const path = /href="(\/auth\/login\/phone\?flow=[^"]+)"/.exec(login.html)![1]!
  return browser.submit(await browser.get(path), { phone_number: number })
}

const STRICT = { ...texts.twilio, SVC_AUTH__BRUTE_FORCE_MAX_ATTEMPTS: '4' }

const withoutFlow = ({ html }: Page) => html.replaceAll(/value="[^"]*"|flow=[^"]*/g, '')

test.serial(
  'a proved number signs in once per code, and an unknown number looks the same',
  async (t) => {
    const at = await stage()
    const before = at.texts.requests()
    at.texts.failNext(1)
    const text = await prove(t, at, await signedIn(at), at.number)
    t.is(at.texts.requests() - before, 2, 'a failed attempt is repeated')
    t.regex(text.text, /Harbour Works/)
    t.regex(text.text, /\n\n@localhost #[0-9]{6}$/, 'the code is bound to the host')

    const browser = at.browser()
    const waiting = await browser.follow(
      await request(at, browser, at.number.replace('+4930', '+49 30 ')),
    )
    t.is(waiting.status, 200)
    const code = codeOf(await at.texts.textTo(at.number, 1))
    const stranger = at.browser()
    const unknown = await stranger.follow(await request(at, stranger, '+4930999999'))
    t.is(withoutFlow(unknown), withoutFlow(waiting))
    const stolen = await stranger.submit(unknown, { code })
    t.is(stolen.status, 200, 'a code belongs to the sign-in that requested it')
    t.true(stolen.html.includes('role="alert"'))

    const both = await Promise.all([
      browser.submit(waiting, { code: `${code.slice(0, 3)} ${code.slice(3)}` }),
      openBrowser(at.running).post('/auth/login/phone/code', { code }),
    ])
    t.is(both[0].location, '/auth/account', both[0].html)
    t.is(both[1].status, 403, 'without the CSRF token')
    t.is((await browser.follow(both[0])).status, 200)
    t.is((await browser.submit(waiting, { code })).status, 200, 'a second use is a wrong code')
    const sent = at.texts.received.map(({ to }) => to)
    t.deepEqual(sent.slice(-2), [at.number, at.number])
    t.false(sent.includes('+4930999999'), 'no message to a number without an account')

    const [session] = await sql(at.running)`
      select amr, level from browser_sessions
      where tenant_id = ${at.workspace.tenantId} and ended_at is null and 'sms' = any (amr)`
    t.deepEqual(session, { amr: ['sms'], level: 1 })
    const [claim] = await sql(at.running)`
      select phone_number as number, phone_number_verified as verified from accounts
      where email = ${at.workspace.email}`
    t.deepEqual(claim, { number: at.number, verified: true })
    const [stored] = await sql<{ text: string }>(at.running)`
      select string_agg(encode(code_sha256, 'escape'), ' ') as text from code_tickets`
    t.false(stored!.text.includes(code), 'codes are stored as hashes')
  },
)

test.serial('messages leave through an API of the shape of Twilio', async (t) => {
  const at = await stage(STRICT)
  await prove(t, at, await signedIn(at))
  const browser = at.browser()
  const waiting = await browser.follow(await request(at, browser))
  const code = codeOf(await at.texts.textTo(at.number, 1))
  t.is((await browser.submit(waiting, { code })).location, '/auth/account')
})

test.serial('an account with a second factor is asked for it', async (t) => {
  const at = await stage()
  const { browser: owner } = await enrolledBrowser(at.running, at.workspace)
  t.teardown(() => owner.close())
  await prove(t, at, owner)
  const browser = at.browser()
  const waiting = await browser.follow(await request(at, browser))
  const done = await browser.submit(waiting, { code: codeOf(await at.texts.textTo(at.number, 1)) })
  t.regex(done.location!, /^\/auth\/mfa\?flow=/)
  t.is((await browser.get('/auth/account')).status, 303, 'the second factor is pending')
})

test.serial(
  'wrong codes are counted per number, and a new code gives no new guesses',
  async (t) => {
    const at = await stage(STRICT)
    await prove(t, at, await signedIn(at))
    const wrong = (code: string) => (code === '000000' ? '000001' : '000000')
    let page: Page | undefined
    for (let round = 0; round < 2; round += 1) {
      const browser = at.browser()
      page = await browser.follow(await request(at, browser))
      const code = codeOf(await at.texts.textTo(at.number, 1 + round))
      for (let guess = 0; guess < 2; guess += 1)
        t.is((await browser.submit(page, { code: wrong(code) })).status, 200)
    }
    const last = at.browser()
    page = await last.follow(await request(at, last))
    const right = await last.submit(page, { code: codeOf(await at.texts.textTo(at.number, 3)) })
    t.is(right.status, 429, 'locked, also for the right code')
    t.truthy(right.headers['retry-after'])
    const [events] = await sql(at.running)`
      select count(*) filter (where type = 'auth.login.failure'
      and data ->> 'reason' = 'sms')::int as failures,
      count(*) filter (where type = 'security.brute_force.detected'
      and data ->> 'subject' = 'sms')::int as locks
      from all_events where tenant_id = ${at.workspace.tenantId}`
    t.deepEqual(events, { failures: 4, locks: 1 })
  },
)

test.serial('messages are limited per number, per tenant and by country', async (t) => {
  const at = await stage()
  const owner = await signedIn(at)
  await prove(t, at, owner)
  const browser = at.browser()
  for (const status of [303, 303, 429])
    t.is((await request(at, browser)).status, status, 'the number has a share')
  const abroad = await request(at, browser, '+15005550009')
  t.true(abroad.html.includes('We cannot send text messages to this country.'))
  for (const typed of ['12345', '+49', '+49x', ''])
    t.true((await request(at, browser, typed)).html.includes('aria-invalid="true"'), typed)

  const other = '+493011111111'
  const page = await owner.get('/auth/account/phone')
  t.is((await owner.submit(page, { phone_number: other })).status, 200)
  await at.texts.textTo(other)
  const last = '+493022222222'
  t.is((await owner.submit(page, { phone_number: last })).status, 200, 'the answer is the same')
  const sent = at.texts.received.filter(({ to }) => [at.number, other, last].includes(to))
  t.is(sent.length, 4, 'the tenant has sent its share of today')
})

test.serial('a number moves to the account that proves it last, and is removed', async (t) => {
  const at = await stage()
  await prove(t, at, await signedIn(at))
  const second = await bootstrapped(at.running)
  const browser = await signedIn(at, second)
  await prove(t, at, browser)
  const [moved] = await sql(at.running)`
    select count(*)::int as numbers,
    (select count(*)::int from audit_events
    where type = 'account.phone.verified'
    and tenant_id = any (${[at.workspace.tenantId, second.tenantId]})) as records
    from account_phones where phone_number = ${at.number}`
  t.deepEqual(moved, { numbers: 1, records: 2 })
  const stranger = at.browser()
  await request(at, stranger)
  const sent = at.texts.received.filter(({ to }) => to === at.number)
  t.is(sent.length, 2, 'the first account no longer signs in with the number')

  const page = await browser.get('/auth/account')
  t.true(page.html.includes(at.number))
  t.is((await browser.submit(page, {}, '/auth/account/phone/remove')).location, '/auth/account')
  t.is((await browser.submit(page, {}, '/auth/account/phone/remove')).status, 404)
  const left = await sql(at.running)`select from account_phones where phone_number = ${at.number}`
  t.is(left.length, 0)
})

test.serial('without a provider nothing of the phone is offered', async (t) => {
  const running = await sharedService('people')
  const browser = openBrowser(running)
  const api = apiOf(running)
  t.teardown(async () => {
    await running.end()
  })
  const workspace = await bootstrapped(running)
  const page = await browser.get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  t.false(page.html.includes('/auth/login/phone'))
  t.is((await browser.get('/auth/login/phone?flow=x')).status, 404)
  await browser.follow(await signIn(browser, workspace))
  t.false((await browser.get('/auth/account')).html.includes('/auth/account/phone'))
  const { body } = await api.get('/api/v1/capabilities')
  const names = body['capabilities'] as unknown as string[]
  t.deepEqual(
    names.filter((name) => /phone|sms/.test(name)),
    [],
  )
})
