/** A tenant with one real object of every kind that an operation can name. */
import { type Directory, openDirectory, SCIM_GROUP } from '../identity/directory.js'
import type { Answer, Api, Json, Workspace } from '../api.js'
import {
  fixtureOf,
  delegate,
  type Lent,
  ownToken,
  type Person,
  present,
} from '../agents/delegation.js'
import { observed } from '../oauth/documented-client.js'
import { dataIn, openBrowser, type Page } from '../pages/browser.js'
import { ciba, CIBA_GRANT, INBOX } from '../oauth/ciba.js'
import type { Receiver } from '../webhooks/receiver.js'
import { PUBLIC } from '../commerce/shop.js'
import { CALLBACK, relyingParty } from '../oauth/relying-party.js'
import { issuing, offer, offeredToken, requestCredential } from '../oauth/wallet.js'
import { TOKENS } from '../identity/registering.js'
import { sql } from '../storage/sql.js'
import { NETWORK, newAccount } from '../commerce/chain.js'
import { authorize, encode } from '../commerce/x402-shop.js'

/** Ids, by the path of an operation up to and including their parameter. */
export type Objects = Readonly<Record<string, string>>

export interface PopulatedTenant {
  readonly workspace: Workspace
  readonly objects: Objects
  /**
   * A credential of another kind than the one among the objects, which is an SSH certificate
   * authority.
   */
  readonly apiKeyId: string
  readonly person: Person
  /** A token of the user: only users hold delegations. */
  readonly personToken: string
  /** Gives the fulfillment look-up access to the tenant's charges. */
  readonly fulfillmentSecret: string
  /** The registration access token of a dynamically registered application. */
  readonly registrationToken: string
  /** The bearer token of a directory. */
  readonly scimToken: string
}

const WITHIN_TURNS = 1_000

export async function populateTenant(
  api: Api,
  name: string,
  receiver: Receiver,
): Promise<PopulatedTenant> {
  const workspace = await api.workspace(name)
  const { token, tenantId, organizationId, body } = workspace
  const make = (path: string, json: Json = {}) => made(api, token, path, json)
  const person = await present(api, fixtureOf(workspace))
  const personToken = await ownToken(api, workspace, person)
  const delegated = await delegate(api, token, person)
  const { agentId, key } = await api.register(tenantId)
  const userId = String((body['fixture_end_user'] as Json)['id'])
  const registered = await application(api, token)
  const hook = await webhook(api, token, receiver)
  const commerce = await trade(api, token)
  const kept = await vault(make, agentId)
  const walletId = await make(`/api/v1/agents/${agentId}/wallet`)
  const directory = await openDirectory(api, {}, workspace)
  const requestId = await askedByCiba(api, workspace, person)
  const signedIn = await sessionOf(api, tenantId)
  const objects: Objects = {
    ...account(await person.browser.get('/auth/account'), delegated, signedIn),
    ...kept.objects,
    ...commerce,
    ...(await credentials(api, workspace)),
    ...(await signInElsewhere(api, workspace, make)),
    '/api/v1/control-plane/organizations/{organization_id}': organizationId,
    '/api/v1/control-plane/organizations/{organization_id}/tenants/{tenant_id}': tenantId,
    '/api/v1/organizations/{organization_id}': organizationId,
    '/api/v1/organizations/{organization_id}/members/{member_id}': await memberOf(api, workspace),
    '/api/v1/organizations/{organization_id}/transfers/{transfer_id}': await transferOf(
      api,
      workspace,
    ),
    '/api/v1/tenants/{tenant_id}': tenantId,
    '/api/v1/agents/{agent_id}': agentId,
    '/api/v1/wallets/{wallet_id}': walletId,
    '/api/v1/agents/{agent_id}/keys/{key_id}': key.fingerprint,
    '/api/v1/agents/{agent_id}/anchors/{anchor}': key.did,
    '/api/v1/applications/{application_id}': String(body['application_id']),
    '/api/v1/observed-clients/{id}': await observed(api.at, tenantId),
    '/api/v1/api-resources/{id}': await apiResource(api, token),
    ...(await connectedAccount(api, token, person)),
    ...(await trustedIssuer(make, String(body['application_id']))),
    ...(await mcpServer(make)),
    '/api/v1/identity-assertion-policies/{id}': await make('/api/v1/identity-assertion-policies', {
      client_id: String(body['application_id']),
      audience: `https://${crypto.randomUUID()}.example`,
      target_client_id: 'assistant',
      scopes: ['chat:read'],
    }),
    '/api/v1/access-policies/{id}': await make('/api/v1/access-policies', {
      name: 'Office',
      enabled: false,
      required_aal: 'aal2',
    }),
    '/api/v1/api-keys/{id}': await make('/api/v1/api-keys', {
      name: 'Export',
      scopes: ['users:read'],
    }),
    '/api/v1/tenant-users/{user_id}': userId,
    '/api/v1/tenant-users/{user_id}/sessions/{session_id}': signedIn,
    '/api/v1/sandbox/fixture-users/{user_id}': userId,
    '/api/v1/scim/tokens/{token_id}': directory.tokenId,
    '/scim/v2/Users/{user_id}': userId,
    '/scim/v2/Groups/{group_id}': await groupOf(directory),
    '/api/v1/delegations/{delegation_id}': delegated.delegationId,
    ...(await waitingCall(api, make, delegated)),
    '/api/v1/identity/ciba/requests/{id}': requestId,
    '/auth/requests/{id}': requestId,
    '/ssf/poll/{stream_id}': await signalStream(api, token),
    '/api/v1/webhooks/{id}': hook.id,
    '/api/v1/webhooks/{id}/deliveries/{delivery_id}': hook.deliveryId,
    '/oauth/register/{client_id}': registered.clientId,
  }
  return {
    workspace,
    objects,
    apiKeyId: kept.apiKeyId,
    person,
    personToken,
    fulfillmentSecret: hook.secret,
    registrationToken: registered.accessToken,
    scimToken: directory.token,
  }
}

