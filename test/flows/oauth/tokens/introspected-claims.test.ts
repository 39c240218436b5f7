/** Introspection returns all claims of the token (RFC 7662 section 2.2, RFC 9470 section 6.2). */
import test from 'ava'
import { claimsOf } from '../../../support/api.js'
import { fixtureOf, delegate, present } from '../../../support/agents/delegation.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'

const { api, running } = await sharedApi('plain')
const workspace = await api.workspace()
const person = await present(api, fixtureOf(workspace))
const party = await relyingParty(running, workspace, {
  grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
  authorizationDetailsTypes: ['payment'],
})

async function told(token: string) {
  const client = { client_id: party.clientId, client_secret: party.secret }
  const { body } = await api.form('/oauth/introspect', { ...client, token })
  return body
}

const tokens: readonly (readonly [title: string, make: () => Promise<string>])[] = [
  [
    'a person',
    async () => {
      const authorization_details = JSON.stringify([{ type: 'payment' }])
      const { url, verifier } = await party.journey({ authorization_details })
      const callback = callbackOf(await authorized(person.browser, person.human, url))
      const answer = await api.form('/oauth/token', {
        client_id: party.clientId,
        client_secret: party.secret,
        grant_type: 'authorization_code',
        code: callback.searchParams.get('code')!,
        code_verifier: verifier,
        redirect_uri: CALLBACK,
      })
      return String(answer.body['access_token'])
    },
  ],
  [
    'an application',
    async () => {
      const client = { client_id: party.clientId, client_secret: party.secret }
      const form = { ...client, grant_type: 'client_credentials' }
      return String((await api.form('/oauth/token', form)).body['access_token'])
    },
  ],
  [
    'an agent that acts for a user',
    async () => (await delegate(api, workspace.token, person)).token,
  ],
  ['an agent', async () => workspace.token],
]
for (const [title, make] of tokens)
  test.serial(`the token of ${title}`, async (t) => {
    const token = await make()
    const { active, token_type, ...claims } = await told(token)
    t.true(active)
    t.is(token_type, 'Bearer')
    t.deepEqual(claims, claimsOf(token))
  })
