/**
 * What ends with what, by every way that ends it (docs/concepts/ends.md): credentials become INVALID, and tokens of people and
 * of their agents are refused.
 */
import * as oidc from 'openid-client'
import test from 'ava'
import { delegate, newFixture, present } from '../../../support/agents/delegation.js'
import type { Answer, Json } from '../../../support/api.js'
import { openDirectory, SCIM_GROUP, SCIM_PATCH } from '../../../support/identity/directory.js'
import { operatorOfDeployment } from '../../../support/oauth/operator.js'
import {
  authorized,
  callbackOf,
  journey,
  relyingParty,
} from '../../../support/oauth/relying-party.js'
import {
  credentialsOf,
  issuingTenant,
  offeredToken,
  requestCredential,
  statusOf,
} from '../../../support/oauth/wallet.js'
import { sharedApi } from '../../../support/service.js'
import { until } from '../../../support/service/watch.js'

const { api, running } = await sharedApi('enterprise')
const tenant = await issuingTenant(api)
const { token } = tenant
const directory = await openDirectory(api, {}, tenant)
const ops = await operatorOfDeployment(api)
const party = await relyingParty(running, tenant)
test.after.always(() => api.end())

const of = ({ status, body }: Answer): Json => {
  if (status >= 300) throw new Error(`${status}: ${JSON.stringify(body)}`)
  return body
}
const patch = (path: string, json: Json) => api.call('PATCH', path, { token, json })

/** An agent of the tenant that may ask for delegations. */
async function newAgent() {
  const { key, agentId } = await api.register(tenant.tenantId)
  of(await patch(`/api/v1/agents/${agentId}`, { scopes: ['vault:list', 'vault:read'] }))
  const login = of(await api.login(key, { agent_id: agentId, tenant_id: tenant.tenantId }))
  const { privateKey } = key
  const { kty, crv, x } = privateKey.export({ format: 'jwk' })
  const jwk = { kty: String(kty), crv: String(crv), x: String(x) }
  const walletKey = { alg: 'EdDSA' as const, jwk, privateKey: privateKey as never }
  return { agentId, token: String(login['access_token']), walletKey }
}

/** A user with a browser session and its token, an agent with a delegation, and a credential of each. */
async function populated() {
  const human = await newFixture(api, tenant)
  const { rows } = await api.list(
    `/api/v1/tenant-users?email=${encodeURIComponent(human.email)}`,
    token,
  )
  const userId = String(rows[0]!['id'])
  const user = `/api/v1/tenant-users/${userId}`
  of(await patch(user, { roles: ['member', 'reader'] }))
  const person = await present(api, human)
  const begun = await journey(party)
  const answer = callbackOf(await authorized(person.browser, human, begun.url))
  const { access_token: own } = await oidc.authorizationCodeGrant(
    party.config,
    answer,
    begun.checks,
  )
  const agent = await newAgent()
  const lent = await delegate(api, agent.token, person)
  const [membership = ''] = credentialsOf(
    await requestCredential(api, tenant, await offeredToken(api, tenant, { user_id: userId })),
  )
  const ask = { credential_configuration_id: 'AgentDelegation' }
  const offered = await offeredToken(api, tenant, {
    ...ask,
    delegation_id: lent.delegationId,
    user_id: undefined,
  })
  const [authority = ''] = credentialsOf(
    await requestCredential(api, tenant, offered, ask, agent.walletKey),
  )
  return { human, userId, user, person, own, agent, lent, membership, authority }
}
type Populated = Awaited<ReturnType<typeof populated>>

/** What still works. */
const PROBES: Readonly<Record<string, (at: Populated) => Promise<boolean>>> = {
  token: async ({ own }) => (await api.get('/userinfo', own)).status === 200,
  browser: async ({ person }) => (await person.browser.get('/auth/account')).status === 200,
  delegation: async ({ lent }) =>
    (await api.get('/api/v1/vault/credentials', lent.token)).status === 200,
  membership: async ({ membership }) => (await statusOf(api, membership)) === 0,
  authority: async ({ authority }) => (await statusOf(api, authority)) === 0,
}
const PERSON = ['token', 'browser', 'delegation', 'membership', 'authority']
const AGENT = ['delegation', 'authority']

