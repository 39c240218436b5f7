/**
 * A suspended resource is refused by every process and on every path, and works again after reactivation. Two services
 * on one database: what one suspends, the other refuses.
 */
import test, { type ExecutionContext } from 'ava'
import * as oidc from 'openid-client'
import { request } from 'undici'
import { freshKeyPair } from '../../../../runtime/kernel/key-pair.js'
import { type Api, expected, type Json } from '../../../support/api.js'
import { openBrowser } from '../../../support/pages/browser.js'
import {
  ask,
  fixtureOf,
  delegate,
  newFixture,
  ownToken,
  present,
} from '../../../support/agents/delegation.js'
import { bodyCall, CREDENTIALS, UPSTREAM_NAME } from '../../../support/vault/egress.js'
import { sql } from '../../../support/storage/sql.js'
import {
  loginAtControlPlane,
  operator,
  operatorOfDeployment,
} from '../../../support/oauth/operator.js'
import { signIn } from '../../../support/identity/person.js'
import { startReceiver } from '../../../support/webhooks/receiver.js'
import { authorized, callbackOf, relyingParty } from '../../../support/oauth/relying-party.js'
import { startUpstream } from '../../../actors/vault/egress/upstream.js'
import { PUBLIC } from '../../../support/commerce/shop.js'
import { sharedTwo } from '../../../support/service/two-services.js'

const upstream = await startUpstream({ tls: true })
const receiver = await startReceiver()
const { first, second } = await sharedTwo('egress')
const ops = await operatorOfDeployment(first)
test.after.always(() => upstream.close())

const ME = '/api/v1/agents/me'
const { origin } = upstream

/** True if something still works at a service. */
type Probe = (at: Api) => Promise<boolean>
/** Everything belongs to the tenant. `ofPerson` marks what also belongs to the user. */
type Probes = Readonly<Record<string, { readonly ofPerson: boolean; readonly works: Probe }>>

