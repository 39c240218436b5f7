/** Sign-in with a code or a link by mail, over HTTP and a real mail server. */
import test, { type ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { openBrowser, type Page, type TestBrowser } from '../../../support/pages/browser.js'
import { sql } from '../../../support/storage/sql.js'
import { mailDomain } from '../../../support/identity/addresses.js'
import { codeIn, type Letters, pathIn, sharedMail } from '../../../support/operations/letters.js'
import { sharedService, type TestService } from '../../../support/service.js'
import { bootstrapped, SESSION_COOKIE } from '../../../support/identity/person.js'
import { ownDomain } from '../../../support/identity/squatting.js'

const PASSWORD = 'a password of the harbour master'

type Harbour = {
  readonly running: TestService
  readonly mail: Letters
  /** The domain of the tenant. */
  readonly domain: string
  readonly ada: string
  readonly slug: string
  readonly tenantId: string
  readonly token: string
  person(email: string): Promise<void>
  browser(): TestBrowser
}

async function harbour(
  t: ExecutionContext,
  profile: 'people' | 'enterprise' = 'people',
): Promise<Harbour> {
  const running = await sharedService(profile)
  const domain = mailDomain()
  const ada = `ada@${domain}`
  const api = apiOf(running)
  t.teardown(() => api.end())
  const workspace = await api.workspace()
  const { token, body, tenantId } = workspace
  await ownDomain(api, workspace, ada)
  return {
    running,
    mail: await sharedMail(),
    domain,
    ada,
    slug: String(body['tenant_slug']),
    tenantId,
    token,
    async person(email) {
      const json = { email, password: PASSWORD }
      await api.call('POST', '/api/v1/tenant-users', { token, json }).gives(201)
    },
    browser() {
      const browser = openBrowser(running)
      return browser
    },
  }
}

const loginPage = (browser: TestBrowser, slug: string) =>
  browser.get(`/auth/login?tenant_slug=${slug}&return_to=/auth/account`)

/** Presses the second button of the sign-in form. */
function askForMail(browser: TestBrowser, page: Page, email: string): Promise<Page> {
  const { fields } = page.forms[0]!
  return browser.post('/auth/login/mail', { ...fields, email })
}

const outgoing = ({ running, tenantId }: Harbour) =>
  sql(running)`select from outgoing_mail where tenant_id = ${tenantId}`

test.serial('a code signs in once, in the sign-in that requested it', async (t) => {
  const at = await harbour(t, 'enterprise')
  await at.person(at.ada)
  const browser = at.browser()
  const page = await loginPage(browser, at.slug)
  t.true(page.html.includes('formaction="/auth/login/mail"'))
  const asked = await askForMail(browser, page, `Ada@${at.domain}`)
  t.is(asked.status, 303, asked.html)
  const waiting = await browser.follow(asked).gives(200)
  const letter = await at.mail.letterTo(at.ada)
  t.regex(letter.headers['subject']!, /^Sign in to /)
  t.is(letter.headers['auto-submitted'], 'auto-generated')
  t.notRegex(letter.text, /https?:/, 'a code alone has no link')
  t.true(letter.html.includes(codeIn(letter)))

  const other = at.browser()
  const elsewhere = await askForMail(other, await loginPage(other, at.slug), `unknown@${at.domain}`)
  const stranger = await other.follow(elsewhere)
  t.is(
    stranger.html.replaceAll(/value="[^"]*"|flow=[^"]*/g, ''),
    waiting.html.replaceAll(/value="[^"]*"|flow=[^"]*/g, ''),
    'the response does not reveal whether the address is known',
  )
  const stolen = await other.submit(stranger, { code: codeIn(letter) }, '/auth/login/code')
  t.is(stolen.status, 200)
  t.true(stolen.html.includes('role="alert"'))

  const typed = codeIn(letter).toLowerCase().replace('-', ' ')
  const done = await browser.submit(waiting, { code: typed }, '/auth/login/code')
  t.is(done.status, 303, done.html)
  t.is(done.location, '/auth/account')
  t.is((await browser.follow(done)).status, 200)
  const again = await browser.submit(waiting, { code: typed }, '/auth/login/code')
  t.is(again.status, 200, 'a second use is a wrong code')

  const [session] = await sql(at.running)`
    select amr, level from browser_sessions where tenant_id = ${at.tenantId} and ended_at is null`
  t.deepEqual(session, { amr: ['otp'], level: 1 })
  const [account] = await sql(at.running)`
    select email_verified as verified from accounts where email = ${at.ada}`
  t.deepEqual(account, { verified: true })
  t.is((await at.mail.lettersTo(at.ada)).length, 1)
  t.deepEqual(await at.mail.lettersTo(`unknown@${at.domain}`), [], 'no other mail was sent')
})

