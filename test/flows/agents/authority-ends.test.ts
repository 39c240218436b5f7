/**
 * Authority ends with its source: a removed role does not come back by another membership, an
 * approval that was not polled ends with its session, and a manager gains no scopes by way of a
 * managed user or agent.
 */
import test from 'ava'
import { createAgentKey } from '../../../runtime/clients/client/agent.js'
import { type Api, apiOf, claimsOf } from '../../support/api.js'
import { openBrowser } from '../../support/pages/browser.js'
import {
  fixtureOf,
  newFixture,
  ownToken,
  present,
  type Human,
} from '../../support/agents/delegation.js'
import { notThrough } from '../../support/fleet/through.js'
import { sql } from '../../support/storage/sql.js'
import { owned } from '../../support/identity/owner.js'
import { signIn } from '../../support/identity/person.js'
import {
  authorized,
  CALLBACK,
  callbackOf,
  relyingParty,
} from '../../support/oauth/relying-party.js'
import { mailbox } from '../../support/identity/addresses.js'
import { sharedApi, testService, type TestService } from '../../support/service.js'

const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'
const VERIFY = '/oauth/device/verify'
const { api, running } = await sharedApi('plain')
const workspace = await api.workspace()

const agentOf = (id: string) => `/api/v1/agents/${id}`

/** An agent of the workspace with these scopes and its token. */
async function agentWith(scopes: readonly string[]) {
  const { key, agentId } = await api.register(workspace.tenantId)
  await api.patch(agentOf(agentId), workspace.token, { scopes })
  const selector = { agent_id: agentId, tenant_id: workspace.tenantId }
  const { body } = await api.login(key, selector)
  return { key, agentId, selector, token: String(body['access_token']) }
}

function newKey(tenantId: string) {
  const key = createAgentKey()
  const { issuer } = running
  const { public_key, key_algorithm, key_ownership_proof } = key.registration({ issuer, tenantId })
  return { key, json: { public_key, key_algorithm, key_ownership_proof } }
}

async function userOf({ email }: Pick<Human, 'email'>): Promise<string> {
  const at = `/api/v1/tenant-users?email=${encodeURIComponent(email)}`
  const { rows } = await api.list(at, workspace.token)
  return `/api/v1/tenant-users/${String(rows[0]!['id'])}`
}
const giving = (path: string, roles: readonly string[], token = workspace.token) =>
  api.patch(path, token, { roles })

test('a caller cannot add a key to an agent with more scopes', async (t) => {
  const mighty = await agentWith(['tenant:manage', 'agents:read'])
  const keeper = await agentWith(['agents:manage', 'agents:read'])
  const { key, json } = newKey(workspace.tenantId)
  const denied = await api.post(`${agentOf(mighty.agentId)}/keys`, keeper.token, json)
  t.like(denied, { status: 403, body: { error: 'insufficient_scope' } })
  t.regex(denied.headers['www-authenticate'] ?? '', /scope="tenant:manage"/)
  t.is((await api.login(key, mighty.selector)).status, 400, 'the key was not added')

  const equal = await agentWith(['agents:read'])
  t.is((await api.post(`${agentOf(equal.agentId)}/keys`, keeper.token, json)).status, 201)
  // agents:manage includes the default scopes.
  const plain = await api.register(workspace.tenantId)
  const more = newKey(workspace.tenantId).json
  t.is((await api.post(`${agentOf(plain.agentId)}/keys`, keeper.token, more)).status, 201)
  const own = newKey(workspace.tenantId).json
  t.is((await api.post(`${agentOf(mighty.agentId)}/keys`, mighty.token, own)).status, 201)
})

test('a token restricted to one organization cannot add a key', async (t) => {
  const { agentId, organizationId, controlPlane, operator, key } = await api.workspace()
  const at = `/api/v1/control-plane/organizations/${organizationId}/token`
  const bound = String((await api.post(at, operator)).body['access_token'])
  const { json } = newKey(controlPlane)
  await api.post(`${agentOf(agentId)}/keys`, bound, json).gives(403, 'forbidden')
  const mine = `${agentOf(agentId)}/keys/${key.fingerprint}`
  t.is((await api.post(`${mine}/deprecate`, bound)).status, 403)
  t.is((await api.post(`${agentOf(agentId)}/keys`, operator, json)).status, 201)
})

