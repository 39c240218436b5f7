/** The client over HTTP/2, with a server that closes its connections, as one that stops does. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { httpClient } from '../../../../runtime/clients/client/http.js'
import { makeCertificate } from '../../../support/service/certificates.js'

const certificate = makeCertificate()
test.after.always(() => certificate.remove())

async function setUp(
  t: ExecutionContext,
  serve: (stream: ServerHttp2Stream, path: string) => void,
): Promise<{ http: ReturnType<typeof httpClient>; server: Http2SecureServer }> {
  const server = createSecureServer({
    key: readFileSync(certificate.keyPath),
    cert: certificate.pem,
  })
  server.on('stream', (stream, { ':path': path = '' }) => {
    stream.on('error', () => {})
    serve(stream, path)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const http = httpClient(`https://localhost:${port}`, certificate.pem)
  t.teardown(async () => {
    await http.close()
    server.close()
  })
  return { http, server }
}

test('a response that arrives while the server closes the connection is complete', async (t) => {
  const { http } = await setUp(t, (stream, path) => {
    stream.respond({ ':status': 200, 'content-type': 'application/json' })
    if (path === '/closing') {
      stream.session!.close()
      stream.write('{"whole":')
      setTimeout(() => stream.end('true}'), 200)
    } else stream.end('{"whole":true}')
  })
  for (let round = 0; round < 5; round += 1) {
    for (const method of ['GET', 'POST'] as const) {
      const json = method === 'POST' ? { one: 1 } : undefined
      const answer = await http.request({ method, path: '/closing', json })
      t.deepEqual(answer.body, { whole: true })
      t.like(await http.request({ method, path: '/', json }), { status: 200 })
    }
  }
})

test('concurrent responses are complete while the server closes the connection', async (t) => {
  const { http } = await setUp(t, (stream, path) => {
    stream.respond({ ':status': 200, 'content-type': 'application/json' })
    stream.write('{"whole":')
    setTimeout(
      () => {
        if (path.endsWith('3')) stream.session!.close()
        stream.end('true}')
      },
      Number(path.slice(-1)) * 30,
    )
  })
  await http.request({ method: 'GET', path: '/0' })
  const all = await Promise.all(
    Array.from({ length: 10 }, (_, at) =>
      http.request({ method: at % 2 === 0 ? 'GET' : 'POST', path: `/${at}` }),
    ),
  )
  for (const { body } of all) t.deepEqual(body, { whole: true })
})
