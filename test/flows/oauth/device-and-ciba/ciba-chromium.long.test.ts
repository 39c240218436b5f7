/** The inbox in a real browser: by keyboard, in both colour schemes, accessible. */
import type { ExecutionContext } from 'ava'
import { openChromium } from '../../../support/pages/chromium.js'
import { ciba, CIBA_GRANT, INBOX } from '../../../support/oauth/ciba.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { testService } from '../../../support/service.js'
import { loginCodes } from '../../../support/identity/totp.js'

async function journey(t: ExecutionContext, path: string, colorScheme: 'light' | 'dark') {
  t.timeout(180_000)
  const running = await testService({ transport: 'plain_http' })
  t.teardown(() => running.end())
  const person = await bootstrapped(running)
  const party = await relyingParty(running, person, {
    grantTypes: [CIBA_GRANT],
    name: 'Harbour Bank',
  })
  const { start, poll } = ciba(running, party)
  const begin = async (binding_message: string) => {
    const scope = 'openid profile email'
    return start({ login_hint: person.email, scope, binding_message })
  }
  const window = await openChromium(path, { colorScheme })
  t.teardown(() => window.close())
  const { page, complaints } = window
  const { keyboard } = page
  const picture = (name: string) => looksRight(t, page, `inbox-${name}-${colorScheme}`)
  const shown = (message: string) => `[data-binding-message="${message}"]`

  const first = await begin('Transfer 4711')
  const second = await begin('Order 0815')
  await page.goto(
    `${running.baseUrl}/auth/login?tenant_slug=${person.tenantSlug}&return_to=${INBOX}`,
  )
  await page.fill('#email', person.email)
  await page.fill('#password', person.password)
  await keyboard.press('Enter')
  await page.waitForSelector(shown('Transfer 4711'))
  t.is(await page.locator('[data-request]').count(), 2)
  await picture('requests')

  // The answer needs a second factor: the page redirects to its enrolment and back.
  const allow = page.locator(`.choice:has(${shown('Transfer 4711')}) button[value="approve"]`)
  await allow.focus()
  await keyboard.press('Enter')
  await page.waitForURL('**/auth/mfa/enroll?flow=*')
  const codes = loginCodes((await page.getAttribute('[data-totp-secret]', 'data-totp-secret'))!)
  await page.fill('#code', codes.next())
  await keyboard.press('Enter')
  await page.waitForSelector('[data-recovery-code]')
  await page.click('a.button')
  await page.waitForSelector(shown('Transfer 4711'))
  await allow.focus()
  await keyboard.press('Enter')
  await page.waitForSelector('[data-decided="approved"]')
  await picture('approved')
  t.is((await poll(first.body['auth_req_id'])).status, 200)

  await page.click(`a[href="${INBOX}"]`)
  await page.waitForSelector(shown('Order 0815'))
  await page.click('button[value="deny"]')
  await page.waitForSelector('[data-decided="denied"]')
  await picture('denied')
  t.is((await poll(second.body['auth_req_id'])).body['error'], 'access_denied')

  await page.goto(`${running.baseUrl}/auth/account`)
  await page.click(`a[href="${INBOX}"]`)
  await page.waitForSelector('[data-inbox-empty]')
  await picture('empty')
  t.deepEqual(complaints, [], 'nothing was refused by the content security policy')
}

for (const scheme of ['light', 'dark'] as const)
  testWithProgram('chromium', `a user answers the requests in their inbox: ${scheme}`, (t, path) =>
    journey(t, path, scheme),
  )
