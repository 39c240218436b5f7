/**
 * An object of another tenant does not exist (decisions.md 21, token and host): every operation of
 * the OpenAPI document that names an object is asked for one of somebody else's.
 */
import { randomUUID } from 'node:crypto'
import test from 'ava'
import { type Answer, apiOf, type Json, type Workspace } from '../support/api.js'
import { fixtureOf, lend, ownToken, present } from '../support/delegation.js'
import { testService } from '../support/service.js'

const running = await testService({
  environment: { SVC_OPENAPI__EXPOSURE: 'internal', SVC_COMMERCE__ENABLED: 'true' },
})
const api = apiOf(running)

type Schema = Json & { properties?: Record<string, Schema>; items?: Schema; anyOf?: Schema[] }
type Operation = {
  readonly operationId: string
  readonly security?: readonly Json[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> }
}
type Case = { readonly method: string; readonly path: string; readonly operation: Operation }

const document = (await api.get('/openapi.json')).body
const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const PARAMETER = /\{([a-z_]+)\}/g

/** Bearer operations of the API with an object in their path. */
const cases: readonly Case[] = Object.entries(document['paths'] as Record<string, Json>).flatMap(
  ([path, item]) =>
    METHODS.filter((method) => method in item)
      .map((method) => ({
        method: method.toUpperCase(),
        path,
        operation: item[method] as Operation,
      }))
      .filter(
        ({ operation }) =>
          path.startsWith('/api/v1/') && path.includes('{') && needsToken(operation),
      ),
)

function needsToken({ security = [] }: Operation): boolean {
  return security.length > 0 && !security.some((one) => Object.keys(one).length === 0)
}

const mine = await api.workspace('Mine')
const theirs = await api.workspace('Theirs')
const { agentId, key } = await api.register(theirs.tenantId)

async function made(path: string, json: Json): Promise<string> {
  const answer = await api.post(path, theirs.token, json)
  if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
  return String(answer.body['id'])
}

/** Something of theirs for each kind of object, by the path up to its parameter. */
const objects: Readonly<Record<string, string>> = {
  '/api/v1/control-plane/organizations/{organization_id}': theirs.organizationId,
  '/api/v1/control-plane/organizations/{organization_id}/tenants/{tenant_id}': theirs.tenantId,
  '/api/v1/agents/{agent_id}': agentId,
  '/api/v1/agents/{agent_id}/keys/{key_id}': key.fingerprint,
  '/api/v1/applications/{application_id}': String(theirs.body['application_id']),
  '/api/v1/tenant-users/{user_id}': String((theirs.body['fixture_end_user'] as Json)['id']),
  '/api/v1/sandbox/fixture-users/{user_id}': String(
    (theirs.body['fixture_end_user'] as Json)['id'],
  ),
  ...(await webhookOfTheirs()),
  ...(await vaultOfTheirs()),
  '/api/v1/delegations/{delegation_id}': await delegationOfTheirs(),
}

/** Operations that are a person's alone, and somebody of ours for them. */
const PEOPLE_ONLY = '/api/v1/delegations/{delegation_id}/revoke'
const ourPerson = await present(api, fixtureOf(mine))
const ourToken = await ownToken(api, mine, ourPerson)
await ourPerson.browser.close()

async function delegationOfTheirs(): Promise<string> {
  const person = await present(api, fixtureOf(theirs))
  const { delegationId } = await lend(api, theirs.token, person)
  await person.browser.close()
  return delegationId
}

async function webhookOfTheirs(): Promise<Record<string, string>> {
  const path = cases.map((one) => one.path).find((one) => one.startsWith('/api/v1/webhooks/{'))
  if (path === undefined) return {}
  const prefix = path.slice(0, path.indexOf('}') + 1)
  const webhook = { url: 'https://receiver.example.com/hook', event_types: ['*'] }
  return { [prefix]: await made('/api/v1/webhooks', webhook) }
}

async function vaultOfTheirs(): Promise<Record<string, string>> {
  const vault = '/api/v1/vault'
  const record = { provider: 'example', label: 'Theirs', non_exportable: false }
  const authority = { ...record, credential_type: 'ssh_ca' }
  const credential = await made(`${vault}/credentials`, authority)
  const apiKey = { ...record, credential_type: 'api_key', auth_scheme: 'bearer', secret: 'theirs' }
  const lent = await made(`${vault}/credentials`, apiKey)
  const grantee = { grantee_type: 'agent', grantee_id: agentId }
  const lending = { recipient_id: agentId, byte_budget: 1 }
  return {
    [`${vault}/credentials/{credential_id}`]: credential,
    [`${vault}/grants/{grant_id}`]: await made(
      `${vault}/credentials/${credential}/grants`,
      grantee,
    ),
    [`${vault}/leases/{lease_id}`]: await made(`${vault}/credentials/${lent}/leases`, lending),
  }
}

