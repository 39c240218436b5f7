/** `server.transport = tls`: HTTP/2 and HTTP/1.1 on one port, chosen by ALPN (RFC 7301). */
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { connect, getCiphers, type TLSSocket } from 'node:tls'
import test, { type ExecutionContext } from 'ava'
import { openStage, type Stage } from './stage.js'

async function open(t: ExecutionContext): Promise<Stage> {
  const stage = await openStage({ transport: 'tls' })
  t.teardown(() => stage.close())
  return stage
}

function dial({ port, certificate }: Stage, offered: readonly string[] | undefined): TLSSocket {
  return connect({
    port,
    host: '127.0.0.1',
    servername: 'localhost',
    ca: certificate!.pem,
    ...(offered === undefined ? {} : { ALPNProtocols: [...offered] }),
  })
}

for (const [offered, chosen] of [
  [['h2', 'http/1.1'], 'h2'],
  [['http/1.1', 'h2'], 'h2'],
  [['http/1.1'], 'http/1.1'],
  [['http/1.0', 'http/1.1'], 'http/1.1'],
  [undefined, false],
] as const) {
  test(`a client that offers ${offered?.join(' and ') ?? 'nothing'} gets ${chosen || 'HTTP/1.1'}`, async (t) => {
    const stage = await open(t)
    const socket = dial(stage, offered)
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    t.is(socket.alpnProtocol, chosen)
    if (chosen === 'h2') {
      const session = connectHttp2(`https://localhost:${stage.port}`, {
        createConnection: () => socket,
      })
      t.teardown(() => session.destroy())
      const stream = session.request({ ':path': '/hello', ':authority': 'id.test' })
      const [fields] = await once(stream, 'response')
      t.is(fields[':status'], 200)
      return
    }
    socket.write('GET /hello HTTP/1.1\r\nHost: id.test\r\n\r\n')
    const [answer] = await once(socket, 'data')
    t.regex(String(answer), /^HTTP\/1\.1 200 /)
    t.regex(String(answer), /strict-transport-security: max-age=/i)
  })
}

for (const transport of ['tls', 'http2', 'uws_tls'] as const) {
  test(`${transport}: of TLS 1.2 only suites with forward secrecy and authenticated encryption`, async (t) => {
    const stage = await openStage({ transport })
    t.teardown(() => stage.close())
    const suites = getCiphers()
      .filter((name) => !name.startsWith('tls_'))
      .map((name) => name.toUpperCase())
    const accepted: string[] = []
    for (const ciphers of suites) {
      const socket = connect({
        port: stage.port,
        host: '127.0.0.1',
        servername: 'localhost',
        ca: stage.certificate!.pem,
        ALPNProtocols: ['h2'],
        maxVersion: 'TLSv1.2',
        ciphers: `${ciphers}:@SECLEVEL=0`,
      })
      const ended = await Promise.race([
        once(socket, 'secureConnect').then(() => true),
        once(socket, 'close').then(() => false),
      ]).catch(() => false)
      if (ended) accepted.push(ciphers)
      socket.destroy()
    }
    t.true(accepted.length > 0)
    for (const name of accepted)
      t.regex(name, /^ECDHE-(?:ECDSA|RSA)-(?:AES(?:128|256)-GCM-SHA(?:256|384)|CHACHA20-POLY1305)$/)
  })
}

test('a client that offers other protocols alone fails the handshake', async (t) => {
  const stage = await open(t)
  const socket = dial(stage, ['acme-tls/1'])
  const [error] = await once(socket, 'error')
  t.regex(String(error), /no application protocol|alert/i)
})

test('tls_http1 speaks HTTP/1.1, whatever a client offers', async (t) => {
  const stage = await openStage({ transport: 'uws_tls' })
  t.teardown(() => stage.close())
  t.is(stage.url, `https://127.0.0.1:${stage.port}`)
  for (const offered of [['h2', 'http/1.1'], ['http/1.1'], undefined]) {
    const socket = dial(stage, offered)
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    t.is(socket.alpnProtocol, false)
    socket.write('GET /hello HTTP/1.1\r\nHost: id.test\r\n\r\n')
    const [answer] = await once(socket, 'data')
    t.regex(String(answer), /^HTTP\/1\.1 200 /)
    t.regex(String(answer), /strict-transport-security: max-age=/i)
  }
})

test('tls_http1 without the native file is served by node:http', async (t) => {
  const stage = await openStage({ transport: 'uws_tls', gateway: { nativePins: {} } })
  t.teardown(() => stage.close())
  const socket = dial(stage, ['h2', 'http/1.1'])
  t.teardown(() => socket.destroy())
  await once(socket, 'secureConnect')
  t.is(socket.alpnProtocol, 'http/1.1')
  t.is((await stage.call({ path: '/hello' })).status, 200)
})

test('bytes that are no TLS get no answer, and the next client is served', async (t) => {
  const stage = await open(t)
  const socket = connectTcp(stage.port, '127.0.0.1')
  socket.on('error', () => undefined)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.write('GET /hello HTTP/1.1\r\nHost: id.test\r\n\r\n')
  await once(socket, 'close')
  t.false(text.includes('HTTP/1.1 200'))
  t.is((await stage.call({ path: '/hello' })).status, 200)
})

test('draining ends the connections of both protocols', async (t) => {
  const stage = await open(t)
  const idle = dial(stage, ['http/1.1'])
  await once(idle, 'secureConnect')
  idle.write('GET /hello HTTP/1.1\r\nHost: id.test\r\n\r\n')
  await once(idle, 'data')
  const session = connectHttp2(`https://localhost:${stage.port}`, { ca: stage.certificate!.pem })
  await once(session, 'connect')
  const ends = Promise.all([once(idle, 'close'), once(session, 'close')])
  t.true(await stage.gateway.drain(5_000))
  await ends
  t.deepEqual([idle.closed, session.closed], [true, true])
})
