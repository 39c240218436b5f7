/** The built-in CAPTCHA: a proof of work in the browser, after repeated failures. */
import { createHash } from 'node:crypto'
import test, { type ExecutionContext } from 'ava'
import { openPowCaptcha } from '../../../../actors/identity/abuse-protection/pow-captcha.js'
import { systemClock } from '../../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../../runtime/kernel/random.js'
import { openBrowser, type Page } from '../../../support/pages/browser.js'
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { testService } from '../../../support/service.js'

const SECRET = 'a secret of this deployment'
const BITS = 10
const ENVIRONMENT = {
  SVC_CHALLENGE__CAPTCHA_ENABLED: 'true',
  SVC_CHALLENGE__CAPTCHA_SECRET: SECRET,
  SVC_CHALLENGE__CAPTCHA_POW_BITS: String(BITS),
}

const running = await testService({ environment: ENVIRONMENT })
test.after.always(() => running.end())

async function tenant(t: ExecutionContext) {
  const browser = openBrowser(running)
  t.teardown(() => browser.close())
  const workspace = await bootstrapped(running)
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
    const { browser, failing, right, wrong } = await tenant(t)
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
    const done = await browser.submit(page, {
      ...right,
      'captcha-response': answerTo(challengeOn(again)),
    })
    t.is(done.status, 303)
  },
)

function foreign(clock = systemClock) {
  return openPowCaptcha({
    secret: 'a secret of another deployment',
    bits: BITS,
    counts: { take: () => Promise.resolve({ allowed: true, used: 1, resetSecs: 1 }) },
    clock,
    random: systemRandom(clock),
  })
}

test('a challenge ends after ten minutes, and its bits cannot be lowered', async (t) => {
  let nowMs = Date.now()
  const clock = { ...systemClock, now: () => new Date(nowMs) }
  const captcha = foreign(clock)
  const answer = answerTo(captcha.challenge())
  t.is(await captcha.verify(answer, ''), 'person')
  nowMs += 600_000
  t.is(await captcha.verify(answer, ''), 'refused')

  const [body, seal] = captcha.challenge().split('.')
  const bytes = Buffer.from(body!, 'base64url')
  bytes.writeUInt8(0, bytes.length - 1)
  t.is(await captcha.verify(`${bytes.toString('base64url')}.${seal!}.0`, ''), 'refused')
})
