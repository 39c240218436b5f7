/** CAPTCHA after repeated failures and before password reset mails: of a provider, and built in. */
import test, { type ExecutionContext } from 'ava'
import { loadSettings } from '../../../../runtime/process/configuration/load-settings.js'
import { type Page, openBrowser } from '../../../support/pages/browser.js'
import { openCaptchaProvider } from '../../../support/identity/captcha.js'
import { sql } from '../../../support/storage/sql.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'
import { createHash } from 'node:crypto'
import { openPowCaptcha } from '../../../../actors/identity/sign-in/limits/pow-captcha.js'
import { type Clock, systemClock } from '../../../../runtime/kernel/clock.js'
import { heldClock } from '../../../support/held-clock.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'

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
const SECRET = 'a secret of this deployment'
const BITS = 10
const ENVIRONMENT = {
  SVC_CHALLENGE__CAPTCHA_ENABLED: 'true',
  SVC_CHALLENGE__CAPTCHA_SECRET: SECRET,
  SVC_CHALLENGE__CAPTCHA_POW_BITS: String(BITS),
}

const builtIn = await testService({ environment: ENVIRONMENT })
test.after.always(async () => {
  provider.close()
})

/** A tenant of the service of all tests if its settings do. */
async function site(t: ExecutionContext, more?: Record<string, string>) {
  const running =
    more === undefined ? common : await testService({ environment: { ...environment, ...more } })
  const browser = openBrowser(running)
  t.teardown(async () => {
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
    const none = await browser.submit(page, right).gives(200)
    t.true(none.html.includes('role="alert"'))
    t.is(provider.asked.length, asked, 'no verification needed yet')
    await browser.submit(page, { ...right, ...ROBOT }).gives(200)
    t.deepEqual(Object.fromEntries(provider.asked[asked]!), {
      secret: 'the secret of the site',
      response: 'a robot',
      remoteip: '127.0.0.1',
    })
    const events = await sql(running)`
      select from all_events where tenant_id = ${workspace.tenantId}
      and type = 'auth.login.failure'`
    t.is(events.length, 3, 'a missing CAPTCHA response is not a password attempt')
    await browser.submit(page, { ...right, ...PERSON }).gives(303)
    const fresh = openBrowser(running)
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
    const answer = await browser.submit(page, { ...right, ...PERSON }).gives(503)
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
    const answer = await browser.submit(page, { ...right, ...PERSON }).gives(429)
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
    sql(running)`select from mail_tickets where tenant_id = ${workspace.tenantId}`
  t.deepEqual(await tickets(), [])
  await browser.submit(forgot, { email: 'a@b.de', ...PERSON }).gives(200)
  t.is((await tickets()).length, 1)
})

// The built-in CAPTCHA: a proof of work in the browser, after repeated failures.

async function tenant() {
  const browser = openBrowser(builtIn)
  const workspace = await bootstrapped(builtIn)
  const right = { email: workspace.email, password: workspace.password }
  const wrong = { ...right, password: 'wrong' }
  /** Fails until the page has a challenge. */
  async function failing(): Promise<Page> {
    let page = await signIn(browser, { ...workspace, password: 'wrong' })
    for (let failure = 1; failure < 3; failure += 1) page = await browser.submit(page, wrong)
    return page
  }
  return { browser, workspace, failing, right, wrong }
}

const challengeOn = (page: Page) =>
  /class="captcha-pow" data-sitekey="([^"]+)"/.exec(page.html)![1]!

const zeroBits = (answer: string) =>
  Math.clz32(createHash('sha256').update(answer).digest().readUInt32BE(0))

/** The first counter whose response solves the challenge, or the first whose response does not. */
function answerTo(challenge: string, fits = true): string {
  for (let counter = 0; ; counter += 1) {
    const answer = `${challenge}.${counter}`
    if (zeroBits(answer) >= BITS === fits) return answer
  }
}

test.serial(
  'the right password needs a solved challenge, and a challenge counts once',
  async (t) => {
    const { browser, failing, right, wrong } = await tenant()
    let page = await failing()
    const policy = page.headers['content-security-policy']!
    t.true(policy.includes("script-src 'self';"), policy)
    t.regex(page.html, /<script src="\/auth\/script\/[0-9a-f]{16}" integrity="sha384-/)

    for (const answer of [
      '',
      'x',
      answerTo(challengeOn(page), false),
      // Solved, but signed with the secret of another deployment.
      answerTo(foreign().challenge()),
      answerTo(`${challengeOn(page).split('.')[0]!}.${foreign().challenge().split('.')[1]!}`),
    ]) {
      const refused = await browser.submit(page, { ...right, 'captcha-response': answer })
      t.is(refused.status, 200, answer)
      t.true(refused.html.includes('role="alert"'), answer)
      t.not(challengeOn(refused), challengeOn(page), 'each page has its own challenge')
    }

    const solved = answerTo(challengeOn(page))
    page = await browser.submit(page, { ...wrong, 'captcha-response': solved })
    t.is(page.status, 200)
    const again = await browser.submit(page, { ...right, 'captcha-response': solved })
    t.is(again.status, 200, 'used up by the attempt before')
    const made = await browser.submit(page, {
      ...right,
      'captcha-response': answerTo(challengeOn(again)),
    })
    t.is(made.status, 303)
  },
)

function foreign(clock: Clock = systemClock) {
  return openPowCaptcha({
    secret: 'a secret of another deployment',
    bits: BITS,
    counts: { take: () => Promise.resolve({ allowed: true, used: 1, resetSecs: 1 }) },
    clock,
    random: systemRandom(clock),
  })
}

test('a challenge ends after ten minutes, and its bits cannot be lowered', async (t) => {
  const clock = heldClock(new Date())
  const captcha = foreign(clock)
  const answer = answerTo(captcha.challenge())
  t.is(await captcha.verify(answer, ''), 'person')
  clock.advance(600_000)
  t.is(await captcha.verify(answer, ''), 'refused')

  const [body, seal] = captcha.challenge().split('.')
  const bytes = Buffer.from(body!, 'base64url')
  bytes.writeUInt8(0, bytes.length - 1)
  t.is(await captcha.verify(`${bytes.toString('base64url')}.${seal!}.0`, ''), 'refused')
})