async function trustedIssuer(make: Make, clientId: string): Promise<Objects> {
  const issuer = `https://${crypto.randomUUID()}.example`
  const id = await make('/api/v1/trusted-issuers', {
    name: 'Source',
    issuer,
    purposes: ['workload'],
  })
  const rule = await make(`/api/v1/trusted-issuers/${id}/rules`, {
    name: 'Builds',
    target: { client_id: clientId },
    conditions: [{ claim: 'sub', op: 'eq', value: 'build' }],
    scopes: [],
  })
  const path = '/api/v1/trusted-issuers/{id}'
  return { [path]: id, [`${path}/rules/{rule_id}`]: rule }
}

async function mcpServer(make: Make): Promise<Objects> {
  const path = '/api/v1/mcp-servers'
  const id = await make(path, {
    slug: 'tools',
    name: 'Tools',
    url: 'https://mcp.example.com/mcp',
  })
  return { [`${path}/{id}`]: id }
}

/** A request to connect an account. */
async function connectedAccount(api: Api, agent: string, person: Person): Promise<Objects> {
  const connectors = '/api/v1/vault/connectors'
  const connections = '/api/v1/vault/connections'
  const client = { client_id: 'client', client_secret: 'secret' }
  const own = { name: 'github', template: 'github', ...client }
  const connectorId = await made(api, agent, connectors, own)
  const lent = await delegate(api, agent, person, { scope: 'vault:connect' })
  const id = await made(api, lent.token, connections, { connector: 'github' })
  return {
    [`${connectors}/{id}`]: connectorId,
    [`${connections}/{id}`]: id,
    '/auth/account/connections/{id}': id,
  }
}

async function signalStream(api: Api, token: string): Promise<string> {
  return String(expectStatus(201, await api.post('/ssf/streams', token, {}))['stream_id'])
}

