/** Sign-in through another instance of the service in a real browser, without barriers. */
import type { ExecutionContext } from 'ava'
import { openChromium } from '../../../support/pages/chromium.js'
import { sql } from '../../../support/identity/identity.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { upstreamHouse } from '../../../support/vault/upstream.js'

async function journey(t: ExecutionContext, path: string, colorScheme: 'light' | 'dark') {
  t.timeout(180_000)
  // Cookies know no ports: the one is plain, the other has the prefix of TLS.
  const resources = await upstreamHouse({ transport: 'plain_http' })
  t.teardown(() => resources.end())
  const { running, person } = resources
  const workspace = await bootstrapped(running)
  await sql(running.db.database, 'update tenants set settings = $2 where id = $1', [
    workspace.tenantId,
    JSON.stringify({ social: { provision: true } }),
  ])
  const window = await openChromium(path, { colorScheme })
  t.teardown(() => window.close())
  const { page, complaints } = window
  const picture = (name: string) => looksRight(t, page, `${name}-${colorScheme}`)

  await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  await page.waitForSelector('[data-upstream="oidc"]')
  await picture('sign-in-upstream')
  await page.click('[data-upstream="oidc"]')
  await page.waitForURL(`${resources.home.baseUrl}/auth/login*`)
  await page.fill('#email', person.email)
  await page.fill('#password', person.password)
  await page.keyboard.press('Enter')
  await page.waitForSelector('button[value="allow"]')
  await page.click('button[value="allow"]')
  await page.waitForURL(`${running.baseUrl}/auth/account`)
  t.true((await page.content()).includes(person.email))
  await picture('account-upstream')

  // Once more: the provider knows them and asks nothing, and every step is a redirect.
  await page.click('form[action="/auth/logout"] button')
  await page.waitForSelector('a.button')
  await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  await page.click('[data-upstream="oidc"]')
  await page.waitForURL(`${running.baseUrl}/auth/account`)

  // The link of somebody who signs in with a password.
  await page.click('form[action="/auth/logout"] button')
  await page.waitForSelector('a.button')
  await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  await page.fill('#email', workspace.email)
  await page.fill('#password', workspace.password)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${running.baseUrl}/auth/account`)
  await page.click('[data-link="oidc"]')
  await page.waitForSelector('#error-summary, [data-identity], code')
  t.true((await page.content()).includes('linked to another account'))
  await picture('identity-taken')
  const refused = complaints.filter((text) => !text.includes('status of 409'))
  t.deepEqual(refused, [], 'nothing was refused by the content security policy')
}

testWithProgram('chromium', 'a person signs in through another deployment: light', (t, path) =>
  journey(t, path, 'light'),
)
testWithProgram('chromium', 'a person signs in through another deployment: dark', (t, path) =>
  journey(t, path, 'dark'),
)
