/** Export of secrets by token exchange (RFC 8693), calls with a delegation, and the commands of the guides. */
import test from 'ava'
import type { Answer, Json } from '../../support/api.js'
import { delegate, fixtureOf, ownToken, present } from '../../support/agents/delegation.js'
import {
  CREDENTIALS,
  SECRET,
  UPSTREAM_NAME,
  delegatedToken,
  egressPair,
  settingOf,
} from '../../support/vault/egress.js'
import {
  ACCESS,
  URN,
  VAULT_SECRET,
  accessedOf,
  exchange,
  refusedAs,
} from '../../support/vault/vault-export.js'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import { tokenUpstream } from '../../support/vault/token-upstream.js'

const [resources, second] = await egressPair()

test('an agent with a grant exports an exportable secret', async (t) => {
  const setting = await settingOf(resources, { non_exportable: false })
  const answer = await exchange(resources, setting)
  t.is(answer.status, 200)
  t.deepEqual(answer.body, {
    access_token: SECRET,
    issued_token_type: VAULT_SECRET,
    token_type: 'N_A',
  })
  t.is(answer.headers['cache-control'], 'no-store')
  // URNs are case-insensitive.
  t.is(
    (
      await exchange(resources, setting, {
        resource: `URN:svc:vault:credential:${setting.credentialId.toUpperCase()}`,
      })
    ).status,
    200,
  )
  const told = await accessedOf(resources, setting.tenantId)
  t.is(told.length, 2)
  t.is(told[0]!.grantId, setting.grantId)
  t.like(told[0]!.data, {
    access: 'export',
    actor: { type: 'agent', id: setting.agentId },
    resource: { type: 'vault_credential', id: setting.credentialId },
  })
  t.false(JSON.stringify(told).includes(SECRET))
  const record = await resources.api.get(`${CREDENTIALS}/${setting.credentialId}`, setting.operator)
  t.truthy(record.body['last_used_at'])
})

test('refused exports and their errors', async (t) => {
  const setting = await settingOf(resources, { non_exportable: false })
  const { operator, direct, agentId, credentialId, tenantId } = setting
  const stranger = await settingOf(resources, { non_exportable: false })
  const claims = (more: Json) => delegatedToken(resources.running, direct, agentId, more)
  const cases: [number, string, Promise<Answer>][] = [
    [403, 'policy_denied', exchange(resources, { ...setting, delegated: direct })],
    [
      403,
      'insufficient_scope',
      exchange(resources, { ...setting, delegated: await claims({ scope: 'vault:list' }) }),
    ],
    [400, 'invalid_target', exchange(resources, setting, { resource: URN + agentId })],
    [
      400,
      'invalid_target',
      exchange(resources, setting, { resource: URN + stranger.credentialId }),
    ],
    [400, 'invalid_target', exchange(resources, setting, { resource: `${URN}x` })],
    [400, 'invalid_target', exchange(resources, setting, { resource: 'https://api.example' })],
    [400, 'invalid_request', exchange(resources, setting, { resource: '' })],
    [400, 'invalid_request', exchange(resources, setting, { requested_token_type: ACCESS })],
    [400, 'invalid_request', exchange(resources, setting, { requested_token_type: '' })],
    [400, 'invalid_request', exchange(resources, setting, { requested_token_type: 'urn:x' })],
    [400, 'invalid_request', exchange(resources, setting, { may_act: agentId })],
    [400, 'invalid_scope', exchange(resources, setting, { scope: 'vault:read' })],
    [400, 'invalid_grant', exchange(resources, { ...setting, delegated: 'x' })],
    // An agent of another tenant cannot use the token.
    [400, 'invalid_grant', exchange(resources, { ...setting, direct: stranger.direct })],
  ]
  for (const [index, [status, error, answer]] of cases.entries()) {
    t.deepEqual(refusedAs(await answer), [status, error], `${index}`)
  }
  t.deepEqual(await accessedOf(resources, tenantId), [])

  const closed = await settingOf(resources)
  t.deepEqual(refusedAs(await exchange(resources, closed)), [403, 'policy_denied'])
  for (const limits of [
    { max_requests: 5 },
    { budget: { requests: 5, window: 'hour' } },
    { methods: ['GET'] },
    { path_prefixes: ['/v1'] },
    { max_bytes: 9 },
  ]) {
    const limited = await settingOf(resources, { non_exportable: false }, limits)
    t.deepEqual(refusedAs(await exchange(resources, limited)), [403, 'policy_denied'])
  }
  const listed = await settingOf(resources, { non_exportable: false }, { capabilities: ['list'] })
  t.deepEqual(refusedAs(await exchange(resources, listed)), [400, 'invalid_target'])
  const made = await resources.api.post(
    `${CREDENTIALS}/${listed.credentialId}/leases`,
    listed.operator,
    {
      recipient_id: listed.agentId,
      byte_budget: 1000,
    },
  )
  t.is(made.status, 201)
  t.deepEqual(refusedAs(await exchange(resources, listed)), [403, 'policy_denied'])

  await resources.api.post(`/api/v1/vault/grants/${setting.grantId}/revoke`, operator)
  t.deepEqual(refusedAs(await exchange(second, setting)), [400, 'invalid_target'])
  const again = await settingOf(resources, { non_exportable: false })
  await resources.api.post(`${CREDENTIALS}/${again.credentialId}/revoke`, again.operator)
  t.deepEqual(refusedAs(await exchange(second, again)), [403, 'policy_denied'])
  await resources.api.post(`${CREDENTIALS}/${credentialId}/revoke`, operator)
  t.deepEqual(refusedAs(await exchange(resources, setting)), [400, 'invalid_target'])
})

