/** A session of node:http2 that has ended is not kept by its timer. */
import { once } from 'node:events'
import { connect, createServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import { endTimerWithSession } from '../../../gateway/transports/http2-timer.js'
import { until } from '../../support/service/watch.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void
const IDLE_MS = 600_000

test('ended sessions are collected before their idle time is over', async (t) => {
  const sessions: WeakRef<ServerHttp2Session>[] = []
  let idle = 0
  const server = createServer().on('session', (session) => {
    sessions.push(new WeakRef(session))
    endTimerWithSession(session)
    session.setTimeout(IDLE_MS)
    session.on('timeout', () => (idle += 1))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  for (let count = 0; count < 10; count += 1) {
    const client = connect(`http://127.0.0.1:${port}`)
    await once(client, 'remoteSettings')
    client.destroy()
    await once(client, 'close')
  }
  await until('the sessions are collected', async () => {
    await sleep(10)
    collectGarbage()
    return sessions.every((session) => session.deref() === undefined)
  })
  t.is(sessions.length, 10)
  t.is(idle, 0)
})
