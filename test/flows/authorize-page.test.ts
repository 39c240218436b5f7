/** docs/authorize.md promises that its code runs as it stands. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import test from 'ava'
import { openBrowser } from '../support/browser.js'
import { bootstrapped } from '../support/person.js'
import { program } from '../support/programs.js'
import { authorized, CALLBACK, callbackOf, relyingParty } from '../support/relying-party.js'
import { freePort, testService } from '../support/service.js'

const PAGE = readFileSync(new URL('../../../docs/authorize.md', import.meta.url), 'utf8')
const blocks = (language: string) =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, text]) => text!,
  )

test('the application of docs/authorize.md signs a person in and out', async (t) => {
  const running = await testService()
  t.teardown(() => running.end())
  const person = await bootstrapped(running)
  const port = await freePort()
  const home = `http://localhost:${port}`
  const party = await relyingParty(running, person, {
    redirectUris: [`${home}/callback`],
    postLogoutRedirectUris: [`${home}/bye`],
  })
  // Below the project, where its packages are found.
  const folder = new URL('../../pages/', import.meta.url)
  mkdirSync(folder, { recursive: true })
  const file = new URL(`authorize-${port}.mjs`, folder)
  const [code] = blocks('js')
  writeFileSync(file, code!)
  const { PATH } = process.env
  const env = {
    ...(PATH === undefined ? {} : { PATH }),
    BASE: running.baseUrl,
    PORT: String(port),
    CLIENT_ID: party.clientId,
    CLIENT_SECRET: party.secret,
  }
  const app = spawn(process.execPath, [file.pathname], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => {
    app.kill()
    rmSync(file)
  })
  await once(app.stdout, 'data')

  const browser = openBrowser(running)
  t.teardown(() => browser.close())
  const begun = await fetch(`${home}/login`, { redirect: 'manual' })
  const asked = new URL(begun.headers.get('location')!)
  const answer = await authorized(browser, person, asked)
  t.is(answer.status, 302, answer.html)
  const shown = (await (await fetch(answer.location!)).json()) as Record<string, string>
  t.like(shown, { tenant: person.tenantId, email: person.email })

  const leaving = await fetch(`${home}/logout`, { redirect: 'manual' })
  const out = new URL(leaving.headers.get('location')!)
  const bye = await browser.get(out.pathname + out.search)
  t.is(bye.location, `${home}/bye`)
  t.is(await (await fetch(bye.location!)).text(), 'Goodbye.')
})

const absent = ['bash', 'curl', 'jq', 'openssl', 'basenc'].filter(
  (name) => program(name) === undefined,
)
const TITLE = 'the commands of docs/authorize.md push a request and redeem its code'
if (absent.length > 0) test.skip(`${TITLE} (${absent.join(', ')} not installed)`, () => undefined)
else
  test(TITLE, async (t) => {
    const running = await testService()
    t.teardown(() => running.end())
    const person = await bootstrapped(running)
    const party = await relyingParty(running, person)
    const run = async (script: string, more: Record<string, string> = {}) => {
      const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
        env: {
          PATH: process.env['PATH'],
          BASE: running.baseUrl,
          CLIENT_ID: party.clientId,
          CLIENT_SECRET: party.secret,
          REDIRECT_URI: CALLBACK,
          ...more,
        },
      })
      return stdout.trim()
    }
    const [push, redeem] = blocks('sh')
    const browser = openBrowser(running)
    t.teardown(() => browser.close())
    const answer = callbackOf(await authorized(browser, person, new URL(await run(push!))))
    t.is(answer.searchParams.get('state'), 'my-state')
    t.is(await run(redeem!, { CODE: answer.searchParams.get('code')! }), person.email)
  })