/** A tenant with one of every kind of resource, and probes that show whether each works. */
async function populatedTenant() {
  const workspace = await first.workspace()
  const { tenantId, token, organizationId } = workspace
  const { key, agentId } = await first.register(tenantId)
  const login = (at: Api) => at.login(key, { agent_id: agentId, tenant_id: tenantId }, 'vault:read')
  const agent = await expected(200, login(first))
  const agentToken = String(agent['access_token'])
  let agentRefresh = String(agent['refresh_token'])
  const bound = await expected(
    200,
    first.post(`/api/v1/control-plane/organizations/${organizationId}/token`, workspace.operator),
  )
  const made = await expected(
    201,
    first.post('/api/v1/applications', token, {
      name: 'Machine',
      redirect_uris: [],
      grant_types: ['client_credentials'],
      scopes: ['vault:list'],
    }),
  )
  const secret = `${String(made['client_id'])}:${String(made['client_secret'])}`
  const basic = { authorization: `Basic ${Buffer.from(secret).toString('base64')}` }
  const machine = (at: Api) =>
    at.form('/oauth/token', { grant_type: 'client_credentials', scope: 'vault:list' }, basic)
  const machineToken = String((await expected(200, machine(first)))['access_token'])

  const human = await newFixture(first, workspace)
  const person = await present(first, human)
  const party = await relyingParty(first.at, workspace, {
    scopes: ['openid', 'offline_access', 'vault:list', 'delegations:manage'],
  })
  const begun = await party.journey({ scope: 'openid offline_access' })
  const tokens = await oidc.authorizationCodeGrant(
    party.config,
    callbackOf(await authorized(person.browser, human, begun.url)),
    begun.checks,
  )
  const personBasic = {
    authorization: `Basic ${Buffer.from(`${party.clientId}:${party.secret}`).toString('base64')}`,
  }
  let personRefresh = tokens.refresh_token!
  const delegated = await delegate(first, token, person)

  const credential = await expected(
    201,
    first.post(CREDENTIALS, token, {
      provider: 'upstream',
      label: 'Key',
      secret: 'a secret',
      auth_scheme: 'bearer',
      credential_type: 'api_key',
      allowed_hosts: [UPSTREAM_NAME],
    }),
  )
  const credentialId = String(credential['id'])
  for (const grantee of [
    { grantee_type: 'agent', grantee_id: agentId },
    { grantee_type: 'delegation', grantee_id: delegated.delegationId },
  ])
    await expected(201, first.post(`${CREDENTIALS}/${credentialId}/grants`, token, grantee))
  const headers = bodyCall({ credentialId }, `${origin}/echo`)
  const authority = await expected(
    201,
    first.post(CREDENTIALS, token, {
      provider: 'ssh',
      credential_type: 'ssh_ca',
      label: 'Authority',
    }),
  )
  const { publicLine } = sshKey()
  const product = await expected(
    201,
    first.post('/api/v1/commerce/products', token, { name: 'Tea' }),
  )
  const price = await expected(
    201,
    first.post('/api/v1/commerce/prices', token, {
      product_id: product['id'],
      amount_minor: 1999,
      currency: 'USD',
    }),
  )
  const checkout = (at: Api) =>
    at.post(`${PUBLIC}/checkout-sessions`, undefined, { price_id: price['id'] })
  const page = new URL(String((await expected(200, checkout(first)))['checkout_url'])).pathname

  const probes: Probes = {
    'a token of an agent': tenants(async (at) => (await at.get(ME, agentToken)).status === 200),
    'a refresh token of an agent': tenants(async (at) => {
      const fields = {
        grant_type: 'refresh_token',
        refresh_token: agentRefresh,
        client_id: agentId,
      }
      const { status, body } = await at.form('/oauth/token', fields)
      if (status === 200) agentRefresh = String(body['refresh_token'])
      return status === 200
    }),
    'a login of an agent': tenants(async (at) => (await login(at)).status === 200),
    // The proof of possession names the issuer, which is the first service.
    'a registration of an agent': tenants(async () =>
      first.register(tenantId).then(
        () => true,
        () => false,
      ),
    ),
    'a token of an application': tenants(
      async (at) => (await at.get(CREDENTIALS, machineToken)).status !== 401,
    ),
    'a secret of an application': tenants(async (at) => (await machine(at)).status === 200),
    'an introspection': tenants(async (at) => {
      const { status, body } = await at.form('/oauth/introspect', { token: machineToken }, basic)
      return status === 200 && body['active'] === true
    }),
    'an authorization request': tenants(async (at) => {
      const browser = openBrowser(at.at)
      const { url } = await party.journey({ scope: 'openid' })
      const shown = await browser.get(url.pathname + url.search)
      return shown.status < 400
    }),
    'a session of a browser': persons(async () => {
      const { status } = await person.browser.get('/auth/account')
      return status === 200
    }),
    'a sign-in by password': persons(async (at) => {
      const browser = openBrowser(at.at)
      // A suspended tenant has no sign-in page.
      const status = await signIn(browser, human).then(
        (answer) => answer.status,
        () => 404,
      )
      return status === 303
    }),
    'a token of a person': persons(
      async (at) => (await at.get('/userinfo', tokens.access_token)).status === 200,
    ),
    'a refresh token of a person': persons(async (at) => {
      const fields = { grant_type: 'refresh_token', refresh_token: personRefresh }
      const { status, body } = await at.form('/oauth/token', fields, personBasic)
      if (status === 200) personRefresh = String(body['refresh_token'])
      return status === 200
    }),
    'a delegated token': persons(
      async (at) => (await at.get(CREDENTIALS, delegated.token)).status === 200,
    ),
    'a request for a delegation': tenants(async (at) =>
      ask(at, agentToken, { scope: 'openid' }).then(
        () => true,
        () => false,
      ),
    ),
    'a call through egress': tenants(
      async (at) =>
        (await at.call('POST', '/v1/proxy/body', { token: agentToken, headers })).status === 200,
    ),
    'a call through egress for a person': persons(
      async (at) =>
        (await at.call('POST', '/v1/proxy/body', { token: delegated.token, headers })).status ===
        200,
    ),
    'an SSH certificate': tenants(async (at) => {
      const { status } = await at.post('/api/v1/agents/delegations/ssh-sign', token, {
        credential_id: authority['id'],
        public_key: publicLine,
        target_host: 'db1.example',
        principals: ['deploy'],
      })
      return status === 200
    }),
    'a checkout': tenants(async (at) => (await checkout(at)).status === 200),
    'the page of a checkout': tenants(async (at) => {
      const browser = openBrowser(at.at)
      const { status } = await browser.get(page)
      return status === 200
    }),
    'a switch to the tenant': tenants(async (at) => {
      const path = `/api/v1/control-plane/organizations/${organizationId}/tenants/${tenantId}/switch`
      return (await at.post(path, workspace.operator)).status === 200
    }),
  }
  /** Opens an egress stream that stays silent after its first chunk. */
  const stream = async (withToken: string) => {
    const { statusCode, body } = await request(new URL('/v1/proxy/body', second.at.baseUrl), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${withToken}`,
        ...bodyCall({ credentialId }, `${origin}/silent-after-chunk`),
      },
    })
    if (statusCode !== 200) throw new Error(`${statusCode}: ${await body.text()}`)
    const ended = new Promise<void>((resolve) =>
      body
        .on('error', () => resolve())
        .on('end', () => resolve())
        .resume(),
    )
    return { ended }
  }
  return {
    workspace,
    human,
    person,
    probes,
    stream,
    agentToken,
    lentToken: delegated.token,
    personToken: tokens.access_token,
    boundToken: String(bound['access_token']),
  }
}

const tenants = (works: Probe) => ({ ofPerson: false, works })
const persons = (works: Probe) => ({ ofPerson: true, works })

function sshKey() {
  const { publicKey } = freshKeyPair('ed25519')
  const raw = Buffer.from((publicKey.export({ format: 'jwk' }) as { x: string }).x, 'base64url')
  const field = (bytes: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return Buffer.concat([length, bytes])
  }
  const blob = Buffer.concat([field(Buffer.from('ssh-ed25519')), field(raw)])
  return { publicLine: `ssh-ed25519 ${blob.toString('base64')}` }
}

/** Waits until the other process has seen it. revocation.test.ts measures how long that takes. */
async function until(t: ExecutionContext, what: string, fits: () => Promise<boolean>) {
  const endMs = Date.now() + 60_000
  while (Date.now() < endMs) {
    if (await fits()) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.fail(what)
}

const change = (path: string, verb: 'suspend' | 'reactivate') =>
  expected(200, first.post(`${path}/${verb}`, ops.token))

test.serial(
  'everything of a suspended tenant and organization is refused, and works after reactivation',
  async (t) => {
    t.timeout(300_000)
    const made = await populatedTenant()
    const { workspace, probes } = made
    const works = async (at: Api, token: string) => (await at.get(ME, token)).status === 200
    for (const [what, { works: probe }] of Object.entries(probes))
      t.true(await probe(second), `${what} works before`)

    const organizationPath = `/api/v1/organizations/${workspace.organizationId}`
    for (const path of [`/api/v1/tenants/${workspace.tenantId}`, organizationPath]) {
      const { ended } = await made.stream(made.agentToken)
      t.is((await change(path, 'suspend'))['status'], 'suspended')
      t.false(await works(first, made.agentToken), 'the process that suspends refuses immediately')
      await until(
        t,
        'the other process refuses',
        async () => !(await works(second, made.agentToken)),
      )
      for (const at of [first, second])
        for (const [what, { works: probe }] of Object.entries(probes))
          t.false(await probe(at), `${what} is refused: ${path}`)
      await ended
      if (path === organizationPath) {
        const tenants = `/api/v1/control-plane/organizations/${workspace.organizationId}/tenants`
        t.is((await second.get(tenants, made.boundToken)).status, 401, 'a bound token')
        const fresh = await first.post(tenants, workspace.operator, { name: 'More' })
        t.is(fresh.status, 403, 'a new environment')
      }
      t.is((await change(path, 'reactivate'))['status'], 'active')
      await until(t, 'the other process accepts it again', () => works(second, made.agentToken))
      for (const [what, { works: probe }] of Object.entries(probes))
        t.true(await probe(second), `${what} is back: ${path}`)
    }

    const events = await sql<{ type: string }>(first.at)`
      select type from all_events where tenant_id = ${workspace.tenantId}
      and type ~ '^org.*(suspended|reactivated)$'
      order by sequence`
    t.deepEqual(
      events.map(({ type }) => type),
      ['org.tenant.suspended', 'org.tenant.reactivated', 'org.suspended', 'org.reactivated'],
    )
    const audit = await sql<{ type: string; subject: Json }>(first.at)`
      select type, subject from audit_events where tenant_id = ${workspace.controlPlane}
      and type ~ '^admin.(organization|tenant).' order by sequence`
    t.deepEqual(
      audit.map(({ type }) => type),
      [
        'admin.tenant.suspended',
        'admin.tenant.reactivated',
        'admin.organization.suspended',
        'admin.organization.reactivated',
      ],
    )
    for (const { subject } of audit)
      t.deepEqual(subject, { sub: ops.workspace.agentId, subject_type: 'agent' })
  },
)

test.serial(
  'everything of a suspended account is refused in all tenants, nothing else is',
  async (t) => {
    t.timeout(300_000)
    const made = await populatedTenant()
    const { workspace, human, probes } = made
    const query = `/api/v1/accounts?email=${encodeURIComponent(human.email)}`
    const [found] = (await expected(200, second.get(query, ops.token))) as unknown as Json[]
    t.deepEqual(Object.keys(found!), [
      'id',
      'email',
      'email_verified',
      'status',
      'tenants',
      'created_at',
    ])
    const tenantsOfAccount = found!['tenants'] as Json[]
    t.deepEqual(
      tenantsOfAccount.map(({ tenant_id: id }) => id),
      [workspace.tenantId],
    )
    const path = `/api/v1/accounts/${String(found!['id'])}`
    t.deepEqual(await expected(200, second.get(path, ops.token)), found)
    const works = async (at: Api) => (await at.get('/userinfo', made.personToken)).status === 200
    t.true(await works(second))
    const { ended } = await made.stream(made.lentToken)
    t.is((await change(path, 'suspend'))['status'], 'suspended')
    t.false(await works(first))
    await until(t, 'the other process refuses', async () => !(await works(second)))
    for (const at of [first, second])
      for (const [what, { works: probe, ofPerson }] of Object.entries(probes))
        t.is(await probe(at), !ofPerson, what)
    await ended

    // The tenant sees a suspended user, and cannot lift the deployment's suspension.
    const listed = `/api/v1/tenant-users?email=${encodeURIComponent(human.email)}`
    const [user] = (await first.list(listed, workspace.token)).rows
    t.is(user?.['status'], 'suspended')
    const lift = `/api/v1/tenant-users/${String(user?.['id'])}/reactivate`
    t.is((await first.post(lift, workspace.token)).status, 409)
    t.false(await works(second))

    t.is((await change(path, 'reactivate'))['status'], 'active')
    await until(t, 'the other process accepts it again', () => works(second))
    for (const [what, { works: probe }] of Object.entries(probes)) t.true(await probe(second), what)
    const [again] = (await first.list(listed, workspace.token)).rows
    t.is(again?.['status'], 'active')
  },
)

test.serial('webhook deliveries wait while their tenant is suspended', async (t) => {
  const workspace = await first.workspace()
  const path = '/hook-of-the-suspended'
  await expected(
    201,
    first.post('/api/v1/webhooks', workspace.token, {
      url: receiver.origin + path,
      event_types: ['org.tenant.suspended', 'org.tenant.reactivated', 'auth.token.issued'],
    }),
  )
  const tenant = `/api/v1/tenants/${workspace.tenantId}`
  await change(tenant, 'suspend')
  // The event is dispatched: its delivery exists and is due, and both workers poll every second.
  const delivered = () =>
    sql<{ status: string; attempts: number }>(first.at)`
      select status, attempt_count as attempts from webhook_deliveries
      where tenant_id = ${workspace.tenantId} and event_type = 'org.tenant.suspended'`
  await until(t, 'the event is dispatched', async () => (await delivered()).length === 1)
  // Another tenant's delivery shows that the workers have polled since.
  const other = await first.workspace()
  await expected(
    201,
    first.post('/api/v1/webhooks', other.token, {
      url: `${receiver.origin}/hook-of-another`,
      event_types: ['auth.token.issued'],
    }),
  )
  await first.login(other.key, { agent_id: other.agentId, tenant_id: other.tenantId })
  await receiver.until('/hook-of-another', 1)
  t.deepEqual(await delivered(), [{ status: 'pending', attempts: 0 }])
  t.is(receiver.at(path).length, 0)
  await change(tenant, 'reactivate')
  const types = (await receiver.until(path, 2)).map(({ headers }) => headers['x-svc-event'])
  t.true(types.includes('org.tenant.suspended'))
})

test.serial(
  'only an operator of the deployment may suspend, look up accounts, and be appointed',
  async (t) => {
    const owner = await first.workspace()
    const own = await ownToken(
      first,
      owner,
      await present(first, fixtureOf(owner)),
      'openid org:read',
    )
    const id = owner.tenantId
    const routes = [
      ...['organizations', 'tenants', 'accounts'].flatMap((kind) => [
        ['POST', `/api/v1/${kind}/${id}/suspend`] as const,
        ['POST', `/api/v1/${kind}/${id}/reactivate`] as const,
      ]),
      ['GET', '/api/v1/accounts?email=a%40b.example'] as const,
      ['GET', `/api/v1/accounts/${id}`] as const,
    ]
    for (const [method, path] of routes) {
      t.is((await first.call(method, path)).status, 401, path)
      for (const token of [owner.token, owner.operator, own]) {
        const refused = await first.call(method, path, { token })
        t.is(refused.status, 403, path)
        t.is(refused.body['error'], token === owner.operator ? 'forbidden' : 'insufficient_scope')
      }
      const unknown = path.replace(id, '00000000-0000-4000-8000-000000000000')
      if (unknown !== path)
        t.is((await first.call(method, unknown, { token: ops.token })).status, 404, path)
    }
    t.is((await loginAtControlPlane(first, owner, 'deployment:manage')).status, 400)
    // The control plane cannot be suspended, because no operator could lift it.
    const itself = `/api/v1/tenants/${owner.controlPlane}/suspend`
    t.is((await first.post(itself, ops.token)).status, 404)

    // Each scope is granted and revoked separately.
    await operator(first, 'appoint', owner.agentId)
    t.regex((await loginAtControlPlane(first, owner)).scope, /signing_keys:manage/)
    t.notRegex((await loginAtControlPlane(first, owner)).scope, /deployment:manage/)
    await operator(first, 'appoint', owner.agentId, '--scope', 'deployment:manage')
    const both = await loginAtControlPlane(first, owner)
    t.regex(both.scope, /signing_keys:manage deployment:manage/)
    await operator(first, 'dismiss', owner.agentId, '--scope', 'signing_keys:manage')
    t.is((await first.get(ME, both.token)).status, 401)
    const { scope } = await loginAtControlPlane(first, owner)
    t.true(scope.includes('deployment:manage') && !scope.includes('signing_keys:manage'))
  },
)

test.serial(
  'an environment stays suspended while its organization is, and the other way round',
  async (t) => {
    const { tenantId, organizationId, operator: token } = await first.workspace()
    const tenant = `/api/v1/tenants/${tenantId}`
    const organization = `/api/v1/organizations/${organizationId}`
    const status = async () => (await expected(200, first.get(tenant, ops.token)))['status']
    await change(organization, 'suspend')
    t.is(await status(), 'suspended')
    await change(tenant, 'reactivate')
    t.is(await status(), 'suspended')
    await change(tenant, 'suspend')
    await change(organization, 'reactivate')
    t.is(await status(), 'suspended')
    t.is((await expected(200, first.get(tenant, token)))['status'], 'suspended')
    await change(tenant, 'reactivate')
    t.is(await status(), 'active')
  },
)

test.serial(
  'an environment created while its organization is being suspended is suspended',
  async (t) => {
    const { organizationId, operator: token } = await first.workspace()
    const tenants = `/api/v1/control-plane/organizations/${organizationId}/tenants`
    const [, ...made] = await Promise.all([
      change(`/api/v1/organizations/${organizationId}`, 'suspend'),
      ...Array.from({ length: 6 }, (_, at) =>
        (at % 2 === 0 ? first : second).post(tenants, token, { name: `Number ${at}` }),
      ),
    ])
    t.true(made.every(({ status }) => status === 201 || status === 403))
    const rows = await sql<{ status: string }>(first.at)`
      select status from tenants where organization_id = ${organizationId}`
    t.true(rows.length >= 1)
    for (const { status } of rows) t.is(status, 'suspended')
  },
)