async function groupOf({ send }: Directory): Promise<string> {
  const json = { schemas: [SCIM_GROUP], displayName: 'Editors' }
  return String(expectStatus(201, await send('POST', '/Groups', json))['id'])
}

/** One of the members of a new workspace. */
async function memberOf(api: Api, { organizationId, operator }: Workspace): Promise<string> {
  const { rows } = await api.list(`/api/v1/organizations/${organizationId}/members`, operator)
  return String(rows[0]!['id'])
}

/** The transfer of a further tenant to a further organization of the owner. */
async function transferOf(api: Api, { organizationId, operator }: Workspace): Promise<string> {
  const at = '/api/v1/control-plane/organizations'
  const other = await made(api, operator, at, { name: 'Successor' })
  const tenant = await made(api, operator, `${at}/${organizationId}/tenants`, { name: 'Leaving' })
  return made(api, operator, `/api/v1/tenants/${tenant}/transfers`, { organization_id: other })
}

async function made(api: Api, token: string, path: string, json: Json): Promise<string> {
  const answer = await api.post(path, token, json)
  return String(expectStatus(201, answer)['id'])
}

/** A CIBA request of an application to the user. */
async function askedByCiba(
  { at }: Api,
  { tenantId }: Workspace,
  { browser, human }: Pick<Person, 'browser' | 'human'>,
): Promise<string> {
  const bank = await relyingParty(at, { tenantId }, { grantTypes: [CIBA_GRANT] })
  const begun = await ciba(at, bank).start({ login_hint: human.email, requested_expiry: '600' })
  if (begun.status !== 200) throw new Error(JSON.stringify(begun.body))
  return dataIn((await browser.get(INBOX)).html, 'request')[0]!
}

type Make = (path: string, json?: Json) => Promise<string>

async function sessionOf({ at }: Api, tenantId: string): Promise<string> {
  const [row] = await sql<{ id: string }>(at)`
    select id from browser_sessions where tenant_id = ${tenantId} limit 1`
  return String(row!.id)
}

function expectStatus(status: number, answer: Answer): Json {
  if (answer.status === status) return answer.body
  throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
}

/** The forms on the user's account page lead to the objects. */
function account({ forms }: Pick<Page, 'forms'>, delegated: Lent, sessionId: string): Objects {
  const at = (kind: string) => {
    const found = forms.find(({ action }) => action.startsWith(`/auth/account/${kind}/`))
    return found?.action.split('/')[4]
  }
  const ids = {
    factors: at('factors'),
    consents: at('consents'),
    sessions: sessionId,
    delegations: delegated.delegationId,
  }
  return Object.fromEntries(
    Object.entries(ids).flatMap(([kind, id]) =>
      id === undefined ? [] : [[`/auth/account/${kind}/{id}`, id]],
    ),
  )
}

async function application(api: Api, token: string) {
  const issued = expectStatus(201, await api.post(TOKENS, token, {}))
  const answer = await api.post('/oauth/register', String(issued['token']), {
    redirect_uris: [CALLBACK],
  })
  const client = expectStatus(201, answer)
  return {
    clientId: String(client['client_id']),
    accessToken: String(client['registration_access_token']),
  }
}

async function apiResource(api: Api, token: string): Promise<string> {
  const resource = `https://${crypto.randomUUID()}.files.test/mcp`
  const body = { resource, name: 'Files', scopes: [{ name: 'files:read' }] }
  return String(expectStatus(201, await api.post('/api/v1/api-resources', token, body))['id'])
}

/** A subscription to payments with one delivery that has arrived. */
async function webhook(api: Api, token: string, { origin, until }: Receiver) {
  const url = `${origin}/${crypto.randomUUID()}`
  const hook = expectStatus(
    201,
    await api.post('/api/v1/webhooks', token, { url, event_types: ['commerce.payment.failed'] }),
  )
  const id = String(hook['id'])
  const test = await api.post(`/api/v1/webhooks/${id}/test`, token)
  if (test.status >= 300) throw new Error(JSON.stringify(test.body))
  await until(new URL(url).pathname, 1)
  const [delivery] = await rowsWhen(api, token, `/api/v1/webhooks/${id}/deliveries`, (rows) =>
    rows.some(({ status }) => status !== 'pending' && status !== 'retrying'),
  )
  return { id, secret: String(hook['secret']), deliveryId: String(delivery!['id']) }
}

