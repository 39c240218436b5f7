/**
 * The walks that people take daily, in a real browser: keyboard only, accessibility checks. TEST_LONG has the dark scheme, HTTP/2
 * over TLS, and more kinds of authenticators.
 */
import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { openChromium, violations } from '../../../support/pages/chromium.js'
import { sql } from '../../../support/storage/sql.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { type Workspace, bootstrapped } from '../../../support/identity/person.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { type Transport, sharedService } from '../../../support/service.js'
import { loginCodes } from '../../../support/identity/totp.js'
import {
  SECURITY_KEY,
  SYNCED,
  TOUCH_ONLY,
  U2F,
  plugIn,
} from '../../../support/identity/virtual-authenticator.js'
import { IS_LONG } from '../../../support/runs.js'

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
  await sql(running)`
    update tenants set settings =
    ${JSON.stringify({ branding: { name: 'Harbour Works', color: '#0b7285' } })}
    where id = ${workspace.tenantId}`
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
if (IS_LONG)
  testWithProgram(
    'chromium',
    'a person signs in, sets up a second step and signs in with it: dark, HTTP/2 and TLS',
    (t, path) => journey(t, path, 'tls_h2_only', 'dark'),
  )

// Passkeys in a real browser. TEST_LONG has more kinds of authenticators, and HTTP/2 over TLS.

const NEW = '/auth/account/passkeys/new'

async function opened(t: ExecutionContext, path: string, transport: Transport) {
  t.timeout(180_000)
  const running = await sharedService('people', { transport })
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  const window = await openChromium(path)
  t.teardown(() => window.close())
  return { running, workspace, ...window }
}

async function signInWithPassword(page: Page, baseUrl: string, { tenantSlug, ...who }: Workspace) {
  await page.goto(`${baseUrl}/auth/login?tenant_slug=${tenantSlug}`)
  await page.fill('#email', who.email)
  await page.fill('#password', who.password)
  await page.press('#password', 'Enter')
}

async function signOut(page: Page) {
  await page.click('form[action="/auth/logout"] button')
  await page.waitForSelector('a.button[href^="/auth/login"]')
}

for (const transport of IS_LONG
  ? (['plain_http', 'tls_h2_only'] as const)
  : (['plain_http'] as const)) {
  testWithProgram(
    'chromium',
    `a person adds a passkey by keyboard and signs in with it: ${transport}`,
    async (t, path) => {
      const { running, workspace, page, complaints } = await opened(t, path, transport)
      const key = await plugIn(page, SECURITY_KEY)
      await signInWithPassword(page, running.baseUrl, workspace)
      await page.waitForURL('**/auth/account')
      await page.focus(`a[href="${NEW}"]`)
      await page.keyboard.press('Enter')
      await page.waitForURL(`**${NEW}`)
      t.deepEqual(await violations(page), [])
      await page.fill('#passkey-name', 'Blue key')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await page.waitForSelector('[data-recovery-code]')
      t.is((await key.credentials()).length, 1)
      await page.click('a.button')
      await page.waitForURL('**/auth/account')
      t.true((await page.content()).includes('Blue key'))
      t.deepEqual(await violations(page), [])
      await signOut(page)

      await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
      await page.click('form[action="/auth/passkeys/sign-in"] button')
      await page.waitForURL('**/auth/account')
      t.deepEqual(complaints, [], 'the content security policy blocked nothing')
    },
  )
}

if (IS_LONG) {
  testWithProgram(
    'chromium',
    'a passkey is offered by autofill, and works as second factor after a password',
    async (t, path) => {
      const { running, workspace, page } = await opened(t, path, 'plain_http')
      const key = await plugIn(page, SYNCED)
      await signInWithPassword(page, running.baseUrl, workspace)
      await page.waitForURL('**/auth/account')
      await page.goto(`${running.baseUrl}${NEW}`)
      await page.click('form[data-passkey] button')
      await page.waitForSelector('[data-recovery-code]')
      await page.click('a.button')
      await page.waitForURL('**/auth/account')
      t.true((await page.content()).includes('Backed up'))
      await signOut(page)
      // An authenticator that is present answers the conditional request of the page without interaction.
      await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
      await page.waitForURL('**/auth/account')
      t.is((await key.credentials()).length, 1)
    },
  )

  testWithProgram(
    'chromium',
    'keys without user verification or resident credentials are refused with an error',
    async (t, path) => {
      const { running, workspace, page } = await opened(t, path, 'plain_http')
      await signInWithPassword(page, running.baseUrl, workspace)
      await page.waitForURL('**/auth/account')
      for (const kind of [TOUCH_ONLY, U2F]) {
        const key = await plugIn(page, kind)
        await page.goto(`${running.baseUrl}${NEW}`)
        await page.click('form[data-passkey] button')
        await page.locator('[role=status]').filter({ hasText: /./ }).waitFor({ timeout: 60_000 })
        t.is((await key.credentials()).length, 0)
        t.deepEqual(await violations(page), [])
        await key.remove()
      }
    },
  )
}
