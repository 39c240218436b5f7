/** POST /mcp over HTTP: refusals in their order, both protocol eras. */
import { connect } from 'node:net'
import test from 'ava'
import { callerOf } from '../../support/agents/journey.js'
import { APP_ORIGINS } from '../../support/fleet/profiles.js'
import { notThrough } from '../../support/fleet/through.js'
import { ACCEPT, MODERN, mcpOf, META, type RpcAnswer } from '../../support/operations/mcp.js'
import { sharedService } from '../../support/service.js'

const { dashboard: DASHBOARD, identity: IDENTITY } = APP_ORIGINS
const running = await sharedService('mcp', { transport: 'plain_http' })
const http = callerOf(running.baseUrl)
const mcp = mcpOf(running.baseUrl)

const PING = mcp.request('ping')
const LONG = `${PING}${' '.repeat(16 * 1024)}`
const FAULTS = {
  origin: { status: 403, headers: { origin: 'https://evil.example' } },
  authorization: { status: 401, headers: { authorization: 'Basic eDp5' } },
  media: { status: 415, headers: { 'content-type': 'text/plain' } },
  accept: { status: 406, headers: { accept: 'application/json' } },
  size: { status: 413, body: LONG },
  version: { status: 400, headers: { 'mcp-protocol-version': '1999-01-01' }, code: -32022 },
  message: { status: 400, body: '{', code: -32700 },
} as const
type Fault = { status: number; headers?: Record<string, string>; body?: string; code?: number }

const faults = Object.entries(FAULTS) as [string, Fault][]
for (const [index, [name, first]] of faults.entries()) {
  for (const [later, second] of [['nothing else', {}] as const, ...faults.slice(index + 1)]) {
    test(`a wrong ${name} is refused, with ${later} wrong`, async (t) => {
      const { body = PING, headers = {} } = { ...second, ...first } as Fault
      const more = 'headers' in second ? second.headers : {}
      const answer = await mcp.send(
        first.body ?? ('body' in second ? (second.body ?? body) : body),
        { ...more, ...headers },
      )
      t.is(answer.status, first.status, answer.text)
      t.is(answer.headers.get('content-type'), 'application/json')
      t.is(answer.rpc.jsonrpc, '2.0')
      if (first.code !== undefined) t.is(answer.rpc.error?.code, first.code)
      const hasId = name === 'version' && later === 'nothing else'
      t.is(answer.rpc.id, hasId ? 1 : null)
      t.is(answer.rpc.result, undefined)
    })
  }
}

test('other methods than POST are refused first', async (t) => {
  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH']) {
    const headers = { origin: 'https://evil.example', authorization: 'Bearer x' }
    const { status, headers: fields, body } = await http.call('/mcp', { method, headers })
    t.is(status, 405, method)
    t.is(fields.get('allow'), 'POST')
    t.is((body as RpcAnswer['rpc']).error?.code, -32000)
  }
  const { status, headers } = await fetch(`${running.baseUrl}/mcp`, { method: 'HEAD' })
  t.is(status, 405)
  t.is(headers.get('allow'), 'POST')
})

test('any Authorization header is refused with a challenge', async (t) => {
  for (const authorization of ['Bearer token', 'DPoP token', 'x']) {
    const { status, headers, rpc } = await mcp.send(PING, { authorization })
    t.is(status, 401)
    t.regex(
      headers.get('www-authenticate')!,
      /^Bearer error="invalid_request", error_description="/,
    )
    t.is(rpc.error?.data?.['error'], 'unauthorized')
  }
})