/** A path with something of theirs in every place, or with what exists nowhere. */
function filled(path: string, existing: boolean): string {
  return path.replace(PARAMETER, (_all, _name, at: number) => {
    const prefix = path.slice(0, path.indexOf('}', at) + 1)
    return existing ? (objects[prefix] ?? randomUUID()) : randomUUID()
  })
}

/** Members that no schema tells the words of. */
const MEMBERS: Readonly<Record<string, unknown>> = { event_types: ['*'] }

/** The least that a schema lets through. */
function sample(schema: Schema): unknown {
  const reference = schema['$ref']
  if (typeof reference === 'string') {
    const name = reference.split('/').at(-1) ?? ''
    return sample(
      ((document['components'] as Json)['schemas'] as Record<string, Schema>)[name] ?? {},
    )
  }
  if ('const' in schema) return schema['const']
  if (Array.isArray(schema['enum'])) return (schema['enum'] as unknown[])[0]
  if (schema.anyOf !== undefined) return sample(schema.anyOf[0] ?? {})
  switch (schema['type']) {
    case 'object': {
      const required = (schema['required'] ?? []) as string[]
      return Object.fromEntries(
        required.map((name) => [name, MEMBERS[name] ?? sample(schema.properties?.[name] ?? {})]),
      )
    }
    case 'array':
      return Number(schema['minItems'] ?? 0) > 0 ? [sample(schema.items ?? {})] : []
    case 'integer':
    case 'number':
      return schema['minimum'] ?? 1
    case 'boolean':
      return false
    default:
      return text(schema)
  }
}

const TEXTS = ['https://receiver.example.com/hook', 'someone@example.com', 'example', '1']
function text(schema: Schema): string {
  if (schema['format'] === 'uuid') return randomUUID()
  if (schema['format'] === 'date-time') return '2030-01-01T00:00:00.000Z'
  if (schema['format'] === 'email') return 'someone@example.com'
  const pattern = new RegExp(String(schema['pattern'] ?? ''), 'u')
  const long = 'x'.repeat(Number(schema['minLength'] ?? 0))
  return [...TEXTS, long].find((one) => pattern.test(one) && one.length >= long.length) ?? long
}

function ask(
  { method, path, operation }: Case,
  who: Workspace,
  existing: boolean,
): Promise<Answer> {
  const schema = operation.requestBody?.content['application/json']?.schema
  const own = path.startsWith('/api/v1/control-plane/') ? who.operator : who.token
  const token = path === PEOPLE_ONLY ? ourToken : own
  return api.call(method, filled(path, existing), {
    token,
    ...(schema === undefined ? {} : { json: sample(schema) }),
  })
}

test.after.always(async () => {
  await api.close()
  await running.end()
})

test('the document has operations on objects, and an object of theirs for the kinds known here', (t) => {
  t.true(cases.length >= 25, String(cases.length))
  const known = new Set(
    cases.flatMap(({ path }) =>
      [...path.matchAll(PARAMETER)].map((match) =>
        path.slice(0, path.indexOf('}', match.index) + 1),
      ),
    ),
  )
  for (const prefix of Object.keys(objects)) t.true(known.has(prefix), prefix)
  t.log(
    'asked with ids that exist nowhere:',
    [...known].filter((prefix) => !(prefix in objects)),
  )
})

for (const one of cases) {
  const name = `${one.method} ${one.path}`
  test(`${name} does not know an object of another tenant`, async (t) => {
    const foreign = await ask(one, mine, true)
    const nowhere = await ask(one, mine, false)
    t.is(foreign.status, 404, JSON.stringify(foreign.body))
    // Nor does the answer tell that there is one.
    t.is(nowhere.status, 404)
    t.is(foreign.body['detail'], nowhere.body['detail'])
    t.is(foreign.body['error'], nowhere.body['error'])
  })
}

test.serial('their own token finds what was asked for, and all of it is as it was', async (t) => {
  for (const one of cases.filter(({ method }) => method === 'GET')) {
    const prefixes = [...one.path.matchAll(PARAMETER)].map((match) =>
      one.path.slice(0, one.path.indexOf('}', match.index) + 1),
    )
    if (!prefixes.every((prefix) => prefix in objects)) continue
    t.is((await ask(one, theirs, true)).status, 200, `${one.method} ${one.path}`)
  }
  const agent = await api.get(`/api/v1/agents/${agentId}`, theirs.token)
  t.is(agent.body['status'], 'active')
  t.is((await api.get('/api/v1/agents/me', theirs.token)).status, 200)
})
