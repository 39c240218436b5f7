import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { egressActor, type EgressSettings } from '../../../actors/egress/actor.js'
import type { HeaderPair, RelayTarget } from '../../../actors/egress/protocol.js'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { spawnInline } from '../../../runtime/kernel/inline.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import { bytePipe, ByteStream } from '../../../runtime/kernel/stream.js'
import { UPSTREAM_CERT, UPSTREAM_KEY, UPSTREAM_NAME } from './loopback-tls.js'

const limits = { idleGapMs: 30_000, hopTimeoutMs: 60_000, byteBudget: null }
const PRODUCTION: EgressSettings = {
  egress_allow_private_networks: false,
  egress_allow_non_standard_ports: false,
  egress_ca_pem_path: undefined,
  egress_dns_overrides: {},
}

function spawn(t: ExecutionContext, settings: EgressSettings) {
  const needs = { settings, clock: systemClock, random: systemRandom(systemClock) }
  const actor = spawnInline(egressActor, needs)
  t.teardown(() => actor.stop())
  return actor.ref
}

/** An HTTPS upstream that answers with what it was sent, and an actor that may reach it. */
async function setUp(t: ExecutionContext, changed: Partial<EgressSettings> = {}) {
  const server = createServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT }, (request, response) => {
    const head = { method: request.method, url: request.url, headers: request.headers }
    response.write(`${JSON.stringify(head)}\n`)
    request.pipe(response)
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const folder = await mkdtemp(join(tmpdir(), 'svc-egress-'))
  const caPath = join(folder, 'ca.pem')
  await writeFile(caPath, UPSTREAM_CERT)
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
    await rm(folder, { recursive: true })
  })
  const ref = spawn(t, {
    egress_allow_private_networks: true,
    egress_allow_non_standard_ports: true,
    egress_ca_pem_path: caPath,
    egress_dns_overrides: { [UPSTREAM_NAME]: '127.0.0.1', 'other.example': '127.0.0.1' },
    ...changed,
  })
  const { port } = server.address() as AddressInfo
  const target = (changed: Partial<RelayTarget> = {}): RelayTarget => ({
    method: 'GET',
    url: `https://${UPSTREAM_NAME}:${port}/v1/things?a=b`,
    headers: [],
    injected: null,
    ...changed,
  })
  return { ref, target, port }
}

test('a request goes out over checked TLS with the credential and without what is ours', async (t) => {
  const { ref, target, port } = await setUp(t)
  const headers: HeaderPair[] = [
    ['Accept', 'text/plain'],
    ['Cookie', 'a=b'],
    ['X-Forwarded-For', '1.2.3.4'],
  ]
  const outcome = await ref.ask('relay', {
    target: target({ method: 'POST', headers, injected: ['Authorization', 'Bearer secret'] }),
    limits,
    body: ByteStream.from(new Uint8Array(Buffer.from('the body'))),
    bodyBytes: 8,
  })
  if (outcome.tag !== 'relaying') return t.fail(JSON.stringify(outcome))
  t.is(outcome.status, 200)
  let text = ''
  for await (const chunk of outcome.body) text += Buffer.from(chunk).toString()
  const [head, body] = text.split('\n')
  t.deepEqual(JSON.parse(head!), {
    method: 'POST',
    url: '/v1/things?a=b',
    headers: {
      host: `${UPSTREAM_NAME}:${port}`,
      connection: 'keep-alive',
      accept: 'text/plain',
      authorization: 'Bearer secret',
      'content-length': '8',
    },
  })
  t.is(body, 'the body')

  const { relayId } = outcome
  const ended = await ref.ask('ended', { relayId })
  t.is(ended.tag, 'ended')
  if (ended.tag === 'ended') t.like(ended.report, { outcome: 'completed', requestBytes: 8 })
  t.deepEqual(await ref.ask('ended', { relayId }), { tag: 'unknown' })
})

test('an upstream whose certificate names another host is not talked to', async (t) => {
  const { ref, target, port } = await setUp(t)
  const outcome = await ref.ask('relay', {
    target: target({ url: `https://other.example:${port}/` }),
    limits,
    body: null,
    bodyBytes: null,
  })
  t.is(outcome.tag, 'failed')
  if (outcome.tag === 'failed') t.is(outcome.report.proxyError, 'tls_certificate_error')
})

test('an upstream whose certificate nobody vouches for is not talked to', async (t) => {
  const { ref, target } = await setUp(t, { egress_ca_pem_path: undefined })
  const asked = { target: target(), limits, body: null, bodyBytes: null }
  const outcome = await ref.ask('relay', asked)
  t.is(outcome.tag, 'failed')
  if (outcome.tag === 'failed') t.is(outcome.report.proxyError, 'tls_certificate_error')
})

test('with production settings a name that means loopback is prohibited', async (t) => {
  const ref = spawn(t, { ...PRODUCTION, egress_dns_overrides: { 'a.example': '127.0.0.1' } })
  const target = { method: 'GET', url: 'https://a.example/', headers: [], injected: null }
  const outcome = await ref.ask('relay', { target, limits, body: null, bodyBytes: null })
  t.is(outcome.tag, 'failed')
  if (outcome.tag === 'failed') t.is(outcome.report.proxyError, 'destination_ip_prohibited')
})

for (const [fault, changed] of [
  ['method', { method: 'CONNECT' }],
  ['method', { method: 'TRACE' }],
  ['method', { method: 'get' }],
  ['method', { method: 'GET / HTTP/1.1\r\nx: y' }],
  ['url_scheme', { url: 'http://api.example/' }],
  ['url_port', { url: 'https://api.example:8443/' }],
  ['url_host', { url: 'https://127.0.0.1/' }],
  ['url_userinfo', { url: 'https://a:b@api.example/' }],
  ['header_value', { headers: [['x', 'a\r\nb: c']] }],
  [
    'header_duplicates_injected',
    { headers: [['Authorization', 'x']], injected: ['authorization', 'y'] },
  ],
] as const) {
  test(`a request with a bad ${fault} ${JSON.stringify(changed)} is refused and its body let go`, async (t) => {
    const ref = spawn(t, PRODUCTION)
    const { stream, writer } = bytePipe()
    let cancelled = false
    writer.onCancel = () => {
      cancelled = true
    }
    const target = {
      method: 'POST',
      url: 'https://api.example/',
      headers: [],
      injected: null,
      ...changed,
    } as RelayTarget
    const outcome = await ref.ask('relay', { target, limits, body: stream, bodyBytes: null })
    t.deepEqual(outcome, { tag: 'refused', fault })
    t.true(cancelled)
  })
}

test('the end of a relay nobody began is unknown', async (t) => {
  t.deepEqual(await spawn(t, PRODUCTION).ask('ended', { relayId: 'none' }), { tag: 'unknown' })
})
