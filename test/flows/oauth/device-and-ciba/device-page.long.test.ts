/** Runs the code of docs/guides/oauth/device-flow.md. */
import test, { type ExecutionContext } from 'ava'
import { openBrowser } from '../../../support/pages/browser.js'
import { docsPage, type Language, testCommands } from '../../../support/pages/docs-page.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

async function connects(t: ExecutionContext, language: Language, last: (email: string) => string) {
  const running = await sharedService('clients')
  t.teardown(() => running.end())
  const person = await bootstrapped(running)
  const { clientId } = await relyingParty(running, person, {
    clientType: 'public',
    grantTypes: ['urn:ietf:params:oauth:grant-type:device_code'],
  })
  const page = docsPage(t, 'guides/oauth/device-flow')
  const device = page.begin(language, 0, { BASE: running.baseUrl, CLIENT_ID: clientId })
  const [, uri, code] = /^Open (\S+) and enter (\S+)$/.exec(await device.line())!

  const browser = openBrowser(running)
  const form = await browser.get(new URL(uri!).pathname)
  const login = await browser.follow(await browser.submit(form, { user_code: code! }))
  const asked = await browser.follow(await browser.submit(login, person))
  await browser.submit(asked, { action: 'approve' })
  t.is((await device.ended).split('\n').at(-1), last(person.email))
}

test('the program of docs/guides/oauth/device-flow.md connects to a user', (t) =>
  connects(t, 'js', (email) => `Connected to ${email}`))

testCommands('the commands of docs/guides/oauth/device-flow.md connect to a user', (t) =>
  connects(t, 'sh', (email) => email),
)
