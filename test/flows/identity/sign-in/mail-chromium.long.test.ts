/** The pages behind links in mails in a real browser: keyboard only, both schemes, accessibility checks. */
import type { ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { openCaptchaProvider } from '../../../support/identity/captcha.js'
import { openChromium } from '../../../support/pages/chromium.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { codeIn, openMailServer, pathIn } from '../../../support/operations/mail.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { testService, type Transport } from '../../../support/service.js'

const ADA = 'ada@harbour.works'
const FIRST = 'the first password of ada'
const SECOND = 'the second password of ada'

async function journey(
  t: ExecutionContext,
  path: string,
  transport: Transport,
  colorScheme: 'light' | 'dark',
): Promise<void> {
  t.timeout(180_000)
  const mail = await openMailServer()
  const captcha = await openCaptchaProvider()
  const running = await testService({
    transport,
    environment: {
      ...mail.environment,
      ...captcha.environment,
      SVC_EMAIL_OTP__ENABLED: 'true',
      SVC_MAGIC_LINK__ENABLED: 'true',
      SVC_INVITATIONS__ENABLED: 'true',
      SVC_USER_SELF_SERVICE__ENABLED: 'true',
    },
  })
  const api = apiOf(running)
  const window = await openChromium(path, { colorScheme })
  t.teardown(async () => {
    await window.close()
    await api.close()
    await running.end()
    await mail.close()
    captcha.close()
  })
  const { page, complaints, context } = window
  const { keyboard } = page
  const { token, body } = await api.workspace()
  const json = { email: ADA, display_name: 'Ada' }
  t.is((await api.call('POST', '/api/v1/tenant-users', { token, json })).status, 201)
  const looks = (name: string) => looksRight(t, page, `${name}-${colorScheme}`)
  const url = (own: string) => `${running.baseUrl}${own}`
  const loginUrl = url(`/auth/login?tenant_slug=${String(body['tenant_slug'])}`)

  await page.goto(url(pathIn(await mail.letterTo(ADA), '/auth/invitations/')))
  await looks('invitation')
  await page.focus('#password')
  await keyboard.type(FIRST)
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  await looks('account-by-mail')
  await page.click('a[href="/auth/account/password"]')
  await looks('password-change')
  await page.focus('#current')
  await keyboard.type(FIRST)
  // The button that shows the password is between the fields.
  await keyboard.press('Tab')
  await keyboard.press('Tab')
  await keyboard.type(SECOND)
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')

  await context.clearCookies()
  await page.goto(loginUrl)
  await looks('sign-in-ways')
  await page.fill('#email', ADA)
  await page.focus('button[formaction="/auth/login/mail"]')
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/login/mail?flow=*')
  await looks('mail-sent')
  const letter = await mail.letterTo(ADA, /XXXX|[A-Z]{4}-[A-Z]{4}/)
  await page.focus('#code')
  await keyboard.type('bbbb bbbb')
  await keyboard.press('Enter')
  await page.waitForSelector('#error-summary')
  await looks('mail-sent-wrong')
  await page.fill('#code', codeIn(letter))
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')

  await context.clearCookies()
  await page.goto(loginUrl)
  await page.fill('#email', ADA)
  await page.click('button[formaction="/auth/login/mail"]')
  await page.waitForURL('**/auth/login/mail?flow=*')
  const second = await mail.letterTo(ADA, /\/auth\/magic\//, 1)
  await page.goto(url(pathIn(second, '/auth/magic/')))
  await looks('magic-link')
  await page.focus('button')
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')

  await context.clearCookies()
  await page.goto(loginUrl)
  await page.click('a[href^="/auth/password/forgot"]')
  await page.waitForSelector('[data-done="yes"]', { state: 'attached' })
  await looks('forgot')
  await page.focus('#email')
  await keyboard.type(ADA)
  await keyboard.press('Enter')
  await page.waitForSelector('#email', { state: 'detached' })
  const reset = await mail.letterTo(ADA, /\/auth\/password\/reset\//)
  await page.goto(url(pathIn(reset, '/auth/password/reset/')))
  await looks('password-reset')
  await page.focus('#password')
  await keyboard.type(FIRST)
  await keyboard.press('Enter')
  await page.waitForSelector('a.button[href^="/auth/login"]')
  await looks('password-done')
  await page.click('a.button')
  for (let n = 0; n < 3; n += 1) {
    await page.fill('#email', ADA)
    await page.fill('#password', 'wrong')
    const answered = page.waitForEvent('domcontentloaded')
    await keyboard.press('Enter')
    await answered
    await page.waitForSelector('#error-summary')
  }
  await page.waitForSelector('[data-done="yes"]', { state: 'attached' })
  await looks('sign-in-captcha')
  await page.fill('#email', ADA)
  await page.fill('#password', FIRST)
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  t.deepEqual(complaints, [], 'the content security policy blocked nothing')
  await page.goto(url('/auth/magic/gone?flow=gone'))
  await looks('link-unknown')
  t.is(await page.locator('.tenant').count(), 0, 'an unknown link names no tenant')
}

testWithProgram(
  'chromium',
  'a person is invited, signs in by mail, changes and resets the password: light, plain HTTP',
  (t, path) => journey(t, path, 'plain_http', 'light'),
)
testWithProgram(
  'chromium',
  'a person is invited, signs in by mail, changes and resets the password: dark, HTTP/2 and TLS',
  (t, path) => journey(t, path, 'tls_h2_only', 'dark'),
)
