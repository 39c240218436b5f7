/** The events of all features as receivers get them, checked against the published schemas. */
import { createRequire } from 'node:module'
import type { Ajv } from 'ajv'
import test from 'ava'
import { EVENT_TYPES, type EventType } from '../../../actors/domain/events.js'
import { openapiDocument } from '../../../gateway/apps/openapi/openapi.js'
import { routes } from '../../../gateway/route-table.js'
import { apiResource } from '../../../actors/domain/entities/api-resource.js'
import { apiResourceTable } from '../../../storage/oauth/api-resources.js'
import { openBrowser } from '../../support/pages/browser.js'
import {
  fixtureOf,
  delegate,
  newFixture,
  ownToken,
  present,
} from '../../support/agents/delegation.js'
import {
  bodyCall,
  CREDENTIALS,
  reachableUpstream,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { rowOf } from '../../support/storage/row-of.js'
import { sql } from '../../support/storage/sql.js'
import { relyingParty } from '../../support/oauth/relying-party.js'
import { approvalEvents, everyAnswer } from '../../support/vault/approvals.js'
import { operatorOfDeployment } from '../../support/oauth/operator.js'
import { signIn } from '../../support/identity/person.js'
import { REACHES_RECEIVERS, startReceiver } from '../../support/webhooks/receiver.js'
import { REACHES_UPSTREAMS } from '../../support/fleet/profiles.js'
import { UPSTREAM_CERT } from '../../actors/vault/egress/loopback-tls.js'
import { NETWORK, newAccount, sharedChain } from '../../support/commerce/chain.js'
import { sharedMarket } from '../../support/commerce/market.js'
import { everyChange, registryEnvironment } from '../../support/commerce/registries.js'
import { COMMERCE, openShop } from '../../support/commerce/shop.js'
import { budget, walletAgent } from '../../support/commerce/wallet.js'
import { apiOf, expected, type Workspace } from '../../support/api.js'
import { sharedService } from '../../support/service.js'
import type { Json } from '../../support/identity/tenant-agent.js'
import { connectionEvents, everyConnectionEvent } from '../../support/vault/connect.js'
import { tokenUpstream } from '../../support/vault/token-upstream.js'
import { departed, throughHome, upstreamFixture } from '../../support/vault/upstream.js'
import { subscriber } from '../../support/webhooks/webhooks.js'

const require = createRequire(import.meta.url)
/** The built-in asset of the chain `NETWORK`. */
const BASE_SEPOLIA_USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const Ajv2020 = require('ajv/dist/2020.js') as new (options: object) => Ajv

type Hook = {
  post: {
    operationId: string
    requestBody: { content: Record<string, { schema: object; example: object }> }
  }
}
const document = openapiDocument({ issuer: 'https://id.test', exposure: 'public', routes }) as {
  webhooks: Record<string, Hook>
  components: object
}
const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ $id: 'https://id.test/openapi', components: document.components })
const validators = new Map(
  Object.entries(document.webhooks).map(([type, { post }]) => {
    const { schema } = post.requestBody.content['application/json']!
    const text = JSON.stringify(schema).replaceAll('"#/', '"https://id.test/openapi#/')
    return [type, ajv.compile(JSON.parse(text) as object)] as const
  }),
)

const receiver = await startReceiver()
const reachable = await reachableUpstream()
const resources = await upstreamFixture({
  trusted: [UPSTREAM_CERT],
  environment: {
    SVC_CONFIG_FILE: REACHES_UPSTREAMS.SVC_CONFIG_FILE,
    ...COMMERCE,
    ...REACHES_RECEIVERS,
    SVC_ADAPTIVE_MFA__ENABLED: 'true',
    // Its certificate is not trusted there, so no application gets a logout token.
    SVC_LOGOUT__RETRY_SCHEDULE_SECS: '[0]',
    SVC_API_KEYS__ENABLED: 'true',
    SVC_BILLING__ENABLED: 'true',
    SVC_WALLET__ENABLED: 'true',
    // The asset is the built-in one.
    ...registryEnvironment({ ...(await sharedMarket()), token: BASE_SEPOLIA_USDC }, 0),
  },
})
const { running } = resources
test.after.always(() => reachable.end())

