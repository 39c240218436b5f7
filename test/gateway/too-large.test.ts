/** Clients and proxies that send the whole body before they read get the 413. */
import { once } from 'node:events'
import { connect } from 'node:net'
import test from 'ava'
import { openStage } from './stage.js'

const stage = await openStage({ transport: 'uws' })
test.after.always(() => stage.close())

/** Sends a whole request, then reads answers until a pause. */
async function exchange(size: number, next: string): Promise<string> {
  const socket = connect(stage.port, '127.0.0.1')
  await once(socket, 'connect')
  let text = ''
  const ended = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk) => {
      text += String(chunk)
      if (text.split('HTTP/1.1').length > (next === '' ? 1 : 2)) resolve()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve())
  })
  socket.pause()
  const head = 'PUT /raw HTTP/1.1\r\nHost: id.test\r\nContent-Type: application/octet-stream\r\n'
  socket.write(`${head}Content-Length: ${size}\r\n\r\n`)
  const chunk = Buffer.alloc(64 * 1024, 7)
  for (let left = size; left > 0; left -= chunk.length) {
    if (!socket.write(chunk.subarray(0, left)) && !socket.destroyed) {
      await Promise.race([once(socket, 'drain'), ended])
    }
  }
  if (next !== '') socket.write(next)
  socket.resume()
  await ended
  socket.destroy()
  return text
}

for (const mebibytes of [1, 8, 32]) {
  test(`${mebibytes} MiB where 256 KiB are taken are a 413, and the connection goes on`, async (t) => {
    const next = 'GET /hello HTTP/1.1\r\nHost: id.test\r\n\r\n'
    const text = await exchange(mebibytes * 1024 * 1024, next)
    const lines = text.match(/HTTP\/1\.1 \d+/g)
    t.deepEqual(lines, ['HTTP/1.1 413', 'HTTP/1.1 200'])
  })
}

test('a body that says it has more than 64 MiB is not read: the connection ends', async (t) => {
  const socket = connect(stage.port, '127.0.0.1')
  const head = 'PUT /raw HTTP/1.1\r\nHost: id.test\r\nContent-Type: application/octet-stream\r\n'
  socket.write(`${head}Content-Length: ${64 * 1024 * 1024 + 1}\r\n\r\n`)
  socket.write(Buffer.alloc(300 * 1024))
  let text = ''
  socket.on('data', (chunk) => (text += String(chunk)))
  socket.on('error', () => undefined)
  await once(socket, 'close')
  t.regex(text, /^HTTP\/1\.1 413|^$/)
})
