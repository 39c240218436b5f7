/** The idle limit of an HTTP/1.1 connection counts while no request is open, not while an answer is prepared. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import test from 'ava'
import { headerBlock } from '../../gateway/http-exchange.js'
import { openHttp1 } from '../../gateway/transports/http1.js'

const IDLE_MS = 100
const block = headerBlock([])

test('an answer that takes longer than the idle limit arrives, on a fresh and on a used connection', async (t) => {
  const listener = await openHttp1({
    host: '127.0.0.1',
    port: 0,
    idleMs: IDLE_MS,
    handler: (exchange) =>
      void sleep(8 * IDLE_MS).then(() =>
        exchange.send({ status: 200, block, headers: [], body: exchange.path }),
      ),
  })
  t.teardown(() => listener.close())
  const socket = connect(listener.port, '127.0.0.1').setEncoding('latin1')
  t.teardown(() => void socket.destroy())
  let read = ''
  socket.on('data', (text: string) => (read += text))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  for (const path of ['/first', '/second']) {
    socket.write(`GET ${path} HTTP/1.1\r\nhost: id.test\r\n\r\n`)
    while (!read.endsWith(path) && !socket.destroyed) await sleep(10)
    t.true(read.endsWith(path), path)
  }
  await closed
  t.pass('an idle connection is closed')
})
