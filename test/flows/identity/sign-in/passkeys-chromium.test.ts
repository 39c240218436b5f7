/** Passkeys in a real browser. TEST_LONG has more kinds of authenticators, and HTTP/2 over TLS. */
import type { ExecutionContext } from 'ava'
import type { Page } from 'playwright-core'
import { openChromium, violations } from '../../../support/pages/chromium.js'
import { bootstrapped, type Workspace } from '../../../support/identity/person.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { sharedService, type Transport } from '../../../support/service.js'
import {
  plugIn,
  SECURITY_KEY,
  SYNCED,
  TOUCH_ONLY,
  U2F,
} from '../../../support/identity/virtual-authenticator.js'

const LONG = process.env['TEST_LONG'] === '1'
const NEW = '/auth/account/passkeys/new'

async function opened(t: ExecutionContext, path: string, transport: Transport) {
  t.timeout(180_000)
  const running = await sharedService('passkeys', { transport })
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

for (const transport of LONG
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

if (LONG) {
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
