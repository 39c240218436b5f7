/** The page of the API in a real browser: accessible in both schemes, at 320 px, and offline. */
import { openChromium, violations } from '../../support/pages/chromium.js'
import { accessibilityFindings } from '../../support/pages/accessibility.js'
import { testWithProgram } from '../../support/service/programs.js'
import { sharedService } from '../../support/service.js'

testWithProgram(
  'chromium',
  'the page of the API is accessible and sends requests',
  async (t, path) => {
    t.timeout(240_000)
    const running = await sharedService('plain', { transport: 'plain_http' })
    t.teardown(() => running.end())
    for (const colorScheme of ['light', 'dark'] as const) {
      const window = await openChromium(path, { colorScheme })
      t.teardown(() => window.close())
      const { page, complaints } = window
      const foreign: string[] = []
      page.on('request', (request) => {
        if (!request.url().startsWith(running.baseUrl)) foreign.push(request.url())
      })
      await page.setViewportSize({ width: 320, height: 800 })
      await page.goto(`${running.baseUrl}/api/docs#operation-getCapabilities`)
      const one = page.locator('#operation-getCapabilities')
      await one.locator('form').waitFor()
      await page.locator('#operation-createApplication summary').click()
      t.deepEqual(await violations(page), [], colorScheme)
      t.deepEqual(await accessibilityFindings(page), [], colorScheme)

      await page.fill('#filter', 'applications rotate')
      t.is(await page.locator('details[data-path]:visible').count(), 1)
      t.regex(await page.locator('#count').innerText(), /^1 of \d+ operations$/)
      await page.fill('#filter', '')

      await one.getByRole('button').click()
      await one.getByText('"interface_version"').last().waitFor()
      t.deepEqual(foreign, [])
      t.deepEqual(complaints, [])
    }
    const bare = await openChromium(path, { javaScriptEnabled: false })
    t.teardown(() => bare.close())
    await bare.page.goto(`${running.baseUrl}/api/docs`)
    t.true((await bare.page.locator('details[data-path]').count()) > 100, 'without its script')
  },
)
