/**
 * Examples of the OpenAPI document: each satisfies its schema, and the recorded ones are sent to a running service again,
 * with ids of existing objects. `RECORD_EXAMPLES=missing` records those that are missing (test/support/examples.ts).
 */
import { createRequire } from 'node:module'
import type { Ajv } from 'ajv'
import test from 'ava'
import { type RecordedExample, recordedExamples } from '../../gateway/apps/openapi/examples.js'
import { createAgentKey } from '../../runtime/clients/client/agent.js'
import type { Answer, Json } from '../support/api.js'
import { isRecording, recordAnew } from '../support/examples.js'
import { startPopulatedService } from '../support/service/populated-service-parts.js'
import { populateTenant } from '../support/service/populated-service.js'

const require = createRequire(import.meta.url)
const Ajv2020 = require('ajv/dist/2020.js') as new (options: object) => Ajv

const service = await startPopulatedService()
const { api, receiver, running } = service
const mine = await populateTenant(api, 'Mine', receiver)
const document = (await api.get('/openapi.json')).body
const { rows: prices } = await api.list('/api/v1/commerce/prices', mine.workspace.token)
// An organization keeps one owner, and one of its members is removed below.
const { organizationId, operator } = mine.workspace
const members = `/api/v1/organizations/${organizationId}/members`
for (const { id } of (await api.list(members, operator)).rows)
  await api.patch(`${members}/${String(id)}`, operator, { role: 'owner' })
await api.patch('/api/v1/tenant/settings', mine.workspace.token, {
  direct_agent_registration: true,
})
test.after.always(() => service.close())

type Media = { readonly schema?: object; readonly example?: unknown }
type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header' | 'cookie'
  readonly required?: boolean
  readonly schema: { readonly example?: unknown }
  readonly example?: unknown
}
type Operation = {
  readonly operationId: string
  readonly security?: readonly Json[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, { readonly content?: Record<string, Media> }>>
}
type Case = { readonly method: string; readonly path: string; readonly operation: Operation }

const cases = Object.entries(document['paths'] as Record<string, Record<string, Operation>>)
  .flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): Case => ({ method, path, operation })),
  )
  .toSorted((a, b) => place(a) - place(b))
const recorded = recordedExamples(running.issuer)

/** Reads first, then changes, then what ends an object. */
function place({ method, path }: Case): number {
  if (method === 'get') return 0
  // The application is replaced later, without its grants.
  if (path.startsWith('/oauth/')) return path === '/oauth/revoke' ? 3 : 0
  // Without its token nothing of SCIM works.
  if (method === 'delete' && path.startsWith('/api/v1/scim/tokens')) return 7
  if (method === 'delete' && /\{[a-z_]+\}$/.test(path) && path.startsWith('/api/v1/organizations/'))
    return 8
  if (method === 'delete') return path.startsWith('/scim/') ? 4 : 5
  if (/\/(?:revoke|suspend|deny|close|cancel|deprecate)$/.test(path)) return 4
  if (/\/(?:rotate[a-z-]*|reactivate|activate|removal)$/.test(path)) return 3
  return method === 'post' ? 2 : 1
}

const exampleOf = ({ schema, example }: Parameter) => example ?? schema.example

const FORM = 'application/x-www-form-urlencoded'
const isJson = (type: string) => /^application\/(?:[a-z.-]+\+)?json\b/.test(type)

test('every request body and every answer with a schema has an example that satisfies it', (t) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'https://id.test/openapi', components: document['components'] })
  const rooted = (schema: object) =>
    JSON.parse(
      JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"https://id.test/openapi#/'),
    ) as object
  const faults: string[] = []
  const judge = (at: string, { schema, example }: Media) => {
    if (example === undefined) faults.push(`${at}: no example`)
    else if (schema !== undefined) {
      const validate = ajv.compile(rooted(schema))
      if (!validate(example)) faults.push(`${at}: ${ajv.errorsText(validate.errors)}`)
    }
  }
  let judged = 0
  for (const { operation } of cases) {
    const { operationId, requestBody, responses } = operation
    for (const [type, media] of Object.entries(requestBody?.content ?? {})) {
      if (!isJson(type) && type !== FORM) continue
      judge(`${operationId} request`, media)
      judged += 1
    }
    for (const [status, { content = {} }] of Object.entries(responses)) {
      for (const [type, media] of Object.entries(content)) {
        if (!isJson(type) && media.schema === undefined) continue
        judge(`${operationId} ${status} ${type}`, media)
        judged += 1
      }
    }
  }
  t.true(judged > 500, String(judged))
  t.deepEqual(faults, [])
})