test('the origins of the service and its apps are trusted', async (t) => {
  for (const origin of [new URL(running.issuer).origin, DASHBOARD, IDENTITY]) {
    const { status, headers } = await mcp.send(PING, { origin })
    t.is(status, 200)
    t.is(headers.get('access-control-allow-origin'), origin)
    const preflight = await http.call('/mcp', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    t.is(preflight.headers.get('access-control-allow-origin'), origin)
  }
  for (const origin of ['null', `${DASHBOARD}.evil.example`, 'http://dashboard.example']) {
    t.is((await mcp.send(PING, { origin })).status, 403, origin)
  }
})

test('Content-Type and Accept have these values', async (t) => {
  for (const type of ['application/json; charset=utf-8', 'Application/JSON']) {
    t.is((await mcp.send(PING, { 'content-type': type })).status, 200, type)
  }
  const encoded = { 'content-encoding': 'gzip' }
  t.is((await mcp.send(PING, encoded)).status, 415, 'compressed')
  t.is((await mcp.send(Buffer.from(PING), { 'content-type': '' })).status, 415, 'no type')
  for (const accept of ['*/*', 'application/*, text/*', `${ACCEPT}; charset=utf-8`, '']) {
    t.is((await mcp.send(PING, { accept })).status, 200, accept)
  }
  for (const accept of ['text/event-stream', 'text/html', `${ACCEPT};q=0`]) {
    t.is((await mcp.send(PING, { accept })).status, 406, accept)
  }
})

test('a message of 16 KiB is read, and one byte more is refused', async (t) => {
  const padded = (bytes: number) => PING.padEnd(bytes, ' ')
  t.is((await mcp.send(padded(16_384))).status, 200)
  t.is((await mcp.send(padded(16_385))).status, 413)
  const chunked = new ReadableStream({
    start(controller) {
      for (let sent = 0; sent < 17; sent += 1) controller.enqueue(Buffer.from(' '.repeat(1024)))
      controller.close()
    },
  })
  const init = { method: 'POST', body: chunked, duplex: 'half' } as RequestInit
  const headers = { accept: ACCEPT, 'content-type': 'application/json' }
  t.is((await http.call('/mcp', { ...init, headers })).status, 413)
})

test('a body that does not arrive is refused with 408', async (t) => {
  notThrough('it writes plain text to the socket of a process')
  const { port } = new URL(running.baseUrl)
  const socket = connect(Number(port), 'localhost')
  socket.write(
    `POST /mcp HTTP/1.1\r\nhost: localhost:${port}\r\naccept: ${ACCEPT}\r\n` +
      'content-type: application/json\r\ncontent-length: 50\r\n\r\n{',
  )
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  t.regex(answer, /^HTTP\/1\.1 408 /)
  t.regex(answer, /"jsonrpc":"2\.0","id":null,"error":\{"code":-32000/)
})

test('a notification and a response get 202 without a body', async (t) => {
  for (const message of [
    { method: 'notifications/initialized' },
    { method: 'notifications/cancelled', params: { requestId: 7 } },
    { id: 1, result: {} },
    { id: null, error: { code: -32600, message: 'x' } },
  ]) {
    const { status, text } = await mcp.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
    t.is(status, 202)
    t.is(text, '')
  }
  const modern = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: {} })
  t.is((await mcp.send(modern, { 'mcp-protocol-version': MODERN })).status, 202)
})

test('an invalid message is refused with 400 and no id', async (t) => {
  for (const [code, text] of [
    [-32700, ''],
    [-32700, 'nonsense'],
    [-32700, '\ud800'],
    [-32600, '[]'],
    [-32600, `[${PING}]`],
    [-32600, '"text"'],
    [-32600, '{}'],
    [-32600, '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
    [-32600, '{"jsonrpc":"2.0","id":null,"method":"ping"}'],
    [-32600, '{"jsonrpc":"2.0","id":1.5,"method":"ping"}'],
    [-32600, '{"jsonrpc":"2.0","id":[1],"method":"ping"}'],
    [-32600, '{"jsonrpc":"2.0","id":1,"method":7}'],
    [-32600, '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'],
    [-32600, '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}'],
    [-32600, '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}'],
  ] as const) {
    const bytes = text === '\ud800' ? Buffer.from([0x22, 0xff, 0x22]) : text
    const { status, rpc } = await mcp.send(bytes)
    t.is(status, 400, text)
    t.is(rpc.error?.code, code, text)
    t.is(rpc.id, null)
  }
})

test('legacy: initialize agrees on the version', async (t) => {
  for (const [asked, agreed] of [
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-11-25'],
    ['1999-01-01', '2025-11-25'],
    [MODERN, '2025-11-25'],
  ]) {
    const { status, rpc, headers } = await mcp.send(
      mcp.request('initialize', {
        protocolVersion: asked,
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      }),
    )
    t.is(status, 200)
    t.is(rpc.id, 1)
    t.is(headers.get('mcp-session-id'), null)
    const { instructions, ...result } = rpc.result!
    t.is(typeof instructions, 'string')
    t.deepEqual(result, {
      protocolVersion: agreed,
      capabilities: { tools: { listChanged: false } },
      serverInfo: { name: 'svc', title: 'svc discovery', version: '2.4.0' },
    })
  }
  const missing = await mcp.legacy('initialize', {})
  t.is(missing.rpc.error?.code, -32602)
})

test('legacy: each version header that is supported is served', async (t) => {
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26']) {
    const { status, rpc } = await mcp.legacy('ping', undefined, version)
    t.is(status, 200)
    t.deepEqual(rpc.result, {})
  }
  const unknown = await mcp.legacy('resources/list')
  t.is(unknown.status, 200)
  t.is(unknown.rpc.error?.code, -32601)
  t.is(unknown.rpc.id, 1)
  t.is((await mcp.legacy('server/discover')).rpc.error?.code, -32601)
})

