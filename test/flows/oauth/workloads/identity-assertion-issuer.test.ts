/** The service as the identity provider: applications get identity assertions (ID-JAG) for other authorization servers. */
import test from 'ava'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { delegate, fixtureOf, ownToken, present } from '../../../support/agents/delegation.js'
import { type Answer, claimsOf, type Json } from '../../../support/api.js'
import { proofKey } from '../../../support/identity/proof.js'
import { type RelyingParty, relyingParty } from '../../../support/oauth/relying-party.js'
import { sharedApi } from '../../../support/service.js'

const POLICIES = '/api/v1/identity-assertion-policies'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token'
const REFRESH_TOKEN = 'urn:ietf:params:oauth:token-type:refresh_token'
const CHAT = 'https://auth.chat.example'
const DRIVE = 'https://auth.drive.example'

type Fields = Readonly<Record<string, string>>

const { api, running } = await sharedApi('hosts')
const here = await api.workspace()
const human = fixtureOf(here)
const application = {
  grantTypes: ['authorization_code', 'refresh_token', EXCHANGE],
  scopes: ['openid', 'email', 'offline_access'],
}
const party = await relyingParty(running, here, application)
const other = await relyingParty(running, here, application)
await policy({ resources: ['https://chat.example/api', 'https://chat.example/files'] })
await policy({ audience: DRIVE, acr: 'aal2' })
const signedIn = await party.signedIn(human, { scope: 'openid email offline_access' })
const idToken = String(signedIn.tokens.id_token)

function policy(more: Json = {}, of = party) {
  const draft = {
    client_id: of.clientId,
    audience: CHAT,
    target_client_id: 'assistant',
    scopes: ['chat:read', 'chat:write'],
    ...more,
  }
  return api.post(POLICIES, here.token, draft).gives(201)
}

const basicOf = (of: RelyingParty) => ({
  authorization: `Basic ${Buffer.from(`${of.clientId}:${of.secret}`).toString('base64')}`,
})
const exchange = (more: Fields = {}, of = party, headers = {}) =>
  api.form(
    '/oauth/token',
    {
      grant_type: EXCHANGE,
      requested_token_type: ID_JAG,
      audience: CHAT,
      subject_token: idToken,
      subject_token_type: ID_TOKEN,
      ...more,
    },
    { ...basicOf(of), ...headers },
  )
const describe = ({ body }: Answer) => JSON.stringify(body)
const keys = async () =>
  (await api.get('/.well-known/jwks.json').gives(200)).body as unknown as JSONWebKeySet

test.serial('an ID token gets an assertion as the policy says', async (t) => {
  const issued = await exchange()
  t.is(issued.status, 200, describe(issued))
  t.like(issued.body, {
    issued_token_type: ID_JAG,
    token_type: 'N_A',
    expires_in: 300,
    scope: 'chat:read chat:write',
  })
  t.is(issued.body['refresh_token'], undefined)
  t.is(issued.headers['cache-control'], 'no-store')
  const jag = String(issued.body['access_token'])
  const { payload } = await jwtVerify(jag, createLocalJWKSet(await keys()), {
    typ: 'oauth-id-jag+jwt',
    issuer: running.issuer,
    audience: CHAT,
    requiredClaims: ['jti', 'exp', 'iat', 'sub'],
  })
  t.like(payload, {
    client_id: 'assistant',
    tenant: here.tenantId,
    scope: 'chat:read chat:write',
    resource: ['https://chat.example/api', 'https://chat.example/files'],
    acr: 'aal1',
    email: human.email,
  })
  t.is(payload.sub, String(claimsOf(idToken)['sub']))
  t.is(Number(payload.exp) - Number(payload.iat), 300)
  const { rows } = await api.list(
    '/api/v1/audit-events?type=auth.identity_assertion.issued&limit=1',
    here.token,
  )
  t.like(rows[0], { client_id: party.clientId, data: { audience: CHAT, jti: payload.jti } })
})

