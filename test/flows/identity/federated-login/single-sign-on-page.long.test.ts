/** Runs the commands of docs/guides/identity/single-sign-on.md. */
import { bootstrap, callerOf } from '../../../support/agents/journey.js'
import { dataIn, openBrowser } from '../../../support/pages/browser.js'
import { docsPage, testCommands } from '../../../support/pages/docs-page.js'
import { ownPathOf, throughHome, upstreamFixture } from '../../../support/vault/upstream.js'

testCommands(
  'the commands of docs/guides/identity/single-sign-on.md set a provider up',
  async (t) => {
    t.timeout(120_000)
    const fixture = await upstreamFixture({ transport: 'plain_http' })
    t.teardown(() => fixture.end())
    const { running, dns, person, home } = fixture
    const { tenantId, accessToken } = await bootstrap(callerOf(running.baseUrl))
    const page = docsPage(t, 'guides/identity/single-sign-on')
    const domain = person.email.slice(person.email.indexOf('@') + 1)
    const application = await fixture.application('https://app.example/not-yet')
    const env = {
      BASE: running.baseUrl,
      TOKEN: accessToken,
      TENANT_ID: tenantId,
      ISSUER: home.issuer,
      CLIENT_ID: application.clientId,
      CLIENT_SECRET: application.clientSecret,
      DOMAIN: domain,
    }
    const redirectUri = await page.run('sh', 0, env)
    await fixture.move(application.clientId, redirectUri)
    const [name, type, value] = (await page.run('sh', 1, env)).split(' ')
    t.is(type, 'TXT')
    await t.throwsAsync(page.run('sh', 2, env), undefined, 'not verified yet')
    dns.records.set(name!, [value!])
    t.is(await page.run('sh', 2, env), 'verified')
    const url = await page.run('sh', 3, env)

    const browser = openBrowser(running)
    // A link of another site: the confirmation page comes first.
    const asks = await browser.get(ownPathOf(url)).gives(200)
    const away = await browser.submit(asks, {}, '/auth/sso/start')
    const onward = dataIn(away.html, 'onward')[0]!
    t.is((await throughHome(fixture, browser, onward, person)).status, 200)
  },
)