test('every required parameter has an example that satisfies its schema', (t) => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  const faults: string[] = []
  let judged = 0
  for (const { operation } of cases) {
    for (const parameter of operation.parameters ?? []) {
      if (parameter.required !== true) continue
      judged += 1
      const at = `${operation.operationId} ${parameter.in} ${parameter.name}`
      const validate = ajv.compile(parameter.schema)
      if (exampleOf(parameter) === undefined) faults.push(`${at}: no example`)
      else if (!validate(exampleOf(parameter)))
        faults.push(`${at}: ${ajv.errorsText(validate.errors)}`)
    }
  }
  t.true(judged > 200, String(judged))
  t.deepEqual(faults, [])
})

test('every body and every answer that is text has an example', (t) => {
  const isBinary = (type: string) =>
    /^(?:image\/|font\/|application\/octet-stream|multipart\/)/.test(type)
  const without = cases.flatMap(({ operation: { operationId, requestBody, responses } }) =>
    [{ request: requestBody ?? {} }, responses].flatMap((parts: Operation['responses']) =>
      Object.entries(parts).flatMap(([status, { content = {} }]) =>
        Object.entries(content)
          .filter(([type, { example }]) => example === undefined && !isBinary(type))
          .map(([type]) => `${operationId} ${status} ${type}`),
      ),
    ),
  )
  t.deepEqual(without, [])
})

test('an example of text has the form of its media type', (t) => {
  const texts = cases.flatMap(({ operation: { operationId, responses } }) =>
    Object.values(responses).flatMap(({ content = {} }) =>
      Object.entries(content).map(([type, { example }]) => ({ operationId, type, example })),
    ),
  )
  const lines = texts.filter(({ type }) => type === 'application/x-ndjson')
  t.true(lines.length > 1)
  for (const { operationId, example } of lines)
    for (const line of String(example).trimEnd().split('\n'))
      t.notThrows(() => void JSON.parse(line), operationId)
  for (const { operationId, type, example } of texts)
    if (type === 'text/csv') t.false(String(example).startsWith('{'), operationId)
  const { example: metrics } = texts.find(({ operationId }) => operationId === 'getMetrics')!
  t.regex(String(metrics), /^# HELP \w+ .*\n# TYPE \w+ (?:counter|gauge)\n\w+\S* \d+\n$/)
})

test('examples are recorded for operations that exist', (t) => {
  const known = new Set(cases.map(({ operation }) => operation.operationId))
  const unknown = Object.keys(recorded).filter((operationId) => !known.has(operationId))
  t.deepEqual(unknown, [], 'remove them from gateway/apps/openapi/examples')
})

/**
 * Recorded examples that need a step before them, with the status without that step. The flow tests of these operations do
 * the whole flow, and their answers are compared with the document too.
 */
const STEPS: Readonly<Record<string, readonly [status: number, reason: string]>> = {
  ...Object.fromEntries(
    [
      'findAccounts',
      'readAccount',
      'suspendAccount',
      'reactivateAccount',
      'suspendOrganization',
      'reactivateOrganization',
      'suspendTenant',
      'reactivateTenant',
    ].map((operationId) => [operationId, [403, 'for operators of the deployment'] as const]),
  ),
  startTenantTransfer: [404, 'needs an organization of the owner'],
  ...Object.fromEntries(
    [
      'completeWorkspaceBootstrap',
      'completeAgentRegistration',
      'verifyAgent',
      'challengeAgent',
      'pollDelegation',
    ].map((operationId) => [operationId, [400, 'needs a fresh challenge or code'] as const]),
  ),
  requestTenantCredential: [401, 'needs the token of an offer'],
  notifyTenantCredentialIssuer: [401, 'needs the token of an offer'],
  registerClient: [401, 'needs an initial access token'],
  authorizeBackchannel: [403, 'needs an application with this grant'],
  resetTenantUserPassword: [403, 'people do this with a fresh second factor'],
  resetTenantUserFactors: [403, 'people do this with a fresh second factor'],
  approveBackchannelRequest: [403, 'people do this on a page'],
  activateTenant: [403, 'people do this'],
  revokeSshCertificate: [404, 'needs a certificate of this run'],
  receiveCardEvent: [404, 'needs a provider of card payments'],
  payByX402: [404, 'needs a link that x402 can pay'],
  requestConnection: [403, 'needs a delegated token'],
  replaceRegistration: [400, 'the body names the id of the registration'],
  denyBackchannelRequest: [401, 'the token of the person ended with the sessions'],
  removeTenantUser: [404, 'the directory has removed the user before'],
  createPayout: [400, 'needs a balance'],
  createWallet: [409, 'the agent has a wallet'],
  readOwnWallet: [404, 'the caller has no wallet'],
  signX402Payment: [404, 'the caller has no wallet'],
  signWalletTransaction: [404, 'the caller has no wallet'],
}

const { objects, workspace } = mine
const objectAt = (path: string) => objects[path] ?? ''
/** Ids of existing objects, by the name of the member. */
const MEMBERS: Readonly<Record<string, string>> = {
  credential_id: objectAt('/api/v1/vault/credentials/{credential_id}'),
  product_id: objectAt('/api/v1/commerce/products/{id}'),
  price_id: objectAt('/api/v1/commerce/prices/{id}'),
  grantee_id: objectAt('/api/v1/agents/{agent_id}'),
  recipient_id: objectAt('/api/v1/agents/{agent_id}'),
  stream_id: objectAt('/ssf/poll/{stream_id}'),
  tenant_id: workspace.tenantId,
  user_id: objectAt('/api/v1/tenant-users/{user_id}'),
  agent_id: objectAt('/api/v1/agents/{agent_id}'),
  client_id: objectAt('/api/v1/applications/{application_id}'),
  tenant_slug: String(workspace.body['tenant_slug']),
}

function withOwnIds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withOwnIds)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, MEMBERS[name] ?? withOwnIds(inner)]),
  )
}

