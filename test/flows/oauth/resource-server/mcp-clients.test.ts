/** Unmodified MCP clients register, sign a person in, call tools of the example server, step up and refresh. */
import test, { type ExecutionContext } from 'ava'
import { decodeJwt } from 'jose'
import * as two from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { apiOf } from '../../../support/api.js'
import { sql } from '../../../support/storage/sql.js'
import { REGISTRATION } from '../../../support/identity/registering.js'
import { documentServer } from '../../../support/oauth/document-server.js'
import { exampleServer, loopbackPort, McpClientState } from '../../../support/oauth/mcp-example.js'
import { REACHES_LOOPBACK } from '../../../support/fleet/loopback.js'
import { testService } from '../../../support/service.js'

const documents = await documentServer()
const SLUG = 'mcp-clients'
const running = await testService({
  environment: {
    ...REGISTRATION,
    ...REACHES_LOOPBACK,
    SVC_OIDC__REGISTRATION_INITIAL_ACCESS_TOKEN_REQUIRED: 'false',
    SVC_TENANT__DEFAULT_TENANT_SLUG: SLUG,
  },
})
const api = apiOf(running)
const workspace = await api.workspace()
// Clients that register themselves without a hint belong to the default tenant.
const rename = 'update tenants set slug = $2 where id = $1'
await sql(running.db.database, rename, [workspace.tenantId, SLUG])

const fixture = workspace.body['fixture_end_user'] as { email: string; password: string }

/** The example server, registered as an API resource of the workspace. */
async function protectedServer(t: ExecutionContext, more: Record<string, unknown> = {}) {
  const resource = `http://127.0.0.1:${await loopbackPort()}/mcp`
  const scopes = [
    { name: 'notes:read', description: 'Read your notes', kind: 'read' },
    { name: 'notes:write', description: 'Add notes', kind: 'write' },
  ]
  const answer = await api.post('/api/v1/api-resources', workspace.token, {
    resource,
    name: 'Notes',
    scopes,
    ...more,
  })
  t.is(answer.status, 201)
  await exampleServer(t, running.issuer, resource)
  return resource
}

function clientState(t: ExecutionContext, redirectUrl: string, metadata = {}) {
  const state = new McpClientState(running, fixture, redirectUrl, metadata)
  t.teardown(() => state.close())
  return state
}

/** Registers as clients do that have their own code for this step (RFC 7591). */
async function registered(metadata: Record<string, unknown>) {
  const { body } = await api
    .post('/oauth/register', undefined, {
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      scope: 'notes:read',
      ...metadata,
    })
    .gives(201)
  return { ...body, issuer: running.issuer }
}

const textOf = (result: unknown) =>
  (result as { content: { text: string }[] }).content.map(({ text }) => text).join('')

/** What a client does, whichever SDK it uses. */
type Driver = {
  /** Connects, signs in where that is needed, and runs the call. Repeats it after a sign-in. */
  call(tool: string, values?: Record<string, unknown>): Promise<string>
  tools(): Promise<readonly string[]>
}

function sdkOne(resource: string, state: McpClientState): Driver {
  async function attempt<Result>(work: (client: Client) => Promise<Result>): Promise<Result> {
    for (let round = 0; ; round += 1) {
      const transport = new StreamableHTTPClientTransport(new URL(resource), {
        authProvider: state as never,
      })
      const client = new Client({ name: 'one', version: '1.0.0' })
      try {
        await client.connect(transport as never)
        return await work(client)
      } catch (error) {
        if (!(error instanceof UnauthorizedError) || round === 2) throw error
        await transport.finishAuth(state.callback.get('code')!)
      } finally {
        await client.close()
      }
    }
  }
  return {
    call: (name, values = {}) =>
      attempt(async (client) => textOf(await client.callTool({ name, arguments: values }))),
    tools: () =>
      attempt(async (client) => (await client.listTools()).tools.map(({ name }) => name)),
  }
}

