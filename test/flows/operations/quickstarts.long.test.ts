/** The quickstarts in docs/get-started promise that their code runs: from an empty folder to the result. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ExecutionContext } from 'ava'
import { emptyDatabase } from '../../support/storage/database.js'
import { notThrough } from '../../support/fleet/through.js'
import { type DocsPage, docsPage, testCommands } from '../../support/pages/docs-page.js'
import { openBrowser } from '../../support/pages/browser.js'
import { authorized, pathOf } from '../../support/oauth/relying-party.js'
import { freePort, TEST_DEFAULTS, testService, type TestService } from '../../support/service.js'
import { reachableUpstream } from '../../support/vault/egress.js'
import { processesOf } from '../vault/command.js'

const MAIN = fileURLToPath(new URL('../../../runtime/main.js', import.meta.url))

async function running(t: ExecutionContext, environment = {}): Promise<TestService> {
  const service = await testService({ transport: 'plain_http', environment })
  t.teardown(() => service.end())
  return service
}

/** What the commands of a page need: the service, the `svc` command and a new home folder. */
const settingsOf = (page: DocsPage, { baseUrl }: { readonly baseUrl: string }) => ({
  BASE: baseUrl,
  SVC: `${process.execPath} ${MAIN}`,
  HOME: page.folder,
})

/** The file that `node --env-file` reads. */
function environmentFile(page: DocsPage): Record<string, string> {
  const lines = readFileSync(join(page.folder, '.env.local'), 'utf8').trim().split('\n')
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
}

testCommands('docs/get-started/application-developer.md signs a user in and out', async (t) => {
  const service = await running(t)
  const page = docsPage(t, 'get-started/application-developer')
  const PORT = String(await freePort())
  const printed = await page.runCommands({ ...settingsOf(page, service), PORT })
  const [, email = '', password = ''] = /^test login +(\S+) (\S+)$/.exec(printed)!
  const second = await page.runCommands({ ...settingsOf(page, service), PORT })
  t.is(second, printed, 'a second run creates nothing')
  const app = page.begin('js', 0, environmentFile(page))
  const home = `http://localhost:${PORT}`
  t.is(await app.line(), `ready: ${home}`)

  const get = (url: string, cookie = '') => fetch(url, { redirect: 'manual', headers: { cookie } })
  const cookieOf = (answer: Response) => answer.headers.getSetCookie()[0]!.split(';')[0]!
  const login = await get(`${home}/login`)
  const browser = openBrowser(service)
  const request = new URL(login.headers.get('location')!)
  const back = await authorized(browser, { email, password }, request)
  t.is(back.status, 302, back.html)
  t.is((await get(back.location!)).status, 200, 'a callback without the cookie signs no one in')
  const forged = back.location!.replace(/state=[^&]+/, 'state=forged')
  const victim = cookieOf(await get(`${home}/login`))
  t.is((await get(forged, victim)).status, 400, 'another state')

  const callback = await get(back.location!, cookieOf(login))
  t.is(callback.headers.get('location'), '/', await callback.text())
  const session = cookieOf(callback)
  t.not(session, cookieOf(login))
  t.regex(await (await get(home, session)).text(), new RegExp(`^Signed in as ${email}\\. `))

  const logout = new URL((await get(`${home}/logout`, session)).headers.get('location')!)
  const signedOut = await browser.follow(await browser.get(pathOf(logout)))
  t.is(signedOut.status, 200, signedOut.html)
  t.is(await (await get(home, session)).text(), '<a href="/login">Sign in</a>')
  const again = await browser.follow(await browser.get(pathOf(request)))
  t.true(again.path.startsWith('/auth/login'), 'the session at the service has ended')
})

testCommands(
  'docs/get-started/agent-developer.md calls an API with a credential, until its grant is revoked',
  async (t) => {
    const { upstream, environment, end } = await reachableUpstream()
    t.teardown(end)
    const service = await running(t, environment)
    const page = docsPage(t, 'get-started/agent-developer')
    const env = { ...settingsOf(page, service), API: upstream.origin }
    for (const run of [1, 2]) {
      const printed = (await page.runCommands(env)).split('\n')
      t.deepEqual(printed.slice(-3), ['Worker is active', 'Bearer [redacted]', '404'])
      const { authorization } = upstream.requests.at(-1)!.headers
      t.is(authorization, 'Bearer sk_live_4f1c2a9b7e')
      t.is(upstream.requests.length, run, 'the call after the revocation never reached the API')
    }
  },
)

