/** Limits of a delegation: time, and the key of the agent. */
import { createHash, randomUUID } from 'node:crypto'
import test from 'ava'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { type Api, apiOf, claimsOf, type Json } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import {
  ask,
  DEVICE,
  decide,
  fixtureOf,
  delegate,
  ownToken,
  poll,
  present,
} from '../../support/agents/delegation.js'
import { sql } from '../../support/storage/sql.js'
import { sharedService } from '../../support/service.js'

const VAULT = '/api/v1/vault/credentials'

const api = apiOf(await sharedService('brief'))
const workspace = await api.workspace()
const person = await present(api, fixtureOf(workspace))

const expire = (
  api: Api,
  table: 'delegation_requests' | 'delegations',
  column: string,
  is: string,
) =>
  sql(
    api.at.db.database,
    `update ${table} set expires_at = now() - interval '1 second' where ${column} = $1`,
    [is],
  )

test.serial('an undecided request expires', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  const path = `/device/delegation/${asked.userCode}`
  const page = await person.browser.get(path)
  await expire(api, 'delegation_requests', 'user_code', asked.userCode)
  t.is((await person.browser.get(path)).status, 410)
  for (const answer of ['approve', 'deny']) {
    t.is((await person.browser.submit(page, {}, `${path}/${answer}`)).status, 410)
  }
  const { status, body } = await poll(api, workspace.token, asked)
  t.is(status, 400)
  t.is(body['error'], 'expired_token')
})

test.serial('a decision in the last moment counts', async (t) => {
  const later = (userCode: string, seconds: number) =>
    sql(api.at)`
      update delegation_requests set expires_at = expires_at + make_interval(secs => ${seconds})
      where user_code = ${userCode}`
  for (const [answer, status, error] of [
    ['approve', 200, undefined],
    ['deny', 400, 'access_denied'],
  ] as const) {
    const asked = await ask(api, workspace.token, { scope: 'openid' })
    await later(asked.userCode, 20 - Number(asked.body['expires_in']))
    await decide(person, asked, answer)
    // Simulates 25 seconds.
    await later(asked.userCode, -25)
    const polled = await poll(api, workspace.token, asked)
    t.like(polled, { status: status, body: { error } })
  }
})

test.serial('an approval that is not polled in time gives no token', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  await decide(person, asked)
  await expire(api, 'delegation_requests', 'user_code', asked.userCode)
  t.is((await poll(api, workspace.token, asked)).body['error'], 'expired_token')
})

test.serial('no token outlives the delegation; a short one gives short tokens', async (t) => {
  const delegated = await delegate(api, workspace.token, person)
  t.true(Number(delegated.answer.body['expires_in']) <= 120)
  t.is(delegated.answer.body['refresh_token'], undefined)
  await expire(api, 'delegations', 'id::text', delegated.delegationId)
  const { body } = await api.get(`/api/v1/delegations/${delegated.delegationId}`, workspace.token)
  t.is(body['status'], 'expired')
  const grant = { grantee_type: 'delegation', grantee_id: delegated.delegationId }
  const credential = await api.post(VAULT, workspace.token, {
    provider: 'x',
    credential_type: 'api_key',
    label: 'x',
    auth_scheme: 'bearer',
    allowed_hosts: ['api.example.com'],
    secret: 'a long enough secret',
  })
  const made = await api.post(
    `${VAULT}/${String(credential.body['id'])}/grants`,
    workspace.token,
    grant,
  )
  t.is(made.status, 400)
})

test.serial('an approval needs a sign-in of the last minutes, a denial does not', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  const path = `/device/delegation/${asked.userCode}`
  const page = await person.browser.get(path)
  const age = (text: string) =>
    sql(
      api.at.db.database,
      `update browser_sessions set auth_time = auth_time ${text} where account_id in
         (select id from accounts where email = $1) and ended_at is null`,
      [person.human.email],
    )
  await age(`- interval '301 seconds'`)
  const stale = await person.browser.submit(page, {}, `${path}/approve`).gives(303)
  t.regex(stale.location ?? '', /^\/auth\/login\?flow=/)
  t.is((await poll(api, workspace.token, asked)).body['error'], 'authorization_pending')
  const denied = await person.browser.submit(page, {}, `${path}/deny`)
  t.is(denied.location, path)
  t.is((await poll(api, workspace.token, asked)).body['error'], 'access_denied')
  await age(`+ interval '301 seconds'`)
})

