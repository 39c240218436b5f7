/** The egress address: the listener of the egress thread serves what the main listener serves of the proxy. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { parseEnv } from 'node:util'
import test from 'ava'
import { egressFetch } from '../../../runtime/clients/client/egress-fetch.js'
import { serviceCalls } from '../../../runtime/clients/svc-run/service-calls.js'
import { type Answer, claimsOf } from '../../support/api.js'
import { notThrough } from '../../support/fleet/through.js'
import { proofKey } from '../../support/identity/proof.js'
import { accessToken } from '../../support/oauth/service-keys.js'
import { METRICS_TOKEN, until } from '../../support/service/watch.js'
import {
  bodyCall,
  type ClosedEvent,
  closedCalls,
  egressHouse,
  settingOf,
  UPSTREAM_NAME,
} from '../../support/vault/egress.js'
import { addressedHouse } from '../../support/vault/egress-address.js'

notThrough('it calls a listener of one process')
const BODY = '/v1/proxy/body'
const house = await addressedHouse({
  transport: 'plain_http',
  environment: { SVC_SERVER__METRICS_BEARER_TOKEN: METRICS_TOKEN },
})
const { api, atEgress, egressUrl, running, upstream } = house
test.after.always(() => house.end())

const call = (url: string, credentialId: string, more: object = {}) => ({
  credential_id: credentialId,
  method: 'GET',
  url,
  stream: false,
  ...more,
})

/** What both addresses must say alike. */
function said({ status, headers, body }: Answer) {
  const { request_id: _, ...rest } = body
  const { date: _date, 'x-request-id': _id, connection: _kept, ...fields } = headers
  delete fields['keep-alive']
  // What the library adds on the main address.
  delete fields['uwebsockets']
  return { status, fields, rest }
}

test('calls and refusals match the main address', async (t) => {
  const setting = await settingOf(house)
  const { credentialId: id, delegated } = setting
  const at = (path: string) => upstream.origin + path
  const weak = await accessToken(running, { ...claimsOf(delegated), scope: 'vault:list' })
  const cases: readonly (readonly [number, string | undefined, object])[] = [
    [200, delegated, call(at('/status/200'), id)],
    [418, delegated, call(at('/status/418'), id)],
    [200, delegated, call(at('/headers'), id, { headers: [['accept', 'text/plain']] })],
    [200, delegated, call(at('/echo'), id, { method: 'POST', body: 'hello' })],
    [401, undefined, call(at('/echo'), id)],
    [401, 'no-token', call(at('/echo'), id)],
    [403, weak, call(at('/echo'), id)],
    [403, setting.direct, call(at('/echo'), id)],
    [400, delegated, { credential_id: id }],
    [400, delegated, call('http://api.example.com/', id)],
    [403, delegated, call('https://other.example.com/', id)],
    [404, delegated, call(at('/echo'), crypto.randomUUID())],
    [502, delegated, call(at('/not-http'), id)],
  ]
  for (const [status, token, json] of cases) {
    const main = await api.post('/v1/proxy', token, json)
    const own = await atEgress.post('/v1/proxy', token, json)
    t.is(own.status, status, JSON.stringify([json, own.body]))
    t.deepEqual(said(own), said(main), JSON.stringify(json))
  }
})

test('calls of both addresses are recorded alike, and use one budget', async (t) => {
  const setting = await settingOf(house, {}, { max_requests: 3 })
  const headers = bodyCall(setting, `${upstream.origin}/echo`)
  const send = (base: string) =>
    house.send(base + BODY, { token: setting.direct, headers, body: 'eight by' })
  for (const base of [running.baseUrl, egressUrl, egressUrl]) {
    const answer = await send(base)
    t.is(answer.statusCode, 200)
    t.is(await answer.body.text(), 'eight by')
  }
  for (const base of [egressUrl, running.baseUrl]) {
    const answer = await send(base)
    t.is(answer.statusCode, 429)
    t.like(await answer.body.json(), { error: 'budget_exceeded' })
  }
  const [main, ...own] = await closedCalls(house, setting.tenantId, 3)
  t.like(main, { outcome: 'completed', bytes: 16, host: UPSTREAM_NAME, method: 'POST' }, 'recorded')
  for (const one of own) {
    t.deepEqual(factsOf(one), factsOf(main!))
  }
})

