/** CAPTCHA after repeated failures and before password reset mails. */
import test, { type ExecutionContext } from 'ava'
import { loadSettings } from '../../../../runtime/configuration/load-settings.js'
import { openBrowser, type Page } from '../../../support/pages/browser.js'
import { openCaptchaProvider } from '../../../support/identity/captcha.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'

const PERSON = { 'cf-turnstile-response': 'a person' }
const ROBOT = { 'cf-turnstile-response': 'a robot' }

const provider = await openCaptchaProvider()
const environment = {
  ...provider.environment,
  SVC_USER_SELF_SERVICE__ENABLED: 'true',
  // The tests have one address.
  SVC_CHALLENGE__CAPTCHA_AFTER_ADDRESS_FAILURES: '1000',
}
const common = await testService({ environment })
test.after.always(async () => {
  await common.end()
  provider.close()
})

/** A tenant of the service of all tests if its settings do. */
async function site(t: ExecutionContext, more?: Record<string, string>) {
  const running =
    more === undefined ? common : await testService({ environment: { ...environment, ...more } })
  const browser = openBrowser(running)
  t.teardown(async () => {
    await browser.close()
    if (running !== common) await running.end()
  })
  const workspace = await bootstrapped(running)
  /** Fails until a CAPTCHA is required. */
  async function failing(): Promise<Page> {
    let page = await signIn(browser, { ...workspace, password: 'wrong' })
    for (let n = 0; n < 2; n += 1) {
      t.false(page.html.includes('cf-turnstile'), `failure ${n + 1}`)
      page = await browser.submit(page, { email: workspace.email, password: 'wrong' })
    }
    t.is(page.status, 200)
    t.true(page.html.includes('class="cf-turnstile" data-sitekey="site-key"'))
    return page
  }
  const right = { email: workspace.email, password: workspace.password }
  return { running, browser, workspace, failing, right }
}

test.serial(
  'after three failures the correct password needs a CAPTCHA response that the provider accepts',
  async (t) => {
    const { browser, failing, right, running, workspace } = await site(t)
    const asked = provider.asked.length
    const page = await failing()
    const policy = page.headers['content-security-policy']!
    const origin = new URL(provider.environment['SVC_CHALLENGE__CAPTCHA_SCRIPT_URL']!).origin
    t.true(policy.includes(`script-src 'self' ${origin};`))
    t.notRegex(policy, /unsafe/)
    const none = await browser.submit(page, right)
    t.is(none.status, 200)
    t.true(none.html.includes('role="alert"'))
    t.is(provider.asked.length, asked, 'no verification needed yet')
    const robot = await browser.submit(page, { ...right, ...ROBOT })
    t.is(robot.status, 200)
    t.deepEqual(Object.fromEntries(provider.asked[asked]!), {
      secret: 'the secret of the site',
      response: 'a robot',
      remoteip: '127.0.0.1',
    })
    const events = await sql(
      running.db.database,
      `select from all_events where tenant_id = $1 and type = 'auth.login.failure'`,
      [workspace.tenantId],
    )
    t.is(events.length, 3, 'a missing CAPTCHA response is not a password attempt')
    const done = await browser.submit(page, { ...right, ...PERSON })
    t.is(done.status, 303)
    const fresh = openBrowser(running)
    t.teardown(() => fresh.close())
    const after = await signIn(fresh, {
      tenantSlug: (await bootstrapped(running)).tenantSlug,
      ...right,
    })
    t.is(after.status, 200, 'another tenant does not have this user')
  },
)

for (const behaviour of ['fails', 'babbles', 'blames', 'stalls'] as const) {
  test.serial(`fail-closed: sign-in is refused while the provider ${behaviour}`, async (t) => {
    const { browser, failing, right } = await site(t)
    const page = await failing()
    provider.becomes(behaviour)
    const answer = await browser.submit(page, { ...right, ...PERSON })
    t.is(answer.status, 503)
    t.truthy(answer.headers['retry-after'])
    provider.becomes('answers')
    t.is((await browser.submit(page, { ...right, ...PERSON })).status, 303)
  })
}

test.serial(
  'many failures of one network address require it for every name; fail-degraded has an allowance',
  async (t) => {
    const { browser, workspace, right } = await site(t, {
      SVC_CHALLENGE__CAPTCHA_AFTER_ADDRESS_FAILURES: '2',
      SVC_CHALLENGE__FAIL_MODE: 'fail-degraded',
      SVC_CHALLENGE__CAPTCHA_DEGRADED_PER_MINUTE: '2',
    })
    let page = await signIn(browser, { ...workspace, email: 'a@b.de', password: 'wrong' })
    t.false(page.html.includes('cf-turnstile'))
    page = await browser.submit(page, { email: 'c@d.de', password: 'wrong' })
    t.true(page.html.includes('cf-turnstile'))
    t.is((await browser.submit(page, right)).status, 200)

    provider.becomes('fails')
    t.teardown(() => provider.becomes('answers'))
    const wrong = { ...right, password: 'wrong', ...PERSON }
    t.is((await browser.submit(page, wrong)).status, 200)
    t.is((await browser.submit(page, wrong)).status, 200)
    const answer = await browser.submit(page, { ...right, ...PERSON })
    t.is(answer.status, 429)
    t.true(answer.html.includes('captcha_degraded_throttled'))
    t.true(Number(answer.headers['retry-after']) > 0)
  },
)

test('without a site key the service refuses to start', (t) => {
  const { SVC_CHALLENGE__CAPTCHA_SITE_KEY: _key, ...unkeyed } = provider.environment
  const read = loadSettings({ environment: unkeyed, cwd: '/', servesPlane: false })
  const failures = read.tag === 'refused' ? read.failures : []
  t.true(failures.some(({ key }) => key === 'challenge.captcha_site_key'))
  const keyed = loadSettings({ environment: provider.environment, cwd: '/', servesPlane: false })
  const others = keyed.tag === 'refused' ? keyed.failures : []
  t.false(others.some(({ key }) => key === 'challenge.captcha_site_key'))
})

test.serial('a password reset mail needs a CAPTCHA response', async (t) => {
  const { browser, workspace, running } = await site(t)
  const login = await browser.get(`/auth/login?tenant_slug=${workspace.tenantSlug}`)
  const forgot = await browser.get(/href="(\/auth\/password\/forgot\?[^"]*)"/.exec(login.html)![1]!)
  t.true(forgot.html.includes('cf-turnstile'))
  const refused = await browser.submit(forgot, { email: 'a@b.de' })
  t.true(refused.html.includes('role="alert"'))
  const tickets = () =>
    sql(running.db.database, 'select from mail_tickets where tenant_id = $1', [workspace.tenantId])
  t.deepEqual(await tickets(), [])
  const asked = await browser.submit(forgot, { email: 'a@b.de', ...PERSON })
  t.is(asked.status, 200)
  t.is((await tickets()).length, 1)
})