const scim = (at: Populated, ...operations: Json[]) => directory.patch(at.userId, ...operations)
const group = async (at: Populated) => {
  const found = of(await directory.send('GET', '/Groups'))
  const row = (found['Resources'] as Json[]).find((each) => each['displayName'] === 'reader')
  const id =
    row?.['id'] ??
    of(await directory.send('POST', '/Groups', { schemas: [SCIM_GROUP], displayName: 'reader' }))[
      'id'
    ]
  const remove = { op: 'remove', path: `members[value eq "${at.userId}"]` }
  return directory.send('PATCH', `/Groups/${String(id)}`, {
    schemas: [SCIM_PATCH],
    Operations: [remove],
  })
}
const submit = async ({ person }: Populated, path: string, fields: Record<string, string> = {}) => {
  const page = await person.browser.get('/auth/account')
  return person.browser.submit(page, fields, path)
}
const accountOf = async (at: Populated) => {
  const path = `/api/v1/accounts?email=${encodeURIComponent(at.human.email)}`
  const { rows } = await api.list(path, ops.token)
  return String(rows[0]!['id'])
}
const refresh = ({ agent }: Populated, refreshToken: unknown) =>
  api.form('/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: String(refreshToken),
    client_id: agent.agentId,
  })

/** The ways, and what ends by each. */
const WAYS: Readonly<
  Record<string, readonly [ends: readonly string[], end: (at: Populated) => Promise<unknown>]>
> = {
  'an administrator suspends the user': [
    PERSON,
    async ({ user }) => of(await api.post(`${user}/suspend`, token)),
  ],
  'an administrator removes the user': [
    PERSON,
    async ({ user }) => of(await api.call('DELETE', user, { token })),
  ],
  'a directory turns the user off': [
    PERSON,
    async (at) => of(await scim(at, { op: 'replace', path: 'active', value: false })),
  ],
  'a directory deletes the user': [
    PERSON,
    async ({ userId }) => of(await directory.send('DELETE', `/Users/${userId}`)),
  ],
  'an operator suspends the account': [
    PERSON,
    async (at) => of(await api.post(`/api/v1/accounts/${await accountOf(at)}/suspend`, ops.token)),
  ],
  'an administrator takes a role': [
    ['membership'],
    async ({ user }) => of(await patch(user, { roles: ['member'] })),
  ],
  'a directory takes a role': [
    ['membership'],
    async (at) =>
      of(await scim(at, { op: 'replace', path: 'roles', value: [{ value: 'member' }] })),
  ],
  'a directory removes the user from a group': [['membership'], async (at) => of(await group(at))],
  'an administrator suspends the agent': [
    AGENT,
    async ({ agent }) => of(await api.post(`/api/v1/agents/${agent.agentId}/suspend`, token)),
  ],
  'an administrator deletes the agent': [
    AGENT,
    async ({ agent }) => of(await api.call('DELETE', `/api/v1/agents/${agent.agentId}`, { token })),
  ],
  'the user revokes the delegation': [
    AGENT,
    (at) => submit(at, `/auth/account/delegations/${at.lent.delegationId}/revoke`),
  ],
  'the agent returns the delegation': [
    AGENT,
    async ({ agent, lent }) =>
      of(
        await api.form('/oauth/revoke', {
          token: lent.refreshToken,
          client_id: agent.agentId,
        }),
      ),
  ],
  'a refresh token of the delegation is used again': [
    AGENT,
    async (at) => {
      const next = of(await refresh(at, at.lent.refreshToken))['refresh_token']
      of(await refresh(at, next))
      if ((await refresh(at, at.lent.refreshToken)).status !== 400) throw new Error('accepted')
    },
  ],
  'the user signs out': [['token', 'browser'], (at) => submit(at, '/auth/logout')],
  'an administrator ends the browser session': [
    ['token', 'browser'],
    async ({ user }) => {
      const { rows } = await api.list(`${user}/sessions`, token)
      for (const { id } of rows)
        of(await api.call('DELETE', `${user}/sessions/${String(id)}`, { token }))
    },
  ],
  'the password of a fixture user is rotated': [
    ['token', 'browser', 'delegation', 'authority'],
    async ({ userId }) =>
      of(await api.post(`/api/v1/sandbox/fixture-users/${userId}/rotate-password`, token, {})),
  ],
}

// Serial: a tenant has at most five fixture users, and each way is followed by the removal of its user.
for (const [way, [ends, end]] of Object.entries(WAYS)) {
  test.serial(way, async (t) => {
    const at = await populated()
    for (const [what, works] of Object.entries(PROBES)) t.true(await works(at), `${what} before`)
    await end(at)
    for (const what of ends) await until(`${what} ended`, async () => !(await PROBES[what]!(at)))
    for (const [what, works] of Object.entries(PROBES))
      if (!ends.includes(what)) t.true(await works(at), `${what} stays`)
    await at.person.browser.close()
    await api.call('DELETE', at.user, { token })
  })
}
