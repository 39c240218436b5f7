/** Fetching documents of other parties: results, refusals and caching. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { createDocuments } from '../../../../actors/platform/outbound-http/documents.js'
import type { Clock } from '../../../../runtime/kernel/clock.js'
import { REFUSED_URLS } from './address-corpus.js'
import { UPSTREAM_CERT, UPSTREAM_KEY, UPSTREAM_NAME } from '../../vault/egress/loopback-tls.js'

const folder = mkdtempSync(join(tmpdir(), 'svc-documents-'))
const caPath = join(folder, 'ca.pem')
writeFileSync(caPath, UPSTREAM_CERT)
test.after.always(() => rmSync(folder, { recursive: true }))

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function opened(t: ExecutionContext, answer: Answer, { open = true } = {}) {
  let asked = 0
  const server: Server = createServer({ key: UPSTREAM_KEY, cert: UPSTREAM_CERT }, (...both) => {
    asked += 1
    answer(...both)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const time = { ms: 1_000_000 }
  const clock = { monotonicMs: () => time.ms } as Clock
  const documents = createDocuments({
    clock,
    settings: {
      egress_allow_private_networks: open,
      egress_allow_non_standard_ports: true,
      egress_ca_pem_path: caPath,
      own_names: [],
      egress_dns_overrides: { [UPSTREAM_NAME]: '127.0.0.1' },
    },
  })
  t.teardown(async () => {
    await documents.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const url = `https://${UPSTREAM_NAME}:${(server.address() as AddressInfo).port}/keys`
  return { documents, url, time, asked: () => asked }
}

const json = (value: unknown, headers: Record<string, string> = {}): Answer => {
  return (_, response) => response.writeHead(200, headers).end(JSON.stringify(value))
}

test('a document is cached, and fetched again after its lifetime', async (t) => {
  const { documents, url, time, asked } = await opened(t, json({ keys: [] }))
  const many = await Promise.all(Array.from({ length: 50 }, () => documents.fetch(url)))
  for (const one of many) t.deepEqual(one, { tag: 'fetched', document: { keys: [] } })
  t.is(asked(), 1)
  time.ms += 299_000
  await documents.fetch(url)
  t.is(asked(), 1)
  time.ms += 2_000
  await documents.fetch(url)
  t.is(asked(), 2)
})

test('a refresh fetches again, at a limited rate', async (t) => {
  const { documents, url, time, asked } = await opened(t, json({}))
  await documents.fetch(url)
  await documents.fetch(url, { refresh: true })
  t.is(asked(), 1)
  time.ms += 15_000
  await documents.fetch(url, { refresh: true })
  await documents.fetch(url, { refresh: true })
  t.is(asked(), 2)
})

test('callers that wait for a silent host have places, and a known document needs none', async (t) => {
  let isSilent = false
  const known: Answer = json({ keys: [] }, { 'cache-control': 'max-age=3600' })
  const { documents, url } = await opened(t, (...both) => isSilent || known(...both))
  await documents.fetch(url)
  isSilent = true
  const waiting = Array.from({ length: 124 }, () => documents.fetch(`${url}/silent`))
  const busy = await Promise.all(waiting.slice(112))
  for (const one of busy) t.deepEqual(one, { tag: 'failed', fault: 'share_exhausted' })
  t.like(await documents.fetch(url), { tag: 'fetched' })
  for (const one of await Promise.all(waiting.slice(0, 112)))
    t.deepEqual(one, { tag: 'failed', fault: 'timeout' })
})

test('max-age is limited to a minute at least and an hour at most', async (t) => {
  const { documents, url, time, asked } = await opened(
    t,
    json({}, { 'cache-control': 'max-age=0' }),
  )
  await documents.fetch(url)
  time.ms += 59_000
  await documents.fetch(url)
  t.is(asked(), 1)
  time.ms += 2_000
  await documents.fetch(url)
  t.is(asked(), 2)
})

test('a failure is cached briefly', async (t) => {
  const { documents, url, time, asked } = await opened(t, (_, r) => r.writeHead(503).end('{}'))
  t.deepEqual(await documents.fetch(url), { tag: 'failed', fault: 'unexpected_status' })
  await documents.fetch(url)
  t.is(asked(), 1)
  time.ms += 16_000
  await documents.fetch(url)
  t.is(asked(), 2)
})

const FAULTS: readonly [title: string, fault: string, answer: Answer][] = [
  ['a redirect', 'unexpected_status', (_, r) => r.writeHead(302, { location: '/other' }).end()],
  ['an empty body', 'not_json', (_, r) => r.end()],
  ['a page', 'not_json', (_, r) => r.end('<html></html>')],
  ['a member named twice', 'not_json', (_, r) => r.end('{"keys":[],"keys":[1]}')],
  ['nesting without end', 'not_json', (_, r) => r.end('['.repeat(40) + ']'.repeat(40))],
  ['a body of 65 KiB', 'http_response_body_size', (_, r) => r.end(`"${'x'.repeat(66_000)}"`)],
  [
    'a body without end',
    'http_response_body_size',
    (_, r) => {
      const timer = setInterval(() => r.write(' '.repeat(16_384)), 1)
      r.on('close', () => clearInterval(timer))
    },
  ],
  [
    'a compressed body',
    'content_encoding',
    (_, r) => r.writeHead(200, { 'content-encoding': 'gzip' }).end('{}'),
  ],
  ['a connection that breaks off', 'connection_terminated', (q) => q.socket.destroy()],
  [
    'a body that is cut off',
    'http_response_incomplete',
    (_, r) => {
      r.writeHead(200, { 'content-length': '100' })
      r.write('{', () => r.destroy())
    },
  ],
]
for (const [title, fault, answer] of FAULTS) {
  test(`${title} is refused: ${fault}`, async (t) => {
    const { documents, url } = await opened(t, answer)
    t.deepEqual(await documents.fetch(url), { tag: 'failed', fault })
  })
}

test('a private address gets no request', async (t) => {
  const { documents, url, asked } = await opened(t, json({}), { open: false })
  const answer = await documents.fetch(url)
  t.deepEqual(answer, { tag: 'failed', fault: 'destination_ip_prohibited' })
  t.is(asked(), 0)
})

test('every address of the corpus is refused before any request', async (t) => {
  const documents = createDocuments({
    clock: { monotonicMs: () => 0 } as Clock,
    settings: {
      egress_allow_private_networks: false,
      egress_allow_non_standard_ports: false,
      egress_ca_pem_path: undefined,
      own_names: [],
      egress_dns_overrides: {},
    },
    resolve: () => t.fail('a name was resolved'),
  })
  for (const [url, fault] of REFUSED_URLS)
    t.deepEqual(await documents.fetch(url), { tag: 'failed', fault }, url)
  await documents.close()
})