test('modern: server/discover names versions and capabilities', async (t) => {
  const { status, rpc } = await mcp.modern('server/discover')
  t.is(status, 200)
  const { instructions, ...result } = rpc.result!
  t.is(typeof instructions, 'string')
  t.deepEqual(result, {
    supportedVersions: [MODERN, '2025-11-25', '2025-06-18'],
    capabilities: { tools: { listChanged: false } },
    resultType: 'complete',
    ttlMs: 60_000,
    cacheScope: 'public',
    _meta: {
      'io.modelcontextprotocol/serverInfo': {
        name: 'svc',
        title: 'svc discovery',
        version: '2.4.0',
      },
    },
  })
})

test('modern: methods of other eras and unknown ones are 404', async (t) => {
  for (const method of ['initialize', 'ping', 'resources/list', 'constructor', 'x/y']) {
    const { status, rpc } = await mcp.modern(method)
    t.is(status, 404, method)
    t.is(rpc.error?.code, -32601)
    t.is(rpc.id, 1)
  }
})

test('modern: _meta is required', async (t) => {
  const version = 'io.modelcontextprotocol/protocolVersion'
  const capabilities = 'io.modelcontextprotocol/clientCapabilities'
  for (const _meta of [
    undefined,
    'text',
    {},
    { [version]: MODERN },
    { [capabilities]: {} },
    { ...META, [version]: 7 },
    { ...META, [capabilities]: [] },
  ]) {
    const { status, rpc } = await mcp.modern('server/discover', { _meta })
    t.is(status, 400, JSON.stringify(_meta))
    t.is(rpc.error?.code, -32602)
    t.is(rpc.id, 1)
  }
  const { 'io.modelcontextprotocol/clientInfo': _, ...enough } = META
  t.is((await mcp.modern('server/discover', { _meta: enough })).status, 200)
})

test('modern: headers must match the body', async (t) => {
  const other = { ...META, 'io.modelcontextprotocol/protocolVersion': '2025-11-25' }
  const call = { name: 'list_scopes' }
  for (const [what, answer] of Object.entries({
    'version of the body': await mcp.modern('tools/list', { _meta: other }),
    'legacy header': await mcp.modern('tools/list', {}, { 'mcp-protocol-version': '2025-11-25' }),
    'no version header': await mcp.modern('tools/list', {}, { 'mcp-protocol-version': '' }),
    method: await mcp.modern('tools/list', {}, { 'mcp-method': 'tools/call' }),
    'case of the method': await mcp.modern('tools/list', {}, { 'mcp-method': 'Tools/List' }),
    'no method header': await mcp.modern('tools/list', {}, { 'mcp-method': '' }),
    name: await mcp.modern('tools/call', call, { 'mcp-name': 'get_guide' }),
    'no name header': await mcp.modern('tools/call', call, { 'mcp-name': '' }),
    'name without a body': await mcp.modern('tools/call', {}, { 'mcp-name': 'get_guide' }),
  })) {
    t.is(answer.status, 400, what)
    t.is(answer.rpc.error?.code, -32020, what)
    t.is(answer.rpc.id, 1, what)
  }
  const encoded = `=?base64?${Buffer.from('list_scopes').toString('base64')}?=`
  t.is((await mcp.modern('tools/call', call, { 'mcp-name': encoded })).status, 200)
})

test('an unsupported version names the supported ones', async (t) => {
  const version = 'v999'
  const { status, rpc } = await mcp.modern('tools/list', {}, { 'mcp-protocol-version': version })
  t.is(status, 400)
  t.is(rpc.id, 1)
  t.is(rpc.error?.code, -32022)
  const supported = [MODERN, '2025-11-25', '2025-06-18']
  t.deepEqual(rpc.error?.data, { supported, requested: version })
})

test('the id of a request is returned as it was sent', async (t) => {
  for (const id of [0, -1, 9_007_199_254_740_991, '', 'é"\\', 'x'.repeat(1024)]) {
    const { status, rpc } = await mcp.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }))
    t.is(status, 200)
    t.is(rpc.id, id)
  }
})

test('the rate limit mcp has 60 requests a minute for each address', async (t) => {
  const limited = await sharedService('strict')
  t.teardown(() => limited.end())
  const { send } = mcpOf(limited.baseUrl)
  const first = await send(PING)
  t.is(first.headers.get('ratelimit-policy'), '"mcp";q=60;w=60')
  const answers: RpcAnswer[] = []
  for (let sent = 1; sent < 62; sent += 1) answers.push(await send(PING))
  const refused = answers.find(({ status }) => status === 429)
  t.truthy(refused)
  t.is(refused!.rpc.error?.code, -32000)
  t.is(refused!.rpc.error?.data?.['error'], 'rate_limited')
  t.truthy(refused!.headers.get('retry-after'))
})