testCommands('README.md calls an API with a secret that the agent never sees', async (t) => {
  const { upstream, environment, end } = await reachableUpstream()
  t.teardown(end)
  const service = await running(t, environment)
  const page = docsPage(t, '../README')
  const env = { ...settingsOf(page, service), API: upstream.origin }
  const workspace = join(page.folder, 'workspace.json')
  await t.throwsAsync(page.runCommands({ ...env, BASE: 'http://127.0.0.1:1' }))
  t.false(existsSync(workspace), 'a run that failed leaves no file')
  rmSync(join(page.folder, 'agent.json'), { force: true })
  const made = []
  for (const run of ['first', 'second']) {
    const printed = await page.runCommands(env)
    t.true(printed.includes('Bearer [redacted]'), `${run}: ${printed}`)
    made.push(readFileSync(workspace, 'utf8'))
  }
  t.is(made[0], made[1], 'the second run keeps the workspace')
  t.is(upstream.requests.length, 2)
  t.is(upstream.requests.at(-1)!.headers.authorization, 'Bearer sk_live_4f1c2a9b7e')
})

testCommands('docs/get-started/api-developer.md refuses what its rules refuse', async (t) => {
  notThrough('the API of its page speaks plain http')
  const service = await running(t)
  const page = docsPage(t, 'get-started/api-developer')
  for (const _ of ['first', 'second']) await page.run('sh', 0, settingsOf(page, service))
  const PORT = String(await freePort())
  const env = { ...environmentFile(page), PORT, API: `http://localhost:${PORT}` }
  const api = page.begin('js', 0, env)
  t.is(await api.line(), `ready: ${env.API}`)
  const expected = ['no token: 401', 'token: 200', 'another scope: 403', 'changed token: 401']
  t.deepEqual((await page.run('sh', 1, env)).split('\n'), expected)
  const bound = await page.run('js', 1, env)
  t.is(bound, 'dpop, with a proof: 200\nas a bearer token: 401')
  const [before, after] = (await page.run('sh', 2, env)).split('\n')
  t.is(before, '{"active":true,"subject_type":"service","token_type":"Bearer"}')
  t.is(after, '{"active":false}')
})

testCommands(
  'docs/get-started/operator.md runs the service on its own database, keys and certificate',
  async (t) => {
    const db = await emptyDatabase(t)
    const page = docsPage(t, 'get-started/operator')
    const PORT = String(await freePort())
    t.teardown(() => {
      for (const line of processesOf(page.folder))
        process.kill(Number.parseInt(line, 10), 'SIGKILL')
    })
    const printed = await page.runCommands({
      SVC_CHALLENGE__POW_DIFFICULTY_BITS: TEST_DEFAULTS.SVC_CHALLENGE__POW_DIFFICULTY_BITS,
      SVC_CHALLENGE__POW_MIN_DURATION_SECS: TEST_DEFAULTS.SVC_CHALLENGE__POW_MIN_DURATION_SECS,
      // The folder in the command line finds what a failed run left behind.
      SVC: `${process.execPath} --diagnostic-dir=${page.folder} ${MAIN}`,
      HOME: page.folder,
      DIR: join(page.folder, 'keys'),
      DATABASE_URL: db.url,
      PORT,
    })
    const facts = [
      /^The configuration is valid\.$/m,
      /^server\.transport = "tls" +# svc\.toml:4$/m,
      /^ok\n\d{2,}$/m, // readiness, then the number of metrics
      new RegExp(`^https://localhost:${PORT}/auth/invites/[\\w-]+$`, 'm'),
      /^suspended\nactive\ntrue$/m,
      /^5 events of tenant [0-9a-f-]+ hold, from 1 to 5\.$/m,
    ]
    for (const fact of facts) t.regex(printed, fact)
    const log = readFileSync(join(page.folder, 'svc.log'), 'utf8')
    t.regex(log, /"msg":"stopped"}\s*$/, 'the service stopped in good order')
  },
)
