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

testWithProgram(
  'chromium',
  'a form_post response is sent by script, and by a button without',
  async (t, path) => {
    t.timeout(180_000)
    const running = await sharedService('plain', { transport: 'plain_http' })
    t.teardown(() => running.end())
    const person = await bootstrapped(running)
    const home = await listening('127.0.0.1', (_request, response) => response.end('home'))
    t.teardown(() => home.close())
    const bodies: string[] = []
    const application = await listening('127.0.0.1', (request, response) => {
      if (request.method !== 'POST') return void response.end()
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        bodies.push(body)
        // Its pages are on another host.
        response.writeHead(303, { location: `http://localhost:${portOf(home)}/home` }).end()
      })
    })
    t.teardown(() => application.close())
    const callback = `http://127.0.0.1:${portOf(application)}/callback`
    const party = await relyingParty(running, person, { redirectUris: [callback] })
    for (const javaScriptEnabled of [true, false]) {
      const window = await openChromium(path, { javaScriptEnabled })
      t.teardown(() => window.close())
      const { page, complaints } = window
      const asked = { redirect_uri: callback, response_mode: 'form_post' }
      const begun = await party.journey(asked)
      await page.goto(begun.url.href)
      await page.fill('#email', person.email)
      await page.fill('#password', person.password)
      await page.keyboard.press('Enter')
      if (javaScriptEnabled) await page.click('button[value=allow]')
      else await page.click('main[data-page=onward] button')
      await page.waitForURL('**/home')
      const sent = new URLSearchParams(bodies.at(-1))
      t.is(sent.get('state'), begun.state)
      t.is(sent.get('iss'), running.baseUrl)
      t.truthy(sent.get('code'))
      t.deepEqual(
        complaints.filter((text) => !text.includes('favicon')),
        [],
      )
    }
    t.is(bodies.length, 2)
  },
)
