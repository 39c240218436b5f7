/** The pages of the device flow in a real browser: by keyboard, in both colour schemes, accessible. */
import type { ExecutionContext } from 'ava'
import { openChromium } from '../../../support/pages/chromium.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { testService } from '../../../support/service.js'

async function journey(t: ExecutionContext, path: string, colorScheme: 'light' | 'dark') {
  t.timeout(180_000)
  const running = await testService({ transport: 'plain_http' })
  t.teardown(() => running.end())
  const person = await bootstrapped(running)
  const { clientId } = await relyingParty(running, person, {
    clientType: 'public',
    grantTypes: ['urn:ietf:params:oauth:grant-type:device_code'],
    name: 'Harbour TV',
  })
  const begin = async () => {
    const body = new URLSearchParams({ client_id: clientId, scope: 'openid profile email' })
    const answer = await fetch(`${running.baseUrl}/oauth/device/code`, { method: 'POST', body })
    return (await answer.json()) as Record<string, string>
  }
  const window = await openChromium(path, { colorScheme })
  t.teardown(() => window.close())
  const { page, complaints } = window
  const { keyboard } = page
  const picture = (name: string) => looksRight(t, page, `device-${name}-${colorScheme}`)

  const first = await begin()
  await page.goto(first['verification_uri']!)
  await picture('code')
  await keyboard.press('Tab')
  await keyboard.type('WRNG-CDXX')
  await keyboard.press('Enter')
  await page.waitForSelector('#error-summary')
  await picture('unknown')
  await page.fill('#user_code', first['user_code']!.toLowerCase())
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/login?flow=*')
  await page.fill('#email', person.email)
  await page.fill('#password', person.password)
  await keyboard.press('Enter')
  await page.waitForSelector('[data-user-code]')
  t.is(await page.getAttribute('[data-user-code]', 'data-user-code'), first['user_code']!)
  await picture('confirm')
  await page.focus('button[value="approve"]')
  await keyboard.press('Enter')
  await page.waitForSelector('[data-decided="approved"]')
  await picture('approved')

  const second = await begin()
  await page.goto(second['verification_uri_complete']!)
  await page.click('button[value="deny"]')
  await page.waitForSelector('[data-decided="denied"]')
  await picture('denied')
  t.deepEqual(complaints, [], 'nothing was refused by the content security policy')
}

for (const scheme of ['light', 'dark'] as const)
  testWithProgram('chromium', `a user connects a device: ${scheme}`, (t, path) =>
    journey(t, path, scheme),
  )
