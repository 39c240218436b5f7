/** A real browser continues at the application after consent, on any of the application's hosts. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ExecutionContext } from 'ava'
import { openChromium } from '../../../support/pages/chromium.js'
import { bootstrapped } from '../../../support/identity/person.js'
import { testWithProgram } from '../../../support/service/programs.js'
import { relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

async function listening(host: string, answer: RequestListener): Promise<Server> {
  const server = createServer(answer)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, host, resolve)
  })
  return server
}
const portOf = (server: Server) => (server.address() as AddressInfo).port

async function arrives(t: ExecutionContext, path: string, host: string): Promise<void> {
  t.timeout(180_000)
  const running = await sharedService('plain', { transport: 'plain_http' })
  t.teardown(() => running.end())
  const person = await bootstrapped(running)
  const home = await listening('127.0.0.1', (_request, response) => response.end('home'))
  t.teardown(() => home.close())
  // The application receives the code on one host and shows its pages on another.
  const application = await listening(host, (_request, response) => {
    response.writeHead(302, { location: `http://localhost:${portOf(home)}/home` }).end()
  })
  t.teardown(() => application.close())
  const shown = host.includes(':') ? `[${host}]` : host
  const callback = `http://${shown}:${portOf(application)}/callback`
  const party = await relyingParty(running, person, { redirectUris: [callback] })
  const window = await openChromium(path)
  t.teardown(() => window.close())
  const { page, complaints } = window

  const begun = await party.journey({ redirect_uri: callback })
  await page.goto(begun.url.href)
  await page.fill('#email', person.email)
  await page.fill('#password', person.password)
  await page.keyboard.press('Enter')
  await page.waitForSelector('button[value=allow]')
  await page.focus('button[value=allow]')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/home')

  // The second time the redirect comes from the password form.
  const again = await party.journey({ redirect_uri: callback, prompt: 'login' })
  await page.goto(again.url.href)
  await page.fill('#password', person.password)
  await page.keyboard.press('Enter')
  await page.waitForURL('**/home')
  t.deepEqual(
    complaints.filter((text) => !text.includes('favicon')),
    [],
  )
}

for (const host of ['127.0.0.1', '::1'])
  testWithProgram('chromium', `a sign-in returns to ${host} and continues from there`, (t, path) =>
    arrives(t, path, host),
  )
