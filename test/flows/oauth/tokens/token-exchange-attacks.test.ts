/** Limits of token exchange: keys, lifetimes and actors (RFC 8693, RFC 9449). */
import { setTimeout as sleep } from 'node:timers/promises'
import anyTest, { type ExecutionContext, type TestFn } from 'ava'
import { SignJWT } from 'jose'
import type { AgentKey } from '../../../../runtime/clients/client/agent.js'
import { type Answer, type Api, apiOf, claimsOf, type Workspace } from '../../../support/api.js'
import {
  fixtureOf,
  delegate,
  ownToken,
  type Person,
  present,
} from '../../../support/agents/delegation.js'
import { type ProofKey, proofKey } from '../../../support/identity/proof.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
/** In the profile. */
const LENT_SECS = 120

type Fields = Readonly<Record<string, string>>
type Scene = {
  readonly api: Api
  readonly here: Workspace
  readonly ada: Person
  readonly party: RelyingParty
}
type Helper = { readonly key: AgentKey; readonly agentId: string; readonly token: string }
const test = anyTest as TestFn<Scene>

test.before(async (t) => {
  const api = apiOf(await sharedService('brief'))
  const here = await api.workspace()
  const ada = await present(api, fixtureOf(here))
  const party = await relyingParty(api.at, here, {
    scopes: ['openid', 'vault:list', 'vault:read'],
    grantTypes: ['authorization_code', EXCHANGE],
  })
  t.context = { api, here, ada, party }
})

const basicOf = ({ clientId, secret }: RelyingParty) =>
  `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`
const proofOf = ({ api }: Scene, key: ProofKey) => key.proof('POST', `${api.at.issuer}/oauth/token`)

/** An agent of the tenant. Its token is bound to the key if there is one. */
async function helper({ api, here: { tenantId } }: Scene, bound?: ProofKey): Promise<Helper> {
  const { key, agentId } = await api.register(tenantId)
  const selector = { agent_id: agentId, tenant_id: tenantId }
  const { body } = await api.post('/api/v1/agents/auth/challenge', undefined, selector)
  const json = {
    challenge_id: body['challenge_id'],
    signature: key.signChallenge(String(body['payload'])),
  }
  const path = '/api/v1/agents/auth/verify'
  const headers =
    bound === undefined ? {} : { dpop: await bound.proof('POST', `${api.at.issuer}${path}`) }
  const verified = await api.post(path, undefined, json, headers)
  return { key, agentId, token: String(verified.body['access_token']) }
}

const exchange = ({ api }: Scene, subject: string, fields: Fields, headers = {}) =>
  api.form(
    '/oauth/token',
    { grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS, ...fields },
    headers,
  )
const acting = ({ token }: Pick<Helper, 'token'>): Fields => ({
  actor_token: token,
  actor_token_type: ACCESS,
})

function isRefused(
  t: ExecutionContext,
  answer: Answer,
  status: number,
  error: string,
  why: string,
) {
  t.is(answer.status, status, `${why}: ${JSON.stringify(answer.body)}`)
  t.is(answer.body['error'], error, why)
}

/** Whether the token is bound to the key, by its claims. */
const keyIn = ({ body }: Answer) => claimsOf(body['access_token'])['cnf']

/** A user token for the application, bound to the key. */
async function boundToken(scene: Scene, key: ProofKey): Promise<string> {
  const { api, ada, party } = scene
  const { url, verifier } = await party.journey({ scope: 'openid vault:list' })
  const callback = callbackOf(await authorized(ada.browser, ada.human, url))
  const fields = {
    grant_type: 'authorization_code',
    code: callback.searchParams.get('code')!,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  }
  const headers = { authorization: basicOf(party), dpop: await proofOf(scene, key) }
  return String((await api.form('/oauth/token', fields, headers)).body['access_token'])
}

test('a token that is bound to a key is exchanged only with its key, and stays bound', async (t) => {
  const scene = t.context
  const [own, other] = [await proofKey(), await proofKey()]
  const token = await boundToken(scene, own)
  const authorization = basicOf(scene.party)
  const ask = (headers: Fields) => exchange(scene, token, {}, { authorization, ...headers })
  isRefused(t, await ask({}), 401, 'invalid_dpop_proof', 'no proof')
  const stolen = await ask({ dpop: await proofOf(scene, other) })
  isRefused(t, stolen, 401, 'invalid_dpop_proof', 'a proof by another key')
  const given = await ask({ dpop: await proofOf(scene, own) }).gives(200)
  t.is(given.body['token_type'], 'DPoP')
  t.deepEqual(keyIn(given), { jkt: own.jkt })
})

