/** Tokens are downscoped and passed from agent to agent (RFC 8693). */
import test from 'ava'
import * as oidc from 'openid-client'
import { type Answer, type Api, apiOf, claimsOf, type Json } from '../../../support/api.js'
import { fixtureOf, delegate, ownToken, present } from '../../../support/agents/delegation.js'
import {
  authorized,
  callbackOf,
  type RelyingParty,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import { sharedService } from '../../../support/service.js'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
const SCOPES = ['openid', 'profile', 'email', 'vault:list', 'vault:read']

type Helper = { readonly agentId: string; readonly token: string }

const api = apiOf(await sharedService('plain'))
const [here, there] = [await api.workspace('Here'), await api.workspace('There')]
const ada = await present(api, fixtureOf(here))
const helper = async (): Promise<Helper> => {
  const { key, agentId } = await api.register(here.tenantId)
  const { body } = await api.login(key, { agent_id: agentId, tenant_id: here.tenantId })
  return { agentId, token: String(body['access_token']) }
}
const grantTypes = ['authorization_code', 'refresh_token', EXCHANGE]
const party = await relyingParty(api.at, here, { scopes: SCOPES, grantTypes })
const other = await relyingParty(api.at, here, { scopes: ['openid', 'vault:list'], grantTypes })
const a = await helper()
const b = await helper()

function exchange(
  api: Api,
  subject: string,
  fields: Record<string, string> = {},
  by?: RelyingParty | Helper,
): Promise<Answer> {
  const acting =
    by !== undefined && 'token' in by ? { actor_token: by.token, actor_token_type: ACCESS } : {}
  const basic =
    by !== undefined && 'secret' in by
      ? {
          authorization: `Basic ${Buffer.from(`${by.clientId}:${by.secret}`).toString('base64')}`,
        }
      : undefined
  return api.form(
    '/oauth/token',
    {
      grant_type: EXCHANGE,
      subject_token: subject,
      subject_token_type: ACCESS,
      ...acting,
      ...fields,
    },
    basic,
  )
}

const claimsIn = ({ body }: Answer): Json => claimsOf(body['access_token'])

/** A user token for an application. */
async function plain(party: RelyingParty, parameters: Record<string, string> = {}) {
  const begun = await party.journey({ scope: SCOPES.join(' '), ...parameters })
  const callback = callbackOf(await authorized(ada.browser, ada.human, begun.url))
  const tokens = await oidc.authorizationCodeGrant(party.config, callback, begun.checks)
  return tokens.access_token
}

test('an agent downscopes a delegated token: fewer scopes, never longer, the same actors', async (t) => {
  const delegated = await delegate(api, a.token, ada)
  const answer = await exchange(api, delegated.token, { scope: 'vault:list' }, a)
  t.is(answer.status, 200, JSON.stringify(answer.body))
  t.like(answer.body, { token_type: 'Bearer', scope: 'vault:list', issued_token_type: ACCESS })
  t.is(answer.body['refresh_token'], undefined)
  t.is(answer.headers['cache-control'], 'no-store')
  const [before, after] = [claimsOf(delegated.token), claimsIn(answer)]
  for (const name of ['sub', 'act', 'delegation_id', 'acr', 'amr', 'auth_time', 'sid', 'aud']) {
    t.deepEqual(after[name], before[name], name)
  }
  t.true(Number(after['exp']) <= Number(before['exp']))
  const token = String(answer.body['access_token'])
  t.is((await api.get('/api/v1/vault/credentials', token)).status, 200)
  const wider = await exchange(api, token, { scope: 'vault:list vault:read' }, a)
  t.is(wider.body['error'], 'invalid_scope')
  t.is((await exchange(api, token, {}, a)).body['scope'], 'vault:list')
})

test('an exchanged token is revoked with its delegation, and a revoked one cannot be exchanged', async (t) => {
  const delegated = await delegate(api, a.token, ada)
  const narrow = String(
    (await exchange(api, delegated.token, { scope: 'vault:list' }, a)).body['access_token'],
  )
  const own = await ownToken(api, here, ada)
  t.is((await api.post(`/api/v1/delegations/${delegated.delegationId}/revoke`, own)).status, 200)
  t.is((await api.get('/api/v1/vault/credentials', narrow)).status, 401)
  for (const token of [delegated.token, narrow]) {
    const refused = await exchange(api, token, {}, a)
    t.like(refused, { status: 400, body: { error: 'invalid_grant' } })
  }
})

test('an agent passes a token on to the agent that it named, and to no other', async (t) => {
  const delegated = await delegate(api, a.token, ada)
  t.is((await exchange(api, delegated.token, {}, b)).body['error'], 'consent_required')
  const named = await exchange(api, delegated.token, { may_act: b.agentId }, a)
  t.is(named.status, 200, JSON.stringify(named.body))
  t.deepEqual(claimsIn(named)['may_act'], { sub: b.agentId })
  const token = String(named.body['access_token'])
  const byOther = await exchange(api, token, {}, { agentId: here.agentId, token: here.token })
  t.like(byOther, { status: 403, body: { error: 'consent_required' } })
  const taken = await exchange(api, token, {}, b)
  t.is(taken.status, 200, JSON.stringify(taken.body))
  t.like(claimsIn(taken), {
    act: {
      sub: b.agentId,
      subject_type: 'agent',
      act: { sub: a.agentId, subject_type: 'agent' },
    },
    delegation_id: delegated.delegationId,
    client_id: b.agentId,
  })
  t.is(claimsIn(taken)['may_act'], undefined)
  const second = String(taken.body['access_token'])
  t.is((await api.get('/api/v1/vault/credentials', second)).status, 200)
  // A stays in the chain: after its suspension the chain is invalid.
  t.is((await exchange(api, second, {}, a)).body['error'], 'consent_required')

  // The chain is limited to five actors.
  let held = delegated.token
  const agents = [a, b]
  for (let depth = 1; depth < 5; depth += 1) {
    const [holder, next] = [agents[(depth - 1) % 2]!, agents[depth % 2]!]
    const step = await exchange(api, held, { may_act: next.agentId }, holder)
    const moved = await exchange(api, String(step.body['access_token']), {}, next)
    t.is(moved.status, 200, `${depth}: ${JSON.stringify(moved.body)}`)
    held = String(moved.body['access_token'])
  }
  const last = await exchange(api, held, { may_act: b.agentId }, a)
  const beyond = await exchange(api, String(last.body['access_token']), {}, b)
  t.like(beyond, { status: 400, body: { error: 'invalid_request' } })
})

test('suspending an agent in the middle of a chain invalidates the chain', async (t) => {
  const { key, agentId } = await api.register(here.tenantId)
  const login = await api.login(key, { agent_id: agentId, tenant_id: here.tenantId })
  const middle = { agentId, token: String(login.body['access_token']) }
  const delegated = await delegate(api, middle.token, ada)
  const named = await exchange(api, delegated.token, { may_act: b.agentId }, middle)
  const taken = await exchange(api, String(named.body['access_token']), {}, b)
  const token = String(taken.body['access_token'])
  t.is((await api.get('/api/v1/vault/credentials', token)).status, 200)
  t.is((await api.post(`/api/v1/agents/${agentId}/suspend`, here.token)).status, 200)
  t.is((await api.get('/api/v1/vault/credentials', token)).status, 401)
})

test('the application of a user token downscopes it, one of its audience too, others cannot', async (t) => {
  const token = await plain(party)
  const narrow = await exchange(api, token, { scope: 'openid' }, party)
  t.is(narrow.status, 200, JSON.stringify(narrow.body))
  t.is(narrow.body['scope'], 'openid')
  t.is(claimsIn(narrow)['act'], undefined)
  t.is(claimsIn(narrow)['sid'], claimsOf(token)['sid'])
  const foreign = await exchange(api, token, { scope: 'openid' }, other)
  t.like(foreign, { status: 403, body: { error: 'consent_required' } })
  const meant = await plain(party, { audience: other.audience })
  const theirs = await exchange(api, meant, { audience: other.audience }, other)
  t.is(theirs.status, 200, JSON.stringify(theirs.body))
  // Never more than the application's own scopes.
  t.is(theirs.body['scope'], 'openid vault:list')
  t.is(claimsIn(theirs)['client_id'], other.clientId)
  t.is((await exchange(api, meant, { scope: 'vault:read' }, other)).body['error'], 'invalid_scope')
})

test('an agent exchanges a user token for a delegated one only with the user’s approval', async (t) => {
  const token = await plain(party)
  t.is((await exchange(api, token, {}, b)).body['error'], 'consent_required')
  const delegated = await delegate(api, a.token, ada, { scope: 'openid vault:list' })
  const acting = await exchange(api, token, { scope: 'vault:list' }, a)
  t.is(acting.status, 200, JSON.stringify(acting.body))
  t.like(claimsIn(acting), {
    sub: claimsOf(token)['sub'],
    act: { sub: a.agentId, subject_type: 'agent' },
  })
  t.truthy(claimsIn(acting)['delegation_id'])
  t.is(
    (await exchange(api, token, { scope: 'vault:list email' }, a)).body['error'],
    'invalid_scope',
  )
  // The application may send the agent's token.
  const actor = { actor_token: a.token, actor_token_type: ACCESS, scope: 'vault:list' }
  t.is((await exchange(api, token, actor, party)).status, 200)
  t.is((await exchange(api, token, actor, other)).body['error'], 'consent_required')
  void delegated
})

test('applications cannot exchange delegated tokens, and clients without the grant get unauthorized_client', async (t) => {
  const delegated = await delegate(api, a.token, ada)
  t.is((await exchange(api, delegated.token, {}, party)).body['error'], 'consent_required')
  const without = await relyingParty(api.at, here, {})
  const refused = await exchange(api, delegated.token, {}, without)
  t.like(refused, { status: 403, body: { error: 'unauthorized_client' } })
  const bare = await exchange(api, delegated.token, { client_id: a.agentId })
  t.like(bare, { status: 403, body: { error: 'unauthorized_client' } })
  const anonymous = await exchange(api, delegated.token)
  t.like(anonymous, { status: 401, body: { error: 'invalid_client' } })
})

test('tokens of another tenant are refused', async (t) => {
  const foreign = { agentId: there.agentId, token: there.token }
  const delegated = await delegate(api, a.token, ada)
  t.is((await exchange(api, delegated.token, {}, foreign)).body['error'], 'invalid_grant')
  t.is((await exchange(api, there.token, {}, party)).body['error'], 'invalid_grant')
})

for (const [title, fields, error] of [
  ['no subject token', { subject_token: '' }, 'invalid_request'],
  ['no subject token type', { subject_token_type: '' }, 'invalid_request'],
  ['an unknown subject token type', { subject_token_type: 'urn:x' }, 'invalid_request'],
  ['garbage for a token', { subject_token: 'garbage' }, 'invalid_grant'],
  ['an actor token without its type', { actor_token_type: '' }, 'invalid_request'],
  ['garbage for an actor token', { actor_token: 'a.b.c' }, 'invalid_grant'],
  ['an unknown requested type', { requested_token_type: 'urn:x' }, 'invalid_request'],
  ['an unknown scope', { scope: 'fly' }, 'invalid_scope'],
  ['a malformed scope', { scope: 'a\u0001b' }, 'invalid_scope'],
  ['an unknown audience', { audience: 'https://elsewhere.example' }, 'invalid_target'],
  ['a resource that is not a URI', { resource: 'nonsense' }, 'invalid_target'],
  ['a vault resource', { resource: 'urn:svc:vault:credential:x' }, 'invalid_target'],
  [
    'may_act of an unknown agent',
    { may_act: '0199c5a0-8c1e-7b60-9d35-1f2a3b4c5d6e' },
    'invalid_request',
  ],
  ['may_act of the agent itself', { may_act: 'self' }, 'invalid_request'],
  ['may_act that is not an id', { may_act: "' or 1=1" }, 'invalid_request'],
] as const) {
  test(`${title}: 400 ${error}`, async (t) => {
    const delegated = await delegate(api, a.token, ada)
    const sent: Record<string, string> = { ...fields }
    if (sent['may_act'] === 'self') sent['may_act'] = a.agentId
    const answer = await exchange(api, delegated.token, sent, a)
    t.is(answer.status, 400, JSON.stringify(answer.body))
    t.is(answer.body['error'], error)
  })
}

test('a delegated token is not an actor token, and an agent’s own token can be downscoped with it', async (t) => {
  const delegated = await delegate(api, a.token, ada)
  const as = { agentId: a.agentId, token: delegated.token }
  t.is((await exchange(api, delegated.token, {}, as)).body['error'], 'invalid_grant')
  const own = await exchange(api, a.token, { scope: 'vault:list' }, a)
  t.is(own.status, 200, JSON.stringify(own.body))
  t.like(claimsIn(own), { subject_type: 'agent', sub: a.agentId, scope: 'vault:list' })
  t.is(claimsIn(own)['act'], undefined)
})

test('introspection returns the actor chain and the delegation', async (t) => {
  const delegated = await delegate(api, a.token, ada)
  const basic = Buffer.from(
    `${String(here.body['client_id'])}:${String(here.body['client_secret'])}`,
  ).toString('base64')
  const { body } = await api.form(
    '/oauth/introspect',
    { token: delegated.token },
    { authorization: `Basic ${basic}` },
  )
  t.like(body, {
    active: true,
    act: { sub: a.agentId, subject_type: 'agent' },
    delegation_id: delegated.delegationId,
    subject_type: 'human',
  })
})

test('discovery and capabilities list the grant', async (t) => {
  const { body } = await api.get('/.well-known/openid-configuration')
  t.true((body['grant_types_supported'] as string[]).includes(EXCHANGE))
  const capabilities = (await api.get('/api/v1/capabilities')).body['capabilities'] as string[]
  t.true(capabilities.includes('oauth.token_exchange'))
  t.true(capabilities.includes('agents.device_delegation'))
})

test('an actor token for another API is refused, since that API may have received it', async (t) => {
  const narrow = { scope: 'openid', audience: party.audience }
  const own = await exchange(api, a.token, narrow, a)
  t.is(claimsIn(own)['aud'], party.audience)
  const seen = { ...a, token: String(own.body['access_token']) }
  const delegated = await delegate(api, a.token, ada, narrow)
  t.is(claimsOf(delegated.token)['aud'], party.audience)
  for (const subject of [delegated.token, seen.token]) {
    const refused = await exchange(api, subject, { audience: api.at.issuer }, seen)
    t.like(refused, { status: 400, body: { error: 'invalid_grant' } })
  }
  t.is((await exchange(api, delegated.token, { audience: api.at.issuer }, a)).status, 200)
})

test('an exchange may name several audiences, each of which must be allowed', async (t) => {
  const { token } = await delegate(api, a.token, ada, { scope: 'openid' })
  const ask = (audiences: readonly string[], more: readonly (readonly [string, string])[] = []) =>
    api.form('/oauth/token', [
      ['grant_type', EXCHANGE],
      ['subject_token', token],
      ['subject_token_type', ACCESS],
      ['actor_token', a.token],
      ['actor_token_type', ACCESS],
      ...audiences.map((audience) => ['audience', audience] as const),
      ...more,
    ])
  const both = [party.audience, other.audience]
  const answer = await ask([...both, party.audience]).gives(200)
  t.deepEqual((claimsIn(answer)['aud'] as string[]).toSorted(), both.toSorted())
  const unknown = await ask([party.audience, 'https://elsewhere.example'])
  t.is(unknown.body['error'], 'invalid_target')
  for (const more of [[['scope', 'openid']], [['subject_token', token]]] as const)
    t.is((await ask(both, [...more, ...more])).body['error'], 'invalid_request')
  const many = Array.from({ length: 11 }, (_, nth) => `https://${nth}.example`)
  t.is((await ask(many)).body['error'], 'invalid_target')
  const service = [
    ['grant_type', 'client_credentials'],
    ['audience', both[0]!],
    ['audience', both[1]!],
  ] as const
  t.is((await api.form('/oauth/token', service)).body['error'], 'invalid_request')
})

test('a downscoped token gets no individually requested claims', async (t) => {
  const claims = JSON.stringify({ userinfo: { name: null } })
  const token = await plain(party, { scope: 'openid email', claims })
  const told = async (one: unknown) => {
    const { body } = await api.get('/userinfo', String(one))
    return Object.keys(body).filter((name) => ['name', 'email'].includes(name))
  }
  t.deepEqual(await told(token), ['name', 'email'])
  const same = await exchange(api, token, {}, party)
  t.deepEqual(await told(same.body['access_token']), ['name', 'email'])
  const less = await exchange(api, token, { scope: 'openid' }, party)
  t.deepEqual(await told(less.body['access_token']), [])
})