const OF_ONE_CALL = new Set(['duration_ms', 'chunks', 'request_id'])
const factsOf = (closed: ClosedEvent) =>
  Object.fromEntries(Object.entries(closed).filter(([name]) => !OF_ONE_CALL.has(name)))

test('concurrent calls of both addresses count together', async (t) => {
  const setting = await settingOf(house)
  const path = '/silent-after-chunk/both-addresses'
  const stop = new AbortController()
  const held = Array.from({ length: 64 }, (_, index) =>
    house.send((index % 2 === 0 ? egressUrl : running.baseUrl) + BODY, {
      token: setting.direct,
      headers: bodyCall(setting, upstream.origin + path, { 'x-svc-method': 'GET' }),
      signal: stop.signal,
    }),
  )
  for (const each of held) each.catch(() => undefined)
  const seen = () => upstream.requests.filter(({ url }) => url === path).length
  await until('the calls are under way', () => seen() === 64)
  const echo = call(`${upstream.origin}/echo`, setting.credentialId)
  for (const one of [atEgress, api]) {
    const refused = await one.post('/v1/proxy', setting.delegated, echo)
    t.is(refused.status, 429)
    t.is(refused.headers['proxy-status'], 'svc-egress; error=connection_limit_reached')
  }
  stop.abort()
  const isFree = async () =>
    (await atEgress.post('/v1/proxy', setting.delegated, echo)).status === 200
  await until('the places are free', isFree)
})

test('what ends a call on one address ends it on the other', async (t) => {
  const setting = await settingOf(house)
  const echo = call(`${upstream.origin}/echo`, setting.credentialId)
  const ask = () => atEgress.post('/v1/proxy', setting.delegated, echo)
  t.is((await ask()).status, 200)
  const grant = `/api/v1/vault/grants/${setting.grantId}/revoke`
  t.true((await api.post(grant, setting.operator, {})).status < 300)
  t.is((await ask()).status, 404, 'the grant')
  const suspended = `/api/v1/agents/${setting.agentId}/suspend`
  t.is((await api.post(suspended, setting.operator, {})).status, 200)
  await until('the token is refused', async () => (await ask()).status === 401)
})

test('other routes are not there, health is', async (t) => {
  for (const path of [
    '/',
    '/metrics',
    '/openapi.json',
    '/api/v1/capabilities',
    '/.well-known/openid-configuration',
    '/.well-known/jwks.json',
    '/auth/login',
    '/console',
    '/v1/proxy/other',
    '/v1/proxyx',
    '/healthy',
  ]) {
    const { status, body } = await atEgress.get(path)
    t.is(status, 404, path)
    t.is(body['title'], 'Not found', path)
  }
  t.is((await atEgress.post('/oauth/token', undefined, {})).status, 404)
  t.is((await atEgress.get('/v1/proxy')).status, 405)
  const { direct } = await settingOf(house)
  const none = await atEgress.get(`/v1/approvals/${crypto.randomUUID()}`, direct)
  t.like(none.body, { status: 404, detail: 'There is no such approval.' })
  for (const path of ['/health/live', '/health/ready', '/health/startup']) {
    t.deepEqual((await atEgress.get(path)).body, { status: 'ok' }, path)
  }
})

/** Sends bytes on a new connection. Resolves with what comes until the end. */
async function raw(bytes: string): Promise<string> {
  const socket = connect(house.egressPort, '127.0.0.1')
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
  socket.write(bytes)
  await once(socket, 'close')
  return text
}

