/** A person decides on a delegation in a real browser: both colour schemes, accessible. */
import type { ExecutionContext } from 'ava'
import { apiOf } from '../../support/api.js'
import { openChromium } from '../../support/pages/chromium.js'
import { ask, fixtureOf, poll } from '../../support/agents/delegation.js'
import { looksRight } from '../../support/pages/visual-checks.js'
import { testWithProgram } from '../../support/service/programs.js'
import { sharedService, type Transport } from '../../support/service.js'
import { loginCodes } from '../../support/identity/totp.js'
import { IS_LONG } from '../../support/runs.js'

async function deciding(
  t: ExecutionContext,
  path: string,
  transport: Transport,
  colorScheme: 'light' | 'dark',
): Promise<void> {
  t.timeout(180_000)
  const running = await sharedService('plain', { transport })
  t.teardown(() => running.end())
  const api = apiOf(running)
  t.teardown(() => api.close())
  const workspace = await api.workspace('Harbour Works')
  const { email, password } = fixtureOf(workspace)
  const window = await openChromium(path, { colorScheme })
  t.teardown(() => window.close())
  const { page, complaints } = window
  const picture = (name: string) => looksRight(t, page, `${name}-${colorScheme}`)

  const asked = await ask(api, workspace.token, { scope: 'openid vault:list users:manage' })
  await page.goto(running.baseUrl + String(asked.body['verification_uri_complete']))
  await page.waitForURL('**/auth/login?flow=*')
  await page.fill('#email', email)
  await page.fill('#password', password)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/auth/mfa/enroll?flow=*')
  const secret = await page.getAttribute('[data-totp-secret]', 'data-totp-secret')
  const codes = loginCodes(String(secret))
  await page.fill('#code', codes.next())
  await page.keyboard.press('Enter')
  await page.waitForSelector('[data-recovery-code]')
  await page.click('a.button')
  await page.waitForURL(`**/device/delegation/${asked.userCode}`)
  const shown = await page.getAttribute('[data-user-code]', 'data-user-code')
  t.is(shown, String(asked.body['user_code_display']))
  await picture('delegation')
  // By keyboard: first the details, then the button that approves, then the one that denies.
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.waitForSelector('[data-decision="approved"]')
  await picture('delegation-approved')
  t.is((await poll(api, workspace.token, asked)).status, 200)

  await page.goto(`${running.baseUrl}/auth/account`)
  await page.waitForSelector('[data-delegation]')
  await picture('account-delegations')
  await page.click('[data-delegation]')
  await page.waitForURL('**/auth/account')
  await page.waitForSelector('[data-delegation]', { state: 'detached' })

  const other = await ask(api, workspace.token, { scope: 'openid' })
  await page.goto(`${running.baseUrl}/device/delegation/${other.userCode}`)
  await page.click('form[action$="/deny"] button')
  await page.waitForSelector('[data-decision="denied"]')
  await picture('delegation-denied')
  t.is((await poll(api, workspace.token, other)).body['error'], 'access_denied')
  t.deepEqual(complaints, [], 'nothing was refused by the content security policy')
}

testWithProgram('chromium', 'a person decides on a delegation: light, plain HTTP', (t, path) =>
  deciding(t, path, 'plain_http', 'light'),
)
if (IS_LONG) {
  testWithProgram('chromium', 'a person decides on a delegation: dark, HTTP/2 and TLS', (t, path) =>
    deciding(t, path, 'tls_h2_only', 'dark'),
  )
}
