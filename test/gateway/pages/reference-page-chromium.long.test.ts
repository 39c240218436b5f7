/** The pages of the API and of the documentation in a real browser: accessible in both schemes, at 320 px, and offline. */
import { apiOf } from '../../support/api.js'
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
    const api = apiOf(running)
    const workspace = await api.workspace()
    for (const colorScheme of ['light', 'dark'] as const) {
      const window = await openChromium(path, { colorScheme })
      t.teardown(() => window.close())
      const { page, complaints } = window
      const foreign: string[] = []
      page.on('request', (request) => {
        if (!request.url().startsWith(running.baseUrl)) foreign.push(request.url())
      })
      await page.setViewportSize({ width: 320, height: 800 })
      await page.goto(`${running.baseUrl}/api/docs`)
      t.deepEqual(await violations(page), [], colorScheme)
      await page.fill('#filter', 'applications rotate')
      t.is(await page.locator('[data-words]:visible').count(), 1)
      t.regex(await page.locator('#count').innerText(), /^1 of \d+ operations$/)
      await page.locator('[data-words]:visible a').click()
      await page.locator('#operation-rotateApplicationSecret form').waitFor()
      t.regex(page.url(), /\/api\/docs\/applications#/)
      await page.locator('#operation-createApplication summary').click()
      await page
        .locator('#operation-createApplication')
        .getByText('Python', { exact: true })
        .click()
      t.deepEqual(await violations(page), [], colorScheme)
      t.deepEqual(await accessibilityFindings(page), [], colorScheme)

      await page.getByText('Get a token').first().click()
      await page.fill('#client-id', String(workspace.body['client_id']))
      await page.fill('#client-secret', String(workspace.body['client_secret']))
      await page.fill('#scope', 'applications:read')
      await page.getByRole('button', { name: 'Get a token' }).click()
      await page.getByText('A token with applications:read').waitFor()
      const listed = page.locator('#operation-listApplications')
      await listed.locator('summary').click()
      await listed.getByRole('button', { name: /^Send/ }).click()
      await listed.locator('pre[role=status]').getByText(/^200/).waitFor()

      const named = page.getByRole('link', { name: 'GET /api/v1/capabilities' })
      await page.goto(`${running.baseUrl}/api/docs`)
      await named.click()
      const one = page.locator('#operation-getCapabilities')
      await one.getByRole('button', { name: /^Send/ }).click()
      await one.getByText('"interface_version"').last().waitFor()
      for (const path of ['get-started/api-developer', 'guides/oauth/device-flow']) {
        await page.goto(`${running.baseUrl}/docs/${path}`)
        await page.getByRole('button', { name: 'Copy' }).first().waitFor()
        t.deepEqual(await violations(page), [], `${path}, ${colorScheme}`)
        t.deepEqual(await accessibilityFindings(page), [], `${path}, ${colorScheme}`)
      }
      t.deepEqual(foreign, [])
      t.deepEqual(complaints, [])
    }
    const bare = await openChromium(path, { javaScriptEnabled: false })
    t.teardown(() => bare.close())
    await bare.page.goto(`${running.baseUrl}/api/docs`)
    t.true((await bare.page.locator('[data-words]').count()) > 100, 'without its script')
    await bare.page.goto(`${running.baseUrl}/api/docs/applications`)
    t.true((await bare.page.locator('details[data-path]').count()) > 5, 'without its script')
  },
)