test('it holds to RFC 9112: HTTP/1.0 probes, chunk extensions, pipelined requests', async (t) => {
  t.regex(await raw('GET /health/live HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /)
  const setting = await settingOf(house)
  const { host } = new URL(egressUrl)
  const fields = Object.entries({
    host,
    authorization: `Bearer ${setting.direct}`,
    'transfer-encoding': 'chunked',
    ...bodyCall(setting, `${upstream.origin}/echo`),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  const post = `POST ${egressUrl}${BODY} HTTP/1.1\r\n${fields.join('')}\r\n`
  const live = `GET /health/live HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`
  const both = await raw(`${post}2;name=value\r\nok\r\n0\r\n\r\n${live}`)
  t.deepEqual(
    [...both.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => status),
    ['200', '200'],
  )
  t.regex(both, /\r\nok\r\n/)
})

test('the head of a streamed answer leaves as soon as the upstream answers', async (t) => {
  const setting = await settingOf(house)
  const fields = { ...bodyCall(setting, `${upstream.origin}/held-events`), 'x-svc-method': 'GET' }
  const answer = await house.send(egressUrl + BODY, { token: setting.direct, headers: fields })
  t.is(answer.statusCode, 200)
  t.is(answer.headers['content-type'], 'text/event-stream')
  upstream.releaseEvents()
  t.true((await answer.body.text()).length > 0)
})

test('a client that reads nothing holds back its upstream', async (t) => {
  const setting = await settingOf(house)
  const size = 64 * 1024 * 1024
  const { host } = new URL(egressUrl)
  const fields = Object.entries({
    host,
    authorization: `Bearer ${setting.direct}`,
    'content-length': '0',
    ...bodyCall(setting, `${upstream.origin}/bytes/${size}`, { 'x-svc-method': 'GET' }),
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  const before = upstream.pushed
  const socket: Socket = connect(house.egressPort, '127.0.0.1').pause()
  socket.on('error', () => undefined)
  socket.write(`POST ${BODY} HTTP/1.1\r\n${fields.join('')}\r\n`)
  let last = -1
  // Until nothing more is taken from the upstream.
  await until('the upstream waits', async () => {
    const now = upstream.pushed
    await new Promise((resolve) => setTimeout(resolve, 500))
    const waits = now > before && upstream.pushed === now
    last = now - before
    return waits
  })
  t.true(last < size / 2, String(last))
  socket.destroy()
  const [ended] = await closedCalls(house, setting.tenantId, 1)
  t.is(ended!['outcome'], 'client_closed')
})

test('a proof names the address that is called', async (t) => {
  const setting = await settingOf(house)
  const key = await proofKey()
  const bound = await accessToken(running, {
    ...claimsOf(setting.delegated),
    cnf: { jkt: key.jkt },
  })
  const json = call(`${upstream.origin}/echo`, setting.credentialId)
  const statusAt = async (at: typeof api, htu: string) => {
    const headers = {
      authorization: `DPoP ${bound}`,
      dpop: await key.proof('POST', htu, {
        ath: Buffer.from(
          await crypto.subtle.digest('SHA-256', new TextEncoder().encode(bound)),
        ).toString('base64url'),
      }),
    }
    return (await at.call('POST', '/v1/proxy', { json, headers })).status
  }
  const [base, own] = [`${running.baseUrl}/v1/proxy`, `${egressUrl}/v1/proxy`]
  t.is(await statusAt(atEgress, own), 200)
  t.is(await statusAt(api, base), 200)
  t.is(await statusAt(atEgress, base), 401)
  t.is(await statusAt(api, own), 401)
})

test('documents and clients name the address', async (t) => {
  const { body } = await api.get('/api/v1/capabilities')
  t.is(body['egress_url'], egressUrl)
  t.like(body['features'], { 'vault.egress': { url: egressUrl } })
  const workspace = await api.workspace()
  t.is(parseEnv(String(workspace.body['env_block']))['SVC_EGRESS_URL'], egressUrl)

  const setting = await settingOf(house)
  const addresses: string[] = []
  const fetchIt = egressFetch({
    baseUrl: running.baseUrl,
    credentialId: setting.credentialId,
    token: setting.direct,
    fetch: (input, init) => {
      addresses.push(String(input))
      return fetch(input, init)
    },
  })
  t.is((await fetchIt(`${upstream.origin}/status/204`)).status, 204)
  t.is(addresses.at(-1), egressUrl + BODY)
  const client = serviceCalls(running.baseUrl, async () => setting.direct)
  const answer = await client.send({
    method: 'POST',
    url: `${upstream.origin}/echo`,
    headers: [],
    body: Buffer.from('by the program'),
    bodyBytes: 14,
    credential: { id: setting.credentialId, authScheme: 'bearer' },
    stream: false,
    signal: new AbortController().signal,
  })
  t.is(await answer.body.text(), 'by the program')
  await client.close()
})

test('metrics say what serves each listener', async (t) => {
  const setting = await settingOf(house)
  const json = call(`${upstream.origin}/echo`, setting.credentialId)
  t.is((await atEgress.post('/v1/proxy', setting.delegated, json)).status, 200)
  const text = await (
    await fetch(`${running.baseUrl}/metrics`, {
      headers: { authorization: `Bearer ${METRICS_TOKEN}` },
    })
  ).text()
  const lines = text.split('\n').filter((line) => line.startsWith('svc_gateway_listener_info{'))
  t.is(lines.length, 2, lines.join('\n'))
  for (const [listener, parser, secs] of [
    ['main', 'uwebsockets', '10'],
    ['egress', 'node', '75'],
  ]) {
    const line = lines.find((one) => one.includes(`listener="${listener}"`)) ?? ''
    for (const label of [
      `parser="${parser}"`,
      `keep_alive_secs="${secs}"`,
      'transport="plain_http"',
    ]) {
      t.true(line.includes(label), line)
    }
  }
  t.regex(text, /^svc_gateway_thread_requests_total\{thread="egress"\} [1-9]/m)
  t.regex(text, /^svc_http_requests_total\{.*route="\/v1\/proxy".*status="200".*\} [1-9]/m)
})

test('rate limits count calls of both addresses together', async (t) => {
  const limited = await addressedHouse({
    transport: 'plain_http',
    environment: { SVC_SERVER__ENDPOINT_THROTTLE__ENABLED: 'true' },
  })
  t.teardown(() => limited.end())
  const setting = await settingOf(limited)
  // The service writes this answer, so it has the fields of the limits.
  const json = call(`${limited.upstream.origin}/echo`, crypto.randomUUID())
  const left: number[] = []
  for (const at of [limited.api, limited.atEgress, limited.api, limited.atEgress]) {
    const { status, headers } = await at.post('/v1/proxy', setting.delegated, json)
    t.is(status, 404)
    left.push(Number(/"egress";r=(\d+)/.exec(headers['ratelimit'] ?? '')?.[1]))
  }
  t.deepEqual(left, [599, 598, 597, 596])
})

for (const transport of ['tls_http1', 'tls', 'tls_h2_only'] as const) {
  test(`with ${transport} it is HTTP/1.1 over TLS`, async (t) => {
    const secured = await addressedHouse({ transport })
    t.teardown(() => secured.end())
    const setting = await settingOf(secured)
    t.true(secured.egressUrl.startsWith('https:'))
    const { body } = await secured.api.get('/api/v1/capabilities')
    t.is(body['egress_url'], secured.egressUrl)
    const answer = await secured.atEgress.post(
      '/v1/proxy',
      setting.delegated,
      call(`${secured.upstream.origin}/echo`, setting.credentialId, { method: 'POST', body: 'x' }),
    )
    t.is(answer.status, 200)
    const socket = connectTls({
      host: '127.0.0.1',
      servername: 'localhost',
      port: secured.egressPort,
      ca: secured.running.ca,
      ALPNProtocols: ['h2', 'http/1.1'],
    })
    await once(socket, 'secureConnect')
    t.not(socket.alpnProtocol, 'h2')
    t.regex(String(socket.getProtocol()), /^TLSv1\.[23]$/)
    socket.destroy()
  })
}

test('without the setting there is no other address', async (t) => {
  const plain = await egressHouse({ transport: 'plain_http' })
  t.teardown(() => plain.end())
  const { baseUrl } = plain.running
  const { body } = await plain.api.get('/api/v1/capabilities')
  t.is(body['egress_url'], body['issuer'])
  t.is(new URL(String(body['egress_url'])).port, new URL(baseUrl).port)
  const { body: made } = await plain.api.workspace()
  t.is(parseEnv(String(made['env_block']))['SVC_EGRESS_URL'], String(body['issuer']))
})