/** Waits until a receiver has received an event of the type from a running service. */
async function arrived(type: EventType): Promise<Json | undefined> {
  for (let turn = 0; turn < 1000; turn += 1) {
    const found = receiver.received.find(({ headers }) => headers['x-svc-event'] === type)
    if (found !== undefined) return JSON.parse(found.body.toString()) as Json
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return undefined
}

test('OpenAPI describes every type of the catalogue, with a valid example', (t) => {
  t.deepEqual(Object.keys(document.webhooks).toSorted(), [...EVENT_TYPES].toSorted())
  for (const [type, { post }] of Object.entries(document.webhooks)) {
    const { example } = post.requestBody.content['application/json']!
    const validate = validators.get(type)!
    t.true(validate(example), `${type}: ${JSON.stringify(validate.errors)}`)
    t.false(validate({ ...example, type: 'another.type' }), type)
    t.false(validate({ ...example, data: null }), type)
  }
})

test('events of a tenant reach its receiver in the published form', async (t) => {
  const { subscribe, ask, login, settled } = await subscriber(running, receiver)
  const { path, at } = await subscribe({ event_types: ['*'] })
  t.is((await login()).status, 200)
  const created = await ask('POST', '/api/v1/applications', {
    name: 'Service',
    grant_types: ['client_credentials'],
    response_types: [],
    scopes: ['vault:list'],
  })
  t.is(created.status, 201, created.text)
  const { client_id: id, client_secret: secret } = created.body
  const basic = Buffer.from(`${String(id)}:${String(secret)}`).toString('base64')
  const issued = await fetch(`${running.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  t.is(issued.status, 200)
  const { access_token: token } = (await issued.json()) as Json
  const revoked = await fetch(`${running.baseUrl}/oauth/revoke`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ token: String(token) }),
  })
  t.is(revoked.status, 200)
  const kept = await ask('POST', '/api/v1/vault/credentials', {
    provider: 'ssh',
    credential_type: 'ssh_ca',
    label: 'Authority',
  })
  t.is(kept.status, 201, kept.text)
  t.is((await ask('POST', `${at}/test`)).status, 200)
  // Events from before the subscription may still be in transit.
  const types = () => new Set(receiver.at(path).map(({ headers }) => headers['x-svc-event']))
  const expected: EventType[] = [
    'auth.token.issued',
    'auth.token.revoked',
    'vault.credential.created',
    'webhook.test',
  ]
  for (let turn = 0; turn < 500 && !expected.every((type) => types().has(type)); turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await settled(at, 4)
  for (const type of expected) t.true(types().has(type), type)
  for (const { body, headers } of receiver.at(path)) {
    const event = JSON.parse(body.toString()) as Json
    t.is(event['type'], headers['x-svc-event'] as string)
    const validate = validators.get(String(event['type']))
    t.true(validate?.(event), `${body.toString()}: ${JSON.stringify(validate?.errors)}`)
    t.false(/svcs_|whsec_|eyJ/.test(body.toString()), 'no secret in an event')
  }
})

const api = apiOf(running)

/** Sends every event of a tenant to the receiver. */
async function hear({ token }: Pick<Workspace, 'token'>, at = api): Promise<void> {
  const json = { url: `${receiver.origin}/all-of-a-tenant`, event_types: ['*'] }
  await expected(201, at.post('/api/v1/webhooks', token, json))
}

/** Runs once, however many types it triggers. */
function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return () => (running ??= run())
}

const signIns = once(async () => {
  const workspace = await api.workspace()
  await hear(workspace)
  const human = fixtureOf(workspace)
  const person = await present(api, human)
  await person.browser.submit(await person.browser.get('/auth/account'), {}, '/auth/logout')
  const again = await person.browser.follow(await signIn(person.browser, human))
  const [code = ''] = person.recoveryCodes
  const account = await person.browser.follow(await person.browser.submit(again, { code }))
  // The removal of the second factor triggers the notification.
  const [, factor = ''] =
    /action="(\/auth\/account\/factors\/[^"]+\/remove)"/.exec(account.html) ?? []
  await person.browser.submit(account, {}, factor)
  const guessed = await newFixture(api, workspace)
  const stranger = openBrowser(running)
  // From another browser than before.
  await signIn(stranger, human)
  const guesser = openBrowser(running)
  for (let turn = 0; turn < 12; turn += 1) await signIn(guesser, { ...guessed, password: 'guess' })
})

const logouts = once(async () => {
  const workspace = await api.workspace()
  await hear(workspace)
  const backchannelLogoutUri = `${receiver.origin}/logout`
  const party = await relyingParty(running, workspace, { backchannelLogoutUri })
  const { browser } = await party.signedIn(fixtureOf(workspace))
  await browser.submit(await browser.get('/auth/account'), {}, '/auth/logout')
})

const tokensOfAgents = once(async () => {
  const workspace = await api.workspace()
  await hear(workspace)
  const { key, agentId } = await api.register(workspace.tenantId)
  const login = await expected(
    200,
    api.login(key, { agent_id: agentId, tenant_id: workspace.tenantId }),
  )
  const refreshed = (token: unknown) =>
    api.form('/oauth/token', {
      grant_type: 'refresh_token',
      refresh_token: String(token),
      client_id: agentId,
    })
  const first = login['refresh_token']
  await expected(200, refreshed((await expected(200, refreshed(first)))['refresh_token']))
  await expected(400, refreshed(first))
  const other = await expected(
    200,
    api.login(key, { agent_id: agentId, tenant_id: workspace.tenantId }),
  )
  await expected(
    200,
    api.form('/oauth/revoke', { token: String(other['access_token']), client_id: agentId }),
  )
})

const usersAndOrganizations = once(async () => {
  const ops = await operatorOfDeployment(api)
  const workspace = await api.workspace()
  await hear(workspace)
  const { token, operator, organizationId, tenantId } = workspace
  const person = await present(api, await newFixture(api, workspace))
  const invited = await expected(
    201,
    api.post('/api/v1/tenant-users', token, { email: 'ada@harbour.test' }),
  )
  const user = `/api/v1/tenant-users/${String(invited['id'])}`
  await expected(200, api.post(`${user}/suspend`, token))
  await expected(200, api.post(`${user}/reactivate`, token))
  await expected(204, api.delete(user, token))
  const admins = `update tenant_users set roles = '{admin}' where tenant_id = $1`
  await sql(running.db.database, admins, [tenantId])
  const admin = await ownToken(api, workspace, person, 'openid users:manage')
  const { email: fixture } = fixtureOf(workspace)
  const { rows } = await api.list(`/api/v1/tenant-users?email=${fixture}`, token)
  for (const what of ['password', 'factors'])
    await expected(
      202,
      api.post(`/api/v1/tenant-users/${String(rows[0]!['id'])}/reset-${what}`, admin),
    )

  const { delegationId } = await delegate(api, token, person)
  const own = await ownToken(api, workspace, person)
  await expected(200, api.post(`/api/v1/delegations/${delegationId}/revoke`, own))
  await sql(running)`update tenant_users set roles = '{owner}' where tenant_id = ${tenantId}`
  const owner = await ownToken(api, workspace, person, 'openid org:read org:create')
  await expected(201, api.post('/api/v1/control-plane/organizations', owner, { name: 'Second' }))

  const members = `/api/v1/organizations/${organizationId}/members`
  const email = 'grace@harbour.test'
  await expected(201, api.post(members, operator, { email, role: 'member' }))
  const { agentId } = await api.register(tenantId)
  const added = await expected(
    201,
    api.post(members, operator, { agent_id: agentId, role: 'member' }),
  )
  const member = `${members}/${String(added['id'])}`
  await expected(200, api.patch(member, operator, { role: 'admin' }))
  await expected(204, api.delete(member, operator))
  const billing = `/api/v1/organizations/${organizationId}/billing`
  await expected(200, api.put(billing, ops.token, { plan_id: null }))
  for (const path of [`/api/v1/organizations/${organizationId}`, `/api/v1/tenants/${tenantId}`])
    for (const verb of ['suspend', 'reactivate'])
      await expected(200, api.post(`${path}/${verb}`, ops.token))
})

const vaultAndEgress = once(async () => {
  const workspace = await api.workspace()
  await hear(workspace)
  const { token, tenantId } = workspace
  const { key, agentId } = await api.register(tenantId)
  const selector = { agent_id: agentId, tenant_id: tenantId }
  const agent = String((await expected(200, api.login(key, selector)))['access_token'])
  const credential = await expected(
    201,
    api.post(CREDENTIALS, token, {
      provider: 'upstream',
      label: 'Key',
      secret: 'a secret',
      auth_scheme: 'bearer',
      credential_type: 'api_key',
      allowed_hosts: [UPSTREAM_NAME],
    }),
  )
  const credentialId = String(credential['id'])
  const budget = { requests: 1, window: 'total' }
  const grantee = { grantee_type: 'agent', grantee_id: agentId, budget }
  const grant = await expected(
    201,
    api.post(`${CREDENTIALS}/${credentialId}/grants`, token, grantee),
  )
  const headers = bodyCall({ credentialId }, `${reachable.upstream.origin}/echo`)
  await expected(200, api.call('POST', '/v1/proxy/body', { token: agent, headers }))
  await expected(429, api.call('POST', '/v1/proxy/body', { token: agent, headers }))
  await expected(200, api.post(`/api/v1/vault/grants/${String(grant['id'])}/revoke`, token))
  await lapsed(token, grantee, agent)
})

/** A call with a refresh token that its upstream refuses. */
async function lapsed(token: string, grantee: Json, agent: string): Promise<void> {
  const upstream = await tokenUpstream('another refresh token')
  const secret = { token_url: upstream.url, client_id: 'c', refresh_token: 'rt' }
  const credential = await expected(
    201,
    api.post(CREDENTIALS, token, {
      provider: 'upstream',
      label: 'Account',
      secret,
      auth_scheme: 'oauth2_refresh',
      credential_type: 'custom',
      allowed_hosts: [UPSTREAM_NAME],
    }),
  )
  const credentialId = String(credential['id'])
  await expected(201, api.post(`${CREDENTIALS}/${credentialId}/grants`, token, grantee))
  const headers = bodyCall({ credentialId }, `${upstream.origin}/api`)
  await expected(424, api.call('POST', '/v1/proxy/body', { token: agent, headers }))
  await upstream.close()
}
const providers = once(async () => {
  const sso = apiOf(running)
  const workspace = await sso.workspace()
  await hear(workspace, sso)
  const draft = {
    name: 'Acme SSO',
    issuer: resources.home.issuer,
    client_id: 'client',
    client_secret: 'secret of the client',
  }
  await expected(201, sso.post('/api/v1/sso/providers', workspace.token, draft))
  const tenantSlug = String(workspace.body['tenant_slug'])
  const arrive = async () => {
    const browser = openBrowser(running)
    const away = await departed(browser, { tenantSlug })
    const back = await throughHome(resources, browser, away.location ?? away.html, resources.person)
    return back.status
  }
  // The user is unknown to the tenant at first. Then the tenant accepts users of the provider.
  if ((await arrive()) !== 403) throw new Error('the tenant takes in anybody')
  const social = { social: { provision: true } }
  await sql(running)`
    update tenants set settings = ${JSON.stringify(social)} where id = ${workspace.tenantId}`
  if ((await arrive()) !== 200) throw new Error('the tenant refused the user')
})

const sales = once(async () => {
  const shop = await openShop(running)
  await hear(shop)
  const post = async (path: string, json: unknown = {}) => {
    const answer = await shop.api.post(`/api/v1/commerce/${path}`, shop.token, json)
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body))
    return answer.body
  }
  const bought = async (outcome: string) => {
    const session = await shop.checkout({ customer_email: 'ada@example.com', quantity: 10 })
    await shop.pay(session['checkout_url'], outcome)
    return String(session['charge_id'])
  }
  const released = async () =>
    (
      await sql(running)`
        select from all_events where tenant_id = ${shop.workspace.tenantId}
        and type = 'commerce.settlement.released'`
    ).length
  await bought('decline')
  await bought('dispute')
  const [dispute] = (await shop.api.list('/api/v1/commerce/disputes', shop.token)).rows
  await post(`disputes/${String(dispute?.['id'])}/close`, { outcome: 'won' })
  const charge = await bought('succeed')
  await post(`charges/${charge}/refund`, { amount_minor: 100 })
  for (let turn = 0; turn < 1000 && (await released()) < 2; turn += 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
  await post('payouts', { rail: 'sandbox', currency: 'USD', amount_minor: 1013 })
  await post('payouts', { rail: 'sandbox', currency: 'USD', amount_minor: 1000 })
  await post('statements', { currency: 'USD' })
})

/** The document of an agent of the service changes while the agent is known as a client here. */
const documentedClients = once(async () => {
  const { ask, tenantId, agentId, subscribe } = await subscriber(running, receiver)
  await subscribe({ event_types: ['*'] })
  const resource = `https://api.example/${agentId}`
  await running.db.database.tenant(tenantId, (tx) =>
    apiResourceTable.insert(
      tx,
      rowOf(apiResource, { tenantId, resource, name: 'API', scopes: [] }),
    ),
  )
  const query = new URLSearchParams({
    client_id: `${running.issuer}/agents/${agentId}/client.json`,
    redirect_uri: 'https://one.example/callback',
    response_type: 'code',
    resource,
  })
  for (const uris of [['https://one.example/callback'], ['https://two.example/callback']]) {
    await ask('PATCH', '/api/v1/agents/me/profile', { redirect_uris: uris })
    await fetch(`${running.baseUrl}/oauth/authorize?${query}`, { redirect: 'manual' })
  }
})

const transfers = once(async () => {
  const workspace = await api.workspace()
  await hear(workspace)
  const { operator, organizationId, tenantId } = workspace
  const at = '/api/v1/control-plane/organizations'
  const other = await expected(201, api.post(at, operator, { name: 'Successor' }))
  const start = () =>
    expected(
      201,
      api.post(`/api/v1/tenants/${tenantId}/transfers`, operator, { organization_id: other['id'] }),
    )
  const of = (id: unknown) => `/api/v1/organizations/${String(id)}/transfers`
  const first = `${of(organizationId)}/${String((await start())['id'])}`
  await expected(204, api.delete(first, operator))
  await expected(
    200,
    api.post(`${of(other['id'])}/${String((await start())['id'])}/accept`, operator),
  )
})

const keys = once(async () => {
  const workspace = await api.workspace()
  await hear(workspace)
  const { token } = workspace
  const json = { name: 'Export', scopes: ['users:read'] }
  const made = await expected(201, api.post('/api/v1/api-keys', token, json))
  const path = `/api/v1/api-keys/${String(made['id'])}`
  await expected(200, api.post(`${path}/rotate`, token))
  await expected(204, api.delete(path, token))
})

const walletsOfAgents = once(async () => {
  const workspace = await api.workspace()
  await hear(workspace)
  const payTo = newAccount().address
  const policy = { recipients: [payTo], budgets: [budget(BASE_SEPOLIA_USDC, 5n, 5n)] }
  const agent = await walletAgent(api, workspace, policy)
  const offer = { scheme: 'exact', network: NETWORK, asset: BASE_SEPOLIA_USDC, payTo }
  const accepts = [{ ...offer, amount: '5', maxTimeoutSeconds: 60 }]
  await expected(201, agent.pay({ x402Version: 2, accepts }))
  await expected(429, agent.pay({ x402Version: 2, accepts }))
})

const agentsOnChains = once(async () => {
  const { subscribe, tenantId } = await subscriber(running, receiver)
  await subscribe({ event_types: ['chain.*'] })
  await everyChange(await sharedChain(), running.baseUrl, { issuer: running.issuer, tenantId })
})

const testDelivery = once(async () => {
  const { subscribe, ask } = await subscriber(running, receiver)
  const { at } = await subscribe()
  const sent = await ask('POST', `${at}/test`)
  if (sent.status !== 200) throw new Error(sent.text)
})

/** Triggers each event type. A type without an entry does not compile. */
const PROVOKED: Readonly<Record<EventType, () => Promise<void>>> = {
  'auth.login.success': signIns,
  'auth.login.failure': signIns,
  'auth.logout': signIns,
  'auth.token.issued': tokensOfAgents,
  'auth.token.revoked': tokensOfAgents,
  'auth.mfa.challenge': signIns,
  'auth.mfa.verify': signIns,
  'auth.adaptive_mfa.triggered': signIns,
  'tenant_user.invited': usersAndOrganizations,
  'tenant_user.activated': usersAndOrganizations,
  'tenant_user.suspended': usersAndOrganizations,
  'tenant_user.removed': usersAndOrganizations,
  'api_key.created': keys,
  'api_key.rotated': keys,
  'api_key.revoked': keys,
  'admin.user.created': usersAndOrganizations,
  'admin.user.password_reset': usersAndOrganizations,
  'admin.user.factors_reset': usersAndOrganizations,
  'admin.agent.registered': usersAndOrganizations,
  'admin.delegation.revoked': usersAndOrganizations,
  'vault.credential.created': vaultAndEgress,
  'vault.credential.accessed': vaultAndEgress,
  'vault.credential.reauthorization_required': vaultAndEgress,
  ...connectionEvents(once(() => everyConnectionEvent(api, running, hear))),
  'vault.grant.revoked': vaultAndEgress,
  'vault.budget.exceeded': vaultAndEgress,
  'egress.stream.closed': vaultAndEgress,
  ...approvalEvents(once(() => everyAnswer({ ...resources, api, ...reachable }, hear))),
  'wallet.tx.signed': walletsOfAgents,
  'wallet.tx.rejected': walletsOfAgents,
  'wallet.budget.exceeded': walletsOfAgents,
  'chain.ownership.changed': agentsOnChains,
  'chain.metadata.changed': agentsOnChains,
  'chain.reputation.updated': agentsOnChains,
  'org.created': usersAndOrganizations,
  'org.billing.changed': usersAndOrganizations,
  'org.suspended': usersAndOrganizations,
  'org.reactivated': usersAndOrganizations,
  'org.tenant.suspended': usersAndOrganizations,
  'org.tenant.reactivated': usersAndOrganizations,
  'org.tenant.transfer_requested': transfers,
  'org.tenant.transfer_closed': transfers,
  'org.tenant.transferred': transfers,
  'org.member.invited': usersAndOrganizations,
  'org.member.added': usersAndOrganizations,
  'org.member.role_changed': usersAndOrganizations,
  'org.member.removed': usersAndOrganizations,
  'sso.configured': providers,
  'sso.login.success': providers,
  'sso.login.failed': providers,
  'sso.user.provisioned': providers,
  'security.brute_force.detected': signIns,
  'security.client.metadata_changed': documentedClients,
  'security.refresh_token.reuse': tokensOfAgents,
  'security.suspicious_activity': signIns,
  'commerce.payment.pending': sales,
  'commerce.payment.succeeded': sales,
  'commerce.payment.failed': sales,
  'commerce.payment.refunded': sales,
  'commerce.settlement.created': sales,
  'commerce.settlement.held': sales,
  'commerce.settlement.released': sales,
  'commerce.dispute.opened': sales,
  'commerce.dispute.closed': sales,
  'commerce.payout.submitted': sales,
  'commerce.payout.paid': sales,
  'commerce.payout.failed': sales,
  'commerce.statement.created': sales,
  'session.logout.undelivered': logouts,
  'webhook.test': testDelivery,
}

test('a running service sends every type of the catalogue as published', async (t) => {
  t.timeout(240_000)
  t.deepEqual(Object.keys(PROVOKED).toSorted(), [...EVENT_TYPES].toSorted())
  for (const [type, provoke] of Object.entries(PROVOKED)) {
    await provoke()
    const event = await arrived(type as EventType)
    t.truthy(event, `${type} arrives`)
    const validate = validators.get(type)!
    t.true(validate(event), `${JSON.stringify(event)}: ${JSON.stringify(validate.errors)}`)
  }
  // Further events that were triggered.
  for (const { body, headers } of receiver.received) {
    const type = String(headers['x-svc-event'])
    const validate = validators.get(type)!
    t.true(validate(JSON.parse(body.toString())), `${type}: ${body.toString()}`)
  }
})

test('a subscription names all types of the interface', async (t) => {
  const { subscribe } = await subscriber(running, receiver)
  const { body } = await subscribe({ event_types: EVENT_TYPES })
  t.deepEqual(body['event_types'], EVENT_TYPES)
})

test('a deployment offers the event types of its features', async (t) => {
  const plain = await sharedService('plain')
  t.teardown(() => plain.end())
  const offered = async (baseUrl: string) => {
    const read = async (path: string) => (await fetch(baseUrl + path)).json() as Promise<Json>
    const described = Object.keys((await read('/openapi.json'))['webhooks'] as Json)
    const { features } = await read('/api/v1/capabilities')
    const { event_types: named } = (features as Record<string, Json>)['webhooks']!
    t.deepEqual(described.toSorted(), (named as string[]).toSorted())
    return new Set(described)
  }
  const without = await offered(plain.baseUrl)
  const all = await offered(running.baseUrl)
  for (const type of EVENT_TYPES) {
    const isAdaptive = type === 'auth.adaptive_mfa.triggered'
    t.true(all.has(type), type)
    const isOptional = ['chain.', 'commerce.', 'sso.', 'api_key.', 'org.billing.', 'wallet.'].some(
      (prefix) => type.startsWith(prefix),
    )
    const isPlain = !isOptional && !isAdaptive
    t.is(without.has(type), isPlain, type)
  }
})