test.serial('a signed-out browser decides nothing', async (t) => {
  const asked = await ask(api, workspace.token, { scope: 'openid' })
  const stranger = openBrowser(api.at)
  await stranger.get('/auth/login')
  const page = await person.browser.get(`/device/delegation/${asked.userCode}`)
  for (const answer of ['approve', 'deny']) {
    const form = page.forms.find(({ action }) => action.endsWith(answer))!
    t.is((await stranger.post(form.action, form.fields)).status, 403)
  }
  t.is((await poll(api, workspace.token, asked)).body['error'], 'authorization_pending')
})

async function dpopKey() {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const jwk = await exportJWK(publicKey)
  return (httpMethod: string, url: string, token?: string) =>
    new SignJWT({
      htm: httpMethod,
      htu: url,
      ...(token === undefined
        ? {}
        : { ath: createHash('sha256').update(token).digest('base64url') }),
    })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
      .setIssuedAt()
      .setJti(randomUUID())
      .sign(privateKey)
}

test.serial(
  'delegated and exchanged tokens of a DPoP-bound agent are bound to the same key',
  async (t) => {
    const { baseUrl } = api.at
    const proof = await dpopKey()
    const { key, agentId } = await api.register(workspace.tenantId)
    const selector = { agent_id: agentId, tenant_id: workspace.tenantId }
    const challenge = await api.post('/api/v1/agents/auth/challenge', undefined, selector)
    const verify = '/api/v1/agents/auth/verify'
    const login = await api.post(
      verify,
      undefined,
      {
        challenge_id: challenge.body['challenge_id'],
        signature: key.signChallenge(String(challenge.body['payload'])),
      },
      { dpop: await proof('POST', baseUrl + verify) },
    )
    const direct = String(login.body['access_token'])
    const send = async (method: 'GET' | 'POST', path: string, token: string, json?: Json) =>
      api.call(method, path, {
        headers: {
          authorization: `DPoP ${token}`,
          dpop: await proof(method, baseUrl + path, token),
        },
        ...(json === undefined ? {} : { json }),
      })
    const scope = 'openid vault:list offline_access'
    const asked = await send('POST', DEVICE, direct, { scope })
    t.is(asked.status, 200, JSON.stringify(asked.body))
    const { device_code: deviceCode, user_code: userCode } = asked.body
    await decide(person, { userCode: String(userCode) })
    const granted = await send('POST', `${DEVICE}/token`, direct, { device_code: deviceCode })
    t.is(granted.body['token_type'], 'DPoP', JSON.stringify(granted.body))
    const token = String(granted.body['access_token'])
    t.deepEqual(claimsOf(token)['cnf'], claimsOf(direct)['cnf'])
    t.is((await send('GET', VAULT, token)).status, 200)
    t.is((await api.get(VAULT, token)).status, 401)

    const urn = 'urn:ietf:params:oauth:token-type:access_token'
    const fields = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: urn,
      actor_token: direct,
      actor_token_type: urn,
      scope: 'vault:list',
    }
    await api.form('/oauth/token', fields).gives(401, 'invalid_dpop_proof')
    const foreign = await (await dpopKey())('POST', `${baseUrl}/oauth/token`)
    t.is((await api.form('/oauth/token', fields, { dpop: foreign })).status, 401)
    const own = await proof('POST', `${baseUrl}/oauth/token`)
    const exchanged = await api.form('/oauth/token', fields, { dpop: own })
    t.is(exchanged.body['token_type'], 'DPoP', JSON.stringify(exchanged.body))
    t.is((await send('GET', VAULT, String(exchanged.body['access_token']))).status, 200)
    const refresh = {
      grant_type: 'refresh_token',
      client_id: agentId,
      refresh_token: String(granted.body['refresh_token']),
    }
    t.is((await api.form('/oauth/token', refresh)).status, 401)
    const again = await proof('POST', `${baseUrl}/oauth/token`)
    t.is((await api.form('/oauth/token', refresh, { dpop: again })).status, 200)
  },
)

test.serial('offline_access is granted if held, and no audience is added', async (t) => {
  const audience = String(workspace.body['audience'] ?? '')
  const own = await ownToken(api, workspace, person)
  t.truthy(own)
  const applications = await api.list('/api/v1/applications', workspace.token)
  const target = audience === '' ? String(applications.rows[0]!['audience']) : audience
  const delegated = await delegate(api, workspace.token, person, {
    scope: 'openid offline_access vault:list',
    audience: target,
  })
  t.deepEqual(claimsOf(delegated.token)['aud'], [target, api.at.baseUrl])
  const identity = await delegate(api, workspace.token, person, {
    scope: 'openid',
    audience: target,
  })
  t.is(claimsOf(identity.token)['aud'], target)
  t.is((await api.get('/api/v1/agents/me', identity.token)).status, 401)
})
