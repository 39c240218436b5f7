/**
 * A consent covers the scopes that the page showed. If the application gets more scopes before the
 * answer, from its operator or by its own registration (RFC 7592), they are not granted.
 */
import test from 'ava'
import { dataIn } from '../../../support/pages/browser.js'
import { ciba, CIBA_GRANT, INBOX } from '../../../support/oauth/ciba.js'
import { fixtureOf, present } from '../../../support/agents/delegation.js'
import {
  CALLBACK,
  callbackOf,
  pathOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const DEVICE_PAGE = '/oauth/device/verify'
const grantTypes = ['authorization_code', 'refresh_token', DEVICE, CIBA_GRANT]
const { api, running } = await sharedApi('plain')
const workspace = await api.workspace()
const person = await present(api, fixtureOf(workspace))

const application = (scopes: string[]) => relyingParty(running, workspace, { scopes, grantTypes })

/** Sets the scopes of the application. */
async function holding({ clientId }: RelyingParty, scopes: readonly string[]) {
  const answer = await api.put(`/api/v1/applications/${clientId}`, workspace.token, {
    name: 'Lighthouse',
    redirect_uris: [CALLBACK],
    grant_types: grantTypes,
    scopes,
  })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
}

const token = ({ clientId, secret }: RelyingParty, fields: Readonly<Record<string, string>>) =>
  api.form('/oauth/token', { client_id: clientId, client_secret: secret, ...fields })

async function asked(party: RelyingParty, parameters: Readonly<Record<string, string>>) {
  const { url, verifier } = await party.journey(parameters)
  const page = await person.browser.follow(await person.browser.get(pathOf(url)))
  const redeem = (callback: URL) =>
    token(party, {
      grant_type: 'authorization_code',
      code: callback.searchParams.get('code')!,
      code_verifier: verifier,
      redirect_uri: CALLBACK,
    })
  return { page, redeem }
}

test.serial('an application that got more scopes needs a new consent', async (t) => {
  const party = await application(['openid'])
  const { page, redeem } = await asked(party, {
    scope: 'openid vault:list',
    claims: JSON.stringify({ userinfo: { email: null } }),
  })
  t.deepEqual(dataIn(page.html, 'scope'), ['openid'])
  await holding(party, ['openid', 'email', 'vault:list'])

  const again = await person.browser.submit(page, { action: 'allow' }).gives(200)
  t.deepEqual(dataIn(again.html, 'scope').toSorted(), ['email', 'openid', 'vault:list'])
  const answer = callbackOf(await person.browser.submit(again, { action: 'allow' }))
  const { body } = await redeem(answer)
  t.is(body['scope'], 'openid vault:list')
  const told = await api.get('/userinfo', String(body['access_token']))
  t.is(told.body['email'], person.human.email)
})

test.serial('a form cannot widen a consent by leaving out the shown scopes', async (t) => {
  const party = await application(['openid', 'vault:list'])
  const { page } = await asked(party, { scope: 'openid vault:list' })
  for (const scope of ['', 'openid', 'openid vault:lis']) {
    const again = await person.browser.submit(page, { action: 'allow', scope })
    t.is(again.status, 200, scope)
    t.deepEqual(dataIn(again.html, 'scope'), ['openid', 'vault:list'])
  }
})

test.serial(
  'an application that lost scopes gets fewer, and asks for the others again later',
  async (t) => {
    const party = await application(['openid', 'vault:list'])
    const parameters = { scope: 'openid vault:list' }
    const { page, redeem } = await asked(party, parameters)
    t.deepEqual(dataIn(page.html, 'scope'), ['openid', 'vault:list'])
    await holding(party, ['openid'])
    const answer = callbackOf(await person.browser.submit(page, { action: 'allow' }))
    t.is((await redeem(answer)).body['scope'], 'openid')

    await holding(party, ['openid', 'vault:list'])
    const next = await asked(party, { ...parameters, prompt: 'none' })
    t.is(callbackOf(next.page).searchParams.get('error'), 'consent_required')
  },
)

test.serial('the verification page of a device asks again, too', async (t) => {
  const party = await application(['openid', 'vault:list'])
  const client = { client_id: party.clientId, client_secret: party.secret }
  const begun = await api.form('/oauth/device/code', { ...client, scope: 'openid vault:list' })
  const poll = () =>
    token(party, { grant_type: DEVICE, device_code: String(begun.body['device_code']) })
  await holding(party, ['openid'])
  const code = `?user_code=${String(begun.body['user_code'])}`
  const page = await person.browser.follow(await person.browser.get(DEVICE_PAGE + code))
  t.deepEqual(dataIn(page.html, 'scope'), ['openid'])

  await holding(party, ['openid', 'vault:list'])
  const again = await person.browser.submit(page, { action: 'approve' })
  t.deepEqual(dataIn(again.html, 'decided'), [])
  t.deepEqual(dataIn(again.html, 'scope'), ['openid', 'vault:list'])
  t.is((await poll()).body['error'], 'authorization_pending')
  const done = await person.browser.submit(again, { action: 'approve' })
  t.deepEqual(dataIn(done.html, 'decided'), ['approved'])
  t.is((await poll()).body['scope'], 'openid vault:list')
})

test.serial('an answer in the inbox grants what the inbox showed', async (t) => {
  const party = await application(['openid', 'vault:list'])
  const { start, poll } = ciba(running, party)
  const begun = await start({ scope: 'openid vault:list', login_hint: person.human.email })
  t.is(begun.status, 200)
  await holding(party, ['openid'])
  const page = await person.browser.get(INBOX)
  t.deepEqual(dataIn(page.html, 'scope'), ['openid'])

  await holding(party, ['openid', 'vault:list'])
  const done = await person.browser.submit(page, { action: 'approve' }, /\/auth\/requests\//)
  t.deepEqual(dataIn(done.html, 'decided'), ['approved'])
  t.is((await poll(begun.body['auth_req_id'])).body['scope'], 'openid')
})
