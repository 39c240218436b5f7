/** openid-client and a user at the pages, one test for each flow and each kind of request. */
import test from 'ava'
import { decodeJwt, exportJWK, generateKeyPair } from 'jose'
import * as oidc from 'openid-client'
import type { NewApplication } from '../../../../storage/oauth/applications.js'
import { openBrowser } from '../../../support/pages/browser.js'
import { bootstrapped, enrol } from '../../../support/identity/person.js'
import {
  authorized,
  callbackOf,
  isConsent,
  pathOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

// Every proof needs a nonce here: the library repeats a request that was refused without one.
const running = await sharedService('nonces')
const person = await bootstrapped(running)

const party = (more: Partial<NewApplication> = {}) => relyingParty(running, person, more)

const isActive = async ({ config }: RelyingParty, token: string) =>
  (await oidc.tokenIntrospection(config, token)).active

for (const alg of ['ES256', 'Ed25519'] as const) {
  test(`PAR, private_key_jwt and DPoP with nonces, all with ${alg}`, async (t) => {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
    const keyed = await relyingParty(
      running,
      person,
      {
        tokenEndpointAuthMethod: 'private_key_jwt',
        secretSha256: null,
        jwks: { keys: [{ ...(await exportJWK(publicKey)), kid: 'mine', alg }] },
        requirePushedAuthorizationRequests: true,
        dpopBoundAccessTokens: true,
      },
      oidc.PrivateKeyJwt({ key: privateKey, kid: 'mine' }),
    )
    const DPoP = oidc.getDPoPHandle(keyed.config, await oidc.randomDPoPKeyPair(alg))
    const begun = await keyed.journey()
    const parameters = Object.fromEntries(begun.url.searchParams)
    const url = await oidc.buildAuthorizationUrlWithPAR(keyed.config, parameters, { DPoP })
    const browser = openBrowser(running)
    const answer = callbackOf(await authorized(browser, person, url))
    const tokens = await oidc.authorizationCodeGrant(
      keyed.config,
      answer,
      begun.checks,
      undefined,
      { DPoP },
    )
    t.is(tokens.token_type, 'dpop')
    const { jkt } = decodeJwt(tokens.access_token)['cnf'] as { jkt: string }
    t.is(jkt, await DPoP.calculateThumbprint())
    const { sub } = tokens.claims()!
    t.is((await oidc.fetchUserInfo(keyed.config, tokens.access_token, sub, { DPoP })).sub, sub)
    const next = await oidc.refreshTokenGrant(keyed.config, tokens.refresh_token!, {}, { DPoP })
    t.is(next.token_type, 'dpop')
  })
}

test('refresh: rotated, and reuse of the old token revokes everything', async (t) => {
  const client = await party()
  const { tokens } = await client.signedIn(person)
  const first = await oidc.refreshTokenGrant(client.config, tokens.refresh_token!)
  t.not(first.refresh_token, tokens.refresh_token)
  const second = await oidc.refreshTokenGrant(client.config, first.refresh_token!)
  const refused = await t.throwsAsync<oidc.ResponseBodyError>(
    oidc.refreshTokenGrant(client.config, tokens.refresh_token!),
  )
  t.is(refused?.error, 'invalid_grant')
  t.false(await isActive(client, second.access_token))
})

test('authorization_details (RFC 9396) are returned in the response and in the token', async (t) => {
  const details = [{ type: 'payment', amount: '12.50' }]
  const client = await party({ authorizationDetailsTypes: ['payment'] })
  const parameters = { authorization_details: JSON.stringify(details) }
  const { tokens } = await client.signedIn(person, parameters)
  t.deepEqual(tokens.authorization_details as unknown, details)
  const other = await client.journey({ authorization_details: '[{"type":"other"}]' })
  const again = openBrowser(running)
  const answer = callbackOf(await authorized(again, person, other.url))
  t.is(answer.searchParams.get('error'), 'invalid_authorization_details')
})

test('step-up: acr_values=aal2 asks for a second factor, max_age=0 for a new sign-in', async (t) => {
  const someone = await bootstrapped(running)
  const client = await relyingParty(running, someone)
  const first = await client.signedIn(someone)
  t.is(first.claims['acr'], 'aal1')
  const begun = await client.journey({ acr_values: 'aal2' })
  const asked = await first.browser.follow(await first.browser.get(pathOf(begun.url)))
  t.true(asked.path.startsWith('/auth/mfa/enroll'), asked.path)
  const { page } = await enrol(first.browser, asked)
  const shown = page.location === null ? await first.browser.get(pathOf(begun.url)) : page
  const answer = await first.browser.follow(shown)
  const callback = callbackOf(
    isConsent(answer) ? await first.browser.submit(answer, { action: 'allow' }) : answer,
  )
  const tokens = await oidc.authorizationCodeGrant(client.config, callback, begun.checks)
  t.is(tokens.claims()!['acr'], 'aal2')

  const fresh = await client.journey({ max_age: '0' })
  const again = await first.browser.follow(await first.browser.get(pathOf(fresh.url)))
  t.true(again.path.startsWith('/auth/login'), again.path)
  const quiet = await client.journey({ max_age: '0', prompt: 'none' })
  const refused = callbackOf(await first.browser.get(pathOf(quiet.url)))
  t.is(refused.searchParams.get('error'), 'login_required')
})
