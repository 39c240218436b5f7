/** Controls that need a script: showing a password, and copying, saving and printing recovery codes. */
import { readFileSync } from 'node:fs'
import { openChromium } from '../../../support/pages/chromium.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { loginCodes } from '../../../support/identity/totp.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { testService } from '../../../support/service.js'

testWithProgram(
  'chromium',
  'a user shows the password, and copies, saves and prints the recovery codes',
  async (t, path) => {
    t.timeout(120_000)
    const running = await testService()
    t.teardown(() => running.end())
    const workspace = await bootstrapped(running)
    const window = await openChromium(path)
    t.teardown(() => window.close())
    const { page, context } = window
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const typeOf = () => page.getAttribute('#password', 'type')

    await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
    await page.fill('#email', workspace.email)
    await page.fill('#password', workspace.password)
    const reveal = page.locator('[data-reveal]')
    t.is(await reveal.getAttribute('aria-pressed'), 'false')
    await reveal.click()
    t.is(await typeOf(), 'text')
    t.is(await reveal.getAttribute('aria-pressed'), 'true')
    await reveal.click()
    t.is(await typeOf(), 'password')
    await page.press('#password', 'Enter')
    await page.waitForURL('**/auth/account')

    await page.click('form[action="/auth/account/factors"] button')
    await page.waitForSelector('[data-totp-secret]')
    const secret = (await page.getAttribute('[data-totp-secret]', 'data-totp-secret'))!
    await page.fill('#code', loginCodes(secret).next())
    await page.press('#code', 'Enter')
    await page.waitForSelector('[data-recovery-code]')
    const codes = await page.locator('[data-recovery-code]').allTextContents()
    t.is(codes.length, 10)

    await page.click('[data-do=copy]')
    // The policy of the page refuses functions that are sent as text.
    await page.locator('[data-codes] [role=status]:not(:empty)').waitFor({ state: 'attached' })
    t.is(await page.evaluate('navigator.clipboard.readText()'), codes.join('\n'))

    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.click('[data-do=download]'),
    ])
    t.is(download.suggestedFilename(), 'recovery-codes.txt')
    const saved = readFileSync(await download.path(), 'utf8')
    t.true(saved.endsWith(`\n\n${codes.join('\n')}\n`), saved)

    await page.evaluate('globalThis.print = () => { globalThis.printed = true }')
    await page.click('[data-do=print]')
    t.true(await page.evaluate('globalThis.printed'))
    const refused = window.complaints.filter((one) => !/status of 4\d\d/.test(one))
    t.deepEqual(refused, [], 'the content security policy blocked nothing')
  },
)

testWithProgram('chromium', 'without a script the controls are hidden', async (t, path) => {
  t.timeout(60_000)
  const running = await testService()
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  const window = await openChromium(path, { javaScriptEnabled: false })
  t.teardown(() => window.close())
  await window.page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  t.false(await window.page.locator('[data-reveal]').isVisible())
  t.true(await window.page.locator('#password').isVisible())
})
