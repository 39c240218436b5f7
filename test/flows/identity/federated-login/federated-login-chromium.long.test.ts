/** Federated sign-in through another instance of the service in a real browser, with accessibility checks. */
import type { ExecutionContext } from 'ava'
import { openChromium } from '../../../support/pages/chromium.js'
import { sql } from '../../../support/storage/sql.js'
import { looksRight } from '../../../support/pages/visual-checks.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { upstreamFixture } from '../../../support/vault/upstream.js'

async function journey(t: ExecutionContext, path: string, colorScheme: 'light' | 'dark') {
  t.timeout(180_000)
  const fixture = await upstreamFixture({ homeHost: '127.0.0.1' })
  t.teardown(() => fixture.end())
  const { running, person } = fixture
  const workspace = await bootstrapped(running)
  await sql(running)`
    update tenants set settings = ${JSON.stringify({ social: { provision: true } })}
    where id = ${workspace.tenantId}`
  const window = await openChromium(path, { colorScheme })
  t.teardown(() => window.close())
  const { page, complaints } = window
  const picture = (name: string) => looksRight(t, page, `${name}-${colorScheme}`)

  await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  await page.waitForSelector('[data-upstream="oidc"]')
  await picture('sign-in-upstream')
  await page.click('[data-upstream="oidc"]')
  await page.waitForURL(`${fixture.home.baseUrl}/auth/login*`)
  await page.fill('#email', person.email)
  await page.fill('#password', person.password)
  await page.keyboard.press('Enter')
  await page.waitForSelector('button[value="allow"]')
  await page.click('button[value="allow"]')
  await page.waitForURL(`${running.baseUrl}/auth/account`)
  t.true((await page.content()).includes(person.email))
  await picture('account-upstream')

  // Again: the provider has a session, and every step is a redirect.
  await page.click('form[action="/auth/logout"] button')
  await page.waitForSelector('a.button')
  await page.goto(`${running.baseUrl}/auth/login?tenant_slug=${workspace.tenantSlug}`)
  await page.click('[data-upstream="oidc"]')
  await page.waitForURL(`${running.baseUrl}/auth/account`)

  // Linking by a user who signs in with a password.
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
  t.deepEqual(refused, [], 'the content security policy blocked nothing')
}

testWithProgram('chromium', 'a person signs in through an identity provider: light', (t, path) =>
  journey(t, path, 'light'),
)
testWithProgram('chromium', 'a person signs in through an identity provider: dark', (t, path) =>
  journey(t, path, 'dark'),
)
