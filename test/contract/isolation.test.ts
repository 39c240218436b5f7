/**
 * Every operation of the internal OpenAPI document.
 *
 * An object of another tenant does not exist: an operation that names an object is called with an existing object of another
 * tenant, with a token that has all rights in its own tenant. An operation without a known object fails.
 *
 * Each operation is called with each kind of token. The calls that are not refused (401, 403) stand in not-refused.txt: a
 * new line is a new right, and is reviewed. `RECORD_NOT_REFUSED=1` writes the list.
 *
 * NUL, which PostgreSQL cannot store, is refused or ignored in each member, field and parameter (nul.ts).
 */
import { createHash, randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import test from 'ava'
import type { Answer, Json } from '../support/api.js'
import { sql } from '../support/storage/sql.js'
import { dataDigest } from '../support/storage/data-digest.js'
import { ask as askDelegation, delegate, ownToken } from '../support/agents/delegation.js'
import { loginAtControlPlane, operatorOfDeployment } from '../support/oauth/operator.js'
import { type PopulatedTenant, populateTenant } from '../support/service/populated-service.js'
import { startPopulatedService } from '../support/service/populated-service-parts.js'
import { sampler, type Schema } from '../support/storage/schema-sample.js'
import { PUBLIC } from '../support/commerce/shop.js'
import type { ConsoleResource } from '../../gateway/apps/console/declaration.js'
import { RESOURCES } from '../../gateway/apps/console/site.js'
import { ownerOf } from '../support/identity/console.js'
import { nulFaults } from './nul.js'
import { IS_LONG } from '../support/runs.js'

const resources = await startPopulatedService()
const { api, receiver, running } = resources
const mine = await populateTenant(api, 'Mine', receiver)
const theirs = await populateTenant(api, 'Theirs', receiver)
await sql(running)`
  update tenant_users set roles = '{admin}' where tenant_id = ${mine.workspace.tenantId}`
const managerToken = await ownToken(api, mine.workspace, mine.person, 'openid users:manage')
const document = (await api.get('/openapi.json')).body
/** The data of the other tenant before the calls. The long run compares it after each of them. */
const untouched = await dataDigest(running.db, theirs.workspace)
test.after.always(() => resources.close())

type Operation = {
  readonly operationId: string
  readonly security?: readonly Json[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> }
}
type Case = { readonly method: string; readonly path: string; readonly operation: Operation }

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const PARAMETER = /\{([a-z_]+)\}/g
const sample = sampler(document, { event_types: ['*'], name: 'A name' })

const operations: readonly Case[] = Object.entries(
  document['paths'] as Record<string, Json>,
).flatMap(([path, item]) =>
  METHODS.filter((method) => method in item).map((method) => ({
    method: method.toUpperCase(),
    path,
    operation: item[method] as Operation,
  })),
)
const cases = operations.filter(({ path }) => path.includes('{'))

/** Paths whose parameter is not an object of a tenant, with the reason. */
const NOT_AN_OBJECT: Readonly<Record<string, string>> = {
  '/.well-known/openid-configuration/{issuer_path}': 'public metadata',
  '/.well-known/ssf-configuration/{issuer_path}': 'public metadata',
  '/{issuer_path}/.well-known/openid-configuration': 'public metadata',
  '/.well-known/oauth-authorization-server/{issuer_path}': 'public metadata',
  '/.well-known/openid-credential-issuer/credential-issuers/{tenant_slug}': 'public metadata',
  '/.well-known/jwt-vc-issuer/credential-issuers/{tenant_slug}': 'public metadata',
  '/credential-issuers/{tenant_slug}/.well-known/jwks.json': 'public metadata',
  '/ssh/{credential_id}/krl': 'public: hosts poll it',
  '/ssh/{credential_id}/{file}': 'public: hosts poll it',
  '/status-lists/{status_list_id}': 'public: its URL is in every token',
  '/credential-types/{credential_type}': 'public metadata',
  '/credential-issuers/{tenant_slug}/nonce': 'for every wallet',
  '/credential-issuers/{tenant_slug}/credential': 'tested in flows/oauth/credentials',
  '/credential-issuers/{tenant_slug}/notification': 'tested in flows/oauth/credentials',
  '/credential-issuers/{tenant_slug}/credential-offers/{offer_handle}': 'a secret of one offer',
  '/credential-offers/{offer_handle}': 'a secret of one offer',
  '/credential-offers/{offer_handle}/page': 'a secret of one offer',
  '/oauth/authorize/resume/{handle}': 'a secret of one browser',
  '/oauth/authorize/resume/{handle}/account': 'a secret of one browser',
  '/connect/{code}': 'tested in flows/vault/connections',
  '/connect/{code}/approve': 'tested in flows/vault/connections',
  '/connect/{code}/deny': 'tested in flows/vault/connections',
  '/device/delegation/{user_code}': 'tested below, with people',
  '/device/delegation/{user_code}/approve': 'tested below, with people',
  '/device/delegation/{user_code}/deny': 'tested below, with people',
  '/vault/approvals/{approval_id}': 'tested in flows/vault, with people',
  '/vault/approvals/{approval_id}/approve': 'tested in flows/vault, with people',
  '/vault/approvals/{approval_id}/deny': 'tested in flows/vault, with people',
  '/auth/sso/callback/{provider}': 'a secret of one browser',
  '/auth/sso/{provider}/backchannel-logout': 'answers to tokens that the provider signed',
  '/auth/sso/{provider}/security-events': 'answers to tokens that the provider signed',
  '/auth/magic/{token}': 'a secret of one letter',
  '/auth/password/reset/{token}': 'a secret of one letter',
  '/auth/invitations/{token}': 'a secret of one letter',
  '/auth/register/{token}': 'a secret of one letter',
  '/auth/email/{token}': 'a secret of one letter',
  '/auth/invites/{token}': 'a secret of one link',
  '/auth/invites/letters/{token}': 'a secret of one letter',
  '/pay/{token}': 'a page for everybody',
  [`${PUBLIC}/checkout-sessions/{checkout_session_id}/x402`]: 'payable by everybody',
  [`${PUBLIC}/payment-links/{payment_link_token}/checkout`]: 'a link for everybody',
  [`${PUBLIC}/payment-links/{payment_link_token}/x402`]: 'a link for everybody',
  '/errors/{name}': 'documentation',
  '/documentation/{page}': 'documentation',
  '/documentation/{group}/{page}': 'documentation',
  '/documentation/{group}/{area}/{page}': 'documentation',
  '/docs/{page}': 'documentation',
  '/docs/{group}/{page}': 'documentation',
  '/docs/{group}/{area}/{page}': 'documentation',
  '/docs/pictures/{name}': 'documentation',
  '/docs/style/{digest}': 'a file for everybody',
  '/dev/mail/{id}': 'of the whole development service',
  '/dev/mail/{id}/html': 'of the whole development service',
  '/scim/v2/Schemas/{schema_uri}': 'documentation',
  '/scim/v2/ResourceTypes/{name}': 'documentation',
  ...Object.fromEntries(
    [
      '/api/v1/organizations/{organization_id}/suspend',
      '/api/v1/organizations/{organization_id}/reactivate',
      '/api/v1/billing/plans/{plan_id}',
      '/api/v1/organizations/{organization_id}/billing',
      '/api/v1/tenants/{tenant_id}/suspend',
      '/api/v1/tenants/{tenant_id}/reactivate',
      '/api/v1/accounts/{account_id}',
      '/api/v1/accounts/{account_id}/suspend',
      '/api/v1/accounts/{account_id}/reactivate',
    ].map((path) => [path, 'for operators of the deployment, who reach everything']),
  ),
  '/agents/{agent_id}/client.json': 'public metadata',
  '/agents/{agent_id}/jwks.json': 'public metadata',
  '/agents/{agent_id}/agent-card.json': 'public metadata',
  ...Object.fromEntries(
    [
      '',
      '/do/{action}',
      '/{id}',
      '/{id}/do/{action}',
      '/{id}/{child}',
      '/{id}/{child}/do/{action}',
      '/{id}/{child}/{child_id}',
      '/{id}/{child}/{child_id}/do/{action}',
    ].map((path) => [`/console/{resource}${path}`, 'tested below, by resource']),
  ),
  '/console/assets/{id}/do/upload': 'a kind of image, of the own tenant',
  '/api/v1/tenant/branding/assets/{kind}': 'a kind of image, of the own tenant',
  '/assets/{tenant_id}/{file}': 'a file for everybody',
  '/console/style/{digest}': 'a file for everybody',
  '/auth/style/{digest}': 'a file for everybody',
  '/auth/font/{digest}': 'a file for everybody',
  '/auth/brand/{color}': 'a file for everybody',
  '/auth/script/{digest}': 'a file for everybody',
}

/** Operations with another answer than 404 (RFC 7592 section 3: the token is not valid for it). */
const DOCUMENTED: Readonly<Record<string, number>> = { '/oauth/register/{client_id}': 401 }

/** Operations for users only. */
const PEOPLE_ONLY = new Set([
  '/api/v1/approvals/{approval_id}/approve',
  '/api/v1/approvals/{approval_id}/deny',
  '/api/v1/delegations/{delegation_id}/revoke',
  '/api/v1/identity/ciba/requests/{id}/deny',
])

/** Operations for administrators who are users. */
const MANAGERS_ONLY = /^\/api\/v1\/tenant-users\/\{user_id\}\/reset-/

const places = (path: string): string[] =>
  [...path.matchAll(PARAMETER)].map((match) => path.slice(0, path.indexOf('}', match.index) + 1))

/** A path with an object of theirs in every place, or with what exists nowhere. */
function filled(path: string, { objects }: PopulatedTenant, existing: boolean): string {
  return path.replace(PARAMETER, (_all, _name, at: number) => {
    const object = objects[path.slice(0, path.indexOf('}', at) + 1)]
    return existing && object !== undefined ? object : randomUUID()
  })
}

const guarded = cases.filter(({ path }) => !(path in NOT_AN_OBJECT))

const isPage = ({ security = [] }: Operation): boolean =>
  security.length > 0 && security.every((way) => 'session' in way)

/** Asks as `who` for an object of `whose`. */
async function ask(
  one: Case,
  who: PopulatedTenant,
  whose: PopulatedTenant,
  existing: boolean,
): Promise<Answer> {
  const { method, path, operation } = one
  const at = filled(path, whose, existing)
  if (isPage(operation)) return onPage(at, who)
  const schema = operation.requestBody?.content['application/json']?.schema
  const headers = path.startsWith(`${PUBLIC}/fulfillment/`)
    ? { 'x-svc-fulfillment-secret': who.fulfillmentSecret }
    : {}
  return api.call(method, at, {
    token: tokenFor(path, who),
    headers,
    ...(schema === undefined ? {} : { json: sample(schema) }),
  })
}

function tokenFor(
  path: string,
  { workspace, personToken, registrationToken, scimToken }: PopulatedTenant,
): string {
  if (PEOPLE_ONLY.has(path)) return personToken
  if (MANAGERS_ONLY.test(path)) return managerToken
  if (path.startsWith('/oauth/register/')) return registrationToken
  if (path.startsWith('/scim/v2/')) return scimToken
  return /^\/api\/v1\/(?:control-plane|organizations|tenants)\//.test(path)
    ? workspace.operator
    : workspace.token
}

/** As a browser that is signed in would send a form of its page. */
async function onPage(path: string, { person: { browser } }: PopulatedTenant): Promise<Answer> {
  const { forms } = await browser.get('/auth/account')
  const csrf = forms.at(-1)?.fields['csrf_token'] ?? ''
  const fields = { csrf_token: csrf, action: 'approve' }
  const origin = new URL(running.baseUrl).origin
  const { status, headers, html } = await browser.post(path, fields, { origin })
  const said = html.replaceAll(/[\w-]{20,}/g, '')
  return { status, headers, body: { detail: createHash('sha256').update(said).digest('hex') } }
}

test('there is an object for every operation that names one, and an operation for every object', (t) => {
  t.true(guarded.length >= 50, String(guarded.length))
  const named = new Set(guarded.flatMap(({ path }) => places(path)))
  t.deepEqual(
    [...named].filter((place) => !(place in theirs.objects)),
    [],
    'a new operation needs an object in test/support/service/populated-service.ts, or a reason in NOT_AN_OBJECT',
  )
  t.deepEqual(
    Object.keys(theirs.objects).filter((place) => !named.has(place)),
    [],
  )
})

for (const one of guarded) {
  const name = `${one.method} ${one.path}`
  test.serial(`${name} does not know an object of another tenant`, async (t) => {
    const foreign = await ask(one, mine, theirs, true)
    const nowhere = await ask(one, mine, theirs, false)
    const expected = DOCUMENTED[one.path] ?? 404
    t.is(foreign.status, expected, JSON.stringify(foreign.body))
    // The answer is the same as for an unknown id.
    t.is(nowhere.status, expected)
    t.is(foreign.body['detail'], nowhere.body['detail'])
    t.is(foreign.body['error'], nowhere.body['error'])
    if (IS_LONG) t.deepEqual(await dataDigest(running.db, theirs.workspace), untouched)
  })
}

test.serial(
  'a path with an own and a foreign object does not disclose the foreign one',
  async (t) => {
    for (const one of guarded.filter(({ path }) => places(path).length > 1)) {
      const [first = '', ...rest] = places(one.path)
      const mixed = {
        ...theirs,
        objects: { ...theirs.objects, [first]: mine.objects[first] ?? '' },
      }
      const { status, body } = await ask(one, mine, mixed, true)
      t.is(status, 404, `${one.method} ${one.path} ${rest.join()} ${JSON.stringify(body)}`)
    }
  },
)

/** Operations with an object id in the body. */
function named(
  estate: PopulatedTenant,
): readonly [path: string, body: (id: string) => Json, place: string][] {
  const { objects } = estate
  const own = objects['/api/v1/vault/credentials/{credential_id}']
  const price = { amount_minor: 1, currency: 'USD' }
  const agent = '/api/v1/agents/{agent_id}'
  const credential = '/api/v1/vault/credentials/{credential_id}'
  const ssh = { target_host: 'host.example', principals: ['root'] }
  return [
    [
      '/api/v1/commerce/prices',
      (id) => ({ ...price, product_id: id }),
      '/api/v1/commerce/products/{id}',
    ],
    ['/api/v1/commerce/payment-links', (id) => ({ price_id: id }), '/api/v1/commerce/prices/{id}'],
    [
      `/api/v1/vault/credentials/${own}/grants`,
      (id) => ({ grantee_type: 'agent', grantee_id: id }),
      agent,
    ],
    [
      `/api/v1/vault/credentials/${own}/grants`,
      (id) => ({ grantee_type: 'delegation', grantee_id: id }),
      '/api/v1/delegations/{delegation_id}',
    ],
    [
      `/api/v1/vault/credentials/${estate.apiKeyId}/leases`,
      (id) => ({ recipient_id: id, byte_budget: 1 }),
      agent,
    ],
    ['/api/v1/agents/delegations/ssh-sign', (id) => ({ ...ssh, credential_id: id }), credential],
  ]
}

test.serial('an object of another tenant in a body is unknown too', async (t) => {
  const ours = await dataDigest(running.db, mine.workspace)
  for (const [path, body, place] of named(mine)) {
    const send = (id: string) => api.post(path, mine.workspace.token, body(id))
    const foreign = await send(theirs.objects[place]!)
    const nowhere = await send(randomUUID())
    t.true([400, 404].includes(foreign.status), `${path} ${JSON.stringify(foreign.body)}`)
    t.is(foreign.status, nowhere.status, path)
    t.is(foreign.body['detail'], nowhere.body['detail'], path)
  }
  t.deepEqual(await dataDigest(running.db, mine.workspace), ours)
})

/** The operation that names an object of a resource of the console. */
function placeOf({ item, actions = [] }: ConsoleResource): string | undefined {
  const paths = [item, ...actions.filter(({ on }) => on === 'item')].map((one) => one?.path ?? '')
  const named = paths.map((path) => path.slice(0, path.lastIndexOf('}') + 1))
  return named.find((path) => path in theirs.objects)
}

/** The pages of an object of theirs, and of the lists within it. */
function consolePaths(resource: ConsoleResource, above = '/console'): readonly string[] {
  const place = placeOf(resource)
  if (place === undefined) return []
  const at = `${above}/${resource.name}/${encodeURIComponent(theirs.objects[place]!)}`
  const doing = (actions: ConsoleResource['actions'], on: string) =>
    (actions ?? []).filter((action) => action.on === on).map(({ name }) => `/do/${name}`)
  return [
    ...(resource.opens === false ? [] : [at]),
    ...doing(resource.actions, 'item').map((path) => `${at}${path}`),
    ...(resource.children ?? []).flatMap((child) => [
      `${at}/${child.name}`,
      ...doing(child.actions, 'list').map((path) => `${at}/${child.name}${path}`),
      ...consolePaths(child, at),
    ]),
  ]
}

test.serial('the console of one tenant does not know an object of another', async (t) => {
  const browser = await ownerOf(api, mine)
  const { csrf_token: csrf = '' } = (await browser.get('/console')).forms[0]!.fields
  const paths = RESOURCES.flatMap((resource) => consolePaths(resource))
  t.true(paths.length > 80, paths.join('\n'))
  for (const path of paths) {
    const { status, html } = await browser.get(path)
    t.true([403, 404].includes(status), `GET ${path} ${status}`)
    t.notRegex(html, /Theirs/, path)
    if (!path.includes('/do/')) continue
    const sent = await browser.post(path, { csrf_token: csrf })
    t.true([403, 404].includes(sent.status), `POST ${path} ${sent.status}`)
  }
})

test.serial('nothing of the other tenant has changed', async (t) => {
  t.deepEqual(await dataDigest(running.db, theirs.workspace), untouched)
})

test.serial('a delegation request of another tenant cannot be decided here', async (t) => {
  const asked = await askDelegation(api, theirs.workspace.token, { scope: 'openid vault:list' })
  const before = await dataDigest(running.db, theirs.workspace)
  const { browser } = mine.person
  const { forms } = await browser.get('/auth/account')
  const csrf = forms.at(-1)?.fields['csrf_token'] ?? ''
  const at = `/device/delegation/${asked.userCode}`
  const shown = await browser.get(at)
  t.not(shown.status, 200, shown.html)
  for (const answer of ['approve', 'deny']) {
    const { status, location } = await browser.post(`${at}/${answer}`, { csrf_token: csrf })
    t.true(status >= 400 || String(location).startsWith('/auth/login'), `${status} ${location}`)
  }
  // The user is redirected to sign-in there, and nothing else changes.
  const { 'sign_in_flows.tenant_id': _begun, ...after } = await dataDigest(
    running.db,
    theirs.workspace,
  )
  t.like(before, after)
})

test.serial('their own token finds what was asked for', async (t) => {
  for (const one of guarded.filter(({ method }) => method === 'GET')) {
    const { status, body } = await ask(one, theirs, theirs, true)
    t.is(status, 200, `${one.method} ${one.path} ${JSON.stringify(body)}`)
  }
  for (const [path, body, place] of named(theirs)) {
    const { status } = await api.post(path, theirs.workspace.token, body(theirs.objects[place]!))
    t.false([400, 404].includes(status), `${path} ${status}`)
  }
})

test.serial('NUL is never an internal error', async (t) => {
  t.timeout(300_000)
  const { count, faults } = await nulFaults(api, mine, document)
  t.true(count > 400, String(count))
  t.deepEqual(faults, [])
})

const LIST = 'test/contract/not-refused.txt'
/** Schemes of requests without an access token in `authorization`. */
const OTHER_SCHEMES = new Set(['session', 'client_secret_basic', 'client_secret_post'])
const withToken = ({ operation: { security = [] } }: Case) =>
  security.flatMap((way) => Object.keys(way)).some((scheme) => !OTHER_SCHEMES.has(scheme))

async function tokens(): Promise<Readonly<Record<string, string>>> {
  const { workspace, person, scimToken } = theirs
  const { organizationId } = workspace
  const owner = (await loginAtControlPlane(api, workspace)).token
  const bound = await api.post(
    `/api/v1/control-plane/organizations/${organizationId}/token`,
    owner,
    {},
  )
  const key = await api.post('/api/v1/api-keys', workspace.token, {
    name: 'Caller',
    scopes: ['users:read', 'webhooks:read', 'applications:read', 'vault:list', 'audit:read'],
  })
  const delegated = await delegate(api, workspace.token, person)
  return {
    owner,
    organization: String(bound.body['access_token']),
    operator: (await operatorOfDeployment(api)).token,
    delegated: delegated.token,
    scim: scimToken,
    'api-key': String(key.body['key'] ?? key.body['secret'] ?? key.body['api_key']),
  }
}

// The last: it changes the tenant of its callers.
test.serial('each kind of token opens the reviewed operations only', async (t) => {
  t.timeout(300_000)
  const guardedByToken = operations.filter(withToken)
  t.true(guardedByToken.length > 150, String(guardedByToken.length))
  const opened: string[] = []
  for (const [kind, token] of Object.entries(await tokens())) {
    for (const { method, path, operation } of guardedByToken) {
      const schema = operation.requestBody?.content['application/json']?.schema
      const at = path.replaceAll(PARAMETER, () => randomUUID())
      const json = schema === undefined ? undefined : sample(schema)
      const { status, body } = await api.call(method, at, { token, json })
      t.true(status < 500 || status === 501, `${kind} ${method} ${path} ${JSON.stringify(body)}`)
      if (status !== 401 && status !== 403) opened.push(`${kind} ${method} ${path}`)
    }
  }
  if (process.env['RECORD_NOT_REFUSED'] === '1') writeFileSync(LIST, `${opened.join('\n')}\n`)
  t.deepEqual(opened, readFileSync(LIST, 'utf8').trimEnd().split('\n'))
})
