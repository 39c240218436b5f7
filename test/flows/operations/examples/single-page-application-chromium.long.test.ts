/** docs/examples/single-page-application in a real browser: sign-in with PKCE, tokens by CORS. */
import { fileURLToPath } from 'node:url'
import { bootstrapped } from '../../../support/identity/person.js'
import { loopbackPort } from '../../../support/oauth/mcp-example.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { openChromium } from '../../../support/pages/chromium.js'
import { startProgram } from '../../../support/service/example-program.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { testService } from '../../../support/service.js'

testWithProgram('chromium', 'the single-page application signs a person in', async (t, path) => {
  t.timeout(180_000)
  const running = await testService({ transport: 'plain_http' })
  t.teardown(() => running.end())
  const person = await bootstrapped(running)
  const port = await loopbackPort()
  const origin = `http://localhost:${port}`
  const party = await relyingParty(running, person, {
    clientType: 'public',
    redirectUris: [`${origin}/callback`],
    allowedOrigins: [origin],
  })
  const served = startProgram(t, process.execPath, ['serve.mjs'], {
    cwd: fileURLToPath(
      new URL('../../../../../docs/examples/single-page-application/', import.meta.url),
    ),
    env: { ISSUER: running.issuer, CLIENT_ID: party.clientId, PORT: String(port) },
  })
  await served.line('ready')
  const window = await openChromium(path)
  t.teardown(() => window.close())
  const { page } = window
  await page.goto(origin)
  await page.getByText('Signed out').waitFor()
  await page.click('#sign-in')
  await page.fill('#email', person.email)
  await page.fill('#password', person.password)
  await page.keyboard.press('Enter')
  await page.waitForSelector('button[value=allow]')
  await page.click('button[value=allow]')
  await page.getByText(`Signed in as ${person.email}`).waitFor()
  t.is(new URL(page.url()).pathname, '/', 'the code left the address')
  t.is(await page.evaluate('sessionStorage.length + localStorage.length'), 0, 'nothing is stored')

  // An answer that belongs to no sign-in of this tab is refused.
  await page.goto(`${origin}/callback?code=x&state=y&iss=${encodeURIComponent(running.issuer)}`)
  await page.getByText('The answer belongs to another sign-in.').waitFor()
})