test.serial(
  'a code is invalid after five wrong attempts, or once another was requested',
  async (t) => {
    const at = await harbour(t)
    await at.person(at.ada)
    const browser = at.browser()
    const page = await loginPage(browser, at.slug)
    const waiting = await browser.follow(await askForMail(browser, page, at.ada))
    const first = codeIn(await at.mail.letterTo(at.ada))
    await askForMail(browser, page, at.ada)
    const second = codeIn(await at.mail.letterTo(at.ada, /(?:)/, 1))
    const old = await browser.submit(waiting, { code: first }, '/auth/login/code')
    t.is(old.status, 200, 'the previous mail is invalid')
    for (let n = 0; n < 4; n += 1) {
      await browser.submit(waiting, { code: 'BBBB-BBBB' }, '/auth/login/code')
    }
    await browser.submit(waiting, { code: second }, '/auth/login/code').gives(200)
  },
)

test.serial(
  'a link signs in when confirmed in the browser that requested it; opening it changes nothing',
  async (t) => {
    const at = await harbour(t)
    await at.person(at.ada)
    const browser = at.browser()
    await askForMail(browser, await loginPage(browser, at.slug), at.ada)
    const path = pathIn(await at.mail.letterTo(at.ada), '/auth/magic/')

    const scanner = at.browser()
    for (let n = 0; n < 3; n += 1) t.is((await scanner.get(path)).status, 200)
    const elsewhere = await scanner.submit(await scanner.get(path))
    t.is(elsewhere.status, 403, 'another browser')
    await browser.get(path.replace(/flow=.{4}/, 'flow=AAAA')).gives(410)

    const page = await browser.get(path)
    const racers = await Promise.all(Array.from({ length: 10 }, () => browser.submit(page)))
    t.is(racers.filter(({ status }) => status === 303).length, 1)
    t.is((await browser.get('/auth/account')).status, 200)
    t.is((await browser.get(path)).status, 410)
  },
)

test.serial('one mail contains both, and using one invalidates the other', async (t) => {
  const at = await harbour(t)
  await at.person(at.ada)
  const browser = at.browser()
  const waiting = await browser.follow(
    await askForMail(browser, await loginPage(browser, at.slug), at.ada),
  )
  const letter = await at.mail.letterTo(at.ada)
  await browser.submit(waiting, { code: codeIn(letter) }, '/auth/login/code').gives(303)
  t.is((await browser.get(pathIn(letter, '/auth/magic/'))).status, 410)
})

test.serial('mail is limited per address, known or not', async (t) => {
  const at = await harbour(t)
  await at.person(at.ada)
  for (const email of [at.ada, `unknown@${at.domain}`]) {
    const browser = at.browser()
    const page = await loginPage(browser, at.slug)
    const statuses = []
    for (let n = 0; n < 6; n += 1) statuses.push((await askForMail(browser, page, email)).status)
    t.deepEqual(statuses, [303, 303, 303, 303, 303, 429])
  }
})

test.serial('strangers do not use up the mail that a browser of the person requests', async (t) => {
  const at = await harbour(t)
  await at.person(at.ada)
  const own = at.browser()
  const page = await loginPage(own, at.slug)
  t.is((await own.submit(page, { email: at.ada, password: PASSWORD })).status, 303)
  own.cookies.delete(SESSION_COOKIE)
  const stranger = at.browser()
  const theirs = await loginPage(stranger, at.slug)
  for (let n = 0; n < 5; n += 1)
    await askForMail(stranger, theirs, at.ada).then(({ status }) => t.is(status, 303))
  const again = await loginPage(own, at.slug)
  for (const [browser, shown, mailed, forgotten] of [
    [stranger, theirs, 429, 429],
    [own, again, 303, 200],
  ] as const) {
    t.is((await askForMail(browser, shown, at.ada)).status, mailed)
    const flow = shown.forms[0]!.fields['flow']
    const forgot = await browser.get(`/auth/password/forgot?flow=${flow}`)
    t.is((await browser.submit(forgot, { email: at.ada })).status, forgotten)
  }
})

test.serial(
  'invalid input gets an error and changes nothing; disabled methods are not found',
  async (t) => {
    const at = await harbour(t)
    const browser = at.browser()
    const page = await loginPage(browser, at.slug)
    for (const email of [
      '',
      'ada',
      'a@b',
      'a b@c.de',
      'a@b.de, c@d.de',
      '<a@b.de>',
      'a@b.de\r\nBcc: c',
    ]) {
      const answer = await askForMail(browser, page, email)
      t.is(answer.status, 200, email)
      t.true(answer.html.includes('role="alert"'), email)
    }
    t.is((await browser.get('/auth/login/mail?flow=gone')).status, 400)
    t.is((await browser.get('/auth/magic/gone?flow=gone')).status, 410)
    const foreign = await browser.post('/auth/login/mail', { flow: 'x', email: 'a@b.de' })
    t.is(foreign.status, 403, 'a form without its token')
    t.deepEqual(await outgoing(at), [])

    const off = await sharedService('plain')
    const [elsewhere, { tenantSlug }] = [openBrowser(off), await bootstrapped(off)]
    t.teardown(async () => {
      await elsewhere.close()
      await off.end()
    })
    const plain = await loginPage(elsewhere, tenantSlug)
    t.false(plain.html.includes('/auth/login/mail'))
    t.is((await askForMail(elsewhere, plain, at.ada)).status, 404)
  },
)
