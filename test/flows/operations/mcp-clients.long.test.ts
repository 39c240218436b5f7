/** The official MCP clients for TypeScript, 1.x of the legacy era and 2.x of both. */
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client'
import test from 'ava'
import { callerOf, demand } from '../../support/agents/journey.js'
import { MODERN } from '../../support/operations/mcp.js'
import { docsPage, testCommands } from '../../support/pages/docs-page.js'
import { sharedService } from '../../support/service.js'

const running = await sharedService('plain', { transport: 'plain_http' })
const endpoint = () => new URL('/mcp', running.baseUrl)
const ME = { name: 'test', version: '1.0.0' }

type AnyClient = {
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(call: { name: string; arguments?: Record<string, unknown> }): Promise<object>
}

/** Calls tools, whose structured content the client compares with their output schemas. */
async function uses(t: { is: Function; deepEqual: Function }, client: AnyClient): Promise<void> {
  const { tools } = await client.listTools()
  t.is(tools.length, 9)
  const called = async (name: string, args: Record<string, unknown> = {}) =>
    (await client.callTool({ name, arguments: args })) as {
      isError?: boolean
      structuredContent?: Record<string, unknown>
    }
  const { body } = demand(await callerOf(running.baseUrl).call('/api/v1/capabilities'), 200)
  t.deepEqual((await called('get_capabilities')).structuredContent, body)
  const all: Record<string, Record<string, unknown>> = {
    get_discovery_document: { document: 'jwks' },
    get_guide: { topic: 'egress' },
    get_operation: { operation_id: 'callMcp' },
  }
  for (const { name } of tools) {
    const { isError, structuredContent } = await called(name, all[name])
    t.is(isError, false, name)
    t.is(typeof structuredContent, 'object', name)
  }
  t.is((await called('get_guide', { topic: 'none' })).isError, true)
}

test('the client 1.x lists and calls the tools', async (t) => {
  const client = new Client1(ME)
  await client.connect(new Transport1(endpoint()) as Parameters<typeof client.connect>[0])
  t.teardown(() => client.close())
  t.like(client.getServerVersion(), { name: 'svc', version: '2.4.0' })
  await uses(t, client as AnyClient)
  await client.ping()
})

for (const [mode, version] of [
  ['auto', MODERN],
  ['legacy', '2025-11-25'],
] as const) {
  test(`the client 2.x lists and calls the tools, version negotiation ${mode}`, async (t) => {
    const client = new Client2(ME, { versionNegotiation: { mode } })
    await client.connect(new Transport2(endpoint()) as Parameters<typeof client.connect>[0])
    t.teardown(() => client.close())
    t.is(client.getNegotiatedProtocolVersion(), version)
    t.like(client.getServerVersion(), { name: 'svc', version: '2.4.0' })
    await uses(t, client as AnyClient)
  })
}

test('a client with a token is refused', async (t) => {
  const requestInit = { headers: { authorization: 'Bearer token' } }
  const client = new Client1(ME)
  const transport = new Transport1(endpoint(), { requestInit })
  await t.throwsAsync(client.connect(transport as Parameters<typeof client.connect>[0]), {
    message: /anonymous/,
  })
})

testCommands('the code of docs/guides/operations/mcp-discovery.md runs', async (t) => {
  const page = docsPage(t, 'guides/operations/mcp-discovery')
  const environment = { BASE: running.baseUrl }
  const printed = (await page.begin('js', 0, environment).ended).trim().split('\n')
  t.is(printed[0]!.split(' ').length, 9)
  t.is(printed[1], 'challengeAgent verifyAgent issueToken')
  t.regex(await page.begin('sh', 0, environment).ended, /^startDelegation$/m)
  t.is((await page.begin('sh', 1, environment).ended).trim(), '2.4.0')
})
