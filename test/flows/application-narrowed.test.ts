/** What an operator takes away from an application is not given to it again. RFC 6749 section 6. */
import test from 'ava'
import { type Api, apiOf, claimsOf, type Workspace } from '../support/api.js'
import { fixtureOf } from '../support/delegation.js'
import { type RelyingParty, relyingParty, signedIn } from '../support/relying-party.js'
import { testService, type TestService } from '../support/service.js'

let running: TestService
let api: Api
let workspace: Workspace
test.before(async () => {
  running = await testService()
  api = apiOf(running)
  workspace = await api.workspace()
})
test.after.always(async () => {
  await api?.close()
  await running?.end()
})

const refresh = ({ clientId, secret }: RelyingParty, refreshToken: unknown, scope?: string) =>
  api.form('/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: String(refreshToken),
    client_id: clientId,
    client_secret: secret,
    ...(scope === undefined ? {} : { scope }),
  })

const holding = (party: RelyingParty, scopes: readonly string[]) =>
  api.call('PUT', `/api/v1/applications/${party.clientId}`, {
    token: workspace.token,
    json: { name: 'Lighthouse', redirect_uris: ['https://app.example/callback'], scopes },
  })

async function granted() {
  const party = await relyingParty(running, workspace, {
    scopes: ['openid', 'email', 'vault:list'],
  })
  const asked = { scope: 'openid email vault:list' }
  const { browser, tokens } = await signedIn(running, party, fixtureOf(workspace), asked)
  await browser.close()
  return { party, refreshToken: tokens.refresh_token }
}

test('a scope that an application lost is in no refreshed token', async (t) => {
  const { party, refreshToken } = await granted()
  t.is((await holding(party, ['openid', 'email'])).status, 200)
  const lost = await refresh(party, refreshToken, 'vault:list')
  t.is(lost.status, 400)
  t.is(lost.body['error'], 'invalid_scope')
  const less = await refresh(party, refreshToken)
  t.is(less.status, 200, 'what is left is given')
  t.is(less.body['scope'], 'openid email')
  t.is(claimsOf(less.body['access_token'])['scope'], 'openid email')

  t.is((await holding(party, ['openid', 'email', 'vault:list'])).status, 200)
  const again = await refresh(party, less.body['refresh_token'])
  t.is(again.body['scope'], 'openid email vault:list', 'the person has not taken it back')
})

test('an application that lost all that was granted gets nothing', async (t) => {
  const { party, refreshToken } = await granted()
  t.is((await holding(party, ['profile'])).status, 200)
  const nothing = await refresh(party, refreshToken)
  t.is(nothing.status, 400)
  t.is(nothing.body['error'], 'invalid_scope')
})