test('rotating a fixture password needs the scopes of the user', async (t) => {
  const human = await newFixture(api, workspace)
  const path = await userOf(human)
  const id = path.slice(path.lastIndexOf('/') + 1)
  const rotate = (token: string) =>
    api.post(`/api/v1/sandbox/fixture-users/${id}/rotate-password`, token)
  const clerk = await agentWith(['users:manage'])
  t.is((await rotate(clerk.token)).status, 200, 'the password of a member')
  t.is((await giving(path, ['admin'])).status, 200)
  await rotate(clerk.token).gives(403, 'insufficient_scope')
  t.is((await rotate(workspace.token)).status, 200)
})

/** Another owner of the tenant, because the last one stays. */
async function addOwner({ db }: TestService, at: Api, token: string): Promise<void> {
  const added = { email: mailbox('next'), password: 'a password of an owner' }
  const { body } = await at.post('/api/v1/tenant-users', token, added)
  await sql(db.database)`update tenant_users set roles = '{owner}' where id = ${body['id']}`
}

test('a removed environment owner does not stay one as organization owner', async (t) => {
  const { made, person, token } = await owned(api)
  await addOwner(running, api, token)
  const { rows } = await api.list(`/api/v1/tenant-users?email=${person.human.email}`, token)
  const self = rows.find(({ fixture }) => fixture === false)!
  const path = `/api/v1/tenant-users/${String(self['id'])}`
  const taken = await api.patch(path, token, { roles: ['member'] })
  t.deepEqual(taken.body['roles'], ['member'])
  t.is((await api.get('/api/v1/tenant-users', token)).status, 401)

  const browser = openBrowser(running)
  const owed = await browser.follow(await signIn(browser, person.human))
  await browser.submit(owed, { code: person.codes.next() }, '/auth/mfa')
  const scope = 'openid org:read tenant:manage users:manage'
  const again = await ownToken(api, made, { browser, human: person.human }, scope)
  t.is(claimsOf(again)['scope'], 'openid org:read')
})

test('the process that ends authority refuses its tokens before it is announced', async (t) => {
  notThrough('it asserts what one process does before the others')
  // Announcements are read every 250 ms.
  const polling = await testService({ environment: { SVC_DATABASE__ANNOUNCE: 'table' } })
  const there = apiOf(polling)
  t.teardown(() => there.end())
  const { made, person, token } = await owned(there)
  await addOwner(polling, there, token)
  const fixture = await present(there, made)
  const ending = await ownToken(there, made, fixture, 'openid users:read')
  const issued = await there.form('/oauth/token', {
    grant_type: 'client_credentials',
    client_id: made.clientId,
    client_secret: made.clientSecret,
  })
  const service = String(issued.body['access_token'])
  t.is((await there.get('/api/v1/agents/me', service)).status, 403)
  t.is((await there.get('/userinfo', ending)).status, 200)
  t.is((await there.post('/api/v1/tenant/activate', token, {})).status, 200)
  t.is((await there.get('/userinfo', ending)).status, 401)
  t.is((await there.get('/api/v1/agents/me', service)).status, 401)

  const { rows } = await there.list(`/api/v1/tenant-users?email=${person.human.email}`, token)
  const self = rows.find(({ fixture }) => fixture === false)!
  const path = `/api/v1/tenant-users/${String(self['id'])}`
  t.is((await there.call('PATCH', path, { token, json: { roles: ['member'] } })).status, 200)
  t.is((await there.get('/api/v1/tenant-users', token)).status, 401)
})

test('a scope that an agent loses ends its sessions in every tenant', async (t) => {
  const there = await api.workspace('There')
  const { agentId, key, token } = await agentWith(['openid', 'users:read'])
  await sql(running)`
    insert into organization_members (organization_id, member_type, member_id, role, created_at)
    values (${there.organizationId}, 'agent', ${agentId}, 'member', now())`
  const elsewhere = await api.login(key, { agent_id: agentId, tenant_id: there.tenantId })
  const borrowed = String(elsewhere.body['access_token'])
  t.is((await api.get('/api/v1/tenant-users', borrowed)).status, 200)
  const json = { scopes: ['openid'] }
  await api.patch(agentOf(agentId), workspace.token, json)
  for (const one of [token, borrowed])
    t.is((await api.get('/api/v1/tenant-users', one)).status, 401)
})