function sdkTwo(resource: string, state: McpClientState): Driver {
  async function attempt<Result>(work: (client: two.Client) => Promise<Result>): Promise<Result> {
    for (let round = 0; ; round += 1) {
      const transport = new two.StreamableHTTPClientTransport(new URL(resource), {
        authProvider: state as never,
      })
      const client = new two.Client({ name: 'two', version: '1.0.0' })
      try {
        await client.connect(transport)
        return await work(client)
      } catch (error) {
        if (!(error instanceof two.UnauthorizedError) || round === 2) throw error
        await transport.finishAuth(state.callback)
      } finally {
        await client.close()
      }
    }
  }
  return {
    call: (name, values = {}) =>
      attempt(async (client) => textOf(await client.callTool({ name, arguments: values }))),
    tools: () =>
      attempt(async (client) => (await client.listTools()).tools.map(({ name }) => name)),
  }
}

const REFRESHING = {
  grant_types: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_method: 'none',
}
/** The SDK 1.x never asks the person for more while it has a refresh token, so such clients use none. */
const PLAIN = { grant_types: ['authorization_code'], token_endpoint_auth_method: 'none' }

for (const [name, driverOf, metadata] of [
  ['SDK 1.x', sdkOne, PLAIN],
  ['SDK 2.x', sdkTwo, REFRESHING],
] as const) {
  test(`${name}: registration, sign-in, a tool, and step-up for another`, async (t) => {
    const resource = await protectedServer(t)
    const redirect = `http://127.0.0.1:${await loopbackPort()}/callback`
    const state = clientState(t, redirect, metadata)
    const driver = driverOf(resource, state)
    t.deepEqual(await driver.tools(), ['list_notes', 'add_note'])
    t.is(await driver.call('list_notes'), 'You have no notes.')
    t.is(state.registrations.length, 1)
    t.is(state.requests.length, 1)
    t.is(state.requests[0]!.searchParams.get('resource'), resource)
    t.is(state.callback.get('iss'), running.issuer, 'RFC 9207')
    t.true(state.scopes().includes('notes:read'))
    t.false(state.scopes().includes('notes:write'))
    t.is(decodeJwt(String(state.stored!['access_token'])).aud, resource)

    // 403 insufficient_scope: the person grants more, and nothing that was granted is lost.
    const before = state.scopes()
    const note = `Feed the cat of ${name}`
    t.is(await driver.call('add_note', { note }), 'The note was added.')
    t.is(state.requests.length, 2)
    t.deepEqual(
      before.filter((scope) => !state.scopes().includes(scope)),
      [],
    )
    t.true(state.scopes().includes('notes:write'))
    t.is(state.registrations.length, 1)
    t.is(await driver.call('list_notes'), note)
  })
}

for (const [name, driverOf] of [
  ['SDK 1.x', sdkOne],
  ['SDK 2.x', sdkTwo],
] as const) {
  test(`${name}: a refused access token is refreshed without the person`, async (t) => {
    const resource = await protectedServer(t)
    const redirect = `http://127.0.0.1:${await loopbackPort()}/callback`
    const state = clientState(t, redirect, REFRESHING)
    const driver = driverOf(resource, state)
    await driver.tools()
    for (let round = 0; round < 2; round += 1) {
      const refresh = state.stored!['refresh_token']
      t.is(typeof refresh, 'string')
      state.stored = { ...state.stored, access_token: 'outdated' }
      t.is(await driver.call('list_notes'), 'You have no notes.')
      t.not(state.stored['access_token'], 'outdated')
      t.not(state.stored['refresh_token'], refresh, 'rotated')
      t.is(decodeJwt(String(state.stored['access_token'])).aud, resource)
      t.true(state.scopes().includes('notes:read'))
    }
    t.is(state.requests.length, 1)
  })
}