test('a grant to a delegation applies to that delegation only', async (t) => {
  const { api } = resources
  const here = await api.workspace()
  const { tenantId, token: operator } = here
  const { key, agentId } = await api.register(tenantId)
  const { body } = await api.login(key, { tenant_id: tenantId, agent_id: agentId })
  const direct = String(body['access_token'])
  const person = await present(api, fixtureOf(here))
  const [delegated, other] = [
    await delegate(api, direct, person),
    await delegate(api, direct, person),
  ]
  const created = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    allowed_hosts: [],
    secret: SECRET,
    non_exportable: false,
  })
  const credentialId = String(created.body['id'])
  const answer = await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, {
    grantee_type: 'delegation',
    grantee_id: delegated.delegationId,
  })
  t.is(answer.status, 201)
  const under = ({ token }: { token: string }) =>
    exchange(second, { delegated: token, direct, credentialId })
  t.is((await under(delegated)).body['access_token'], SECRET)
  t.deepEqual(refusedAs(await under(other)), [400, 'invalid_target'])
  const [told] = await accessedOf(resources, tenantId)
  t.like(told!.data, { access: 'export', actor: { type: 'agent', id: agentId } })
  // After the revocation neither the token nor the grant is valid.
  const own = await ownToken(api, here, person)
  await api.post(`/api/v1/delegations/${delegated.delegationId}/revoke`, own)
  t.deepEqual(refusedAs(await under(delegated)), [400, 'invalid_grant'])
})

const { api, upstream, running } = resources

test.serial('a delegated token calls until the person revokes the delegation', async (t) => {
  const workspace = await api.workspace()
  const { token: operator, key, agentId, tenantId } = workspace
  const person = await present(api, fixtureOf(workspace))
  const { body } = await api.login(key, { tenant_id: tenantId, agent_id: agentId })
  const delegated = await delegate(api, String(body['access_token']), person)
  const created = await api.post(CREDENTIALS, operator, {
    provider: 'upstream',
    credential_type: 'api_key',
    label: 'Key',
    auth_scheme: 'bearer',
    allowed_hosts: [UPSTREAM_NAME],
    secret: SECRET,
  })
  const credentialId = String(created.body['id'])
  const call = () =>
    api.post('/v1/proxy', delegated.token, {
      credential_id: credentialId,
      url: `${upstream.origin}/headers`,
    })
  t.is((await call()).status, 404, 'there is no grant yet')
  const answer = await api.post(`${CREDENTIALS}/${credentialId}/grants`, operator, {
    grantee_type: 'delegation',
    grantee_id: delegated.delegationId,
  })
  t.is(answer.status, 201)
  await call().gives(200)
  t.is(upstream.requests.at(-1)!.headers.authorization, `Bearer ${SECRET}`)
  const { rows } = await api.list(CREDENTIALS, delegated.token)
  t.deepEqual(
    rows.map(({ id }) => id),
    [credentialId],
  )
  const own = await ownToken(api, workspace, person)
  await api.post(`/api/v1/delegations/${delegated.delegationId}/revoke`, own).gives(200)
  t.is((await call()).status, 401)
})