/** A device with users:manage, approved by an admin, that has not polled yet. */
async function approved(human: Human) {
  const party = await relyingParty(running, workspace, {
    clientType: 'public',
    grantTypes: [DEVICE, 'refresh_token'],
    scopes: ['openid', 'users:manage'],
  })
  const begun = await api.form('/oauth/device/code', {
    client_id: party.clientId,
    scope: 'openid users:manage',
  })
  const browser = openBrowser(running)
  const page = `${VERIFY}?user_code=${String(begun.body['user_code'])}`
  const login = await browser.follow(await browser.get(page))
  const asked = await browser.follow(await browser.submit(login, human))
  await browser.submit(asked, { action: 'approve' })
  const withdraw = async () => {
    const account = await browser.get('/auth/account')
    await browser.submit(account, {}, `/auth/account/consents/${party.clientId}/withdraw`)
  }
  const device_code = String(begun.body['device_code'])
  const poll = () =>
    api.form('/oauth/token', { grant_type: DEVICE, device_code, client_id: party.clientId })
  return { poll, withdraw, close: () => browser.close() }
}

const ENDINGS: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
  'the role is taken away': (path) => giving(path, []),
  'the user is suspended, and comes back': async (path) => {
    await api.post(`${path}/suspend`, workspace.token)
    await api.post(`${path}/reactivate`, workspace.token)
  },
  'the password is rotated': (path) => {
    const id = path.slice(path.lastIndexOf('/') + 1)
    return api.post(`/api/v1/sandbox/fixture-users/${id}/rotate-password`, workspace.token)
  },
}
for (const [why, ending] of Object.entries(ENDINGS)) {
  test.serial(`a device gets no token of an approval once ${why}`, async (t) => {
    const human = fixtureOf(workspace)
    const rotated = await api.post(
      `/api/v1/sandbox/fixture-users/${(await userOf(human)).split('/').at(-1)!}/rotate-password`,
      workspace.token,
    )
    const person = { ...human, password: String(rotated.body['password']) }
    const path = await userOf(human)
    await giving(path, ['admin'])
    const fetched = await approved(person)
    const kept = await fetched.poll()
    t.like(kept, { status: 200, body: { scope: 'openid users:manage' } })
    const waiting = await approved(person)
    await ending(path)
    const late = await waiting.poll()
    t.like(late, { status: 400, body: { error: 'access_denied' } })
    await api.get('/api/v1/tenant-users', String(kept.body['access_token'])).gives(401)
    await fetched.close()
    await waiting.close()
  })
}

test.serial('an application gets no token after the consent was revoked', async (t) => {
  const human = await newFixture(api, workspace)
  const waiting = await approved(human)
  await waiting.withdraw()
  t.is((await waiting.poll()).body['error'], 'access_denied')
  await waiting.close()

  const party = await relyingParty(running, workspace)
  const browser = openBrowser(running)
  const { url, verifier } = await party.journey({ scope: 'openid' })
  const code = callbackOf(await authorized(browser, human, url)).searchParams.get('code')!
  const account = await browser.get('/auth/account')
  await browser.submit(account, {}, `/auth/account/consents/${party.clientId}/withdraw`)
  const answer = await api.form('/oauth/token', {
    grant_type: 'authorization_code',
    code,
    code_verifier: verifier,
    redirect_uri: CALLBACK,
    client_id: party.clientId,
    client_secret: party.secret,
  })
  t.like(answer, { status: 400, body: { error: 'invalid_grant' } })
})

test.serial(
  'an agent gets no token if the approval raced with the removal of the role',
  async (t) => {
    const human = await newFixture(api, workspace)
    const path = await userOf(human)
    await giving(path, ['admin'])
    const person = await present(api, human)
    const asked = await api.post('/api/v1/agents/delegations/device', workspace.token, {
      scope: 'openid users:manage',
    })
    const page = await person.browser.follow(
      await person.browser.get(`/device/delegation/${String(asked.body['user_code'])}`),
    )
    const approve = `/device/delegation/${String(asked.body['user_code'])}/approve`
    // Both wait for one row: the removal of the role first, then the approval.
    const answers = await running.db.database.system(async (tx) => {
      await tx.query({
        name: '',
        text: 'select from delegation_requests where tenant_id = $1 for update',
        values: [workspace.tenantId],
      })
      const deciding = person.browser.submit(page, {}, approve)
      await new Promise((resolve) => setTimeout(resolve, 300))
      const taking = giving(path, [])
      await new Promise((resolve) => setTimeout(resolve, 300))
      return { deciding, taking }
    })
    await answers.deciding
    t.is((await answers.taking).status, 200)
    const answer = await api.post('/api/v1/agents/delegations/device/token', workspace.token, {
      device_code: asked.body['device_code'],
    })
    t.like(answer, { status: 400, body: { error: 'access_denied' } })
  },
)
