/**
 * A process that calls a server whose responses have too many header fields, on one connection
 * after another, with garbage collections in between. Prints how many calls were refused.
 */
import { once } from 'node:events'
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { outliveStreams } from '../../../runtime/kernel/http2-handle.js'

const calls = Number(process.argv[2])
const { gc } = globalThis
if (gc === undefined) throw new Error('needs --expose-gc')
const fields = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`x-${index}`, 'v']))
const server = createServer()
server.on('stream', (stream) => {
  stream.on('error', () => undefined)
  stream.respond({ ':status': 200, ...fields })
  stream.end('never read')
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

let refused = 0
for (let call = 0; call < calls; call += 1) {
  const session = connect(`http://127.0.0.1:${port}`)
  outliveStreams(session)
  const stream = session.request({ ':path': '/' })
  stream.once('error', () => {
    refused += 1
  })
  // Within the turn in which the stream ends.
  await new Promise<void>((resolve) => {
    stream.once('close', () => {
      if (call % 2 === 0) session.close()
      else session.destroy()
      void delay(1).then(resolve)
    })
    stream.resume().end()
  })
  if (call % 7 === 0) gc({ type: 'minor' })
  if (call % 50 === 0) gc()
}
process.stdout.write(String(refused))
process.exit()