/** An identity provider, a domain, and a user of the tenant with an identity at the provider. */
async function signInElsewhere({ at }: Api, { tenantId }: Workspace, make: Make): Promise<Objects> {
  const provider = await make('/api/v1/sso/providers', {
    name: 'Elsewhere',
    issuer: 'https://id.example.org',
    client_id: 'rp',
    client_secret: 'theirs',
  })
  const [identity] = await sql<{ id: string }>(
    at.db.database,
    `insert into upstream_identities (account_id, id, provider, tenant_id, issuer, subject,
       created_at, last_used_at)
     select account_id, gen_random_uuid(), $2, $1, 'https://id.example.org', 'subject-1', now(),
       now()
     from tenant_users where tenant_id = $1 limit 1 returning id`,
    [tenantId, provider],
  )
  return {
    '/api/v1/sso/providers/{id}': provider,
    '/api/v1/organization/domains/{id}': await make('/api/v1/organization/domains', {
      domain: 'theirs.example.org',
    }),
    '/auth/account/identities/{id}': identity!.id,
  }
}

async function vault(make: Make, agentId: string) {
  const at = '/api/v1/vault'
  const record = { provider: 'example', label: 'Theirs', non_exportable: false }
  const authority = await make(`${at}/credentials`, { ...record, credential_type: 'ssh_ca' })
  const key = { ...record, credential_type: 'api_key', auth_scheme: 'bearer', secret: 'theirs' }
  const delegated = await make(`${at}/credentials`, key)
  const grantee = { grantee_type: 'agent', grantee_id: agentId }
  const lending = { recipient_id: agentId, byte_budget: 1 }
  const objects = {
    [`${at}/credentials/{credential_id}`]: authority,
    [`${at}/grants/{grant_id}`]: await make(`${at}/credentials/${authority}/grants`, grantee),
    [`${at}/leases/{lease_id}`]: await make(`${at}/credentials/${delegated}/leases`, lending),
  }
  return { objects, apiKeyId: delegated }
}

/** A call of the delegation that waits for its person. */
async function waitingCall(api: Api, make: Make, { token, delegationId }: Lent): Promise<Objects> {
  const at = '/api/v1/vault/credentials'
  const credentialId = await make(at, {
    provider: 'example',
    label: 'Approved',
    credential_type: 'api_key',
    auth_scheme: 'bearer',
    secret: 'theirs',
    allowed_hosts: ['api.example.com'],
  })
  const grantee = { grantee_type: 'delegation', grantee_id: delegationId }
  await make(`${at}/${credentialId}/grants`, { ...grantee, approval: 'each' })
  const call = { credential_id: credentialId, url: 'https://api.example.com/' }
  const { body } = await api.post('/v1/proxy', token, call).gives(202)
  const id = String(body['approval_id'])
  return { '/v1/approvals/{approval_id}': id, '/api/v1/approvals/{approval_id}': id }
}