test('a delegated token of an agent with a key is downscoped and passed on only with keys', async (t) => {
  const scene = t.context
  const [first, second, other] = [await proofKey(), await proofKey(), await proofKey()]
  const [a, b] = [await helper(scene, first), await helper(scene, second)]
  // Both requests have a proof, so that the delegated token is bound too.
  const asking = async (path: string) => ({
    authorization: `DPoP ${a.token}`,
    dpop: await first.proof('POST', `${scene.api.at.issuer}${path}`, {
      ath: Buffer.from(
        await crypto.subtle.digest('SHA-256', new TextEncoder().encode(a.token)),
      ).toString('base64url'),
    }),
  })
  const device = '/api/v1/agents/delegations/device'
  const scope = { scope: 'openid vault:list' }
  const asked = await scene.api.post(device, undefined, scope, await asking(device))
  const page = await scene.ada.browser.get(`/device/delegation/${String(asked.body['user_code'])}`)
  await scene.ada.browser.submit(page, {}, /approve$/)
  const code = { device_code: asked.body['device_code'] }
  const polled = await scene.api.post(
    `${device}/token`,
    undefined,
    code,
    await asking(`${device}/token`),
  )
  t.deepEqual(keyIn(polled), { jkt: first.jkt })
  const delegated = String(polled.body['access_token'])

  const name = { may_act: b.agentId }
  const narrow = async (fields: Fields, by?: ProofKey) => {
    const headers = by === undefined ? {} : { dpop: await proofOf(scene, by) }
    return exchange(scene, delegated, { ...acting(a), ...fields }, headers)
  }
  isRefused(t, await narrow({}), 401, 'invalid_dpop_proof', 'no proof of the agent')
  isRefused(t, await narrow(name, other), 401, 'invalid_dpop_proof', 'of another key')
  const named = await narrow(name, first)
  t.deepEqual(keyIn(named), { jkt: first.jkt })

  const handed = String(named.body['access_token'])
  const take = async (by?: ProofKey) => {
    const headers = by === undefined ? {} : { dpop: await proofOf(scene, by) }
    return exchange(scene, handed, acting(b), headers)
  }
  isRefused(t, await take(), 401, 'invalid_dpop_proof', 'no proof of the next agent')
  isRefused(t, await take(first), 401, 'invalid_dpop_proof', 'by the key of the one before')
  t.deepEqual(keyIn(await take(second)), { jkt: second.jkt })
})

test('an exchanged token does not outlive its subject token', async (t) => {
  const scene = t.context
  const a = await helper(scene)
  const delegated = await delegate(scene.api, a.token, scene.ada)
  const mine = await ownToken(scene.api, scene.here, scene.ada, 'openid vault:list vault:read')
  // A new lifetime would be longer than the remaining one.
  await sleep(2100)
  const narrowed = await exchange(scene, delegated.token, acting(a))
  t.is(claimsOf(narrowed.body['access_token'])['exp'], claimsOf(delegated.token)['exp'])
  t.true(Number(narrowed.body['expires_in']) <= LENT_SECS - 2)
  const again = await exchange(scene, String(narrowed.body['access_token']), acting(a))
  t.is(claimsOf(again.body['access_token'])['exp'], claimsOf(delegated.token)['exp'])

  // A user token lives longer than the delegation: the delegation limits it.
  const turned = await exchange(scene, mine, acting(a)).gives(200)
  const { exp, act } = claimsOf(turned.body['access_token'])
  t.like(act, { sub: a.agentId })
  t.true(Number(exp) < Number(claimsOf(mine)['exp']) - LENT_SECS)
  t.true(Number(turned.body['expires_in']) <= LENT_SECS - 2, JSON.stringify(turned.body))
})

test('a downscoped user token keeps its expiry', async (t) => {
  const scene = t.context
  const key = await proofKey()
  const token = await boundToken(scene, key)
  await sleep(2100)
  const headers = { authorization: basicOf(scene.party), dpop: await proofOf(scene, key) }
  const narrowed = await exchange(scene, token, { scope: 'openid' }, headers)
  t.is(claimsOf(narrowed.body['access_token'])['exp'], claimsOf(token)['exp'])
})

test('an agent with an assertion takes over with its own token, not without one and not with another agent’s', async (t) => {
  const scene = t.context
  const { api, ada } = scene
  const [a, b, c] = [await helper(scene), await helper(scene), await helper(scene)]
  const delegated = await delegate(api, a.token, ada)
  const named = await exchange(scene, delegated.token, { ...acting(a), may_act: b.agentId })
  const handed = String(named.body['access_token'])
  const signed = async ({ key, agentId }: Helper): Promise<Fields> => ({
    client_assertion_type: JWT_BEARER,
    client_assertion: await new SignJWT({ jti: crypto.randomUUID() })
      .setProtectedHeader({ alg: 'EdDSA' })
      .setIssuer(agentId)
      .setSubject(agentId)
      .setAudience(api.at.issuer)
      .setIssuedAt()
      .setExpirationTime('60s')
      .sign(key.privateKey),
  })
  const none = await exchange(scene, handed, await signed(b))
  isRefused(t, none, 400, 'invalid_request', 'without an actor token')
  const others = await exchange(scene, handed, { ...(await signed(c)), ...acting(b) })
  isRefused(t, others, 400, 'invalid_grant', 'with the token of the named agent')
  const misnamed = await exchange(scene, handed, {
    ...(await signed(b)),
    ...acting(b),
    client_id: c.agentId,
  })
  isRefused(t, misnamed, 401, 'invalid_client', 'under another name than the assertion has')
  const taken = await exchange(scene, handed, { ...(await signed(b)), ...acting(b) }).gives(200)
  t.like(claimsOf(taken.body['access_token'])['act'], { sub: b.agentId, act: { sub: a.agentId } })
})

test('an application cannot exchange a service token of another application for its audience', async (t) => {
  const scene = t.context
  const { api, here, party } = scene
  const scopes = ['vault:list']
  const machine = await relyingParty(api.at, here, { scopes, grantTypes: ['client_credentials'] })
  const fields = { grant_type: 'client_credentials', audience: party.audience }
  const given = await api.form('/oauth/token', fields, { authorization: basicOf(machine) })
  const token = String(given.body['access_token'])
  t.true([claimsOf(token)['aud']].flat().includes(party.audience))
  const taken = await exchange(scene, token, {}, { authorization: basicOf(party) })
  isRefused(t, taken, 403, 'consent_required', 'it is not the application’s')
})
