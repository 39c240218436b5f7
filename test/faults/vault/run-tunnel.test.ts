/** Passed-through connections of `svc run`, and how they end. */
import { once } from 'node:events'
import { createServer as createHttpServer, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { egressHouse, settingOf, UPSTREAM_NAME } from '../../support/vault/egress.js'
import { svcRunOf } from '../../support/vault/svc-run.js'

const BYTES = 12 * 2 ** 20

const resources = await egressHouse()
const setting = await settingOf(resources)
const svcRun = await svcRunOf(resources, { delegated: setting.direct })
const access = ['--url', resources.running.baseUrl, '--token-file', svcRun.tokenFile]
const named = ['--credential', `${UPSTREAM_NAME}=${setting.credentialId}`]
const running = svcRun.begin(
  ['run', ...access, ...named, '--passthrough', 'localhost', '--', 'sh', '-c'].concat(
    'echo $HTTPS_PROXY; exec sleep 600',
  ),
)
const proxy = new URL((await running.printed(/\n/)).trim())
const login = `Basic ${btoa(`${proxy.username}:${proxy.password}`)}`
test.after.always(async () => {
  running.child.kill('SIGTERM')
  await running.ended
  await svcRun.end()
  await resources.end()
})

/** A connection through the proxy to a server with this behaviour. */
async function tunnelTo(
  t: { teardown(end: () => void): void },
  serve: (socket: Socket) => void,
): Promise<Socket> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const asked = request({
    host: proxy.hostname,
    port: proxy.port,
    method: 'CONNECT',
    path: `localhost:${port}`,
    headers: { 'proxy-authorization': login },
  }).end()
  const [answer, socket, head] = (await once(asked, 'connect')) as [
    { statusCode: number },
    Socket,
    Buffer,
  ]
  if (answer.statusCode !== 200) throw new Error(String(answer.statusCode))
  if (head.length > 0) socket.unshift(head)
  t.teardown(() => {
    socket.destroy()
    server.close()
  })
  return socket
}

test('a slow program gets everything a server sends before it closes', async (t) => {
  const socket = await tunnelTo(t, (upstream) => void upstream.end(Buffer.alloc(BYTES, 'svc ')))
  let bytes = 0
  for await (const chunk of socket) {
    bytes += (chunk as Buffer).length
    await sleep(5)
  }
  t.is(bytes, BYTES)
})

test('a program that has ended its side gets everything, however slowly it reads', async (t) => {
  let received = ''
  const socket = await tunnelTo(t, (upstream) => {
    upstream.setEncoding('latin1').on('data', (text: string) => (received += text))
    upstream.once('end', () => upstream.end(Buffer.alloc(BYTES, 'svc ')))
  })
  socket.end('the request')
  let bytes = 0
  for await (const chunk of socket) {
    bytes += (chunk as Buffer).length
    await sleep(5)
  }
  t.deepEqual([received, bytes], ['the request', BYTES])
})

test('a server that has ended its side gets everything, however slowly it reads', async (t) => {
  let bytes = 0
  const complete = new Promise<void>((resolve) => {
    void tunnelTo(t, (upstream) => {
      upstream.end('the response')
      void (async () => {
        for await (const chunk of upstream) {
          bytes += (chunk as Buffer).length
          await sleep(5)
        }
        resolve()
      })()
    }).then((socket) => {
      socket.allowHalfOpen = true
      socket.resume()
      socket.once('end', () => socket.end(Buffer.alloc(BYTES, 'svc ')))
    })
  })
  await complete
  t.is(bytes, BYTES)
})

test('a reset of the server reaches the program', async (t) => {
  const socket = await tunnelTo(t, (upstream) => {
    upstream.write('hello')
    upstream.once('data', () => upstream.resetAndDestroy())
  })
  let said = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    said += text
    if (said === 'hello') socket.write('reset')
  })
  const error: unknown = await once(socket, 'close').catch(({ code }: { code: string }) => code)
  t.is(said, 'hello')
  t.is(error, 'ECONNRESET')
})

test('an upgrade over plain http is answered in HTTP/1.1', async (t) => {
  const server = createHttpServer((asked, response) => {
    response.end(JSON.stringify([asked.headers.upgrade ?? null, asked.headers.connection]))
  })
  server.on('upgrade', (_, socket) => {
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  const socket = connect(Number(proxy.port), proxy.hostname)
  t.teardown(() => void socket.destroy())
  socket.write(
    `GET http://localhost:${port}/ HTTP/1.1\r\nHost: localhost:${port}\r\n` +
      `Proxy-Authorization: ${login}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
  )
  const [first] = (await once(socket, 'data', { signal: AbortSignal.timeout(10_000) })) as [Buffer]
  t.regex(first.toString('latin1'), /^HTTP\/1.1 200 /)
})

test('a connection is reused after an early response', async (t) => {
  const { host } = new URL(resources.upstream.origin)
  const asked = request({
    host: proxy.hostname,
    port: proxy.port,
    method: 'CONNECT',
    path: host,
    headers: { 'proxy-authorization': login },
  }).end()
  const [, plain] = (await once(asked, 'connect')) as [unknown, Socket]
  const socket = connectTls({ socket: plain, servername: UPSTREAM_NAME, rejectUnauthorized: false })
  t.teardown(() => void socket.destroy())
  let said = ''
  socket.setEncoding('latin1').on('data', (text: string) => (said += text))
  const until = async (pattern: RegExp) => {
    for (let waited = 0; !pattern.test(said); waited += 1) {
      if (waited > 1_000) throw new Error(`no ${pattern}: ${said}`)
      await sleep(20)
    }
    const found = said
    said = ''
    return found
  }
  const chunk = Buffer.alloc(2 ** 20, 'x')
  socket.write(
    `POST /early HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${chunk.length * 6}\r\n\r\n`,
  )
  socket.write(chunk)
  await until(/ 413 .*too much/s)
  for (let sent = 1; sent < 6; sent += 1) socket.write(chunk)
  socket.write(`POST /echo HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\n\r\nhello`)
  t.regex(await until(/ 200 .*hello/s), /hello/)
})
