/**
 * A development service in a real browser, without a mail server: sign up, confirm the address, forget the password,
 * sign in with a code, all with the mails at /dev/mail.
 */
import type { ExecutionContext } from 'ava'
import { apiOf } from '../../../support/api.js'
import { accessibilityFindings } from '../../../support/pages/accessibility.js'
import { notThrough } from '../../../support/fleet/through.js'
import { openChromium } from '../../../support/pages/chromium.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { testService } from '../../../support/service.js'

const ADA = 'ada@harbour.test'
const FIRST = 'seven boats left at noon'
const SECOND = 'eight boats came back at night'
const PATIENCE_MS = 60_000

async function journey(
  t: ExecutionContext,
  path: string,
  { locale, colorScheme }: { locale: 'en' | 'de'; colorScheme: 'light' | 'dark' },
): Promise<void> {
  notThrough('it reads mails in the memory of one process')
  t.timeout(300_000)
  // The defaults of a development service.
  const on = ['PASSKEY', 'USER_SELF_SERVICE', 'EMAIL_OTP', 'MAGIC_LINK', 'INVITATIONS']
  const running = await testService({
    transport: 'plain_http',
    environment: Object.fromEntries(on.map((name) => [`SVC_${name}__ENABLED`, 'true'])),
  })
  const api = apiOf(running)
  const window = await openChromium(path, { colorScheme, locale })
  t.teardown(async () => {
    await window.close()
    await api.close()
    await running.end()
  })
  const { page, complaints, context } = window
  const { keyboard } = page
  page.setDefaultTimeout(PATIENCE_MS)
  const { body } = await api.workspace()
  const to = (own: string) => page.goto(running.baseUrl + own)
  const login = `/auth/login?tenant_slug=${String(body['tenant_slug'])}`
  const looks = async (name: string) => {
    t.is(await page.getAttribute('html', 'lang'), locale, name)
    await looksRight(t, page, `${name}-${colorScheme}`)
    t.deepEqual(await accessibilityFindings(page), [], name)
  }
  /** Opens the latest mail. The worker sends it a moment after the form. */
  const latest = async (holds: RegExp) => {
    for (;;) {
      await to('/dev/mail')
      const subject = page.locator('.rows a').first()
      if ((await subject.count()) > 0 && holds.test(await subject.innerText())) {
        await subject.click()
        await page.waitForSelector('[data-mail-text]')
        return page.innerText('[data-mail-text]')
      }
      await page.waitForTimeout(200)
    }
  }

  await to(login)
  await page.focus('a[href^="/auth/register"]')
  await keyboard.press('Enter')
  await page.waitForSelector('form[action="/auth/register"]')
  await looks('register')
  await page.focus('#email')
  await keyboard.type(ADA)
  await keyboard.press('Enter')
  await page.waitForSelector('[data-register-sent]')
  await looks('register-sent')
  await latest(/Confirm|Bestätigen/)
  await looks('dev-mail-message')
  // The link in the frame replaces the page around it.
  const frame = page.frames().find((one) => one !== page.mainFrame())!
  await frame.click('a')
  await page.waitForURL('**/auth/register/*')
  await looks('register-link')
  await page.focus('#name')
  await keyboard.type('Ada Moreno')
  await keyboard.press('Tab')
  await keyboard.type(FIRST)
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  t.true((await page.innerText('main')).includes(ADA))

  await context.clearCookies()
  await to(login)
  await page.click('a[href^="/auth/password/forgot"]')
  await page.fill('#email', ADA)
  await page.press('#email', 'Enter')
  await page.waitForSelector('#email', { state: 'detached' })
  await latest(/new password|Neues Passwort/)
  await page.click('[data-mail-link]')
  await page.waitForURL('**/auth/password/reset/*')
  await page.fill('#password', SECOND)
  await page.press('#password', 'Enter')
  await page.waitForSelector('a.button[href^="/auth/login"]')

  await to(login)
  await page.fill('#email', ADA)
  await page.fill('#password', SECOND)
  await page.press('#password', 'Enter')
  await page.waitForURL('**/auth/account')

  await context.clearCookies()
  await to(login)
  await page.fill('#email', ADA)
  await page.click('button[formaction="/auth/login/mail"]')
  await page.waitForSelector('#code')
  const waiting = page.url()
  const [code = ''] = /\b[A-Z]{4}-[A-Z]{4}\b/.exec(await latest(/^Sign in|^Anmelden/)) ?? []
  await page.goto(waiting)
  await page.fill('#code', code)
  await page.press('#code', 'Enter')
  await page.waitForURL('**/auth/account')
  t.deepEqual(complaints, [], 'the content security policy blocked nothing')
}

for (const look of [
  { locale: 'en', colorScheme: 'light' },
  { locale: 'de', colorScheme: 'dark' },
] as const) {
  testWithProgram(
    'chromium',
    `a development service signs people up without a mail server: ${look.locale}, ${look.colorScheme}`,
    (t, path) => journey(t, path, look),
  )
}