testCommands('the commands of docs/guides/vault/egress-proxy.md run unchanged', async (t) => {
  const setting = await settingOf(resources)
  const page = docsPage(t, 'guides/vault/egress-proxy')
  const env = {
    BASE: running.baseUrl,
    TOKEN: setting.operator,
    AGENT: setting.agentId,
    AGENT_TOKEN: setting.direct,
    DELEGATED_TOKEN: setting.delegated,
    CREDENTIAL: setting.credentialId,
    API: upstream.origin,
  }
  t.is(await page.run('sh', 0, env), '{"stream":true,"messages":[]}')
  const sent = upstream.requests.at(-1)!
  t.like(sent.headers, { accept: 'text/event-stream', 'content-type': 'application/json' })
  t.is(sent.headers.authorization, `Bearer ${SECRET}`)
  t.true((await page.run('sh', 1, env)).includes('[redacted]'))
  t.like(JSON.parse(await page.run('sh', 2, env)), {
    budget: { requests: 1_000, llm_tokens: 200_000, window: 'day', used: { requests: 0 } },
  })
  t.is(page.blocks('sh').length, 3)
})

test.serial(
  'the commands of docs/guides/vault/vault.md create, grant and export credentials',
  async (t) => {
    const first = await tokenUpstream()
    const other = await tokenUpstream()
    t.teardown(async () => {
      await first.close()
      await other.close()
    })
    const setting = await settingOf(resources, { non_exportable: false })
    const { operator, agentId } = setting
    const oauth = await api.post(CREDENTIALS, operator, {
      provider: 'upstream',
      credential_type: 'oauth2',
      label: 'Account',
      allowed_hosts: [],
      non_exportable: false,
      secret: JSON.stringify({ token_url: first.url, client_id: 'c', refresh_token: 'rt-0' }),
    })
    const oauthId = String(oauth.body['id'])
    const grant = { grantee_type: 'agent', grantee_id: agentId }
    await api.post(`${CREDENTIALS}/${oauthId}/grants`, operator, grant)
    const page = docsPage(t, 'guides/vault/vault')
    const env = {
      BASE: running.baseUrl,
      TOKEN: operator,
      AGENT: agentId,
      AGENT_TOKEN: setting.direct,
      DELEGATED_TOKEN: setting.delegated,
      CREDENTIAL: setting.credentialId,
      OAUTH_CREDENTIAL: oauthId,
      TOKEN_URL: other.url,
      REFRESH_TOKEN: 'rt-0',
      API_HOST: UPSTREAM_NAME,
    }
    const blocks = page.blocks('sh')
    const said: Json[] = []
    for (const index of blocks.keys())
      said.push(JSON.parse(await page.run('sh', index, env)) as Json)
    t.like(said[0], { provider: 'stripe', status: 'active' })
    t.like(said[1], { grantee_id: agentId, capabilities: ['list', 'use'] })
    t.like(said[2], { auth_scheme: 'bearer', non_exportable: true })
    const carrier = String(said[2]!['id'])
    await api.post(`${CREDENTIALS}/${carrier}/grants`, operator, grant)
    const answer = await api.post('/v1/proxy', setting.delegated, {
      credential_id: carrier,
      url: `${upstream.origin}/headers`,
    })
    t.is(answer.status, 200)
    t.is(upstream.requests.at(-1)!.headers.authorization, 'Bearer at-1')
    t.like(said[3], { access_token: SECRET, token_type: 'N_A' })
    t.like(said[4], { access_token: 'at-1', token_type: 'Bearer' })
    t.is(said.length, 5)
  },
)
