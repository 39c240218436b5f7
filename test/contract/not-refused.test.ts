/**
 * Which operations each kind of token opens. Every operation of the internal document is called with each kind. The calls
 * that are not refused (401, 403) stand in not-refused.txt: a new line is a new right, and is reviewed.
 * `RECORD_NOT_REFUSED=1` writes the list.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import test from 'ava'
import type { Json } from '../support/api.js'
import { delegate } from '../support/agents/delegation.js'
import { loginAtControlPlane, operatorOfDeployment } from '../support/oauth/operator.js'
import { populateTenant } from '../support/service/populated-service.js'
import { startPopulatedService } from '../support/service/populated-service-parts.js'
import { sampler, type Schema } from '../support/storage/schema-sample.js'

const LIST = 'test/contract/not-refused.txt'
const METHODS = ['get', 'post', 'put', 'patch', 'delete']
/** Schemes of requests without an access token in `authorization`. */
const OTHER_SCHEMES = new Set(['session', 'client_secret_basic', 'client_secret_post'])

const resources = await startPopulatedService()
const { api, receiver } = resources
const document = (await api.get('/openapi.json')).body
test.after.always(() => resources.close())

type Operation = {
  readonly security?: readonly Json[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> }
}
type Case = { readonly method: string; readonly path: string; readonly operation: Operation }

const withToken = ({ security = [] }: Operation) =>
  security.flatMap((way) => Object.keys(way)).some((scheme) => !OTHER_SCHEMES.has(scheme))

const cases: readonly Case[] = Object.entries(document['paths'] as Record<string, Json>).flatMap(
  ([path, item]) =>
    METHODS.filter((method) => method in item && withToken(item[method] as Operation)).map(
      (method) => ({ method: method.toUpperCase(), path, operation: item[method] as Operation }),
    ),
)

async function tokens(): Promise<Readonly<Record<string, string>>> {
  const tenant = await populateTenant(api, 'Callers', receiver)
  const { workspace, person, scimToken } = tenant
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

test('each kind of token opens the reviewed operations only', async (t) => {
  t.timeout(300_000)
  t.true(cases.length > 150, String(cases.length))
  const sample = sampler(document, { event_types: ['*'], name: 'A name' })
  const opened: string[] = []
  for (const [kind, token] of Object.entries(await tokens())) {
    for (const { method, path, operation } of cases) {
      const schema = operation.requestBody?.content['application/json']?.schema
      const at = path.replaceAll(/\{[a-z_]+\}/g, () => randomUUID())
      const json = schema === undefined ? undefined : sample(schema)
      const { status, body } = await api.call(method, at, { token, json })
      t.true(status < 500 || status === 501, `${kind} ${method} ${path} ${JSON.stringify(body)}`)
      if (status !== 401 && status !== 403) opened.push(`${kind} ${method} ${path}`)
    }
  }
  if (process.env['RECORD_NOT_REFUSED'] === '1') writeFileSync(LIST, `${opened.join('\n')}\n`)
  t.deepEqual(opened, readFileSync(LIST, 'utf8').trimEnd().split('\n'))
})
