/** The hosted pages in a real browser: keyboard only, accessibility checks. TEST_LONG has the dark scheme too, over HTTP/2 and TLS. */
import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { openChromium } from '../../../support/pages/chromium.js'
import { sql } from '../../../support/storage/sql.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { sharedService, type Transport } from '../../../support/service.js'
import { loginCodes } from '../../../support/identity/totp.js'

const focused = (page: Page) =>
  page.evaluate<string | null>('document.activeElement?.getAttribute("name")')

async function journey(
  t: ExecutionContext,
  path: string,
  transport: Transport,
  colorScheme: 'light' | 'dark',
): Promise<void> {
  t.timeout(180_000)
  const running = await sharedService('plain', { transport })
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  await sql(running.db.database, 'update tenants set settings = $2 where id = $1', [
    workspace.tenantId,
    JSON.stringify({ branding: { name: 'Harbour Works', color: '#0b7285' } }),
  ])
  const window = await openChromium(path, { colorScheme })
  t.teardown(() => window.close())
  const { page, complaints, context } = window
  const picture = (name: string) => looksRight(t, page, `${name}-${colorScheme}`)
  const { keyboard } = page

  await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  const ground = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
  t.is(ground, colorScheme === 'dark' ? 'rgb(12, 14, 19)' : 'rgb(245, 246, 248)')
  await picture('sign-in')

  // Keyboard only, in the order of the page.
  await keyboard.press('Tab')
  t.is(await focused(page), 'email')
  await keyboard.type(workspace.email)
  await keyboard.press('Tab')
  t.is(await focused(page), 'password')
  await keyboard.type('wrong password')
  await keyboard.press('Enter')
  await page.waitForSelector('#error-summary')
  await picture('sign-in-wrong')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  t.is(await focused(page), 'email', 'the error summary links to the field')
  await keyboard.press('Tab')
  await keyboard.type(workspace.password)
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/account')
  await picture('account')

  const cookies = await context.cookies()
  const session = cookies.find(({ name }) => name.endsWith('svc_session'))!
  t.is(session.name, running.issuer.startsWith('https:') ? '__Host-svc_session' : 'svc_session')
  t.like(session, {
    httpOnly: true,
    sameSite: 'Lax',
    path: '/',
    secure: running.issuer.startsWith('https:'),
  })

  await page.focus('form[action="/auth/account/factors"] button')
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/mfa/enroll?flow=*')
  await picture('enrolment')
  const secret = (await page.getAttribute('[data-totp-secret]', 'data-totp-secret'))!
  const codes = loginCodes(secret)
  await page.focus('#code')
  await keyboard.type(codes.next())
  await keyboard.press('Enter')
  await page.waitForSelector('[data-recovery-code]')
  t.is(await page.locator('[data-recovery-code]').count(), 10)
  await picture('recovery-codes')
  await page.click('a.button')
  await page.waitForURL('**/auth/account')
  await picture('account-protected')

  await page.click('form[action="/auth/logout"] button')
  await page.waitForSelector('a.button')
  await picture('signed-out')
  await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  await page.fill('#email', workspace.email)
  await page.fill('#password', workspace.password)
  await page.click('button[type=submit]')
  await page.waitForURL('**/auth/mfa?flow=*')
  await picture('second-factor')
  await page.fill('#code', codes.next())
  await page.keyboard.press('Enter')
  await page.waitForURL('**/auth/account')

  await page.goto(workspace.inviteUrl)
  await picture('invite')
  t.deepEqual(complaints, [], 'the content security policy blocked nothing')
  await page.goto(`${running.baseUrl}/auth/mfa?flow=gone`)
  await picture('error')
}

testWithProgram(
  'chromium',
  'a person signs in, sets up a second step and signs in with it: light, plain HTTP',
  (t, path) => journey(t, path, 'plain_http', 'light'),
)
if (process.env['TEST_LONG'] === '1')
  testWithProgram(
    'chromium',
    'a person signs in, sets up a second step and signs in with it: dark, HTTP/2 and TLS',
    (t, path) => journey(t, path, 'tls_h2_only', 'dark'),
  )