test('a token for one server is refused at another, and the client signs in there', async (t) => {
  const [one, other] = [await protectedServer(t), await protectedServer(t)]
  const redirect = `http://127.0.0.1:${await loopbackPort()}/callback`
  const state = clientState(t, redirect, { token_endpoint_auth_method: 'none' })
  await sdkOne(one, state).tools()
  const stolen = await fetch(other, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${String(state.stored!['access_token'])}`,
      'content-type': 'application/json',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  })
  t.is(stolen.status, 401)
  t.regex(
    stolen.headers.get('www-authenticate')!,
    /^Bearer error="invalid_token", scope="notes:read"/,
  )
})

for (const [name, driverOf] of [
  ['SDK 1.x', sdkOne],
  ['SDK 2.x', sdkTwo],
] as const) {
  test(`${name}: a client like Claude Code, with a metadata document and a random port each time`, async (t) => {
    const resource = await protectedServer(t)
    // Its document lists the loopback addresses without a port.
    const clientMetadataUrl = documents.client({
      client_name: 'Wandering Code',
      redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
    })
    for (let round = 0; round < 2; round += 1) {
      const redirect = `http://localhost:${await loopbackPort()}/callback`
      const state = clientState(t, redirect, REFRESHING)
      state.clientMetadataUrl = clientMetadataUrl
      const driver = driverOf(resource, state)
      t.is(await driver.call('list_notes'), 'You have no notes.')
      t.is(state.client!['client_id'], clientMetadataUrl, 'no registration')
      t.is(state.requests[0]!.searchParams.get('redirect_uri'), redirect)
      state.stored = { ...state.stored, access_token: 'outdated' }
      t.is(await driver.call('list_notes'), 'You have no notes.')
      t.is(state.requests.length, 1)
    }
  })
}

test('SDK 2.x: tokens that are bound to a key of the client', async (t) => {
  const resource = await protectedServer(t, { require_dpop: true })
  const redirect = `http://127.0.0.1:${await loopbackPort()}/callback`
  const state = clientState(t, redirect, REFRESHING)
  const session = await two.DpopSession.create()
  state.dpop = () => session
  const driver = sdkTwo(resource, state)
  t.is(await driver.call('list_notes'), 'You have no notes.')
  const { cnf } = decodeJwt(String(state.stored!['access_token']))
  t.is(typeof (cnf as { jkt?: unknown }).jkt, 'string')
  const headers = {
    authorization: `Bearer ${String(state.stored!['access_token'])}`,
    'content-type': 'application/json',
  }
  const stolen = await fetch(resource, { method: 'POST', headers, body: '{}' })
  t.is(stolen.status, 401)
  t.regex(stolen.headers.get('www-authenticate')!, /^DPoP error="invalid_token"/)
})

test('a registered client with a loopback address, and a random port at each sign-in', async (t) => {
  const resource = await protectedServer(t)
  const client = await registered({
    client_name: 'Loopback',
    redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
  })
  for (let round = 0; round < 2; round += 1) {
    const state = clientState(t, `http://localhost:${await loopbackPort()}/callback`)
    state.client = client
    t.is(await sdkTwo(resource, state).call('list_notes'), 'You have no notes.')
    t.is(state.registrations.length, 0)
    t.is(state.requests[0]!.searchParams.get('redirect_uri'), state.redirectUrl)
  }
})

test('a client like VS Code: port 33418, or a random one where that is taken', async (t) => {
  const resource = await protectedServer(t)
  const client = await registered({
    client_name: 'Visual Studio Code',
    redirect_uris: ['https://vscode.dev/redirect', 'http://127.0.0.1/', 'http://127.0.0.1:33418/'],
    application_type: 'native',
  })
  for (const port of [33418, await loopbackPort()]) {
    const state = clientState(t, `http://127.0.0.1:${port}/`)
    state.client = client
    t.is(await sdkOne(resource, state).call('list_notes'), 'You have no notes.')
    t.is(state.registrations.length, 0)
    t.is(state.requests[0]!.searchParams.get('redirect_uri'), state.redirectUrl)
  }
})
