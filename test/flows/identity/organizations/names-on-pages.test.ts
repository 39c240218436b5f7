/**
 * Names of applications and agents in sentences of pages that ask for a decision. They are set off, so that a name that
 * reads like the sentence around it is recognizable as a name.
 */
import test from 'ava'
import { type Api, apiOf, type Workspace } from '../../../support/api.js'
import { openBrowser, type Page } from '../../../support/pages/browser.js'
import { ciba, CIBA_GRANT, INBOX } from '../../../support/oauth/ciba.js'
import { ask, fixtureOf, type Person, present } from '../../../support/agents/delegation.js'
import { sql } from '../../../support/storage/sql.js'
import { journey, pathOf, relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedService, type TestService } from '../../../support/service.js'

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const NAME = 'Tide (bank.example) only wants <b>&\u05d0 {host} $& your "name"'
const SHOWN =
  '<bdi class="name">Tide (bank.example) only wants &lt;b&gt;&amp;\u05d0 {host} $&amp; your &quot;name&quot;</bdi>'

let running: TestService
let api: Api
let workspace: Workspace
let person: Person
test.before(async () => {
  running = await sharedService('plain')
  api = apiOf(running)
  workspace = await api.workspace()
  person = await present(api, fixtureOf(workspace))
})
test.after.always(async () => {
  await person?.browser.close()
  await api?.close()
  await running?.end()
})

const application = () =>
  relyingParty(running, workspace, {
    name: NAME,
    scopes: ['openid', 'profile'],
    grantTypes: ['authorization_code', 'refresh_token', DEVICE, CIBA_GRANT],
  })

/** The sentence that contains the name. */
const sentenceOf = ({ html }: Page) =>
  new RegExp(`>([^<>]*${SHOWN.replaceAll(/[$(){}.]/g, '\\$&')}.*)</(?:p|h2)>`).exec(html)?.[1]

test('an application asks for sign-in and consent', async (t) => {
  const { url } = await journey(await application(), { scope: 'openid profile' })
  const stranger = openBrowser(running)
  t.teardown(() => stranger.close())
  const login = await stranger.follow(await stranger.get(pathOf(url)))
  t.is(sentenceOf(login), `Continue to ${SHOWN}.`, login.html)
  const consent = await person.browser.follow(await person.browser.get(pathOf(url)))
  t.is(sentenceOf(consent), `${SHOWN} wants to access your account.`)
  t.true(consent.html.includes('data-redirect-host="app.example"><code>app.example</code>'))
})

test('an application on a device asks', async (t) => {
  const { clientId: client_id, secret: client_secret } = await application()
  const { body } = await api.form('/oauth/device/code', { client_id, client_secret })
  const complete = new URL(String(body['verification_uri_complete']))
  const page = await person.browser.follow(await person.browser.get(pathOf(complete)))
  t.is(sentenceOf(page), `${SHOWN} on another device wants to access your account.`, page.html)
})

test('an application asks in the inbox', async (t) => {
  const { start } = ciba(running, await application())
  t.is((await start({ login_hint: person.human.email, scope: 'openid profile' })).status, 200)
  const page = await person.browser.get(INBOX)
  t.is(sentenceOf(page), `${SHOWN} wants to sign you in`, page.html)
})

test('an agent asks', async (t) => {
  await sql(running.db.database, 'update agents set name = $2 where id = $1', [
    workspace.agentId,
    NAME,
  ])
  const { userCode } = await ask(api, workspace.token, { scope: 'openid' })
  const page = await person.browser.follow(
    await person.browser.get(`/device/delegation/${userCode}`),
  )
  t.is(sentenceOf(page), `${SHOWN} asks to act on your behalf.`, page.html)
})
