/** The console in a real browser: accessibility of every page, and work by keyboard without script. */
import test from 'ava'
import { ownerOf } from '../../../support/identity/console.js'
import { crawled, oneOfEach } from '../../../support/identity/console-crawl.js'
import { accessibilityFindings, byKeyboard } from '../../../support/pages/accessibility.js'
import { openChromium, violations, type Window } from '../../../support/pages/chromium.js'
import { populateTenant } from '../../../support/service/populated-service.js'
import { startPopulatedService } from '../../../support/service/populated-service-parts.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { IS_LONG } from '../../../support/runs.js'

/** The short form walks one form by keyboard, and leaves out the forms in German. */
const isForm = (path: string) => path.includes('/do/')

const resources = await startPopulatedService()
const { api, receiver, running } = resources
const tenant = await populateTenant(api, 'Harbour', receiver)
const browser = await ownerOf(api, tenant)
const paths = oneOfEach((await crawled(browser)).keys()).filter((path) => !path.endsWith('/export'))
test.after.always(async () => {
  await browser.close()
  await resources.close()
})

/** Gives the browser the session of the owner. */
async function signedIn({ context }: Window): Promise<void> {
  const { origin } = new URL(running.baseUrl)
  const secure = origin.startsWith('https:')
  await context.addCookies(
    [...browser.cookies].map(([name, value]) => ({ name, value, url: origin, secure })),
  )
}

for (const [colorScheme, locale] of [
  ['light', 'en'],
  ['dark', 'de'],
] as const) {
  testWithProgram(
    'chromium',
    `every page of the console is accessible: ${colorScheme}, ${locale}`,
    async (t, program) => {
      t.timeout(900_000)
      const window = await openChromium(program, { colorScheme, locale })
      t.teardown(() => window.close())
      await signedIn(window)
      const { page } = window
      const found: string[] = []
      for (const path of paths.filter((one) => IS_LONG || locale === 'en' || !isForm(one))) {
        await page.goto(`${running.baseUrl}${path}`)
        t.is(await page.getAttribute('html', 'lang'), locale)
        const faults = await violations(page)
        // Forms differ between the languages in their labels only.
        if (locale === 'en' || !isForm(path)) faults.push(...(await accessibilityFindings(page)))
        // The order of the stops is the same in both languages.
        if (
          locale === 'en' &&
          (IS_LONG ? /\/do\/|\/console$/ : /applications\/do\/create|\/console$/).test(path)
        )
          faults.push(...(await byKeyboard(page)))
        found.push(...faults.map((fault) => `${path}: ${fault}`))
      }
      t.deepEqual(found, [])
      t.deepEqual(window.complaints, [], 'the content security policy blocked nothing')
    },
  )
}

/** Pages of each kind, for the languages with another script or direction. */
const MAIN =
  /^\/console(?:\/(?:applications|people|assets|settings|audit|applications\/do\/create))?$/

for (const [colorScheme, locale, direction] of [
  ['light', 'ja', 'ltr'],
  ['dark', 'ar', 'rtl'],
] as const) {
  testWithProgram(
    'chromium',
    `the main pages of the console are accessible: ${colorScheme}, ${locale}`,
    async (t, program) => {
      t.timeout(900_000)
      const window = await openChromium(program, { colorScheme, locale })
      t.teardown(() => window.close())
      await signedIn(window)
      const { page } = window
      const shown = paths.filter((path) => (IS_LONG ? !isForm(path) : MAIN.test(path)))
      t.true(shown.length >= 6, shown.join())
      const found: string[] = []
      for (const path of shown) {
        await page.goto(`${running.baseUrl}${path}`)
        t.is(await page.getAttribute('html', 'lang'), locale)
        t.is(await page.getAttribute('html', 'dir'), direction)
        const faults = [...(await violations(page)), ...(await accessibilityFindings(page))]
        found.push(...faults.map((fault) => `${path}: ${fault}`))
      }
      t.deepEqual(found, [])
      t.deepEqual(window.complaints, [], 'the content security policy blocked nothing')
    },
  )
}

testWithProgram(
  'chromium',
  'an application is created by keyboard alone, without script',
  async (t, program) => {
    const window = await openChromium(program, { javaScriptEnabled: false })
    t.teardown(() => window.close())
    await signedIn(window)
    const { page } = window
    const until = async (name: string) => {
      for (let stops = 0; stops < 80; stops += 1) {
        await page.keyboard.press('Tab')
        const focused = page.locator(':focus')
        const said = (await focused.count()) === 0 ? '' : await nameOf(focused)
        if (said === name) return
      }
      throw new Error(`Tab does not reach ${name} on ${page.url()}`)
    }
    const nameOf = async (focused: ReturnType<typeof page.locator>) =>
      (await focused.getAttribute('name')) ?? (await focused.innerText()).trim()
    await page.goto(`${running.baseUrl}/console`)
    await until('Applications')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/console/applications')
    await until('Create')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/do/create')
    await until('name')
    await page.keyboard.type('Ferry by keyboard')
    await until('redirect_uris')
    await page.keyboard.type('not a URI')
    await until('Create')
    await page.keyboard.press('Enter')
    await page.locator('#error-summary').waitFor()
    t.is(await page.getAttribute('#f-redirect_uris', 'aria-invalid'), 'true')
    t.is(await page.inputValue('#f-name'), 'Ferry by keyboard')
    // The link of the fault leads to its field.
    await until('Redirect URIs')
    await page.keyboard.press('Enter')
    await page.locator('#f-redirect_uris:focus').waitFor()
    await page.keyboard.press('Control+A')
    await page.keyboard.type('https://ferry.example/callback')
    await until('Create')
    await page.keyboard.press('Enter')
    await page.locator('[data-secret="client_secret"]').waitFor()
    await page.goto(`${running.baseUrl}/console/applications`)
    t.is(await page.getByRole('link', { name: 'Ferry by keyboard', exact: true }).count(), 1)
  },
)
