/** The proof of work of the built-in CAPTCHA in a real browser. */
import { bootstrapped, signIn } from '../../../support/identity/person.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { openChromium } from '../../../support/pages/chromium.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { testService } from '../../../support/service.js'

testWithProgram('chromium', 'a browser solves the challenge and signs in', async (t, path) => {
  t.timeout(120_000)
  const running = await testService({
    environment: {
      SVC_CHALLENGE__CAPTCHA_ENABLED: 'true',
      SVC_CHALLENGE__CAPTCHA_SECRET: 'a secret of this deployment',
      SVC_CHALLENGE__CAPTCHA_POW_BITS: '10',
    },
  })
  t.teardown(() => running.end())
  const workspace = await bootstrapped(running)
  const elsewhere = openBrowser(running)
  const wrong = { email: workspace.email, password: 'wrong' }
  let failed = await signIn(elsewhere, { ...workspace, ...wrong })
  for (let failure = 1; failure < 3; failure += 1) failed = await elsewhere.submit(failed, wrong)
  const window = await openChromium(path)
  t.teardown(() => window.close())
  const { page, complaints } = window
  await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  const sendForm = async (password: string) => {
    await page.fill('#email', workspace.email)
    await page.fill('#password', password)
    await page.keyboard.press('Enter')
  }
  await sendForm('wrong')
  await page.waitForSelector('.captcha-pow')
  // Submitted immediately: the form waits for the solution.
  await sendForm(workspace.password)
  await page.waitForURL((url) => url.pathname !== '/auth/login')
  t.deepEqual(complaints, [])
})