/** A shop with payments, renewals and disputes. */
async function trade(api: Api, token: string): Promise<Objects> {
  const at = '/api/v1/commerce'
  const make = (path: string, json: Json) => made(api, token, `${at}/${path}`, json)
  const product = await make('products', { name: 'Tea' })
  const money = { product_id: product, amount_minor: 1999, currency: 'USD' }
  const price = await make('prices', money)
  const monthly = await make('prices', { ...money, recurring: { interval: 'month' } })
  const sale = expectStatus(
    200,
    await api.post(`${PUBLIC}/checkout-sessions`, undefined, { price_id: price }),
  )
  const browser = openBrowser(api.at)
  const page = await browser.get(new URL(String(sale['checkout_url'])).pathname)
  await browser.submit(page, { outcome: 'dispute', customer_email: 'ada@example.com' })
  const [dispute] = await rowsWhen(api, token, `${at}/disputes`, (rows) => rows.length > 0)
  const subscription = expectStatus(
    200,
    await api.post(`${PUBLIC}/subscription-checkout-sessions`, undefined, {
      price_id: monthly,
      customer_email: 'ada@example.com',
    }),
  )
  return {
    [`${at}/products/{id}`]: product,
    [`${at}/prices/{id}`]: price,
    [`${at}/payment-links/{id}`]: await make('payment-links', { price_id: price }),
    [`${at}/charges/{id}`]: String(sale['charge_id']),
    [`${PUBLIC}/fulfillment/{charge_id}`]: String(sale['charge_id']),
    [`${at}/disputes/{id}`]: String(dispute!['id']),
    [`${at}/subscriptions/{id}`]: String(subscription['subscription_id']),
    [`${at}/payouts/{id}`]: await paidOut(api, token, price),
    [`${at}/statements/{id}`]: await make('statements', { currency: 'USD' }),
    [`${at}/x402-payments/{id}`]: await paidByX402(api, token, price),
  }
}

/** A payout that has arrived. */
async function paidOut(api: Api, token: string, price: string): Promise<string> {
  const sale = expectStatus(
    200,
    await api.post(`${PUBLIC}/checkout-sessions`, undefined, { price_id: price }),
  )
  const browser = openBrowser(api.at)
  const page = await browser.get(new URL(String(sale['checkout_url'])).pathname)
  await browser.submit(page, { outcome: 'succeed' })
  const at = '/api/v1/commerce'
  await rowsWhen(api, token, `${at}/balances`, ([one]) => Number(one?.['available_minor']) > 0)
  const payout = await made(api, token, `${at}/payouts`, { rail: 'sandbox', currency: 'USD' })
  await rowsWhen(api, token, `${at}/payouts`, ([one]) => one?.['status'] === 'paid')
  return payout
}

/** An x402 payment in USDC on Base Sepolia that the facilitator has settled. */
async function paidByX402(api: Api, token: string, price: string): Promise<string> {
  const payTo = newAccount().address
  const link = expectStatus(
    201,
    await api.post('/api/v1/commerce/payment-links', token, {
      price_id: price,
      x402: { network: NETWORK, pay_to: payTo },
    }),
  )
  const terms = `${PUBLIC}/payment-links/${String(link['token'])}/x402?buyer_country=US&buyer_region=CA`
  const { accepts } = expectStatus(402, await api.get(terms))
  const accepted = (accepts as Json[])[0]!
  const payload = await authorize(newAccount(), {
    token: String(accepted['asset']),
    to: payTo,
    value: BigInt(String(accepted['amount'])),
    name: 'USDC',
  })
  const proof = encode({ x402Version: 2, accepted, payload })
  expectStatus(200, await api.call('POST', terms, { headers: { 'payment-signature': proof } }))
  const { rows } = await api.list('/api/v1/commerce/x402-payments', token)
  return String(rows[0]!['id'])
}

/** A list, once it fits the condition. */
async function rowsWhen(
  api: Api,
  token: string,
  path: string,
  fits: (rows: readonly Json[]) => boolean,
): Promise<Json[]> {
  for (let turn = 0; turn < WITHIN_TURNS; turn += 1) {
    const { rows } = await api.list(path, token)
    if (fits(rows)) return rows
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`${path} did not become what was expected`)
}

/** An offer, and a credential that a wallet got for another one. */
async function credentials(api: Api, workspace: Workspace): Promise<Objects> {
  const tenant = await issuing(api, workspace)
  await requestCredential(api, tenant, await offeredToken(api, tenant))
  const { id } = await offer(api, tenant)
  const { rows } = await api.list('/api/v1/issued-credentials', workspace.token)
  return {
    '/api/v1/credential-offers/{credential_offer_id}': id,
    '/api/v1/issued-credentials/{issued_credential_id}': String(rows[0]!['id']),
  }
}
