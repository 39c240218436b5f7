/** Runs the code of docs/guides/oauth/authorization-code.md, pushed-authorization-requests.md and identity/sign-out.md. */
import test, { type ExecutionContext } from 'ava'
import type { NewApplication } from '../../../../storage/oauth/applications.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { docsPage, testCommands } from '../../../support/pages/docs-page.js'
import { bootstrapped } from '../../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { freePort, sharedService } from '../../../support/service.js'

const BYE = 'https://app.example/bye'
const running = await sharedService('plain')
const person = await bootstrapped(running)

async function opened(more: Partial<NewApplication> = {}) {
  const party = await relyingParty(running, person, more)
  const browser = openBrowser(running)
  const env = { BASE: running.baseUrl, CLIENT_ID: party.clientId, CLIENT_SECRET: party.secret }
  return { party, browser, env }
}

test('the application of docs/guides/oauth/authorization-code.md signs a user in and out', async (t) => {
  const port = await freePort()
  const home = `http://localhost:${port}`
  const { browser, env } = await opened({
    redirectUris: [`${home}/callback`],
    postLogoutRedirectUris: [`${home}/bye`],
  })
  const app = docsPage(t, 'guides/oauth/authorization-code').begin('js', 0, {
    ...env,
    PORT: String(port),
  })
  t.is(await app.line(), 'ready')

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

for (const name of [
  'guides/oauth/authorization-code',
  'guides/oauth/pushed-authorization-requests',
]) {
  testCommands(`the commands of docs/${name}.md make a request and redeem its code`, async (t) => {
    const { browser, env } = await opened()
    const made = await docsPage(t, name).run('sh', 0, { ...env, REDIRECT_URI: CALLBACK })
    const answer = callbackOf(await authorized(browser, person, new URL(made)))
    t.is(answer.searchParams.get('state'), 'my-state')
    const CODE = answer.searchParams.get('code')!
    const redeemed = { ...env, REDIRECT_URI: CALLBACK, CODE }
    t.is(await docsPage(t, 'guides/oauth/authorization-code').run('sh', 1, redeemed), person.email)
  })
}

test('the program of docs/guides/oauth/pushed-authorization-requests.md signs its user in', async (t) => {
  const PORT = String(await freePort())
  const { browser, env } = await opened({
    clientType: 'public',
    redirectUris: [`http://127.0.0.1:${PORT}/callback`],
  })
  const program = docsPage(t, 'guides/oauth/pushed-authorization-requests').begin('js', 0, {
    ...env,
    PORT,
  })
  const [, url] = /^Open (\S+)$/.exec(await program.line())!
  t.deepEqual([...new URL(url!).searchParams.keys()].toSorted(), ['client_id', 'request_uri'])
  const answer = await authorized(browser, person, new URL(url!))
  await fetch(answer.location!)
  t.is((await program.ended).split('\n').at(-1), `Signed in as ${person.email}`)
})

test('the URL of docs/guides/identity/sign-out.md, made by openid-client, signs a user out', (t) =>
  signsOut(t, 'js'))

testCommands('the commands of docs/guides/identity/sign-out.md sign a user out', (t) =>
  signsOut(t, 'sh'),
)

async function signsOut(t: ExecutionContext, language: 'js' | 'sh') {
  const { party, env } = await opened()
  const { browser, tokens } = await party.signedIn(person)
  const page = docsPage(t, 'guides/identity/sign-out')
  const at = { ...env, ID_TOKEN: tokens.id_token!, BYE }
  const url = new URL(await page.run(language, 0, at))
  t.is((await browser.get(url.pathname + url.search)).location, `${BYE}?state=my-state`)
  if (language === 'js') return
  const left = { ...env, TOKEN: tokens.access_token, REFRESH_TOKEN: tokens.refresh_token! }
  t.is(await page.run('sh', 1, left), 'token_revoked\ninvalid_grant')
}
