/** Documents are compressed once, and a client that has one gets it no second time. */
import { get } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import test from 'ava'
import { sharedBody } from '../../../gateway/response/shared-body.js'
import { bytes, route, type Route } from '../../../gateway/route.js'
import { probe } from '../probe.js'
import { openStage, type Reply, TRANSPORTS } from '../stage.js'

const TEXT = JSON.stringify(Array.from({ length: 5_000 }, (_, index) => `line ${index}`))
const ETAG = sharedBody(TEXT).etag

function documentAt(path: string, operationId: string, type: string, body: string | null): Route {
  const ready = sharedBody(TEXT)
  return route(probe, 'document', {
    tags: ['Probe'],
    exposure: 'public',
    security: { scheme: 'anonymous' },
    method: 'GET',
    path,
    operationId,
    summary: 'Give a document',
    throttle: 'none',
    message: () => null,
    replies: { document: bytes(200, type, () => (body === null ? ready : { ...ready, body })) },
  })
}

const routes = () => [
  documentAt('/text', 'probeText', 'application/json', null),
  documentAt('/font', 'probeFont', 'font/woff2', null),
  // An answer of one client is never compressed: its length would tell about secrets in it.
  documentAt('/own', 'probeOwn', 'application/json', TEXT),
]

/** The body as it was sent, over HTTP/1.1 without TLS. */
function bodyOf(port: number, path: string, coding: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'id.test', 'accept-encoding': coding }
    get({ host: '127.0.0.1', port, path, headers, agent: false }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('end', () => resolve(Buffer.concat(chunks)))
    }).on('error', reject)
  })
}

for (const transport of TRANSPORTS) {
  test(`${transport}: documents are compressed as the client accepts`, async (t) => {
    const stage = await openStage({ transport, gateway: { routes: routes() } })
    t.teardown(() => stage.close())
    const ask = (path: string, headers: Record<string, string>): Promise<Reply> =>
      stage.call({ path, headers })
    for (const [accepted, coding, decode] of [
      ['br', 'br', brotliDecompressSync],
      ['gzip, br;q=0.5', 'gzip', gunzipSync],
    ] as const) {
      const tag = ETAG.replace(/"$/, `-${coding}"`)
      const reply = await ask('/text', { 'accept-encoding': accepted })
      t.is(reply.headers['content-encoding'], coding)
      t.is(reply.headers['etag'], tag)
      t.is(reply.headers['vary'], 'Accept-Encoding')
      t.true(Number(reply.headers['content-length']) < TEXT.length / 4)
      if (transport === 'uws' || transport === 'http1') {
        t.is(decode(await bodyOf(stage.port, '/text', accepted)).toString(), TEXT)
      }
      for (const known of [tag, ETAG, `W/${tag}`, `"x", ${tag}`, '*']) {
        const same = await ask('/text', { 'accept-encoding': accepted, 'if-none-match': known })
        t.is(same.status, 304, known)
        t.is(same.text, '')
        t.is(same.headers['vary'], 'Accept-Encoding')
        t.is(same.headers['content-encoding'], undefined)
        t.is(same.headers['etag'], known === ETAG ? ETAG : tag)
      }
    }
    for (const accepted of ['identity', 'zstd', 'br;q=0', 'x'.repeat(1_000)]) {
      const plain = await ask('/text', { 'accept-encoding': accepted })
      t.is(plain.text, TEXT)
      t.is(plain.headers['content-encoding'], undefined)
      t.is(plain.headers['vary'], 'Accept-Encoding')
    }
    for (const path of ['/font', '/own']) {
      for (let call = 0; call < 3; call += 1) {
        const plain = await ask(path, { 'accept-encoding': 'br, gzip' })
        t.is(plain.text, TEXT)
        t.is(plain.headers['content-encoding'], undefined)
        t.is(plain.headers['vary'], undefined)
      }
    }
  })
}