/** The body with a key of this run: its proof of ownership signs the issuer and the tenant. */
function withOwnKey(operationId: string, body: unknown): unknown {
  const given = body as Json | undefined
  if (given?.['key_ownership_proof'] === undefined) return body
  const isWorkspace = operationId === 'startWorkspaceBootstrap'
  const tenantId = isWorkspace ? workspace.controlPlane : workspace.tenantId
  const own = createAgentKey().registration({ issuer: running.issuer, tenantId })
  return { ...given, ...own }
}

const filled = (path: string) =>
  path.replace(/\{([a-z_]+)\}/g, (_all, name: string, at: number) => {
    // The other credential is an SSH certificate authority, which cannot be leased.
    if (path.endsWith('/{credential_id}/leases')) return mine.apiKeyId
    if (name === 'credential_type') return 'TenantMembership'
    return objects[path.slice(0, path.indexOf('}', at) + 1)] ?? MEMBERS[name] ?? 'x'
  })

function tokenFor(path: string): string {
  if (path.startsWith('/oauth/register/')) return mine.registrationToken
  if (path.startsWith('/scim/v2/')) return mine.scimToken
  if (path === '/userinfo' || /ciba|delegations\/\{/.test(path)) return mine.personToken
  return /^\/api\/v1\/(?:control-plane|organizations|tenants|accounts|signing-keys)\b/.test(path)
    ? workspace.operator
    : workspace.token
}

/** Operations whose parameters name what the service has to know. */
const UNKNOWN: Readonly<Record<string, string>> = {
  authorize: 'the client',
  endSession: 'the ID token',
  resumeAuthorization: 'the request of this browser',
  finishSso: 'the sign-in of this browser',
  authorizeByForm: 'the client',
  endSessionByForm: 'the ID token',
  pushAuthorizationRequest: 'the redirect URI of the client',
  recoverWebhookDeliveries: 'a time within the retention period',
  requestCredential: 'a credential of the root issuer, which has none here',
}

/** Sends the examples of the parameters. Nothing exists that they name, so nothing ends. */
function sendParameters({ method, path, operation }: Case, required: readonly Parameter[]) {
  const valueOf = (one: Parameter) => encodeURIComponent(String(exampleOf(one)))
  const at = (place: string) => required.filter((one) => one.in === place)
  const query = at('query').map((one) => `${one.name}=${valueOf(one)}`)
  const isAnonymous = (operation.security ?? []).length === 0
  return api.call(
    method.toUpperCase(),
    at('path').reduce((whole, one) => whole.replace(`{${one.name}}`, valueOf(one)), path) +
      (query.length === 0 ? '' : `?${query.join('&')}`),
    {
      token: isAnonymous ? undefined : tokenFor(path),
      headers: Object.fromEntries(at('header').map((one) => [one.name, String(exampleOf(one))])),
    },
  )
}

/** The query that an operation needs, with ids of existing objects. */
function queryOf({ parameters = [] }: Operation): string {
  const needed = parameters.filter(
    ({ name, in: place, required }) => place === 'query' && required === true && name in MEMBERS,
  )
  return needed.length === 0
    ? ''
    : `?${needed.map(({ name }) => `${name}=${MEMBERS[name]}`).join('&')}`
}

/** The credentials of the workspace's application. */
const BASIC = `Basic ${Buffer.from(
  [workspace.body['client_id'], workspace.body['client_secret']].join(':'),
).toString('base64')}`

async function send({ method, path, operation }: Case, example?: RecordedExample): Promise<Answer> {
  const { security = [], operationId } = operation
  const anonymous = security.length === 0 && !path.startsWith('/oauth/register/')
  const token = anonymous ? undefined : tokenFor(path)
  const headers = path.includes('/fulfillment/')
    ? { 'x-svc-fulfillment-secret': mine.fulfillmentSecret }
    : {}
  const types = Object.keys(operation.requestBody?.content ?? {})
  const body = example?.request ?? Object.values(operation.requestBody?.content ?? {})[0]?.example
  if (types.includes(FORM)) {
    const isClient = security.some((way) => 'client_basic' in way) && path !== '/userinfo'
    const authorization = isClient ? BASIC : `Bearer ${token}`
    return api.form(
      filled(path),
      body as Record<string, string>,
      anonymous ? {} : { authorization },
    )
  }
  const json = types.length === 0 ? undefined : withOwnKey(operationId, withOwnIds(body))
  if (operationId === 'createSubscriptionCheckoutSession')
    Object.assign(json as Json, {
      price_id: prices.find((one) => one['recurring'] !== null)?.['id'],
    })
  return api.call(method.toUpperCase(), filled(path) + queryOf(operation), { token, headers, json })
}

/** Operations of browsers have pages and redirects. */
const isApi = ({ operation, path }: Case) =>
  (!/^\/(?:auth|console|device|dev|pay|documentation)\//.test(path) ||
    path === '/auth/check-sso') &&
  Object.values(operation.responses).some(({ content = {} }) => Object.keys(content).some(isJson))

if (isRecording) {
  test.serial('each operation is called, so that its answer can be recorded', async (t) => {
    for (const one of cases.filter(isApi)) {
      const { operationId } = one.operation
      await recordAnew(operationId, async () => {
        const { status } = await send(one, recorded[operationId])
        t.true(status > 0)
        t.log(`${operationId} ${status}`)
      })
    }
  })
} else {
  test.serial('no example of a parameter is refused', async (t) => {
    const refused: string[] = []
    let sent = 0
    for (const one of cases) {
      const required = (one.operation.parameters ?? []).filter((each) => each.required === true)
      if (required.length === 0 || UNKNOWN[one.operation.operationId] !== undefined) continue
      const { status, body } = await sendParameters(one, required)
      const { errors = [] } = body as { readonly errors?: readonly { readonly pointer: string }[] }
      const pointers = errors.map(({ pointer }) => pointer)
      const isReady = one.method === 'get' || one.method === 'delete'
      if ((isReady && status === 400) || pointers.some((at) => /^(?:path|query|header):/.test(at)))
        refused.push(`${one.operation.operationId} ${status} ${JSON.stringify(body)}`)
      sent += 1
    }
    t.true(sent > 150, String(sent))
    t.deepEqual(refused, [])
  })

  for (const one of cases) {
    const { operationId, requestBody } = one.operation
    const example = recorded[operationId]
    if (!isApi(one)) continue
    if (example === undefined) {
      const types = Object.keys(requestBody?.content ?? {})
      if (!types.some((type) => isJson(type) || type === FORM)) continue
      if (STEPS[operationId] !== undefined || UNKNOWN[operationId] !== undefined) continue
      test.serial(`the composed example of ${operationId} is not refused`, async (t) => {
        const { status, body } = await send(one)
        const said = `${status} ${JSON.stringify(body)}`
        t.false([400, 415, 422].includes(status) || status >= 500, said)
      })
      continue
    }
    test.serial(`the example of ${operationId} works`, async (t) => {
      const { status, body } = await send(one, example)
      const said = JSON.stringify(body)
      t.is(status, STEPS[operationId]?.[0] ?? example.status, said)
    })
  }
}