test.serial('the request narrows the policy, and nothing widens it', async (t) => {
  const narrowed = await exchange({
    scope: 'chat:read users:manage',
    resource: 'https://chat.example/files',
  })
  t.is(narrowed.body['scope'], 'chat:read', describe(narrowed))
  t.is(claimsOf(narrowed.body['access_token'])['resource'], 'https://chat.example/files')
  const [head, payload, signature] = idToken.split('.') as [string, string, string]
  const forged = `${head}.${payload}.${signature.slice(0, -4)}AAAA`
  const theirs = await other.signedIn(human, { scope: 'openid' })
  const access = String(signedIn.tokens.access_token)
  for (const [error, more, of = party] of [
    ['invalid_scope', { scope: 'users:manage' }],
    ['invalid_target', { resource: 'https://other.example/' }],
    ['invalid_target', { audience: 'https://other.example' }],
    ['invalid_request', { audience: '' }],
    ['invalid_request', { subject_token: '' }],
    [
      'invalid_request',
      { subject_token: access, subject_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
    ],
    ['invalid_grant', { subject_token: access }],
    ['invalid_grant', { subject_token: forged }],
    ['invalid_grant', { subject_token: String(theirs.tokens.id_token) }],
    ['invalid_grant', { subject_token: 'x', subject_token_type: REFRESH_TOKEN }],
    ['invalid_authorization_details', { authorization_details: '[{"type":"payment"}]' }],
    ['insufficient_user_authentication', { audience: DRIVE }],
    ['unauthorized_client', { subject_token: String(theirs.tokens.id_token) }, other],
  ] as readonly (readonly [string, Fields, RelyingParty?])[]) {
    const refused = await exchange(more, of)
    t.is(refused.body['error'], error, `${JSON.stringify(more)} ${describe(refused)}`)
  }
  const open = await api.form('/oauth/token', {
    grant_type: EXCHANGE,
    requested_token_type: ID_JAG,
    audience: CHAT,
    client_id: party.clientId,
    subject_token: idToken,
    subject_token_type: ID_TOKEN,
  })
  t.is(open.body['error'], 'invalid_client', describe(open))
})

test.serial('a refresh token gets an assertion, and stays usable', async (t) => {
  const refresh_token = String(signedIn.tokens.refresh_token)
  const subject = { subject_token: refresh_token, subject_token_type: REFRESH_TOKEN }
  for (const _ of [1, 2]) {
    const issued = await exchange(subject)
    t.is(issued.status, 200, describe(issued))
  }
  t.is((await exchange(subject, other)).body['error'], 'invalid_grant')
  const form = { grant_type: 'refresh_token', refresh_token }
  t.is((await api.form('/oauth/token', form, basicOf(party))).status, 200)
  t.is((await exchange(subject)).body['error'], 'invalid_grant', 'it was rotated')
})

test.serial('a proof binds the assertion to its key', async (t) => {
  const key = await proofKey()
  const dpop = await key.proof('POST', `${running.issuer}/oauth/token`)
  const issued = await exchange({}, party, { dpop })
  t.deepEqual(claimsOf(issued.body['access_token'])['cnf'], { jkt: key.jkt }, describe(issued))
})

test.serial('another deployment accepts the assertion', async (t) => {
  const target = await sharedApi('plain')
  const there = await target.api.workspace()
  const client = {
    name: 'Assistant',
    client_type: 'confidential',
    grant_types: [JWT_BEARER],
    scopes: ['openid'],
  }
  const made = await target.api.post('/api/v1/applications', there.token, client).gives(201)
  const id = String(made.body['client_id'])
  const resource = `https://${crypto.randomUUID()}.chat.test/mcp`
  const scopes = [{ name: 'chat:read', description: 'Read', kind: 'read' }]
  const draft = { resource, name: 'Chat', scopes }
  await target.api.post('/api/v1/api-resources', there.token, draft).gives(201)
  const idp = {
    name: 'IdP',
    issuer: running.issuer,
    purposes: ['identity_assertion'],
    kind: 'static_jwks',
    jwks: await keys(),
    subject_mapping: 'jit',
    email_domains: [human.email.slice(human.email.indexOf('@') + 1)],
  }
  const trusted = await target.api.post('/api/v1/trusted-issuers', there.token, idp).gives(201)
  const audience = target.running.issuer
  await policy({ audience, target_client_id: id, resources: [resource], scopes: ['chat:read'] })
  const jag = String((await exchange({ audience })).body['access_token'])
  const path = `/api/v1/trusted-issuers/${String(trusted.body['id'])}/evaluate`
  const shown = await target.api.post(path, there.token, { token: jag }).gives(200)
  t.true(shown.body['accepted'], describe(shown))
  const secret = String(made.body['client_secret'])
  const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
  const form = { grant_type: JWT_BEARER, assertion: jag }
  const issued = await target.api.form('/oauth/token', form, { authorization })
  t.is(issued.status, 200, describe(issued))
  t.like(claimsOf(issued.body['access_token']), { aud: resource, idp: running.issuer })
})

test.serial('policies are of confidential applications, one for each audience', async (t) => {
  const draft = {
    client_id: party.clientId,
    audience: `https://${crypto.randomUUID()}.example`,
    target_client_id: 'assistant',
    scopes: ['chat:read'],
  }
  const open = await relyingParty(running, here, { clientType: 'public' })
  const away = await api.workspace()
  for (const [status, more, token = here.token] of [
    [400, { audience: 'http://auth.chat.example' }],
    [400, { audience: running.issuer }],
    [400, { scopes: [] }],
    [400, { scopes: ['two words'] }],
    [400, { resources: ['not a uri'] }],
    [409, { audience: CHAT }],
    [422, { client_id: open.clientId }],
    [422, { client_id: crypto.randomUUID() }],
    [422, {}, away.token],
  ] as readonly (readonly [number, Json, string?])[]) {
    const refused = await api.post(POLICIES, token, { ...draft, ...more })
    t.is(refused.status, status, `${JSON.stringify(more)} ${describe(refused)}`)
  }
  const made = await api.post(POLICIES, here.token, draft).gives(201)
  const path = `${POLICIES}/${String(made.body['id'])}`
  await api.get(path, away.token).gives(404)
  await api.patch(path, here.token, { scopes: ['chat:write'] }).gives(200)
  await api.delete(path, here.token).gives(204)
  const refused = await exchange({ audience: draft.audience })
  t.is(refused.body['error'], 'invalid_target', describe(refused))
})

test.serial('no assertion is for an audience of an application or API resource', async (t) => {
  const victim = await api.workspace()
  const [taken, later, own] = [0, 1, 2].map(() => `https://${crypto.randomUUID()}.example/api`)
  const resource = (of: string, token = victim.token) => {
    const scopes = [{ name: 'pay', description: 'Pay', kind: 'write' }]
    return api
      .post('/api/v1/api-resources', token, { resource: of, name: 'Pay', scopes })
      .gives(201)
  }
  await resource(taken!)
  await resource(own!, here.token)
  const draft = { client_id: party.clientId, target_client_id: 'x', scopes: ['pay'] }
  const spelled = taken!.replace('.example/', '.EXAMPLE:443/')
  for (const audience of [taken, spelled, own, `${running.issuer}/credential-issuers/x`]) {
    const refused = await api.post(POLICIES, here.token, { ...draft, audience })
    t.true([400, 409].includes(refused.status), `${String(audience)} ${describe(refused)}`)
  }
  const { body } = await policy({ audience: later, scopes: ['pay'] })
  t.is((await exchange({ audience: later! })).status, 200)
  await resource(later!)
  const refused = await exchange({ audience: later! })
  t.is(refused.body['error'], 'invalid_target', describe(refused))
  const changed = { audience: taken }
  await api.patch(`${POLICIES}/${String(body['id'])}`, here.token, changed).gives(409)
  t.is((await exchange({ audience: 'a\0b' })).body['error'], 'invalid_request')
})

test.serial('a withdrawn consent ends the ID token as a subject token', async (t) => {
  const visited = await relyingParty(running, here, application)
  await policy({}, visited)
  const { tokens, browser } = await visited.signedIn(human, { scope: 'openid' })
  const subject_token = String(tokens.id_token)
  t.is((await exchange({ subject_token }, visited)).status, 200)
  const account = await browser.get('/auth/account')
  await browser.submit(account, {}, `/auth/account/consents/${visited.clientId}/withdraw`)
  const refused = await exchange({ subject_token }, visited)
  t.is(refused.body['error'], 'invalid_grant', describe(refused))
  t.is((await exchange()).status, 200, 'another application')
})

test.serial(
  'a delegated token gets an assertion with its agents, if the tenant wants it',
  async (t) => {
    const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
    const person = await present(api, human)
    const lent = await delegate(api, here.token, person)
    const passOn = async (audience: string) => {
      const form = { grant_type: EXCHANGE, subject_token: lent.token, subject_token_type: ACCESS }
      const actor = { actor_token: here.token, actor_token_type: ACCESS }
      const answer = await api.form('/oauth/token', { ...form, ...actor, audience }).gives(200)
      return String(answer.body['access_token'])
    }
    const ofParty = { subject_token: await passOn(party.audience), subject_token_type: ACCESS }
    t.is((await exchange(ofParty)).body['error'], 'invalid_request', 'the default')
    const settings = { id_jag: { include_act: true } }
    await api.patch('/api/v1/tenant/settings', here.token, settings).gives(200)
    const issued = await exchange(ofParty)
    t.is(issued.status, 200, describe(issued))
    const { sub, act } = claimsOf(lent.token)
    t.like(claimsOf(issued.body['access_token']), { sub, act, client_id: 'assistant' })
    t.true(Number(issued.body['expires_in']) <= 300)
    const { rows } = await api.list(
      '/api/v1/audit-events?type=auth.identity_assertion.issued&limit=1',
      here.token,
    )
    t.like(rows[0], { subject: { sub }, delegation_id: lent.delegationId })
    t.is((rows[0]!['actors'] as readonly Json[])[0]!['sub'], here.agentId)
    const ofOther = { subject_token: await passOn(other.audience), subject_token_type: ACCESS }
    const own = String(signedIn.tokens.access_token)
    for (const more of [
      ofOther,
      { ...ofParty, subject_token: own },
      { ...ofParty, subject_token: here.token },
    ])
      t.is((await exchange(more)).body['error'], 'invalid_grant')
    const token = await ownToken(api, here, person)
    await api.post(`/api/v1/delegations/${lent.delegationId}/revoke`, token).gives(200)
    t.is((await exchange(ofParty)).body['error'], 'invalid_grant', 'the delegation has ended')
  },
)

test.serial('the end of the session or of the user ends the subject token', async (t) => {
  const { sub } = claimsOf(idToken) as { sub: string }
  const { rows } = await api.list('/api/v1/tenant-users', here.token)
  const user = rows.find((one) => one['sub'] === sub)!
  await api.post(`/api/v1/tenant-users/${String(user['id'])}/suspend`, here.token, {}).gives(200)
  const refused = await exchange()
  t.is(refused.body['error'], 'invalid_grant', describe(refused))
})
